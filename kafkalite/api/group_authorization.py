"""Authorization of the group APIs of Kafka 4: consumer, share and streams groups.

Beside what `api/authorization.py` asks of the group, all topics that a member names, or that a
description would show, have to be visible to the client. Whether such groups are switched on is
looked at before anything else (KafkaApis, rules 342-345).
"""

import copy
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from kafkalite.api import consumer_groups, share_acknowledge, streams_groups
from kafkalite.api.needs import GROUP, TOPIC, Each, denied, handle_each, itself, then
from kafkalite.api.visibility import may
from kafkalite.security.acls import Operation
from kafkalite.types import ZERO_UUID
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages import alter_share_group_offsets as alter
from kafkalite.wire.messages import delete_share_group_offsets as delete
from kafkalite.wire.messages import describe_share_group_offsets as describe

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext
    from kafkalite.api.handler import Handler

TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
TOPIC_DENIED_MESSAGE: Final = "Topic authorization failed."
NO_OFFSET: Final = -1
DESCRIBE, READ = Operation.DESCRIBE, Operation.READ


# --- Heartbeats ----------------------------------------------------------------------------------


def _consumer_heartbeat(handler: "Handler", request: Any, context: "RequestContext") -> Any:
    """Refuse a member that names a topic it may not see (rule 342)."""
    _check_visible(request.subscribed_topic_names or (), context)
    return handler.handle(request, context)


def _share_heartbeat(handler: "Handler", request: Any, context: "RequestContext") -> Any:
    """Refuse the same; who the member is comes first (rule 342)."""
    share_acknowledge.check_member(request.group_id, request.member_id)
    _check_visible(request.subscribed_topic_names or (), context)
    return handler.handle(request, context)


def _streams_heartbeat(handler: "Handler", request: Any, context: "RequestContext") -> Any:
    """Refuse a topology with a topic that its sender may not see; bad names come first."""
    streams_groups.check_topic_names(request)
    _check_visible(streams_groups.topics_of(request.topology), context)
    return handler.handle(request, context)


def _check_visible(names: Iterable[str], context: "RequestContext") -> None:
    # All are asked for, so that each denial is noted.
    hidden = [name for name in dict.fromkeys(names) if not may(context, DESCRIBE, TOPIC, name)]
    if hidden:
        raise denied(TOPIC)


# --- Offsets of share groups ---------------------------------------------------------------------


def _describe_share_offsets(handler: "Handler", request: Any, context: "RequestContext") -> Any:
    """Leave out topics that may not be seen where all are asked for; refuse those named."""
    named: dict[str, list[Any]] = {}
    wanted: list[Any] = []
    for group in request.groups:
        if group.topics is not None:
            group = copy.copy(group)
            group.topics, refused = _parted(group.topics, DESCRIBE, context)
            named[group.group_id] = refused
        wanted.append(group)
    request = copy.copy(request)
    request.groups = wanted

    def finish(response: Any) -> Any:
        for group in response.groups:
            if group.error_code:
                continue
            # Also where they are named: another part of the request may ask for all of the group.
            seen = [
                topic
                for topic in group.topics
                if may(context, DESCRIBE, TOPIC, topic.topic_name, quiet=True)
            ]
            group.topics = [*seen, *map(_undescribed, named.get(group.group_id, ()))]
        return response

    return then(
        handle_each(EACH_GROUP[ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS], handler, request, context),
        finish,
    )


def _undescribed(wanted: Any) -> describe.DescribeShareGroupOffsetsResponseTopic:
    return describe.DescribeShareGroupOffsetsResponseTopic(
        topic_name=wanted.topic_name,
        topic_id=ZERO_UUID,
        partitions=[
            describe.DescribeShareGroupOffsetsResponsePartition(
                partition_index=index,
                start_offset=NO_OFFSET,
                lag=NO_OFFSET,
                error_code=TOPIC_DENIED,
                error_message=TOPIC_DENIED_MESSAGE,
            )
            for index in wanted.partitions
        ],
    )


