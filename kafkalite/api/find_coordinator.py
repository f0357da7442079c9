"""FindCoordinator (key 10), versions 0-6: which broker to ask about a group or a transactional id.

v1: key type, error message. v3: flexible. v4: several keys (KIP-699). v5: TRANSACTION_ABORTABLE.
v6: share partitions (KIP-932), which only brokers ask about.
"""

from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.coordinator.shard import partition_for
from kafkalite.deferred import Deferred
from kafkalite.log.checkpoint import parse_uuid
from kafkalite.types import (
    CONSUMER_OFFSETS_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.find_coordinator import (
    FIND_COORDINATOR,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from kafkalite.meta.image import BrokerImage

FIRST_VERSION_WITH_SEVERAL_KEYS = 4
FIRST_VERSION_WITH_SHARE = 6
NO_NODE = -1
NO_PORT = -1


class KeyType(IntEnum):
    """Kind of coordinator that a key belongs to."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


TOPICS = {
    KeyType.GROUP: CONSUMER_OFFSETS_TOPIC,
    KeyType.TRANSACTION: TRANSACTION_STATE_TOPIC,
    KeyType.SHARE: SHARE_GROUP_STATE_TOPIC,
}


def handle(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse | Deferred[FindCoordinatorResponse]:
    """Answer from the image; an internal topic that is not there yet is made first.

    Kafka answers COORDINATOR_NOT_AVAILABLE while it makes the topic (rule 124). Clients come back
    after a tenth of a second then; waiting for it here saves every first test that time.
    """
    topic = TOPICS.get(request.key_type)  # type: ignore[call-overload]
    is_share = request.key_type == KeyType.SHARE
    if topic is None or (is_share and context.api_version < FIRST_VERSION_WITH_SHARE):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"no coordinator of type {request.key_type}")
    if is_share and not any(map(_is_share_key, _keys(request, context))):
        return _answer(request, topic, context)
    if is_share and not context.is_inter_broker:
        raise KafkaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"share coordinators are not asked for by listener {context.listener}",
        )
    if not context.services.coordinators.coordinates(topic):
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, "this broker does not coordinate transactions"
        )
    if topic not in context.services.metadata.image.topics:
        return Deferred(partial(_create_and_answer, request, topic, context))
    return _answer(request, topic, context)


def refuse(
    request: FindCoordinatorRequest, error: KafkaError, context: RequestContext
) -> FindCoordinatorResponse:
    """Answer the error for each key."""
    return _response([_nowhere(key, error) for key in _keys(request, context)], context)


async def _create_and_answer(
    request: FindCoordinatorRequest, topic: str, context: RequestContext
) -> FindCoordinatorResponse:
    try:
        await context.services.topic_creation.ensure_topic(topic)
    except KafkaError as error:
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, f"could not create {topic}: {error}"
        ) from error
    return _answer(request, topic, context)


def _answer(
    request: FindCoordinatorRequest, topic: str, context: RequestContext
) -> FindCoordinatorResponse:
    return _response([_find(key, topic, context) for key in _keys(request, context)], context)


def _keys(request: FindCoordinatorRequest, context: RequestContext) -> list[str]:
    if context.api_version >= FIRST_VERSION_WITH_SEVERAL_KEYS:
        return request.coordinator_keys
    return [request.key]


def _find(key: str, topic: str, context: RequestContext) -> Coordinator:
    if topic == TRANSACTION_STATE_TOPIC and not key:
        return _nowhere(key, KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty"))
    if topic == SHARE_GROUP_STATE_TOPIC and not _is_share_key(key):
        return _nowhere(
            key,
            KafkaError(ErrorCode.INVALID_REQUEST, f"{key!r} is not group:topic id:partition"),
        )
    broker = _leader(key, topic, context)
    endpoint = None if broker is None else context.endpoint(broker)
    if broker is None or endpoint is None:
        message = f"the partition of {topic} that {key!r} belongs to has no leader now"
        return _nowhere(key, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message))
    host, port = endpoint
    return Coordinator(
        key=key, node_id=broker.broker_id, host=host, port=port, error_code=ErrorCode.NONE
    )


def _is_share_key(key: str) -> bool:
    """Whether a key names a share partition; group ids may hold colons."""
    group_id, topic_id, partition = ("::" + key).rsplit(":", 2)
    try:
        parse_uuid(topic_id)
    except ValueError:
        return False
    return bool(group_id.strip(": ")) and partition.isascii() and partition.isdigit()


def _leader(key: str, topic: str, context: RequestContext) -> "BrokerImage | None":
    image = context.services.metadata.image
    found = image.topics.get(topic)
    if found is None:
        return None
    state = found.partitions[partition_for(key, len(found.partitions))]
    leader: BrokerImage | None = image.brokers.get(state.leader)
    return leader


def _nowhere(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=NO_NODE,
        port=NO_PORT,
        error_code=error.code,
        error_message=error.message or error.code.name,
    )


def _response(found: list[Coordinator], context: RequestContext) -> FindCoordinatorResponse:
    if context.api_version >= FIRST_VERSION_WITH_SEVERAL_KEYS:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message or None,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


HANDLERS = (Handler(FIND_COORDINATOR, handle, refuse),)
