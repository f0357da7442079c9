"""Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete (keys 8, 9, 47).

OffsetCommit 2-10. v2-4: retention of its own. v6: leader epoch (KIP-320). v7: static members
(KIP-345). v8: flexible. v9: GROUP_ID_NOT_FOUND. v10: topic IDs (KIP-848).
OffsetFetch 1-10. v2: all topics, top-level error. v5: leader epoch. v6: flexible. v7: stable
offsets only (KIP-447). v8: several groups (KIP-709). v9: member, ignored for classic groups.
v10: topic IDs (KIP-848).
OffsetDelete 0 (KIP-496).
"""

from collections.abc import Iterable
from typing import Any, TypeVar

from kafkalite.api.context import RequestContext
from kafkalite.api.coordinator_requests import (
    TOO_LARGE,
    check_group_id,
    client_code,
    gather,
    handle_group_request,
    map_answer,
)
from kafkalite.api.handler import Handler
from kafkalite.api.parts import by_partition, joined
from kafkalite.deferred import Deferred
from kafkalite.group.admin import DeleteOffsets
from kafkalite.group.commit import CommitOffsets
from kafkalite.group.shard import FetchOffsets
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkalite.wire.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafkalite.wire.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_Response = TypeVar("_Response", OffsetCommitResponse, OffsetDeleteResponse)

FIRST_VERSION_WITH_TOPIC_IDS = 10
FIRST_FETCH_WITH_ERROR = 2
FIRST_FETCH_WITH_SEVERAL_GROUPS = 8
NO_OFFSET = -1


# --- OffsetCommit --------------------------------------------------------------------------------


def commit(
    request: OffsetCommitRequest, context: RequestContext
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    """Commit what concerns partitions that exist (rule 147); the rest is refused by itself."""
    known, refused = _split_commit(request.topics, context)
    if not refused:
        event = CommitOffsets(request, context.api_version)
        return handle_group_request(request.group_id, event, context)
    if not known:
        return OffsetCommitResponse(topics=refused)
    part = OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=request.retention_time_ms,
        topics=known,
    )
    answer = handle_group_request(
        request.group_id, CommitOffsets(part, context.api_version), context
    )
    return map_answer(answer, lambda response: _add_refused(response, refused))


def refuse_commit(
    request: OffsetCommitRequest, error: KafkaError, context: RequestContext
) -> OffsetCommitResponse:
    """Answer the error for every partition."""
    del context
    is_too_large = error.code in TOO_LARGE
    code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE if is_too_large else error.code
    return OffsetCommitResponse(topics=[_refused_commit(topic, code) for topic in request.topics])


def _split_commit(
    topics: Iterable[OffsetCommitRequestTopic], context: RequestContext
) -> tuple[list[OffsetCommitRequestTopic], list[OffsetCommitResponseTopic]]:
    """Return what concerns existing partitions, and the refusal of everything else."""
    image = context.services.metadata.image
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    known = []
    refused = []
    for topic in topics:
        found = image.topic_by_id(topic.topic_id) if by_id else image.topics.get(topic.name)
        if found is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(_refused_commit(topic, code))
            continue
        topic.name, topic.topic_id = found.name, found.topic_id
        count = len(found.partitions)
        if all(0 <= partition.partition_index < count for partition in topic.partitions):
            known.append(topic)
            continue
        missing = [p for p in topic.partitions if not 0 <= p.partition_index < count]
        present = [p for p in topic.partitions if 0 <= p.partition_index < count]
        refused.append(_refused_commit(_only(topic, missing), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if present:
            known.append(_only(topic, present))
    return known, refused


def _only(
    topic: OffsetCommitRequestTopic, partitions: list[OffsetCommitRequestPartition]
) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _refused_commit(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=code
            )
            for partition in topic.partitions
        ],
    )


def _add_refused(response: _Response, refused: Iterable[Any]) -> _Response:
    """Put the refusals, topics of the response's kind, where their topics are."""
    for topic in refused:
        same = [answer for answer in response.topics if answer.name == topic.name]
        if same:
            same[0].partitions += topic.partitions
        else:
            response.topics.append(topic)
    return response


# --- OffsetFetch ---------------------------------------------------------------------------------


def fetch(
    request: OffsetFetchRequest, context: RequestContext
) -> OffsetFetchResponse | Deferred[OffsetFetchResponse]:
    """Fetch for each group by itself."""
    version = context.api_version
    return gather(
        _groups_of(request, version),
        lambda group: _fetch_group(group, request.require_stable, context),
        _not_fetched,
        lambda groups: _fetched(groups, version),
    )


