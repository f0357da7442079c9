"""Facts that fault rules are matched with, taken from a request and its connection."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkalite.faults.partitions import SHAPES, WHOLE_TOPIC, TopicName, name_of, units_of
from kafkalite.faults.rules import RecordFacts, RequestFacts, Unit
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import KafkaError, MalformedMessage
from kafkalite.wire.records import iterate_batches, iterate_records

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext
    from kafkalite.wire.header import RequestHeader

NAMING_GROUPS: Final = frozenset(
    {
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.OFFSET_DELETE,
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.DELETE_GROUPS,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_DESCRIBE,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    }
)
"""APIs that a rule about a group can be about."""

NAMING_TRANSACTIONS: Final = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FIND_COORDINATOR,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.DESCRIBE_TRANSACTIONS,
    }
)
"""APIs that a rule about a transactional id can be about."""

GROUP_KEY, TRANSACTION_KEY = 0, 1
"""Key types of FindCoordinator."""


def facts_of(
    api: ApiKey,
    header: "RequestHeader",
    request: Any,
    context: "RequestContext",
    *,
    size_bytes: int,
    topic_name: TopicName,
) -> RequestFacts:
    """Return what rules look at in a request."""
    host, port = context.peer_address
    units = units_of(api, request, topic_name)
    if api is ApiKey.FETCH and not units:
        units = _session_units(request, context, topic_name)
    elif api is ApiKey.METADATA and not request.topics:
        units = [Unit(name, WHOLE_TOPIC) for name in context.services.metadata.image.topics]
    return RequestFacts(
        api=api,
        version=header.api_version,
        client_id=header.client_id,
        user=context.principal.removeprefix("User:"),
        listener=context.listener,
        peer=f"{host}:{port}",
        size_bytes=size_bytes,
        is_replica=_is_replica(api, request),
        groups=tuple(_groups(api, request)),
        transactional_ids=tuple(_transactional_ids(api, request)),
        units=tuple(units),
        records=partial(_records, api, request, topic_name),
        message=request,
    )


def _session_units(request: Any, context: "RequestContext", topic_name: TopicName) -> list[Unit]:
    """Return what an incremental Fetch does not name again (KIP-227)."""
    return [
        Unit(name or topic_name(topic_id) or "", index)
        for name, topic_id, index in context.services.fetch_sessions.partitions_of(
            request.session_id
        )
    ]


def _is_replica(api: ApiKey, request: Any) -> bool:
    if api is not ApiKey.FETCH:
        return False
    return bool(request.replica_id >= 0 or request.replica_state.replica_id >= 0)


def _groups(api: ApiKey, request: Any) -> Iterable[str]:
    if api is ApiKey.FIND_COORDINATOR:
        return _coordinator_keys(request, GROUP_KEY)
    if api is ApiKey.OFFSET_FETCH and request.groups:
        return [group.group_id for group in request.groups]
    if api is ApiKey.DELETE_GROUPS:
        names: list[str] = request.groups_names
        return names
    named = getattr(request, "group_id", None) or getattr(request, "group_ids", None)
    if named is None and api is ApiKey.DESCRIBE_GROUPS:
        named = request.groups
    if isinstance(named, str):
        return [named] if named else []
    return [each for each in named or () if isinstance(each, str)]


def _transactional_ids(api: ApiKey, request: Any) -> Iterable[str]:
    if api is ApiKey.FIND_COORDINATOR:
        return _coordinator_keys(request, TRANSACTION_KEY)
    if api is ApiKey.ADD_PARTITIONS_TO_TXN:
        several = [each.transactional_id for each in request.transactions]
        return several or [request.v3_and_below_transactional_id]
    if api is ApiKey.DESCRIBE_TRANSACTIONS:
        return [*request.transactional_ids]
    named = getattr(request, "transactional_id", None)
    return [named] if named else []


def _coordinator_keys(request: Any, key_type: int) -> list[str]:
    if request.key_type != key_type:
        return []
    return [*request.coordinator_keys] or [request.key]


def _records(api: ApiKey, request: Any, topic_name: TopicName, unit: Unit) -> Iterable[RecordFacts]:
    """Decode the records that a Produce request has for a partition."""
    if api is not ApiKey.PRODUCE:
        return
    shape = SHAPES[api]
    for topic in request.topic_data:
        if name_of(topic, shape, topic_name) != unit.topic:
            continue
        for data in topic.partition_data:
            if data.index == unit.partition and data.records:
                yield from _decoded(memoryview(data.records))


def _decoded(data: memoryview) -> Iterable[RecordFacts]:
    try:
        for position, _ in iterate_batches(data):
            for record in iterate_records(data[position:]):
                yield RecordFacts(record.key, record.value, record.headers)
    except (KafkaError, MalformedMessage):
        return  # the log refuses it
