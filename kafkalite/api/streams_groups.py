"""Being a member of a streams group, and seeing one (KIP-1071).

StreamsGroupHeartbeat (key 88), version 0, and StreamsGroupDescribe (key 89), version 0.

Not implemented, as in Kafka 4.3: static members, warm-up tasks, source topics by pattern, changes
of a topology.
"""

from functools import partial
from typing import TYPE_CHECKING, Any

from kafkalite.api.authorized_operations import ON_GROUP
from kafkalite.api.context import RequestContext
from kafkalite.api.coordinator_requests import (
    check_subscription,
    client_code,
    gather,
    handle_group_request,
    map_answer,
)
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.group.streams.heartbeat import HeartbeatAnswer, StreamsHeartbeat
from kafkalite.group.streams.internal_topics import InternalTopic, StatusCode
from kafkalite.group.streams.part import DescribeStreamsGroup
from kafkalite.group.streams.requests import check_heartbeat
from kafkalite.group.streams.topology import invalid_topology
from kafkalite.meta.events import CreateTopic
from kafkalite.meta.features import STREAMS_VERSION
from kafkalite.meta.names import refusal_of_name
from kafkalite.security.acls import Operation, ResourceType
from kafkalite.types import INTERNAL_TOPICS
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.streams_group_describe import (
    STREAMS_GROUP_DESCRIBE,
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from kafkalite.wire.messages.streams_group_heartbeat import (
    STREAMS_GROUP_HEARTBEAT,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

PROTOCOL = "streams"
BROKER_DEFAULT = (0, -1)
"""Replication factors that leave it to the broker: of the message, and of CreateTopics, which the
Java client sends."""
SHOWN_FAILURES_MAX = 3
"""How many topics that could not be created an answer names."""


def heartbeat(
    request: StreamsGroupHeartbeatRequest, context: RequestContext
) -> StreamsGroupHeartbeatResponse | Deferred[StreamsGroupHeartbeatResponse]:
    """Let a member join, go on or leave; internal topics that lack are made behind its back."""
    check_enabled(context)
    check_topic_names(request)
    check_heartbeat(request)
    event = StreamsHeartbeat(
        request=request,
        client_id=context.client_id,
        client_host=f"/{context.peer_address[0]}",  # as Java prints an address
    )
    answer = handle_group_request(request.group_id, event, context)
    return map_answer(answer, partial(_finish, request.group_id, context))


def refuse_heartbeat(
    request: StreamsGroupHeartbeatRequest, error: KafkaError, context: RequestContext
) -> StreamsGroupHeartbeatResponse:
    """Answer the error."""
    del request, context
    return StreamsGroupHeartbeatResponse(
        error_code=client_code(error), error_message=error.message or error.code.name
    )


def describe(
    request: StreamsGroupDescribeRequest, context: RequestContext
) -> StreamsGroupDescribeResponse | Deferred[StreamsGroupDescribeResponse]:
    """Describe each group; one that is coordinated elsewhere has an error of its own."""
    check_enabled(context)

    def convert(groups: list[DescribedGroup]) -> StreamsGroupDescribeResponse:
        for group in groups:
            if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
                group.authorized_operations = ON_GROUP
        return StreamsGroupDescribeResponse(groups=groups)

    return gather(
        request.group_ids,
        lambda group_id: _ask_described(group_id, context),
        _not_described,
        convert,
    )


def refuse_describe(
    request: StreamsGroupDescribeRequest, error: KafkaError, context: RequestContext
) -> StreamsGroupDescribeResponse:
    """Answer the error for each group."""
    del context
    return StreamsGroupDescribeResponse(
        groups=[_not_described(group_id, error) for group_id in request.group_ids]
    )


def check_enabled(context: RequestContext) -> None:
    """Refuse what is switched off (rule 460)."""
    config, image = context.services.config, context.services.metadata.image
    if not image.feature_level(STREAMS_VERSION):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{STREAMS_VERSION} is 0")
    if PROTOCOL not in config.list("group.coordinator.rebalance.protocols"):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "streams groups are off (group.coordinator.rebalance.protocols)",
        )


def check_topic_names(request: StreamsGroupHeartbeatRequest) -> None:
    """Refuse a topology with topics that no application may have (rule 460)."""
    names = topics_of(request.topology)
    check_subscription(names)
    prohibited = [name for name in names if name in INTERNAL_TOPICS]
    if prohibited:
        raise invalid_topology(
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is "
            "prohibited."
        )
    invalid = [name for name in names if refusal_of_name(name) is not None]
    if invalid:
        raise invalid_topology(f"Topic names {','.join(invalid)} are not valid topic names.")


def topics_of(topology: Any) -> "dict[str, None]":
    """Return all topics of a topology, as a request or a description has it, in its order."""
    return dict.fromkeys(
        name
        for each in (() if topology is None else topology.subtopologies or ())
        for name in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(info.name for info in each.repartition_source_topics),
            *(info.name for info in each.state_changelog_topics),
        )
    )


