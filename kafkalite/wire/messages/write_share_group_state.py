"""WriteShareGroupState (API key 85), versions 0-1, all flexible.

KIP-932. A share partition's leader asks the share coordinator.

v1: delivery_complete_count (KIP-1226).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int8, Int16, Int32, Int64, Uuid
from kafkalite.wire.schema import ArrayOf, String, optional, since, structure

StateBatch = structure(
    "StateBatch",
    "first_offset" / Int64,
    "last_offset" / Int64,
    "delivery_state" / Int8,
    "delivery_count" / Int16,
)

PartitionData = structure(
    "PartitionData",
    "partition" / Int32,
    "state_epoch" / Int32,
    "leader_epoch" / Int32,
    "start_offset" / Int64,
    "delivery_complete_count" / since(1, Int32, default=-1),
    "state_batches" / ArrayOf(StateBatch),
)

WriteStateData = structure(
    "WriteStateData",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(PartitionData),
)

WriteShareGroupStateRequest = structure(
    "WriteShareGroupStateRequest",
    "group_id" / String,
    "topics" / ArrayOf(WriteStateData),
)

PartitionResult = structure(
    "PartitionResult",
    "partition" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
)

WriteStateResult = structure(
    "WriteStateResult",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(PartitionResult),
)

WriteShareGroupStateResponse = structure(
    "WriteShareGroupStateResponse",
    "results" / ArrayOf(WriteStateResult),
)

WRITE_SHARE_GROUP_STATE = Api(
    ApiKey.WRITE_SHARE_GROUP_STATE,
    versions=(0, 1),
    flexible_from=0,
    request=WriteShareGroupStateRequest,
    response=WriteShareGroupStateResponse,
)
