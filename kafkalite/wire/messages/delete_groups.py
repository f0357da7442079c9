"""DeleteGroups (API key 42), versions 0-2, flexible from 2.

KIP-229.

v1: the throttled client gets its answer before the pause (KIP-219).
v2: compact encoding and tag sections (KIP-482).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, structure

DeleteGroupsRequest = structure(
    "DeleteGroupsRequest",
    "groups_names" / ArrayOf(String),
)

DeletableGroupResult = structure(
    "DeletableGroupResult",
    "group_id" / String,
    "error_code" / Int16,
)

DeleteGroupsResponse = structure(
    "DeleteGroupsResponse",
    "throttle_time_ms" / Int32,
    "results" / ArrayOf(DeletableGroupResult),
)

DELETE_GROUPS = Api(
    ApiKey.DELETE_GROUPS,
    versions=(0, 2),
    flexible_from=2,
    request=DeleteGroupsRequest,
    response=DeleteGroupsResponse,
)
