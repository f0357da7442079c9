"""Metadata (API key 3), versions 0-13, flexible from 9.

v0: an empty topic list asks for all topics.
v1: null asks for all and an empty list for none; rack, controller_id, is_internal (KIP-4).
v2: cluster_id (KIP-78).
v3: throttle_time_ms (KIP-124).
v4: allow_auto_topic_creation.
v5: offline_replicas (KIP-112).
v6: the throttled client gets its answer before the pause (KIP-219).
v7: leader_epoch (KIP-320).
v8: authorized operations of topics and cluster (KIP-430).
v9: compact encoding and tag sections (KIP-482).
v10: topic ids in the response; those of the request count from v12 on (KIP-516).
v11: the cluster's authorized operations moved to DescribeCluster (KIP-700).
v12: topics may be asked for by id, the name being null (KIP-516).
v13: top-level error_code, for REBOOTSTRAP_REQUIRED (KIP-1102).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32, Uuid
from kafkalite.wire.schema import ArrayOf, String, nullable, optional, since, structure

MetadataRequestTopic = structure(
    "MetadataRequestTopic",
    "topic_id" / since(10, Uuid),
    "name" / nullable(String, since=10),
)

MetadataRequest = structure(
    "MetadataRequest",
    "topics" / nullable(ArrayOf(MetadataRequestTopic), since=1),
    "allow_auto_topic_creation" / since(4, Bool, default=True),
    "include_cluster_authorized_operations" / since(8, Bool, until=10),
    "include_topic_authorized_operations" / since(8, Bool),
)

MetadataResponseBroker = structure(
    "MetadataResponseBroker",
    "node_id" / Int32,
    "host" / String,
    "port" / Int32,
    "rack" / since(1, optional(String)),
)

MetadataResponsePartition = structure(
    "MetadataResponsePartition",
    "error_code" / Int16,
    "partition_index" / Int32,
    "leader_id" / Int32,
    "leader_epoch" / since(7, Int32, default=-1),
    "replica_nodes" / ArrayOf(Int32),
    "isr_nodes" / ArrayOf(Int32),
    "offline_replicas" / since(5, ArrayOf(Int32)),
)

MetadataResponseTopic = structure(
    "MetadataResponseTopic",
    "error_code" / Int16,
    "name" / nullable(String, since=12),
    "topic_id" / since(10, Uuid),
    "is_internal" / since(1, Bool),
    "partitions" / ArrayOf(MetadataResponsePartition),
    "topic_authorized_operations" / since(8, Int32, default=-(2**31)),
)

MetadataResponse = structure(
    "MetadataResponse",
    "throttle_time_ms" / since(3, Int32),
    "brokers" / ArrayOf(MetadataResponseBroker),
    "cluster_id" / since(2, optional(String)),
    "controller_id" / since(1, Int32, default=-1),
    "topics" / ArrayOf(MetadataResponseTopic),
    "cluster_authorized_operations" / since(8, Int32, until=10, default=-(2**31)),
    "error_code" / since(13, Int16),
)

METADATA = Api(
    ApiKey.METADATA,
    versions=(0, 13),
    flexible_from=9,
    request=MetadataRequest,
    response=MetadataResponse,
)
