"""AlterPartition (API key 56), versions 2-3, all flexible.

KIP-497. Sent by the leader of a partition to the controller. Versions 0 and 1 left Kafka with 4.0
(KIP-896).

v2: topic ids instead of names; INELIGIBLE_REPLICA, NEW_LEADER_ELECTED and UNKNOWN_TOPIC_ID may be
    answered (KIP-841).
v3: new_isr_with_epochs replaces new_isr (KIP-903).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int8, Int16, Int32, Int64, Uuid
from kafkalite.wire.schema import ArrayOf, default, since, structure, until

BrokerState = structure(
    "BrokerState",
    "broker_id" / Int32,
    "broker_epoch" / default(Int64, -1),
)

AlterPartitionData = structure(
    "AlterPartitionData",
    "partition_index" / Int32,
    "leader_epoch" / Int32,
    "new_isr" / until(2, ArrayOf(Int32)),
    "new_isr_with_epochs" / since(3, ArrayOf(BrokerState)),
    "leader_recovery_state" / Int8,
    "partition_epoch" / Int32,
)

AlterPartitionTopic = structure(
    "AlterPartitionTopic",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(AlterPartitionData),
)

AlterPartitionRequest = structure(
    "AlterPartitionRequest",
    "broker_id" / Int32,
    "broker_epoch" / default(Int64, -1),
    "topics" / ArrayOf(AlterPartitionTopic),
)

AlterPartitionResult = structure(
    "AlterPartitionResult",
    "partition_index" / Int32,
    "error_code" / Int16,
    "leader_id" / Int32,
    "leader_epoch" / Int32,
    "isr" / ArrayOf(Int32),
    "leader_recovery_state" / Int8,
    "partition_epoch" / Int32,
)

AlterPartitionTopicResult = structure(
    "AlterPartitionTopicResult",
    "topic_id" / Uuid,
    "partitions" / ArrayOf(AlterPartitionResult),
)

AlterPartitionResponse = structure(
    "AlterPartitionResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "topics" / ArrayOf(AlterPartitionTopicResult),
)

ALTER_PARTITION = Api(
    ApiKey.ALTER_PARTITION,
    versions=(2, 3),
    flexible_from=0,
    request=AlterPartitionRequest,
    response=AlterPartitionResponse,
)
