"""Simulated threads of Kafka Streams: members of a streams group (KIP-1071)."""

from typing import Any, ClassVar, Final

import trio

from kafkalite.sim.client import Client, Unanswered
from kafkalite.sim.consumers import GroupClient
from kafkalite.sim.workload import Workload
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.streams_group_heartbeat import (
    STREAMS_GROUP_HEARTBEAT,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)

GROUP: Final = "streams"
CHANGELOG: Final = "streams-changelog"
REBALANCE_TIMEOUT_MS: Final = 3_000
LEAVE_EPOCH: Final = -1
ZOMBIE_S: Final = 6.0
"""Longer than a session: the thread goes on without knowing that its tasks are others' now."""


class StreamsThread(GroupClient):
    """Processes the partitions of one topic as tasks, each with a state store."""

    COMMIT_VERSION: ClassVar[int] = 9
    FINAL_ERRORS: ClassVar[frozenset[ErrorCode]] = frozenset(
        {
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.GROUP_ID_NOT_FOUND,
        }
    )
    PASSING_ERRORS: ClassVar[frozenset[ErrorCode]] = frozenset(
        {
            ErrorCode.STALE_MEMBER_EPOCH,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.REQUEST_TIMED_OUT,
        }
    )

    def __init__(self, client: Client, work: Workload, *, name: str, process: str) -> None:
        super().__init__(client, work, GROUP)
        self._name = name
        self._process = process
        self._lives = 0
        self._positions: dict[TopicPartition, int] = {}
        self._forget()

    async def run(self) -> None:
        """Join, work, and join again until cancelled."""
        await trio.sleep(self._work.random.uniform(0, 4))
        while True:
            try:
                await self._live()
            except Unanswered:
                self._coordinator = None
            await self._work.pause()

    def _forget(self) -> None:
        self._work.release(self._group, self._member_id)
        self._generation = 0
        self._active: list[TaskIds] = []
        self._standby: list[TaskIds] = []
        self._positions = {}
        self._knows_tasks = False
        self._has_said = True
        """What it owns, since it was last told of other tasks."""
        self._sure_until = 0.0

    async def _live(self) -> None:
        """Heartbeat and commit, until an answer fails to come or the thread goes."""
        work = self._work
        for _ in range(work.random.randint(3, 20)):
            is_new = self._generation == 0
            if not await self._heartbeat(says_owned=is_new or work.random.random() < 0.5):
                return
            if work.random.random() < 0.1:
                await trio.sleep(ZOMBIE_S)
            if not await self._commit_all():
                return
            await trio.sleep(work.random.uniform(0.1, 0.5))
        end = work.random.random()
        if end < 0.2:
            self._forget()
            self._generation = LEAVE_EPOCH
            await self._heartbeat(says_owned=False)
        if end < 0.4:
            self._lives += 1  # gone, maybe without a word; another one comes
            self._forget()

    async def _heartbeat(self, *, says_owned: bool) -> bool:
        self._member_id = f"{self._name}-{self._lives}"
        request = StreamsGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._generation,
            endpoint_information_epoch=-1,
        )
        if says_owned:
            request.active_tasks, request.standby_tasks = self._active, self._standby
            request.warmup_tasks = []
        if self._generation == 0:
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            request.process_id = self._process
            request.topology = _topology(self._work.places[0].topic)
        asked_at = trio.current_time()
        knew_tasks, self._knows_tasks = self._knows_tasks, False
        answer = await self._ask(STREAMS_GROUP_HEARTBEAT, 0, request)
        # An answer that was lost may have told of tasks to give up, and is not repeated: the thread
        # is removed for not giving them up, though its heartbeats are answered.
        self._knows_tasks = knew_tasks or answer.active_tasks is not None
        if answer.error_code != ErrorCode.NONE:
            self._on_error(answer.error_code)
            return False
        self._work.count("streams heartbeats")
        if says_owned:
            self._has_said = True
        if self._has_said:
            # Within this time nobody is removed who knows what to give up, and has said so.
            self._sure_until = asked_at + REBALANCE_TIMEOUT_MS / 1_000
        return self._generation == LEAVE_EPOCH or await self._apply(answer)

    async def _apply(self, answer: StreamsGroupHeartbeatResponse) -> bool:
        self._generation = answer.member_epoch
        if answer.active_tasks is not None:
            self._has_said = False
            self._active, self._standby = answer.active_tasks, answer.standby_tasks or []
        places = [
            TopicPartition(self._work.places[0].topic, number)
            for tasks in self._active
            for number in tasks.partitions
        ]
        self._work.on_owned(
            self._group,
            self._member_id,
            places,
            coordinator=self._coordinator,
            until=self._sure_until if self._knows_tasks else 0.0,
        )
        for place in [*self._positions]:
            if place not in places:
                del self._positions[place]
        for place in places:
            if place in self._positions:
                continue
            position = await self._fetch_offset(place)
            if position is None:
                return False
            self._positions[place] = position
        return True

    async def _commit_all(self) -> bool:
        for place in [*self._positions]:
            self._positions[place] += self._work.random.randint(1, 10)
            if not await self._commit(place, self._positions[place]):
                return False
        return True


def _topology(topic: str) -> Topology:
    changelog = TopicInfo(name=CHANGELOG)
    subtopology: Any = Subtopology(
        subtopology_id="0", source_topics=[topic], state_changelog_topics=[changelog]
    )
    return Topology(epoch=0, subtopologies=[subtopology])
