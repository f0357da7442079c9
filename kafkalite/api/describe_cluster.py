"""DescribeCluster (key 60), versions 0-2: who is in the cluster (KIP-700).

v1: endpoint type (KIP-919): brokers only, there are no separate controllers. v2: fenced brokers
(KIP-1073), of which there are none.
"""

from kafkalite.api.authorized_operations import NOT_REQUESTED, ON_CLUSTER
from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.listener_endpoints import endpoints_for
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.describe_cluster import (
    DESCRIBE_CLUSTER,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS_ENDPOINT = 1
CONTROLLERS_ENDPOINT = 2


def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    """Answer from the image."""
    if request.endpoint_type == CONTROLLERS_ENDPOINT:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "the request was sent to a broker, but asks for an endpoint of a controller",
        )
    if request.endpoint_type != BROKERS_ENDPOINT:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"endpoint type {request.endpoint_type}"
        )
    image = context.services.metadata.image
    brokers = [
        DescribeClusterBroker(
            broker_id=broker_id, host=host, port=port, rack=image.brokers[broker_id].rack
        )
        for broker_id, (host, port) in endpoints_for(context).items()
    ]
    wants_operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=brokers,
        cluster_authorized_operations=ON_CLUSTER if wants_operations else NOT_REQUESTED,
    )


def refuse(
    request: DescribeClusterRequest, error: KafkaError, context: RequestContext
) -> DescribeClusterResponse:
    """Answer the error."""
    del request, context
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)


HANDLERS = (Handler(DESCRIBE_CLUSTER, handle, refuse),)
