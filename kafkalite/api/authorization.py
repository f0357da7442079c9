"""Authorization of requests: one hook for all APIs, and one table of the operations each needs.

Where the broker has an authorizer, requests come here before their handlers. What is asked for as
a whole is refused as a whole. Of what names several things, those that are denied are taken out,
the handler answers the rest, and its own `refuse` answers for what was taken out: so each denial
stands where the API has a field for it. What lists everything is stripped of what may not be seen.
Produce and Fetch, which have no time for this, ask for each partition themselves.

The operations and errors are those of Kafka's KafkaApis and ControllerApis (rules 549-551).
"""

import copy
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkalite.api.authorized_operations import NOT_REQUESTED
from kafkalite.api.group_authorization import EACH_GROUP, GROUP_GATES, GROUP_WAYS
from kafkalite.api.handler import Handler
from kafkalite.api.needs import (
    CLUSTER,
    GROUP,
    TOPIC,
    TRANSACTION,
    Each,
    EachResource,
    Need,
    admitted,
    denied,
    group_id_of,
    handle_each,
    itself,
    then,
    then_in_steps,
    topic_field,
    topic_name,
    transactional_id_of,
)
from kafkalite.api.visibility import cluster_operations, may, operations, strip
from kafkalite.security.acls import Operation
from kafkalite.types import ZERO_UUID
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext

READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
ALTER, DESCRIBE = Operation.ALTER, Operation.DESCRIBE

STEP_TOPICS: Final = 250
"""Topics of an answer looked at in one go: a few milliseconds if operations are asked for."""

Steps = Generator[None, None, Any]


def handle(handler: Handler, request: Any, context: "RequestContext") -> Any:
    """Have a request answered as far as it is allowed; to be called instead of the handler.

    Raises:
        KafkaError: all of it is denied.
    """
    key = handler.api.key
    gate = GROUP_GATES.get(key)
    if gate is not None:
        gate(context)
    for need in NEEDS.get(key, ()):
        need.check(request, context)
    special = SPECIAL.get(key)
    if special is not None:
        return special(handler, request, context)
    each = EACH.get(key)
    if each is None or not getattr(request, each.items):
        return then(handler.handle(request, context), partial(strip, key, request, context))
    return handle_each(each, handler, request, context)


READS_GROUP: Final = (Need(READ, GROUP, group_id_of),)
ALTERS: Final = (Need(ALTER),)
DESCRIBES: Final = (Need(DESCRIBE),)
ACTS: Final = (Need(Operation.CLUSTER_ACTION),)

NEEDS: Final[dict[ApiKey, tuple[Need, ...]]] = {
    ApiKey.JOIN_GROUP: READS_GROUP,
    ApiKey.SYNC_GROUP: READS_GROUP,
    ApiKey.HEARTBEAT: READS_GROUP,
    ApiKey.LEAVE_GROUP: READS_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: READS_GROUP,
    ApiKey.SHARE_GROUP_HEARTBEAT: READS_GROUP,
    ApiKey.STREAMS_GROUP_HEARTBEAT: READS_GROUP,
    ApiKey.SHARE_FETCH: READS_GROUP,
    ApiKey.SHARE_ACKNOWLEDGE: READS_GROUP,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: READS_GROUP,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (Need(DELETE, GROUP, group_id_of),),
    ApiKey.OFFSET_COMMIT: READS_GROUP,
    ApiKey.OFFSET_DELETE: (Need(DELETE, GROUP, group_id_of),),
    ApiKey.END_TXN: (Need(WRITE, TRANSACTION, transactional_id_of),),
    ApiKey.ADD_OFFSETS_TO_TXN: (
        Need(WRITE, TRANSACTION, transactional_id_of),
        Need(READ, GROUP, group_id_of),
    ),
    ApiKey.TXN_OFFSET_COMMIT: (
        Need(WRITE, TRANSACTION, transactional_id_of),
        Need(READ, GROUP, group_id_of),
    ),
    ApiKey.WRITE_TXN_MARKERS: (Need(Operation.CLUSTER_ACTION, or_else=ALTER),),
    ApiKey.LIST_CONFIG_RESOURCES: (Need(Operation.DESCRIBE_CONFIGS),),
    ApiKey.DESCRIBE_LOG_DIRS: DESCRIBES,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: DESCRIBES,
    ApiKey.DESCRIBE_QUORUM: DESCRIBES,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: DESCRIBES,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (Need(Operation.DESCRIBE_CONFIGS),),
    ApiKey.ALTER_CLIENT_QUOTAS: (Need(Operation.ALTER_CONFIGS),),
    ApiKey.DESCRIBE_ACLS: DESCRIBES,
    ApiKey.CREATE_ACLS: ALTERS,
    ApiKey.DELETE_ACLS: ALTERS,
    ApiKey.ALTER_REPLICA_LOG_DIRS: ALTERS,
    ApiKey.ELECT_LEADERS: ALTERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: ALTERS,
    ApiKey.UPDATE_FEATURES: ALTERS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ALTERS,
    ApiKey.UNREGISTER_BROKER: ALTERS,
    ApiKey.ADD_RAFT_VOTER: ALTERS,
    ApiKey.REMOVE_RAFT_VOTER: ALTERS,
    ApiKey.CONTROLLED_SHUTDOWN: ACTS,
    ApiKey.ALTER_PARTITION: ACTS,
    ApiKey.ALLOCATE_PRODUCER_IDS: ACTS,
    ApiKey.ENVELOPE: ACTS,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: ACTS,
    ApiKey.READ_SHARE_GROUP_STATE: ACTS,
    ApiKey.WRITE_SHARE_GROUP_STATE: ACTS,
    ApiKey.DELETE_SHARE_GROUP_STATE: ACTS,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: ACTS,
}
"""Of requests as a whole, in the order of Kafka's checks. What is in no table needs nothing, or
asks itself."""

