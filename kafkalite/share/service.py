"""All that a broker does for share groups besides their members, put together."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import trio

from kafkalite.deferred import Promise
from kafkalite.group.effects import InitializeStates
from kafkalite.group.share.states import StatesInitialized
from kafkalite.share.batches import SharePartitionKey
from kafkalite.share.effects import PruneLog
from kafkalite.share.events import DeleteState, InitializeState, ReadSummary, StateEvent, Summary
from kafkalite.share.manager import FindPartition, SharePartitionManager
from kafkalite.share.persister import Persister
from kafkalite.share.state_requests import ask_latest_offsets
from kafkalite.types import CONSUMER_OFFSETS_TOPIC, SHARE_GROUP_STATE_TOPIC, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.clock import Clock
    from kafkalite.coordinator.runtime import CoordinatorRuntime
    from kafkalite.meta.group_configs import GroupConfigs
    from kafkalite.meta.peers import Peers

logger = logging.getLogger("kafkalite.share")

Place = tuple[UUID, int]
"""A partition by topic id and index."""
Errors = dict[Place, KafkaError]
Answer = TypeVar("Answer")


class ShareService:
    """Share partitions, the way to their coordinators, and what those want done.

    Attributes:
        partitions: that this broker leads.
        persister: the way to share coordinators.
    """

    def __init__(
        self,
        runtime: "CoordinatorRuntime",
        clock: "Clock",
        group_configs: "GroupConfigs",
        *,
        find_partition: FindPartition,
        ensure_topic: Callable[[str], Awaitable[object]],
        broker_id: int = -1,
        leader_of: Callable[[TopicPartition], int | None] = lambda _: None,
        peers: "Peers | None" = None,
        request_timeout_ms: int = 30_000,
    ) -> None:
        """Make the service over a runtime that has its effects performed by `perform`.

        Args:
            runtime: with shards of share coordinators.
            clock: for the ends of locks.
            group_configs: settings of groups.
            find_partition: returns a partition that this broker leads, None for others.
            ensure_topic: makes an internal topic that is not there.
            broker_id: of this broker.
            leader_of: returns the broker that leads a partition, None if there is none now.
            peers: the other brokers; None if there are none, ever.
            request_timeout_ms: how long they may take to answer.
        """
        self.persister = Persister(
            runtime,
            ensure_topic=ensure_topic,
            broker_id=broker_id,
            leader_of=leader_of,
            peers=peers,
            request_timeout_ms=request_timeout_ms,
        )
        self.partitions = SharePartitionManager(
            self.persister, clock, group_configs, find_partition=find_partition
        )
        self._find_partition = find_partition
        self._leader_of = leader_of
        self._peers = peers
        self._timeout_ms = request_timeout_ms
        self._runtime = runtime
        self._to_do: deque[PruneLog | InitializeStates] = deque()
        self._wakeup = trio.Event()

    def perform(self, effect: PruneLog | InitializeStates) -> None:
        """Take over an effect of a share coordinator, or of a group with share partitions."""
        self._to_do.append(effect)
        self._wakeup.set()

    def initialize(self, plan: InitializeStates, give: Callable[[Errors], object]) -> None:
        """Begin share partitions; `give` is called once with the errors, perhaps at once."""
        self._ask_each(
            {
                place: InitializeState(
                    SharePartitionKey(plan.group_id, *place), plan.state_epoch, start_offset
                )
                for place, start_offset in plan.start_offsets.items()
            },
            lambda answers: give(
                {place: each for place, each in answers.items() if isinstance(each, KafkaError)}
            ),
        )

    def delete(
        self, group_id: str, places: Iterable[Place], give: Callable[[Errors], object]
    ) -> None:
        """Have share partitions forgotten; as `initialize`."""
        self._ask_each(
            {place: DeleteState(SharePartitionKey(group_id, *place)) for place in places},
            lambda answers: give(
                {place: each for place, each in answers.items() if isinstance(each, KafkaError)}
            ),
        )

    def summarize(
        self,
        group_id: str,
        places: Iterable[Place],
        give: Callable[[dict[Place, Summary | KafkaError]], object],
    ) -> None:
        """Ask how far share partitions are; as `initialize`."""
        self._ask_each(
            {place: ReadSummary(SharePartitionKey(group_id, *place)) for place in places},
            give,
        )

    async def wait(self, start: Callable[[Callable[[Answer], object]], object]) -> Answer:
        """Return what `start` gives to the callable that it gets; see `initialize`.

        Share coordinators answer, or are given up, in the end (rule 423).
        """
        found: list[Answer] = []
        is_there = trio.Event()

        def give(answer: Answer) -> None:
            found.append(answer)
            is_there.set()

        start(give)
        await is_there.wait()
        return found[0]

    async def report(self, plan: InitializeStates, errors: Errors) -> None:
        """Tell a group what became of share partitions, and wait until it is written.

        Raises:
            KafkaError: the group's coordinator moved, or cannot write.
        """
        answer = self._runtime.handle(CONSUMER_OFFSETS_TOPIC, plan.group_id, _event(plan, errors))
        if isinstance(answer, Promise):
            await answer.wait()

    async def latest_offsets(
        self, places: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | KafkaError]:
        """Return the high watermark of each partition, wherever it is led."""
        found: dict[TopicPartition, int | KafkaError] = {}
        elsewhere: dict[int, list[TopicPartition]] = {}
        for place in places:
            partition = self._find_partition(place)
            leader = self._leader_of(place)
            if partition is not None:
                found[place] = partition.high_watermark
            elif leader is None or self._peers is None:
                found[place] = KafkaError(
                    ErrorCode.LEADER_NOT_AVAILABLE, f"nobody leads {place} now"
                )
            else:
                elsewhere.setdefault(leader, []).append(place)
        for leader, wanted in elsewhere.items():
            assert self._peers is not None
            found |= await ask_latest_offsets(
                self._peers, leader, wanted, timeout_ms=self._timeout_ms
            )
        return found

    def _ask_each(
        self,
        events: dict[Place, StateEvent[Answer]],
        give: Callable[[dict[Place, Answer | KafkaError]], object],
    ) -> None:
        answers: dict[Place, Answer | KafkaError] = {}

        def take(place: Place, answer: Answer | KafkaError) -> None:
            answers[place] = answer
            if len(answers) == len(events):
                give(answers)

        if not events:
            give(answers)
        for place, event in events.items():
            self.persister.ask(event, partial(take, place))

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Do what takes time, until cancelled."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.partitions.run)
            task_status.started()
            while True:
                self._wakeup = trio.Event()
                while self._to_do:
                    effect = self._to_do.popleft()
                    if isinstance(effect, PruneLog):
                        self._prune(effect)
                    else:
                        self.initialize(effect, partial(self._on_initialized, effect))
                await self._wakeup.wait()

    def _on_initialized(self, plan: InitializeStates, errors: Errors) -> None:
        """Tell the group what became of its share partitions (rule 388)."""
        for place, error in errors.items():
            logger.warning("group %s: %s could not be initialised: %s", plan.group_id, place, error)
        event = _event(plan, errors)
        try:
            answer = self._runtime.handle(CONSUMER_OFFSETS_TOPIC, plan.group_id, event)
        except KafkaError as error:
            # It stays as being initialised, and a heartbeat tries again after a while.
            logger.warning("group %s: not told of its share partitions: %s", plan.group_id, error)
            return
        if isinstance(answer, Promise):
            answer.close()

    def _prune(self, effect: PruneLog) -> None:
        """Cut off a log below what is needed of it (rule 421)."""
        place = TopicPartition(SHARE_GROUP_STATE_TOPIC, effect.partition)
        partition = self._find_partition(place)
        if partition is None:
            return
        try:
            partition.delete_records_before(effect.before_offset)
        except KafkaError as error:
            logger.warning("%s: could not be pruned: %s", place, error)


def _event(plan: InitializeStates, errors: Errors) -> StatesInitialized:
    partitions: dict[UUID, list[int]] = {}
    for topic_id, index in plan.start_offsets:
        partitions.setdefault(topic_id, []).append(index)
    return StatesInitialized(plan.group_id, partitions, not errors)