def refuse_fetch(
    request: OffsetFetchRequest, error: KafkaError, context: RequestContext
) -> OffsetFetchResponse:
    """Answer the error for each group."""
    version = context.api_version
    groups = [_not_fetched(group, error) for group in _groups_of(request, version)]
    return _fetched(groups, version)


def _groups_of(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    """Return the groups of a request, which before v8 is about one."""
    if version >= FIRST_FETCH_WITH_SEVERAL_GROUPS:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


def _fetch_group(
    group: OffsetFetchRequestGroup, require_stable: bool, context: RequestContext
) -> OffsetFetchResponseGroup | Deferred[OffsetFetchResponseGroup]:
    if context.api_version < FIRST_VERSION_WITH_TOPIC_IDS:
        event = FetchOffsets(
            group.group_id, group.topics, require_stable, group.member_id, group.member_epoch
        )
        return handle_group_request(group.group_id, event, context)
    return _fetch_group_by_ids(group, require_stable, context)


def _fetch_group_by_ids(
    group: OffsetFetchRequestGroup, require_stable: bool, context: RequestContext
) -> OffsetFetchResponseGroup | Deferred[OffsetFetchResponseGroup]:
    """Fetch by topic IDs (v10). Offsets of topics without an ID now are left out of "all"."""
    image = context.services.metadata.image
    known = None
    unknown: list[OffsetFetchResponseTopics] = []
    if group.topics is not None:
        known = []
        for topic in group.topics:
            found = image.topic_by_id(topic.topic_id)
            if found is None:
                unknown.append(_unfetched_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                topic.name = found.name
                known.append(topic)

    def convert(answer: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
        for topic in answer.topics:
            found = image.topics.get(topic.name)
            if found is not None:
                topic.topic_id = found.topic_id
        answer.topics = [t for t in answer.topics if t.name in image.topics] + unknown
        return answer

    event = FetchOffsets(group.group_id, known, require_stable, group.member_id, group.member_epoch)
    return map_answer(handle_group_request(group.group_id, event, context), convert)


def _not_fetched(group: OffsetFetchRequestGroup, error: KafkaError) -> OffsetFetchResponseGroup:
    """Answer an error for a group.

    Consumers before 3.9 know NOT_COORDINATOR here, and COORDINATOR_NOT_AVAILABLE not at all.
    """
    code = client_code(error)
    if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        code = ErrorCode.NOT_COORDINATOR
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        error_code=code,
        topics=[_unfetched_topic(topic, code) for topic in group.topics or ()],
    )


def _unfetched_topic(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ],
    )


def _fetched(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    """Return the response; v1 has an error in each partition, later ones for the whole group."""
    if version >= FIRST_FETCH_WITH_ERROR:
        for group in groups:
            if group.error_code != ErrorCode.NONE:
                group.topics = []
    if version >= FIRST_FETCH_WITH_SEVERAL_GROUPS:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


# --- OffsetDelete --------------------------------------------------------------------------------


def delete(
    request: OffsetDeleteRequest, context: RequestContext
) -> OffsetDeleteResponse | Deferred[OffsetDeleteResponse]:
    """Delete offsets of partitions that exist; the rest is refused by itself (rule 153)."""
    check_group_id(request.group_id)
    image = context.services.metadata.image
    known = []
    refused = []
    for topic in request.topics:
        found = image.topics.get(topic.name)
        count = 0 if found is None else len(found.partitions)
        present = [p for p in topic.partitions if 0 <= p.partition_index < count]
        missing = [p for p in topic.partitions if not 0 <= p.partition_index < count]
        if present:
            known.append(OffsetDeleteRequestTopic(name=topic.name, partitions=present))
        if missing:
            refused.append(
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponsePartition(
                            partition_index=partition.partition_index,
                            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        )
                        for partition in missing
                    ],
                )
            )
    event = DeleteOffsets(OffsetDeleteRequest(group_id=request.group_id, topics=known))
    answer = handle_group_request(request.group_id, event, context)
    return map_answer(answer, lambda response: _add_refused(response, refused))


def refuse_delete(
    request: OffsetDeleteRequest, error: KafkaError, context: RequestContext
) -> OffsetDeleteResponse:
    """Answer the error."""
    del request, context
    return OffsetDeleteResponse(error_code=client_code(error))


HANDLERS = (
    Handler(OFFSET_COMMIT, commit, refuse_commit, parts=by_partition, join=joined),
    Handler(OFFSET_FETCH, fetch, refuse_fetch),
    Handler(OFFSET_DELETE, delete, refuse_delete),
)