EACH: Final[dict[ApiKey, Each]] = {
    **EACH_GROUP,
    ApiKey.LIST_OFFSETS: Each("topics", "topics", DESCRIBE, TOPIC, topic_name),
    ApiKey.OFFSET_COMMIT: Each("topics", "topics", READ, TOPIC, topic_name),
    ApiKey.TXN_OFFSET_COMMIT: Each("topics", "topics", READ, TOPIC, topic_name),
    ApiKey.DESCRIBE_GROUPS: Each("groups", "groups", DESCRIBE, GROUP, itself),
    ApiKey.DELETE_GROUPS: Each("groups_names", "results", DELETE, GROUP, itself),
    ApiKey.CREATE_TOPICS: Each("topics", "topics", CREATE, TOPIC, topic_name, unless=CREATE),
    ApiKey.CREATE_PARTITIONS: Each("topics", "results", ALTER, TOPIC, topic_name),
    ApiKey.DELETE_RECORDS: Each("topics", "topics", DELETE, TOPIC, topic_name),
    ApiKey.DESCRIBE_PRODUCERS: Each("topics", "topics", READ, TOPIC, topic_name),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Each(
        "topics", "topics", DESCRIBE, TOPIC, topic_field, unless=Operation.CLUSTER_ACTION
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Each("topics", "topics", DESCRIBE, TOPIC, topic_name),
    ApiKey.DESCRIBE_TRANSACTIONS: Each(
        "transactional_ids", "transaction_states", DESCRIBE, TRANSACTION, itself
    ),
    ApiKey.DESCRIBE_CONFIGS: EachResource(
        "resources", "results", Operation.DESCRIBE_CONFIGS, TOPIC, topic_name
    ),
    ApiKey.ALTER_CONFIGS: EachResource(
        "resources", "responses", Operation.ALTER_CONFIGS, TOPIC, topic_name
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: EachResource(
        "resources", "responses", Operation.ALTER_CONFIGS, TOPIC, topic_name
    ),
}
"""Of things that a request names, besides."""

# --- What has ways of its own --------------------------------------------------------------------


def _metadata(handler: Handler, request: Any, context: "RequestContext") -> Any:
    """Leave out what may not be seen where all was asked for; refuse what was named (rule 549)."""
    if not request.topics:
        return then_in_steps(
            handler.handle(request, context), partial(_strip_metadata, context, all_=True)
        )
    image = context.services.metadata.image
    refused: list[Any] = []
    allowed: list[Any] = []
    may_create: bool | None = None
    for topic in request.topics:
        name = topic_name(topic, context)
        if name is not None and not may(context, DESCRIBE, TOPIC, name):
            refused.append(topic)
            continue
        if (
            name
            and topic.topic_id == ZERO_UUID
            and name not in image.topics
            and request.allow_auto_topic_creation
        ):
            if may_create is None:
                may_create = may(context, CREATE, CLUSTER, quiet=True)
            if not may_create and not may(context, CREATE, TOPIC, name):
                refused.append(topic)
                continue
        allowed.append(topic)
    if not refused:
        return then_in_steps(
            handler.handle(request, context), partial(_strip_metadata, context, all_=False)
        )
    part = copy.copy(request)
    part.topics = refused
    answers = handler.refuse(part, denied(TOPIC), context).topics
    rest = copy.copy(request)
    rest.topics = allowed

    def add(response: Any) -> Steps:
        yield from _strip_metadata(context, response, all_=False)
        if not allowed:
            response.topics = []  # v0 takes no topics for all of them
        response.topics.extend(answers)
        return response

    return then_in_steps(admitted(handler, rest, context), add)


def _strip_metadata(context: "RequestContext", response: Any, *, all_: bool) -> Steps:
    seen = []
    for count, topic in enumerate(response.topics, 1):
        if not count % STEP_TOPICS:
            yield
        name = topic.name or ""
        if all_ and not may(context, DESCRIBE, TOPIC, name, quiet=True):
            continue
        if topic.topic_authorized_operations != NOT_REQUESTED:
            topic.topic_authorized_operations = operations(context, TOPIC, name)
        seen.append(topic)
    response.topics = seen
    if response.cluster_authorized_operations != NOT_REQUESTED:
        response.cluster_authorized_operations = cluster_operations(context)
    return response


def _find_coordinator(handler: Handler, request: Any, context: "RequestContext") -> Any:
    kinds = {0: GROUP, 1: TRANSACTION}
    kind = kinds.get(request.key_type)
    if kind is None:
        if not may(context, Operation.CLUSTER_ACTION, CLUSTER):
            raise denied(CLUSTER)
        return handler.handle(request, context)
    if not request.coordinator_keys:
        if not may(context, DESCRIBE, kind, request.key):
            raise denied(kind)
        return handler.handle(request, context)
    each = Each("coordinator_keys", "coordinators", DESCRIBE, kind, itself)
    return handle_each(each, handler, request, context)


def _offset_fetch(handler: Handler, request: Any, context: "RequestContext") -> Any:
    if not request.groups:
        if not may(context, DESCRIBE, GROUP, request.group_id):
            raise denied(GROUP)
        named = None if request.topics is None else {topic.name for topic in request.topics}

        def strip_one(response: Any) -> Steps:
            response.topics = yield from _seen(response.topics, context, is_named=named is not None)
            return response

        return then_in_steps(handler.handle(request, context), strip_one)
    names = {group.group_id: group.topics is not None for group in request.groups}

    def strip(response: Any) -> Steps:
        for group in response.groups:
            if not group.error_code:
                is_named = names.get(group.group_id, False)
                group.topics = yield from _seen(group.topics, context, is_named=is_named)
        return response

    each = Each("groups", "groups", DESCRIBE, GROUP, lambda group, _: group.group_id)
    return then_in_steps(handle_each(each, handler, request, context), strip)


def _seen(topics: list[Any], context: "RequestContext", *, is_named: bool) -> Steps:
    """Return committed offsets of topics that may be seen; of others the denial, if named."""
    seen = []
    for count, topic in enumerate(topics, 1):
        if not count % STEP_TOPICS:
            yield
        name = topic_name(topic, context)
        if name is None or may(context, DESCRIBE, TOPIC, name, quiet=not is_named):
            seen.append(topic)
        elif is_named:
            for part in topic.partitions:
                part.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                part.committed_offset, part.committed_leader_epoch, part.metadata = -1, -1, ""
            seen.append(topic)
    return seen


def _offset_delete(handler: Handler, request: Any, context: "RequestContext") -> Any:
    from kafkalite.wire.messages.offset_delete import (
        OffsetDeleteResponsePartition,
        OffsetDeleteResponseTopic,
    )

    refused: list[Any] = []
    allowed: list[Any] = []
    for topic in request.topics:
        (allowed if may(context, READ, TOPIC, topic.name) else refused).append(topic)
    answers = [
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(
                    partition_index=part.partition_index,
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                )
                for part in topic.partitions
            ],
        )
        for topic in refused
    ]
    rest = copy.copy(request)
    rest.topics = allowed

    def add(response: Any) -> Any:
        if not response.error_code:
            response.topics.extend(answers)
        return response

    return then(handler.handle(rest, context), add)


