"""TxnOffsetCommit (API key 28), versions 0-5, flexible from 3.

KIP-98.

v1: the throttled client gets its answer before the pause (KIP-219).
v2: committed_leader_epoch (KIP-320).
v3: compact encoding and tag sections (KIP-482); member id and generation, so that a fenced
    member cannot commit (KIP-447).
v4: TRANSACTION_ABORTABLE may be answered (KIP-890).
v5: the group is added to the transaction by committing (KIP-890, part 2).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, String, nullable, optional, since, structure

TxnOffsetCommitRequestPartition = structure(
    "TxnOffsetCommitRequestPartition",
    "partition_index" / Int32,
    "committed_offset" / Int64,
    "committed_leader_epoch" / since(2, Int32, default=-1),
    "committed_metadata" / nullable(String),
)

TxnOffsetCommitRequestTopic = structure(
    "TxnOffsetCommitRequestTopic",
    "name" / String,
    "partitions" / ArrayOf(TxnOffsetCommitRequestPartition),
)

TxnOffsetCommitRequest = structure(
    "TxnOffsetCommitRequest",
    "transactional_id" / String,
    "group_id" / String,
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "generation_id" / since(3, Int32, default=-1),
    "member_id" / since(3, String),
    "group_instance_id" / since(3, optional(String)),
    "topics" / ArrayOf(TxnOffsetCommitRequestTopic),
)

TxnOffsetCommitResponsePartition = structure(
    "TxnOffsetCommitResponsePartition",
    "partition_index" / Int32,
    "error_code" / Int16,
)

TxnOffsetCommitResponseTopic = structure(
    "TxnOffsetCommitResponseTopic",
    "name" / String,
    "partitions" / ArrayOf(TxnOffsetCommitResponsePartition),
)

TxnOffsetCommitResponse = structure(
    "TxnOffsetCommitResponse",
    "throttle_time_ms" / Int32,
    "topics" / ArrayOf(TxnOffsetCommitResponseTopic),
)

TXN_OFFSET_COMMIT = Api(
    ApiKey.TXN_OFFSET_COMMIT,
    versions=(0, 5),
    flexible_from=3,
    request=TxnOffsetCommitRequest,
    response=TxnOffsetCommitResponse,
)