def _finish(
    group_id: str, context: RequestContext, answer: HeartbeatAnswer
) -> StreamsGroupHeartbeatResponse:
    """Have topics created that lack, and say of which that failed before (rule 479)."""
    response = answer.response
    if not answer.missing_topics:
        return response
    refused = _may_not_create(answer.missing_topics, context)
    if refused:
        _say_missing(response, f"Unauthorized to CREATE on topics {', '.join(refused)}.")
        return response
    topics = context.services.background_topics
    interval_ms = context.services.group_configs(group_id).streams_heartbeat_interval_ms
    topics.create(
        [_creation(topic, context) for topic in answer.missing_topics.values()],
        remember_ms=2 * interval_ms,
    )
    failures = topics.failures(answer.missing_topics)
    if failures:
        _say_missing(response, f"Creation failed: {_shown(failures.items())}.")
    return response


def _may_not_create(names: "Iterable[str]", context: RequestContext) -> list[str]:
    """Return the internal topics that a client may not have created (rule 344)."""
    authorizer = context.services.authorizer
    create = Operation.CREATE
    if authorizer is None or authorizer.allows(context, create, ResourceType.CLUSTER, quiet=True):
        return []
    return [
        name for name in names if not authorizer.allows(context, create, ResourceType.TOPIC, name)
    ]


def _say_missing(response: StreamsGroupHeartbeatResponse, detail: str) -> None:
    """Add to what is said of topics that are missing."""
    for status in response.status or ():
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; {detail}"


def _creation(topic: InternalTopic, context: RequestContext) -> CreateTopic:
    services = context.services
    replication_factor = topic.replication_factor
    if replication_factor in BROKER_DEFAULT:
        replication_factor = services.config.int("default.replication.factor")
    return CreateTopic(
        name=topic.name,
        topic_id=services.metadata.new_topic_id(),
        num_partitions=topic.partition_count,
        replication_factor=replication_factor,
        configs=dict(topic.configs),
    )


def _shown(failures: "Iterable[tuple[str, str]]") -> str:
    each = [f"{name} ({message})" for name, message in failures]
    shown = ", ".join(each[:SHOWN_FAILURES_MAX])
    more = len(each) - SHOWN_FAILURES_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def _ask_described(
    group_id: str, context: RequestContext
) -> DescribedGroup | Deferred[DescribedGroup]:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    return handle_group_request(group_id, DescribeStreamsGroup(group_id), context)


def _not_described(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(
        group_id=group_id, error_code=error.code, error_message=error.message or None
    )


HANDLERS = (
    Handler(STREAMS_GROUP_HEARTBEAT, heartbeat, refuse_heartbeat),
    Handler(STREAMS_GROUP_DESCRIBE, describe, refuse_describe),
)
