"""Requests to share coordinators on other brokers: events as requests, and answers back."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalite.isr.partition_read import LATEST_TIMESTAMP
from kafkalite.meta.peers import Peers
from kafkalite.share.batches import SharePartitionKey, StateBatch
from kafkalite.share.events import (
    DeleteState,
    InitializeState,
    ReadState,
    ReadSummary,
    ShareState,
    StateEvent,
    Summary,
    WriteState,
)
from kafkalite.types import TopicPartition
from kafkalite.wire.api import Api
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages import (
    delete_share_group_state as delete,
)
from kafkalite.wire.messages import (
    initialize_share_group_state as initialize,
)
from kafkalite.wire.messages import (
    read_share_group_state as read,
)
from kafkalite.wire.messages import (
    read_share_group_state_summary as summary,
)
from kafkalite.wire.messages import (
    write_share_group_state as write,
)
from kafkalite.wire.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

CHANNEL = "share"

PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)
"""Refusals after which the same is asked again."""


@dataclass(slots=True, frozen=True)
class _Kind:
    """How one type of event is sent.

    Attributes:
        request: makes the request of (group id, one list of partitions for each topic id).
        partition: makes the entry of an event.
        answer: makes the shard's answer of an entry without an error.
    """

    api: Api[Any, Any]
    request: Callable[[str, list[tuple[Any, list[Any]]]], Any]
    partition: Callable[[Any], Any]
    answer: Callable[[Any], Any]


def _nothing(result: object) -> None:
    del result


def _request(message: Any, topic: Any) -> Callable[[str, list[tuple[Any, list[Any]]]], Any]:
    return lambda group_id, topics: message(
        group_id=group_id,
        topics=[topic(topic_id=topic_id, partitions=entries) for topic_id, entries in topics],
    )


KINDS: dict[type, _Kind] = {
    InitializeState: _Kind(
        initialize.INITIALIZE_SHARE_GROUP_STATE,
        _request(initialize.InitializeShareGroupStateRequest, initialize.InitializeStateData),
        lambda event: initialize.PartitionData(
            partition=event.key.partition,
            state_epoch=event.state_epoch,
            start_offset=event.start_offset,
        ),
        _nothing,
    ),
    ReadState: _Kind(
        read.READ_SHARE_GROUP_STATE,
        _request(read.ReadShareGroupStateRequest, read.ReadStateData),
        lambda event: read.PartitionData(
            partition=event.key.partition, leader_epoch=event.leader_epoch
        ),
        lambda result: ShareState(
            snapshot_epoch=0,
            state_epoch=result.state_epoch,
            leader_epoch=0,
            start_offset=result.start_offset,
            delivery_complete_count=0,
            batches=tuple(
                StateBatch(
                    each.first_offset, each.last_offset, each.delivery_count, each.delivery_state
                )
                for each in result.state_batches
            ),
        ),
    ),
    WriteState: _Kind(
        write.WRITE_SHARE_GROUP_STATE,
        _request(write.WriteShareGroupStateRequest, write.WriteStateData),
        lambda event: write.PartitionData(
            partition=event.key.partition,
            state_epoch=event.state_epoch,
            leader_epoch=event.leader_epoch,
            start_offset=event.start_offset,
            delivery_complete_count=event.delivery_complete_count,
            state_batches=[
                write.StateBatch(
                    first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                )
                for first, last, count, state in event.batches
            ],
        ),
        _nothing,
    ),
    DeleteState: _Kind(
        delete.DELETE_SHARE_GROUP_STATE,
        _request(delete.DeleteShareGroupStateRequest, delete.DeleteStateData),
        lambda event: delete.PartitionData(partition=event.key.partition),
        _nothing,
    ),
    ReadSummary: _Kind(
        summary.READ_SHARE_GROUP_STATE_SUMMARY,
        _request(summary.ReadShareGroupStateSummaryRequest, summary.ReadStateSummaryData),
        lambda event: summary.PartitionData(partition=event.key.partition, leader_epoch=-1),
        lambda result: Summary(
            result.state_epoch,
            result.leader_epoch,
            result.start_offset,
            result.delivery_complete_count,
        ),
    ),
}


async def send_questions(
    peers: Peers, broker_id: int, events: Sequence[StateEvent[Any]], *, timeout_ms: int
) -> list[Any]:
    """Return the answer to each event, or a KafkaError; never raises one.

    Events of one type and group share a request, but for those about a share partition that is in
    it already: their answers could not be told apart. What follows one that is to be asked again is
    not asked, and has its answer.
    """
    answers: list[Any] = [None] * len(events)
    refused: dict[SharePartitionKey, KafkaError] = {}
    for request in _requests(events):
        indexes = [index for index in request if events[index].key not in refused]
        for index in request:
            answers[index] = refused.get(events[index].key)
        if not indexes:
            continue
        first = events[indexes[0]]
        kind = KINDS[type(first)]
        message = kind.request(
            first.key.group_id, _by_topic(kind, [events[index] for index in indexes])
        )
        try:
            response = await peers.request(
                broker_id, kind.api, message, timeout_ms=timeout_ms, channel=CHANNEL
            )
        except KafkaError as error:
            for index in indexes:
                answers[index] = error
                if error.code in PASSING:
                    refused[events[index].key] = error
            continue
        found = {
            (topic.topic_id, result.partition): result
            for topic in response.results
            for result in topic.partitions
        }
        for index in indexes:
            key = events[index].key
            answer = answers[index] = _answer(kind, key, found)
            if isinstance(answer, KafkaError) and answer.code in PASSING:
                refused[key] = answer
    return answers


def _requests(events: Sequence[StateEvent[Any]]) -> list[list[int]]:
    """Return the events' indexes, one list for each request, in an order that keeps theirs."""
    requests: list[list[int]] = []
    last: dict[tuple[type, str], int] = {}
    last_of_key: dict[SharePartitionKey, int] = {}
    for index, event in enumerate(events):
        kind = (type(event), event.key.group_id)
        place = last.get(kind, -1)
        if place < 0 or place <= last_of_key.get(event.key, -1):
            place = last[kind] = len(requests)
            requests.append([])
        requests[place].append(index)
        last_of_key[event.key] = place
    return requests


