"""InitializeShareGroupState (API key 83), version 0, all flexible.

KIP-932. A group coordinator asks the share coordinator.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64, Uuid
from kafkalite.wire.schema import ArrayOf, String, optional, structure

PartitionData = structure(
    "PartitionData",
    "partition" / Int32,
    "state_epoch" / Int32,
    "start_offset" / Int64,
)

InitializeStateData = structure(
    "InitializeStateData",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(PartitionData),
)

InitializeShareGroupStateRequest = structure(
    "InitializeShareGroupStateRequest",
    "group_id" / String,
    "topics" / ArrayOf(InitializeStateData),
)

PartitionResult = structure(
    "PartitionResult",
    "partition" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
)

InitializeStateResult = structure(
    "InitializeStateResult",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(PartitionResult),
)

InitializeShareGroupStateResponse = structure(
    "InitializeShareGroupStateResponse",
    "results" / ArrayOf(InitializeStateResult),
)

INITIALIZE_SHARE_GROUP_STATE = Api(
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    versions=(0, 0),
    flexible_from=0,
    request=InitializeShareGroupStateRequest,
    response=InitializeShareGroupStateResponse,
)
