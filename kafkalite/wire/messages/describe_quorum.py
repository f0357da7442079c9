"""DescribeQuorum (API key 55), versions 0-2, all flexible.

KIP-595.

v1: last_fetch_timestamp, last_caught_up_timestamp (KIP-836).
v2: error messages, nodes, replica_directory_id (KIP-853).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64, UInt16, Uuid
from kafkalite.wire.schema import ArrayOf, String, nullable, since, structure

DescribeQuorumPartition = structure("DescribeQuorumPartition", "partition_index" / Int32)

DescribeQuorumTopic = structure(
    "DescribeQuorumTopic",
    "topic_name" / String,
    "partitions" / ArrayOf(DescribeQuorumPartition),
)

DescribeQuorumRequest = structure(
    "DescribeQuorumRequest",
    "topics" / ArrayOf(DescribeQuorumTopic),
)

ReplicaState = structure(
    "ReplicaState",
    "replica_id" / Int32,
    "replica_directory_id" / since(2, Uuid),
    "log_end_offset" / Int64,
    "last_fetch_timestamp" / since(1, Int64, default=-1),
    "last_caught_up_timestamp" / since(1, Int64, default=-1),
)

PartitionData = structure(
    "PartitionData",
    "partition_index" / Int32,
    "error_code" / Int16,
    "error_message" / since(2, nullable(String)),
    "leader_id" / Int32,
    "leader_epoch" / Int32,
    "high_watermark" / Int64,
    "current_voters" / ArrayOf(ReplicaState),
    "observers" / ArrayOf(ReplicaState),
)

TopicData = structure(
    "TopicData",
    "topic_name" / String,
    "partitions" / ArrayOf(PartitionData),
)

Listener = structure(
    "Listener",
    "name" / String,
    "host" / String,
    "port" / UInt16,
)

Node = structure(
    "Node",
    "node_id" / Int32,
    "listeners" / ArrayOf(Listener),
)

DescribeQuorumResponse = structure(
    "DescribeQuorumResponse",
    "error_code" / Int16,
    "error_message" / since(2, nullable(String)),
    "topics" / ArrayOf(TopicData),
    "nodes" / since(2, ArrayOf(Node)),
)

DESCRIBE_QUORUM = Api(
    ApiKey.DESCRIBE_QUORUM,
    versions=(0, 2),
    flexible_from=0,
    request=DescribeQuorumRequest,
    response=DescribeQuorumResponse,
)