def _by_topic(kind: _Kind, events: Iterable[StateEvent[Any]]) -> list[tuple[Any, list[Any]]]:
    topics: dict[Any, list[Any]] = {}
    for event in events:
        topics.setdefault(event.key.topic_id, []).append(kind.partition(event))
    return [*topics.items()]


def _answer(kind: _Kind, key: SharePartitionKey, found: dict[Any, Any]) -> Any:
    result = found.get((key.topic_id, key.partition))
    if result is None:
        return KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"{key.coordinator_key} is missing in the answer"
        )
    if result.error_code:
        return KafkaError(ErrorCode(result.error_code), result.error_message or "")
    return kind.answer(result)


async def ask_latest_offsets(
    peers: Peers, broker_id: int, places: Sequence[TopicPartition], *, timeout_ms: int
) -> dict[TopicPartition, int | KafkaError]:
    """Return the high watermarks of partitions that a broker leads; never raises a KafkaError."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for name, index in places:
        topics.setdefault(name, []).append(
            ListOffsetsPartition(partition_index=index, timestamp=LATEST_TIMESTAMP)
        )
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
    )
    try:
        response = await peers.request(
            broker_id, LIST_OFFSETS, request, timeout_ms=timeout_ms, channel=CHANNEL
        )
    except KafkaError as error:
        return dict.fromkeys(places, error)
    missing = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "missing in the answer")
    found: dict[TopicPartition, int | KafkaError] = dict.fromkeys(places, missing)
    for topic in response.topics:
        for entry in topic.partitions:
            place = TopicPartition(topic.name, entry.partition_index)
            code = ErrorCode(entry.error_code)
            found[place] = entry.offset if code is ErrorCode.NONE else KafkaError(code)
    return found
