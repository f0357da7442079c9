"""How far share groups are, for operators: Describe, Alter and DeleteShareGroupOffsets (KIP-932).

DescribeShareGroupOffsets (key 90), versions 0-1; v1: lag (KIP-1226). AlterShareGroupOffsets (91),
version 0. DeleteShareGroupOffsets (92), version 0. Rules 392-394.
"""

from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from uuid import UUID

from kafkalite.api.coordinator_requests import (
    check_group_id,
    client_code,
    handle_group_request,
)
from kafkalite.api.handler import Handler
from kafkalite.api.share_acknowledge import check_enabled
from kafkalite.coordinator.shard import Event
from kafkalite.deferred import Deferred, Promise
from kafkalite.group.admin import DeleteGroup
from kafkalite.group.share.part import (
    AlterShareOffsets,
    DeletedStates,
    DeleteShareOffsets,
    ListShareStates,
    ShareOffsetsDeleted,
)
from kafkalite.share.events import NO_COUNT, Summary
from kafkalite.types import ZERO_UUID, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages import alter_share_group_offsets as alter
from kafkalite.wire.messages import delete_share_group_offsets as delete
from kafkalite.wire.messages import describe_share_group_offsets as describe
from kafkalite.wire.messages.delete_groups import DeletableGroupResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkalite.api.context import RequestContext
    from kafkalite.share.service import Errors, Place

Answer = TypeVar("Answer")

NO_OFFSET = -1
NO_LAG = -1

Summaries: TypeAlias = "dict[Place, Summary | KafkaError]"


async def _ask(group_id: str, event: Event[Answer], context: "RequestContext") -> Answer:
    """Return a group coordinator's answer when it is there."""
    answer = handle_group_request(group_id, event, context)
    return await answer.wait() if isinstance(answer, Promise) else answer


# --- Describe -----------------------------------------------------------------------------------


def handle_describe(
    request: describe.DescribeShareGroupOffsetsRequest, context: "RequestContext"
) -> Deferred[describe.DescribeShareGroupOffsetsResponse]:
    """Describe each group."""
    check_enabled(context)

    async def wait() -> describe.DescribeShareGroupOffsetsResponse:
        groups = []
        for group in request.groups:
            try:
                topics = await _describe(group, context)
                found = describe.DescribeShareGroupOffsetsResponseGroup(
                    group_id=group.group_id, topics=topics
                )
            except KafkaError as error:
                found = _not_described(group.group_id, error)
            groups.append(found)
        return describe.DescribeShareGroupOffsetsResponse(groups=groups)

    return Deferred(wait)


def refuse_describe(
    request: describe.DescribeShareGroupOffsetsRequest,
    error: KafkaError,
    context: "RequestContext",
) -> describe.DescribeShareGroupOffsetsResponse:
    """Answer the error for each group."""
    del context
    return describe.DescribeShareGroupOffsetsResponse(
        groups=[_not_described(group.group_id, error) for group in request.groups]
    )


def _not_described(
    group_id: str, error: KafkaError
) -> describe.DescribeShareGroupOffsetsResponseGroup:
    return describe.DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id, error_code=client_code(error), error_message=error.message or None
    )


async def _describe(
    group: describe.DescribeShareGroupOffsetsRequestGroup, context: "RequestContext"
) -> list[describe.DescribeShareGroupOffsetsResponseTopic]:
    image = context.services.metadata.image
    unknown: list[describe.DescribeShareGroupOffsetsResponseTopic] = []
    names: dict[UUID, str] = {}
    places: list[Place] = []
    if group.topics is None:
        states = await _ask(group.group_id, ListShareStates(group.group_id), context)
        for topic_id, state in states.items():
            names[topic_id] = state.name
            places += [(topic_id, index) for index in state.partitions]
    for wanted in group.topics or ():
        topic = image.topics.get(wanted.topic_name)
        if topic is None:
            unknown.append(_unknown_topic(wanted))
            continue
        names[topic.topic_id] = topic.name
        places += [(topic.topic_id, index) for index in wanted.partitions]
    share = context.services.share
    found: Summaries = await share.wait(lambda give: share.summarize(group.group_id, places, give))
    offsets = await share.latest_offsets(
        TopicPartition(names[topic_id], index)
        for (topic_id, index), each in found.items()
        if _has_lag(each)
    )
    topics: dict[UUID, describe.DescribeShareGroupOffsetsResponseTopic] = {}
    for topic_id, index in places:
        name = names[topic_id]
        entry = _described(
            index, found[topic_id, index], offsets.get(TopicPartition(name, index), NO_OFFSET)
        )
        topic_entry = topics.setdefault(
            topic_id,
            describe.DescribeShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id),
        )
        topic_entry.partitions.append(entry)
    return [*topics.values(), *unknown]


