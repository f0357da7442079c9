"""OffsetForLeaderEpoch (API key 23), versions 2-4, flexible from 4.

KIP-101. The versions before 2 left Kafka with 4.0 (KIP-896).

v2: current_leader_epoch fences the request (KIP-320); throttle_time_ms.
v3: replica_id; consumers send -1 and see no further than the high watermark (KIP-392).
v4: compact encoding and tag sections (KIP-482).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, String, default, since, structure

OffsetForLeaderPartition = structure(
    "OffsetForLeaderPartition",
    "partition" / Int32,
    "current_leader_epoch" / default(Int32, -1),
    "leader_epoch" / Int32,
)

OffsetForLeaderTopic = structure(
    "OffsetForLeaderTopic",
    "topic" / String,
    "partitions" / ArrayOf(OffsetForLeaderPartition),
)

OffsetForLeaderEpochRequest = structure(
    "OffsetForLeaderEpochRequest",
    "replica_id" / since(3, Int32, default=-2),
    "topics" / ArrayOf(OffsetForLeaderTopic),
)

EpochEndOffset = structure(
    "EpochEndOffset",
    "error_code" / Int16,
    "partition" / Int32,
    "leader_epoch" / default(Int32, -1),
    "end_offset" / default(Int64, -1),
)

OffsetForLeaderTopicResult = structure(
    "OffsetForLeaderTopicResult",
    "topic" / String,
    "partitions" / ArrayOf(EpochEndOffset),
)

OffsetForLeaderEpochResponse = structure(
    "OffsetForLeaderEpochResponse",
    "throttle_time_ms" / Int32,
    "topics" / ArrayOf(OffsetForLeaderTopicResult),
)

OFFSET_FOR_LEADER_EPOCH = Api(
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    versions=(2, 4),
    flexible_from=4,
    request=OffsetForLeaderEpochRequest,
    response=OffsetForLeaderEpochResponse,
)
