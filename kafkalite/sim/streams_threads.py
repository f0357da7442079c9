"""Simulated threads of Kafka Streams: members of a streams group (KIP-1071)."""

from typing import Any, Final

import trio

from kafkalite.sim.client import Client
from kafkalite.sim.heartbeat_members import LEAVE_EPOCH, REBALANCE_TIMEOUT_MS, HeartbeatMember
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


class StreamsThread(HeartbeatMember):
    """Processes the partitions of one topic as tasks, each with a state store."""

    def __init__(self, client: Client, work: Workload, *, name: str, process: str) -> None:
        super().__init__(client, work, GROUP)
        self._name = name
        self._process = process

    def _forget(self) -> None:
        super()._forget()
        self._active: list[TaskIds] = []
        self._standby: list[TaskIds] = []
        self._knows_tasks = False
        self._has_said = True
        """What it owns, since it was last told of other tasks."""

    async def _stay(self) -> bool:
        is_new = self._generation == 0
        return await self._heartbeat(says_owned=is_new or self._work.random.random() < 0.5)

    async def _heartbeat(self, *, says_owned: bool = False) -> bool:
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
        self._note(places, is_sure=self._knows_tasks)
        return await self._begin(places)


def _topology(topic: str) -> Topology:
    changelog = TopicInfo(name=CHANGELOG)
    subtopology: Any = Subtopology(
        subtopology_id="0", source_topics=[topic], state_changelog_topics=[changelog]
    )
    return Topology(epoch=0, subtopologies=[subtopology])