def _unknown_topic(
    wanted: describe.DescribeShareGroupOffsetsRequestTopic,
) -> describe.DescribeShareGroupOffsetsResponseTopic:
    return describe.DescribeShareGroupOffsetsResponseTopic(
        topic_name=wanted.topic_name,
        topic_id=ZERO_UUID,
        partitions=[
            describe.DescribeShareGroupOffsetsResponsePartition(
                partition_index=index, start_offset=NO_OFFSET, lag=NO_LAG
            )
            for index in wanted.partitions
        ],
    )


def _has_lag(summary: Summary | KafkaError) -> bool:
    return (
        isinstance(summary, Summary)
        and summary.start_offset != NO_OFFSET
        and summary.delivery_complete_count != NO_COUNT
    )


def _described(
    index: int, summary: Summary | KafkaError, latest: int | KafkaError
) -> describe.DescribeShareGroupOffsetsResponsePartition:
    entry = describe.DescribeShareGroupOffsetsResponsePartition(
        partition_index=index, start_offset=NO_OFFSET, lag=NO_LAG
    )
    if isinstance(summary, KafkaError):
        return entry  # as Kafka: nothing is known
    if _has_lag(summary) and isinstance(latest, KafkaError):
        entry.start_offset = 0
        entry.error_code, entry.error_message = latest.code, latest.message or None
        return entry
    entry.start_offset = summary.start_offset
    entry.leader_epoch = summary.leader_epoch
    if _has_lag(summary) and not isinstance(latest, KafkaError):
        entry.lag = latest - summary.start_offset - summary.delivery_complete_count
    return entry


# --- Alter --------------------------------------------------------------------------------------


def handle_alter(
    request: alter.AlterShareGroupOffsetsRequest, context: "RequestContext"
) -> Deferred[alter.AlterShareGroupOffsetsResponse]:
    """Begin share partitions at other offsets; answer when that is stored."""
    check_enabled(context)
    check_group_id(request.group_id)
    return Deferred(lambda: _alter(request, context))


def refuse_alter(
    request: alter.AlterShareGroupOffsetsRequest, error: KafkaError, context: "RequestContext"
) -> alter.AlterShareGroupOffsetsResponse:
    """Answer the error at the top level."""
    del request, context
    return alter.AlterShareGroupOffsetsResponse(
        error_code=client_code(error), error_message=error.message or None
    )


async def _alter(
    request: alter.AlterShareGroupOffsetsRequest, context: "RequestContext"
) -> alter.AlterShareGroupOffsetsResponse:
    if not request.topics:
        return alter.AlterShareGroupOffsetsResponse()
    image = context.services.metadata.image
    start_offsets: dict[Place, int] = {}
    for wanted in request.topics:
        topic = image.topics.get(wanted.topic_name)
        for each in wanted.partitions:
            if topic is not None and 0 <= each.partition_index < len(topic.partitions):
                start_offsets[topic.topic_id, each.partition_index] = each.start_offset
    event = AlterShareOffsets(request.group_id, start_offsets)
    plan = await _ask(request.group_id, event, context)
    share = context.services.share
    errors: Errors = await share.wait(lambda give: share.initialize(plan, give))
    await share.report(plan, errors)
    responses = []
    for wanted in request.topics:
        topic = image.topics.get(wanted.topic_name)
        topic_id = ZERO_UUID if topic is None else topic.topic_id
        responses.append(
            alter.AlterShareGroupOffsetsResponseTopic(
                topic_name=wanted.topic_name,
                topic_id=topic_id,
                partitions=[
                    _altered(topic_id, each.partition_index, start_offsets, errors)
                    for each in wanted.partitions
                ],
            )
        )
    return alter.AlterShareGroupOffsetsResponse(responses=responses)