def _alter_share_offsets(handler: "Handler", request: Any, context: "RequestContext") -> Any:
    """Refuse each partition of a topic that may not be read."""
    image = context.services.metadata.image

    def refuse(wanted: Any) -> alter.AlterShareGroupOffsetsResponseTopic:
        topic = image.topics.get(wanted.topic_name)
        return alter.AlterShareGroupOffsetsResponseTopic(
            topic_name=wanted.topic_name,
            topic_id=ZERO_UUID if topic is None else topic.topic_id,
            partitions=[
                alter.AlterShareGroupOffsetsResponsePartition(
                    partition_index=each.partition_index,
                    error_code=TOPIC_DENIED,
                    error_message=TOPIC_DENIED_MESSAGE,
                )
                for each in wanted.partitions
            ],
        )

    return _handle_topics(handler, request, context, refuse)


def _delete_share_offsets(handler: "Handler", request: Any, context: "RequestContext") -> Any:
    """Refuse each topic that may not be read."""

    def refuse(wanted: Any) -> delete.DeleteShareGroupOffsetsResponseTopic:
        return delete.DeleteShareGroupOffsetsResponseTopic(
            topic_name=wanted.topic_name,
            error_code=TOPIC_DENIED,
            error_message=TOPIC_DENIED_MESSAGE,
        )

    return _handle_topics(handler, request, context, refuse)


def _handle_topics(
    handler: "Handler", request: Any, context: "RequestContext", refuse: Callable[[Any], Any]
) -> Any:
    allowed = copy.copy(request)
    allowed.topics, refused = _parted(request.topics, READ, context)

    def add(response: Any) -> Any:
        if not response.error_code:
            response.responses = [*map(refuse, refused), *response.responses]
        return response

    return then(handler.handle(allowed, context), add)


def _parted(
    topics: Iterable[Any], operation: Operation, context: "RequestContext"
) -> tuple[list[Any], list[Any]]:
    """Return the topics that are allowed, and those that are not."""
    allowed: list[Any] = []
    refused: list[Any] = []
    for topic in topics:
        (allowed if may(context, operation, TOPIC, topic.topic_name) else refused).append(topic)
    return allowed, refused


# --- Tables --------------------------------------------------------------------------------------

GROUP_GATES: Final[dict[ApiKey, Callable[["RequestContext"], None]]] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_groups.check_enabled,
    ApiKey.CONSUMER_GROUP_DESCRIBE: consumer_groups.check_enabled,
    ApiKey.SHARE_GROUP_HEARTBEAT: share_acknowledge.check_enabled,
    ApiKey.SHARE_GROUP_DESCRIBE: share_acknowledge.check_enabled,
    ApiKey.SHARE_FETCH: share_acknowledge.check_enabled,
    ApiKey.SHARE_ACKNOWLEDGE: share_acknowledge.check_enabled,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: share_acknowledge.check_enabled,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: share_acknowledge.check_enabled,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: share_acknowledge.check_enabled,
    ApiKey.STREAMS_GROUP_HEARTBEAT: streams_groups.check_enabled,
    ApiKey.STREAMS_GROUP_DESCRIBE: streams_groups.check_enabled,
}
"""Raise UNSUPPORTED_VERSION where a kind of group is switched off."""

EACH_GROUP: Final[dict[ApiKey, Each]] = {
    ApiKey.CONSUMER_GROUP_DESCRIBE: Each("group_ids", "groups", DESCRIBE, GROUP, itself),
    ApiKey.SHARE_GROUP_DESCRIBE: Each("group_ids", "groups", DESCRIBE, GROUP, itself),
    ApiKey.STREAMS_GROUP_DESCRIBE: Each("group_ids", "groups", DESCRIBE, GROUP, itself),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Each(
        "groups", "groups", DESCRIBE, GROUP, lambda group, _: group.group_id
    ),
}
"""A part of `authorization.EACH`."""

GROUP_WAYS: Final[dict[ApiKey, "Callable[[Handler, Any, RequestContext], Any]"]] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _consumer_heartbeat,
    ApiKey.SHARE_GROUP_HEARTBEAT: _share_heartbeat,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _streams_heartbeat,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _describe_share_offsets,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _alter_share_offsets,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _delete_share_offsets,
}
"""A part of `authorization.SPECIAL`."""
