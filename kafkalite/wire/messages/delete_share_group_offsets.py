"""DeleteShareGroupOffsets (API key 92), version 0, all flexible.

KIP-932.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Uuid
from kafkalite.wire.schema import ArrayOf, String, optional, structure

DeleteShareGroupOffsetsRequestTopic = structure(
    "DeleteShareGroupOffsetsRequestTopic",
    "topic_name" / String,
)

DeleteShareGroupOffsetsRequest = structure(
    "DeleteShareGroupOffsetsRequest",
    "group_id" / String,
    "topics" / ArrayOf(DeleteShareGroupOffsetsRequestTopic),
)

DeleteShareGroupOffsetsResponseTopic = structure(
    "DeleteShareGroupOffsetsResponseTopic",
    "topic_name" / String,
    "topic_id" / Uuid,
    "error_code" / Int16,
    "error_message" / optional(String),
)

DeleteShareGroupOffsetsResponse = structure(
    "DeleteShareGroupOffsetsResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
    "responses" / ArrayOf(DeleteShareGroupOffsetsResponseTopic),
)

DELETE_SHARE_GROUP_OFFSETS = Api(
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    versions=(0, 0),
    flexible_from=0,
    request=DeleteShareGroupOffsetsRequest,
    response=DeleteShareGroupOffsetsResponse,
)
