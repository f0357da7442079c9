"""ReadShareGroupState (API key 84), version 0, all flexible.

KIP-932. A share partition's leader asks the share coordinator.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int8, Int16, Int32, Int64, Uuid
from kafkalite.wire.schema import ArrayOf, String, optional, structure

PartitionData = structure(
    "PartitionData",
    "partition" / Int32,
    "leader_epoch" / Int32,
)

ReadStateData = structure(
    "ReadStateData",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(PartitionData),
)

ReadShareGroupStateRequest = structure(
    "ReadShareGroupStateRequest",
    "group_id" / String,
    "topics" / ArrayOf(ReadStateData),
)

StateBatch = structure(
    "StateBatch",
    "first_offset" / Int64,
    "last_offset" / Int64,
    "delivery_state" / Int8,
    "delivery_count" / Int16,
)

PartitionResult = structure(
    "PartitionResult",
    "partition" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
    "state_epoch" / Int32,
    "start_offset" / Int64,
    "state_batches" / ArrayOf(StateBatch),
)

ReadStateResult = structure(
    "ReadStateResult",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(PartitionResult),
)

ReadShareGroupStateResponse = structure(
    "ReadShareGroupStateResponse",
    "results" / ArrayOf(ReadStateResult),
)

READ_SHARE_GROUP_STATE = Api(
    ApiKey.READ_SHARE_GROUP_STATE,
    versions=(0, 0),
    flexible_from=0,
    request=ReadShareGroupStateRequest,
    response=ReadShareGroupStateResponse,
)
