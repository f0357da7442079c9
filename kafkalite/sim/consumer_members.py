"""Simulated members of a consumer group of Kafka 4 (KIP-848): the broker assigns."""

from typing import ClassVar, Final

import trio

from kafkalite.sim.client import Client, Unanswered
from kafkalite.sim.consumers import GroupClient
from kafkalite.sim.workload import Workload
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

GROUP: Final = "consumers"
HEARTBEAT_VERSION: Final = 1
REBALANCE_TIMEOUT_MS: Final = 3_000
LEAVE_EPOCH: Final = -1
NOT_SAID: Final = -1
ZOMBIE_S: Final = 6.0
"""Longer than a session: the member goes on without knowing that its partitions are others' now."""


class ConsumerMember(GroupClient):
    """Commits ever larger offsets for what it has; what it is to give up it has a while longer."""

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

    def __init__(self, client: Client, work: Workload) -> None:
        super().__init__(client, work, GROUP)
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
        self._assigned: list[TopicPartitions] = []
        self._owned: list[TopicPartitions] = []
        """What it has; more than it is assigned until it says that it has given something up."""
        self._positions = {}
        self._knows_all = False
        self._sure_until = 0.0

    async def _live(self) -> None:
        """Heartbeat and commit, until an answer fails to come or the member goes."""
        work = self._work
        for _ in range(work.random.randint(3, 20)):
            if work.random.random() < 0.6:
                self._give_up()
            if not await self._heartbeat():
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
            await self._heartbeat()
        if end < 0.4:
            self._lives += 1  # gone, maybe without a word; another one comes
            self._forget()

    def _give_up(self) -> None:
        """Have no more than is assigned; the next heartbeat says so."""
        self._owned = self._assigned
        self._note()

    async def _heartbeat(self) -> bool:
        self._member_id = f"{self._client.name}-{self._lives}"
        is_join = self._generation == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._generation,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if is_join else NOT_SAID,
            subscribed_topic_names=[self._work.places[0].topic] if is_join else None,
            topic_partitions=[] if is_join else self._owned,
        )
        asked_at = trio.current_time()
        knew_all, self._knows_all = self._knows_all, False
        answer = await self._ask(CONSUMER_GROUP_HEARTBEAT, HEARTBEAT_VERSION, request)
        # An answer that was lost may have told of something to give up, and is not repeated.
        self._knows_all = knew_all or answer.assignment is not None
        if answer.error_code != ErrorCode.NONE:
            self._on_error(answer.error_code)
            return False
        self._work.count("consumer heartbeats")
        return self._generation == LEAVE_EPOCH or await self._apply(answer, asked_at)

    async def _apply(self, answer: ConsumerGroupHeartbeatResponse, asked_at: float) -> bool:
        self._generation = answer.member_epoch
        if answer.assignment is not None:
            self._assigned = answer.assignment.topic_partitions
            more = _numbers(self._assigned) | _numbers(self._owned)
            topic_ids = [each.topic_id for each in (*self._assigned, *self._owned)]
            self._owned = [
                TopicPartitions(topic_id=topic_id, partitions=sorted(more))
                for topic_id in topic_ids[:1]
            ]
        assigned = self._places(self._assigned)
        self._work.on_epoch(self._group, self._generation, self._member_id, assigned)
        gives_up = _numbers(self._owned) != _numbers(self._assigned)
        if not gives_up or not self._sure_until:
            # So long nobody is removed who knows what to give up, and is not about to.
            self._sure_until = asked_at + REBALANCE_TIMEOUT_MS / 1_000
        self._note()
        places = self._places(self._owned)
        for place in places:
            if place not in self._positions:
                position = await self._fetch_offset(place)
                if position is None:
                    return False
                self._positions[place] = position
        return True

    def _note(self) -> None:
        """Have it checked that nobody else has what this member has."""
        places = self._places(self._owned)
        for place in [*self._positions]:
            if place not in places:
                del self._positions[place]
        self._work.on_owned(
            self._group,
            self._member_id,
            places,
            coordinator=self._coordinator,
            until=self._sure_until if self._knows_all else 0.0,
        )

    def _places(self, topics: list[TopicPartitions]) -> list[TopicPartition]:
        name = self._work.places[0].topic
        return [TopicPartition(name, number) for number in sorted(_numbers(topics))]

    async def _commit_all(self) -> bool:
        for place in [*self._positions]:
            self._positions[place] += self._work.random.randint(1, 10)
            if not await self._commit(place, self._positions[place]):
                return False
        return True


def _numbers(topics: list[TopicPartitions]) -> set[int]:
    return {number for topic in topics for number in topic.partitions}
