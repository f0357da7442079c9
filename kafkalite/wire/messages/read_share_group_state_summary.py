"""ReadShareGroupStateSummary (API key 87), versions 0-1, all flexible.

KIP-932. A group coordinator asks the share coordinator.

v1: delivery_complete_count (KIP-1226).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64, Uuid
from kafkalite.wire.schema import ArrayOf, String, optional, since, structure

PartitionData = structure(
    "PartitionData",
    "partition" / Int32,
    "leader_epoch" / Int32,
)

ReadStateSummaryData = structure(
    "ReadStateSummaryData",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(PartitionData),
)

ReadShareGroupStateSummaryRequest = structure(
    "ReadShareGroupStateSummaryRequest",
    "group_id" / String,
    "topics" / ArrayOf(ReadStateSummaryData),
)

PartitionResult = structure(
    "PartitionResult",
    "partition" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
    "state_epoch" / Int32,
    "leader_epoch" / Int32,
    "start_offset" / Int64,
    "delivery_complete_count" / since(1, Int32, default=-1),
)

ReadStateSummaryResult = structure(
    "ReadStateSummaryResult",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(PartitionResult),
)

ReadShareGroupStateSummaryResponse = structure(
    "ReadShareGroupStateSummaryResponse",
    "results" / ArrayOf(ReadStateSummaryResult),
)

READ_SHARE_GROUP_STATE_SUMMARY = Api(
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    versions=(0, 1),
    flexible_from=0,
    request=ReadShareGroupStateSummaryRequest,
    response=ReadShareGroupStateSummaryResponse,
)
