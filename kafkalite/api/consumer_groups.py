"""Consumer groups: ConsumerGroupHeartbeat, ConsumerGroupDescribe (keys 68, 69; KIP-848).

ConsumerGroupHeartbeat 0-1. v1: pattern of topics; the member makes its own id (KIP-1082).
ConsumerGroupDescribe 0-1. v1: type of the members (KIP-1099).

The rules are in `group/consumer`; here requests become events, and refusals responses.
"""

from uuid import uuid4

from kafkalite.api.authorized_operations import ON_GROUP
from kafkalite.api.context import RequestContext
from kafkalite.api.coordinator_requests import (
    check_group_id,
    check_size,
    check_subscription,
    client_code,
    gather,
    handle_group_request,
)
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.group.consumer.events import ConsumerHeartbeat, DescribeConsumerGroup
from kafkalite.group.consumer.heartbeat import check_heartbeat
from kafkalite.meta.features import GROUP_VERSION
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kafkalite.wire.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

PROTOCOL = "consumer"
SUBSCRIPTION_SIZE_MAX = 1_000_000
"""Characters of all topic names: about what a record in `__consumer_offsets` holds."""


def check_enabled(context: RequestContext) -> None:
    """Refuse everything about consumer groups where they are switched off.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
    """
    services = context.services
    protocols = services.config.list("group.coordinator.rebalance.protocols")
    if not services.metadata.image.feature_level(GROUP_VERSION) or PROTOCOL not in protocols:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, "The consumer group protocol is not enabled."
        )


def heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse | Deferred[ConsumerGroupHeartbeatResponse]:
    """Join a consumer group, stay in it, or leave it."""
    check_enabled(context)
    assignors = context.services.config.list("group.consumer.assignors")
    check_heartbeat(request, context.api_version, assignors)
    _check_sizes(request, context)
    event = ConsumerHeartbeat(
        request=request,
        client_id=context.client_id,
        client_host=f"/{context.peer_address[0]}",  # as Java prints an address
        new_member_id="" if request.member_id else str(uuid4()),
        principal=context.principal,
    )
    return handle_group_request(request.group_id, event, context)


def _check_sizes(request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> None:
    """Refuse what no record can hold, before it costs anything."""
    check_group_id(request.group_id)
    check_size("member id", request.member_id)
    check_size("client id", context.client_id)
    check_size("instance id", request.instance_id)
    check_size("rack id", request.rack_id)
    names = request.subscribed_topic_names
    check_subscription(names)
    if names is not None and sum(map(len, names)) > SUBSCRIPTION_SIZE_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"SubscribedTopicNames are longer than {SUBSCRIPTION_SIZE_MAX} characters.",
        )


def refuse_heartbeat(
    request: ConsumerGroupHeartbeatRequest, error: KafkaError, context: RequestContext
) -> ConsumerGroupHeartbeatResponse:
    """Answer the error."""
    del request, context
    return ConsumerGroupHeartbeatResponse(
        error_code=client_code(error), error_message=error.message or error.code.name
    )


def describe(
    request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse | Deferred[ConsumerGroupDescribeResponse]:
    """Describe each group; one that is coordinated elsewhere has an error of its own."""
    check_enabled(context)

    def convert(groups: list[DescribedGroup]) -> ConsumerGroupDescribeResponse:
        for group in groups:
            if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
                group.authorized_operations = ON_GROUP
        return ConsumerGroupDescribeResponse(groups=groups)

    return gather(
        request.group_ids,
        lambda group_id: _describe_one(group_id, context),
        _not_described,
        convert,
    )


def _describe_one(
    group_id: str, context: RequestContext
) -> DescribedGroup | Deferred[DescribedGroup]:
    check_group_id(group_id)
    return handle_group_request(group_id, DescribeConsumerGroup(group_id), context)


def refuse_describe(
    request: ConsumerGroupDescribeRequest, error: KafkaError, context: RequestContext
) -> ConsumerGroupDescribeResponse:
    """Answer the error for each group."""
    del context
    groups = [_not_described(group_id, error) for group_id in request.group_ids]
    return ConsumerGroupDescribeResponse(groups=groups)


def _not_described(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)


HANDLERS = (
    Handler(CONSUMER_GROUP_HEARTBEAT, heartbeat, refuse_heartbeat),
    Handler(CONSUMER_GROUP_DESCRIBE, describe, refuse_describe),
)
