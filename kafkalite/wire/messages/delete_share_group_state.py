"""DeleteShareGroupState (API key 86), version 0, all flexible.

KIP-932. A group coordinator asks the share coordinator.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Uuid
from kafkalite.wire.schema import ArrayOf, String, optional, structure

PartitionData = structure(
    "PartitionData",
    "partition" / Int32,
)

DeleteStateData = structure(
    "DeleteStateData",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(PartitionData),
)

DeleteShareGroupStateRequest = structure(
    "DeleteShareGroupStateRequest",
    "group_id" / String,
    "topics" / ArrayOf(DeleteStateData),
)

PartitionResult = structure(
    "PartitionResult",
    "partition" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
)

DeleteStateResult = structure(
    "DeleteStateResult",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(PartitionResult),
)

DeleteShareGroupStateResponse = structure(
    "DeleteShareGroupStateResponse",
    "results" / ArrayOf(DeleteStateResult),
)

DELETE_SHARE_GROUP_STATE = Api(
    ApiKey.DELETE_SHARE_GROUP_STATE,
    versions=(0, 0),
    flexible_from=0,
    request=DeleteShareGroupStateRequest,
    response=DeleteShareGroupStateResponse,
)
