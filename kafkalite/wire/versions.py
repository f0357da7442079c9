"""Versions that who asks a cluster by names and one at a time stays below."""

from typing import Final

from kafkalite.wire.api import ApiKey

VERSION_CAPS: Final = {
    ApiKey.PRODUCE: 12,
    ApiKey.FETCH: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 7,
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.DESCRIBE_GROUPS: 5,
}
"""The last version before a message changed its shape (topic IDs for names, batches of groups).

Every broker that has the newer shape accepts the older one too, so one shape is enough here.
"""