def _altered(
    topic_id: UUID,
    index: int,
    wanted: "Mapping[Place, int]",
    errors: "Errors",
) -> alter.AlterShareGroupOffsetsResponsePartition:
    entry = alter.AlterShareGroupOffsetsResponsePartition(partition_index=index)
    error = errors.get((topic_id, index))
    if (topic_id, index) not in wanted:
        error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
    if error is not None:
        entry.error_code, entry.error_message = error.code, error.message or None
    return entry


# --- Delete -------------------------------------------------------------------------------------


def handle_delete(
    request: delete.DeleteShareGroupOffsetsRequest, context: "RequestContext"
) -> Deferred[delete.DeleteShareGroupOffsetsResponse]:
    """Forget how far topics are; answer when share coordinators have."""
    check_enabled(context)
    check_group_id(request.group_id)
    return Deferred(lambda: _delete(request, context))


def refuse_delete(
    request: delete.DeleteShareGroupOffsetsRequest, error: KafkaError, context: "RequestContext"
) -> delete.DeleteShareGroupOffsetsResponse:
    """Answer the error at the top level."""
    del request, context
    return delete.DeleteShareGroupOffsetsResponse(
        error_code=client_code(error), error_message=error.message or None
    )


async def _delete(
    request: delete.DeleteShareGroupOffsetsRequest, context: "RequestContext"
) -> delete.DeleteShareGroupOffsetsResponse:
    if not request.topics:
        return delete.DeleteShareGroupOffsetsResponse()
    image = context.services.metadata.image
    names = dict.fromkeys(topic.topic_name for topic in request.topics)
    ids = {name: image.topics[name].topic_id for name in names if name in image.topics}
    event = DeleteShareOffsets(request.group_id, tuple(ids.values()))
    found = await _ask(request.group_id, event, context)
    errors = await _delete_states(request.group_id, found, context)
    failed = {topic_id: error for (topic_id, _), error in errors.items()}
    done = tuple(topic_id for topic_id in found.topics if topic_id not in failed)
    if done:
        await _ask(request.group_id, ShareOffsetsDeleted(request.group_id, done), context)
    unknown = KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete."
    )
    responses = []
    for name in names:
        topic_id = ids.get(name, ZERO_UUID)
        entry = delete.DeleteShareGroupOffsetsResponseTopic(topic_name=name)
        error = failed.get(topic_id) if topic_id in found.topics else unknown
        if error is None:
            entry.topic_id = topic_id
        else:
            entry.error_code, entry.error_message = error.code, error.message or None
        responses.append(entry)
    return delete.DeleteShareGroupOffsetsResponse(responses=responses)


async def _delete_states(
    group_id: str, found: DeletedStates, context: "RequestContext"
) -> "Errors":
    share = context.services.share
    places = [
        (topic_id, index) for topic_id, state in found.topics.items() for index in state.partitions
    ]
    errors: Errors = await share.wait(lambda give: share.delete(group_id, places, give))
    return errors


async def _delete_share_group(
    group_id: str, found: DeletedStates | Deferred[DeletedStates], context: "RequestContext"
) -> DeletableGroupResult:
    """Delete a share group once its share partitions are (rule 394); return DeleteGroup's answer.

    Raises:
        KafkaError: what a share coordinator, or the group's, refuses with.
    """
    if isinstance(found, Deferred):
        found = await found.wait()
    for error in (await _delete_states(group_id, found, context)).values():
        raise error
    return await _ask(group_id, DeleteGroup(group_id), context)


def delete_group(
    group_id: str, context: "RequestContext"
) -> DeletableGroupResult | Deferred[DeletableGroupResult]:
    """Delete a group of any kind; return its DeletableGroupResult, `Deferred`.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, or as all that is asked of coordinators.
    """
    try:
        found = handle_group_request(group_id, DeleteShareOffsets(group_id, None), context)
    except KafkaError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return handle_group_request(group_id, DeleteGroup(group_id), context)
    return Deferred(partial(_delete_share_group, group_id, found, context))


HANDLERS = (
    Handler(describe.DESCRIBE_SHARE_GROUP_OFFSETS, handle_describe, refuse_describe),
    Handler(alter.ALTER_SHARE_GROUP_OFFSETS, handle_alter, refuse_alter),
    Handler(delete.DELETE_SHARE_GROUP_OFFSETS, handle_delete, refuse_delete),
)
