"""The share coordinator's state APIs, asked by brokers (keys 83-87, KIP-932).

InitializeShareGroupState (key 83), version 0. ReadShareGroupState (84), 0. WriteShareGroupState
(85), 0-1. DeleteShareGroupState (86), 0. ReadShareGroupStateSummary (87), 0-1.
85 and 87 v1: how many records in flight are finished with (KIP-1226).

Each partition is asked for by itself (rule 415).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kafkalite.api.coordinator_requests import client_code, gather
from kafkalite.api.handler import Handler
from kafkalite.share.batches import SharePartitionKey, StateBatch
from kafkalite.share.events import (
    NO_COUNT,
    DeleteState,
    InitializeState,
    ReadState,
    ReadSummary,
    ShareState,
    StateEvent,
    Summary,
    WriteState,
)
from kafkalite.types import SHARE_GROUP_STATE_TOPIC
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages import delete_share_group_state as delete
from kafkalite.wire.messages import initialize_share_group_state as initialize
from kafkalite.wire.messages import read_share_group_state as read
from kafkalite.wire.messages import read_share_group_state_summary as summary
from kafkalite.wire.messages import write_share_group_state as write

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext


@dataclass(slots=True, frozen=True)
class _StateApi:
    """One of the five APIs.

    Attributes:
        event: makes the event for (share partition, entry of the request).
        fill: puts the shard's answer into an entry of the response.
        response, topic, entry: classes of the response.
    """

    event: Callable[[SharePartitionKey, Any], StateEvent[Any]]
    fill: Callable[[Any, Any], None]
    response: Any
    topic: Any
    entry: Any


def _nothing(entry: object, answer: object) -> None:
    del entry, answer


def _fill_state(entry: read.PartitionResult, state: ShareState) -> None:
    entry.state_epoch = state.state_epoch
    entry.start_offset = state.start_offset
    entry.state_batches = [
        read.StateBatch(
            first_offset=first, last_offset=last, delivery_state=number, delivery_count=count
        )
        for first, last, count, number in state.batches
    ]


def _fill_summary(entry: summary.PartitionResult, found: Summary) -> None:
    entry.state_epoch = found.state_epoch
    entry.leader_epoch = found.leader_epoch
    entry.start_offset = found.start_offset
    entry.delivery_complete_count = found.delivery_complete_count


INITIALIZE = _StateApi(
    lambda key, entry: InitializeState(key, entry.state_epoch, entry.start_offset),
    _nothing,
    initialize.InitializeShareGroupStateResponse,
    initialize.InitializeStateResult,
    initialize.PartitionResult,
)
READ = _StateApi(
    lambda key, entry: ReadState(key, entry.leader_epoch),
    _fill_state,
    read.ReadShareGroupStateResponse,
    read.ReadStateResult,
    read.PartitionResult,
)
WRITE = _StateApi(
    lambda key, entry: WriteState(
        key,
        entry.state_epoch,
        entry.leader_epoch,
        entry.start_offset,
        entry.delivery_complete_count,
        [
            StateBatch(
                each.first_offset, each.last_offset, each.delivery_count, each.delivery_state
            )
            for each in entry.state_batches
        ],
    ),
    _nothing,
    write.WriteShareGroupStateResponse,
    write.WriteStateResult,
    write.PartitionResult,
)
DELETE = _StateApi(
    lambda key, entry: DeleteState(key),
    _nothing,
    delete.DeleteShareGroupStateResponse,
    delete.DeleteStateResult,
    delete.PartitionResult,
)
SUMMARY = _StateApi(
    lambda key, entry: ReadSummary(key),
    _fill_summary,
    summary.ReadShareGroupStateSummaryResponse,
    summary.ReadStateSummaryResult,
    summary.PartitionResult,
)


def _handle(api: _StateApi, request: Any, context: "RequestContext") -> Any:
    """Ask the shard of each share partition, and answer when all have."""
    runtime = context.services.coordinators
    asked = [
        (SharePartitionKey(request.group_id, topic.topic_id, entry.partition), entry)
        for topic in request.topics
        for entry in topic.partitions
    ]

    def ask(item: tuple[SharePartitionKey, Any]) -> Any:
        key, entry = item
        event = api.event(key, entry)
        return runtime.handle(SHARE_GROUP_STATE_TOPIC, key.coordinator_key, event)

    return gather(
        asked, ask, lambda _, error: error, partial(_response, api, [key for key, _ in asked])
    )


def _response(api: _StateApi, keys: list[SharePartitionKey], answers: list[Any]) -> Any:
    topics: dict[Any, Any] = {}
    for key, answer in zip(keys, answers, strict=True):
        entry = api.entry(partition=key.partition)
        if isinstance(answer, KafkaError):
            _fail(api, entry, answer)
        else:
            api.fill(entry, answer)
        topic = topics.setdefault(key.topic_id, api.topic(topic_id=key.topic_id))
        topic.partitions.append(entry)
    return api.response(results=[*topics.values()])


def _fail(api: _StateApi, entry: Any, error: KafkaError) -> None:
    entry.error_code = client_code(error)
    entry.error_message = error.message or None
    if api is SUMMARY:
        entry.delivery_complete_count = NO_COUNT


def _refuse(api: _StateApi, request: Any, error: KafkaError, context: "RequestContext") -> Any:
    """Answer the error for every partition."""
    del context
    keys = [
        SharePartitionKey(request.group_id, topic.topic_id, entry.partition)
        for topic in request.topics
        for entry in topic.partitions
    ]
    return _response(api, keys, [error] * len(keys))


HANDLERS = tuple(
    Handler(declared, partial(_handle, api), partial(_refuse, api), inter_broker_only=True)
    for declared, api in (
        (initialize.INITIALIZE_SHARE_GROUP_STATE, INITIALIZE),
        (read.READ_SHARE_GROUP_STATE, READ),
        (write.WRITE_SHARE_GROUP_STATE, WRITE),
        (delete.DELETE_SHARE_GROUP_STATE, DELETE),
        (summary.READ_SHARE_GROUP_STATE_SUMMARY, SUMMARY),
    )
)