def _delete_topics(handler: Handler, request: Any, context: "RequestContext") -> Any:
    items = "topics" if request.topics else "topic_names"
    name = topic_name if request.topics else itself
    each = Each(items, "responses", DELETE, TOPIC, name, unless=DELETE)
    return handle_each(each, handler, request, context)


def _init_producer_id(handler: Handler, request: Any, context: "RequestContext") -> Any:
    name = request.transactional_id
    if name is not None:
        if not may(context, WRITE, TRANSACTION, name):
            raise denied(TRANSACTION)
        if getattr(request, "enable2_pc", False) and not may(
            context, Operation.TWO_PHASE_COMMIT, TRANSACTION, name
        ):
            raise denied(TRANSACTION)
    elif not may(context, Operation.IDEMPOTENT_WRITE, CLUSTER, quiet=True):
        authorizer = context.services.authorizer
        assert authorizer is not None
        host = context.peer_address[0]
        if not authorizer.rules.decide_any(context.principal, host, WRITE, TOPIC):
            raise denied(CLUSTER)
    return handler.handle(request, context)


def _add_partitions(handler: Handler, request: Any, context: "RequestContext") -> Any:
    """Refuse all partitions for one topic that is denied; only that is told why (rule 550)."""
    if context.api_version >= FIRST_ADD_BY_BROKERS:
        if not may(context, Operation.CLUSTER_ACTION, CLUSTER):
            raise denied(CLUSTER)
        return handler.handle(request, context)
    if not may(context, WRITE, TRANSACTION, request.v3_and_below_transactional_id):
        raise denied(TRANSACTION)
    topics = request.v3_and_below_topics
    refused = {t.name for t in topics if not may(context, WRITE, TOPIC, t.name)}
    if not refused:
        return handler.handle(request, context)
    response = handler.refuse(request, KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED), context)
    for topic in response.results_by_topic_v3_and_below:
        if topic.name in refused:
            for part in topic.results_by_partition:
                part.partition_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return response


FIRST_ADD_BY_BROKERS: Final = 4

SPECIAL: Final[dict[ApiKey, Callable[[Handler, Any, "RequestContext"], Any]]] = {
    **GROUP_WAYS,
    ApiKey.METADATA: _metadata,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.OFFSET_DELETE: _offset_delete,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions,
}
