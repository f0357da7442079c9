"""Simulated members of a consumer group of Kafka 4 (KIP-848): the broker assigns."""

from typing import Final

import trio

from kafkalite.sim.client import Client
from kafkalite.sim.heartbeat_members import LEAVE_EPOCH, REBALANCE_TIMEOUT_MS, HeartbeatMember
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
NOT_SAID: Final = -1


class ConsumerMember(HeartbeatMember):
    """A member that has what it is to give up a while longer."""

    def __init__(self, client: Client, work: Workload) -> None:
        super().__init__(client, work, GROUP)

    def _forget(self) -> None:
        super()._forget()
        self._assigned: list[TopicPartitions] = []
        self._owned: list[TopicPartitions] = []
        """What it has; more than it is assigned until it says that it has given something up."""
        self._knows_all = False

    async def _stay(self) -> bool:
        if self._work.random.random() < 0.6:
            # It has no more than is assigned, and says so by the heartbeat.
            self._owned = self._assigned
            self._note_owned()
        return await self._heartbeat()

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
        self._note_owned()
        return await self._begin(self._places(self._owned))

    def _note_owned(self) -> None:
        self._note(self._places(self._owned), is_sure=self._knows_all)

    def _places(self, topics: list[TopicPartitions]) -> list[TopicPartition]:
        name = self._work.places[0].topic
        return [TopicPartition(name, number) for number in sorted(_numbers(topics))]


def _numbers(topics: list[TopicPartitions]) -> set[int]:
    return {number for topic in topics for number in topic.partitions}
