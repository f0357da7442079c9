"""DescribeCluster (API key 60), versions 0-2, all flexible.

KIP-700.

v1: endpoint_type: brokers 1 or controllers 2 (KIP-919).
v2: fenced brokers are listed if asked for (KIP-1073).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int8, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, default, optional, since, structure

DescribeClusterRequest = structure(
    "DescribeClusterRequest",
    "include_cluster_authorized_operations" / Bool,
    "endpoint_type" / since(1, Int8, default=1),
    "include_fenced_brokers" / since(2, Bool),
)

DescribeClusterBroker = structure(
    "DescribeClusterBroker",
    "broker_id" / Int32,
    "host" / String,
    "port" / Int32,
    "rack" / optional(String),
    "is_fenced" / since(2, Bool),
)

DescribeClusterResponse = structure(
    "DescribeClusterResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / optional(String),
    "endpoint_type" / since(1, Int8, default=1),
    "cluster_id" / String,
    "controller_id" / default(Int32, -1),
    "brokers" / ArrayOf(DescribeClusterBroker),
    "cluster_authorized_operations" / default(Int32, -(2**31)),
)

DESCRIBE_CLUSTER = Api(
    ApiKey.DESCRIBE_CLUSTER,
    versions=(0, 2),
    flexible_from=0,
    request=DescribeClusterRequest,
    response=DescribeClusterResponse,
)
