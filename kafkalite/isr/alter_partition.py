"""Changes of ISRs, asked of the controller by AlterPartition (KIP-497, rule 176).

The shell around the leaders' proposals, and the two clocks of replication: the search for lagging
followers, and the checkpoint of high watermarks.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

import trio

from kafkalite.isr.leader import FINAL_REFUSALS, RESETTING_REFUSALS
from kafkalite.isr.leader_role import IsrAccepted
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.alter_partition import (
    ALTER_PARTITION,
    AlterPartitionData,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    AlterPartitionTopic,
    BrokerState,
)

if TYPE_CHECKING:
    from kafkalite.config import BrokerConfig
    from kafkalite.isr.offline import OfflineReplica
    from kafkalite.isr.partition import Partition
    from kafkalite.isr.recovering import RecoveringLeader
    from kafkalite.isr.replicas import ReplicaManager
    from kafkalite.isr.state import IsrChange
    from kafkalite.meta.peers import ControllerChannel

    IsrChanges = Sequence[tuple[Partition | OfflineReplica | RecoveringLeader, IsrChange]]

logger = logging.getLogger("kafkalite.isr")

RETRY_MS: Final = 50
"""Pause after an answer that leaves something to ask again; as Kafka's."""

RETRY_MS_MAX: Final = 2_000
"""The pause doubles up to this, should the controller be away for longer, or go on refusing."""

PROPOSALS_MAX: Final = 1_000
"""In one request: some 50 KB, which a controller decides upon and commits at once."""


@dataclass(slots=True)
class _Pause:
    """A partition of which a change was refused: nothing is asked for it until `end_s`."""

    end_s: float
    """In trio's time."""
    pause_ms: int
    """How long it takes; twice that after the next refusal of its kind."""


class AlterPartitionManager:
    """Keeps the ISRs of the partitions that are led here up to date.

    Args:
        replicas: the partitions.
        channel: to the controller.
        config: the broker's settings.
        broker_epoch: gives this broker's present one.
    """

    def __init__(
        self,
        replicas: "ReplicaManager",
        channel: "ControllerChannel",
        config: "BrokerConfig",
        *,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._replicas = replicas
        self._channel = channel
        self._config = config
        self._broker_epoch = broker_epoch
        self._wake = trio.Event()
        self._pauses: dict[TopicPartition, _Pause] = {}

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Do all that is due until cancelled; then write the high watermarks once more."""
        unsubscribe = self._replicas.subscribe_isr_changes(self._on_isr_change)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._propose_forever)
                nursery.start_soon(self._tick_forever)
                nursery.start_soon(self._checkpoint_forever)
                task_status.started()
        finally:
            unsubscribe()
            self._replicas.write_high_watermarks()

    def _on_isr_change(self) -> None:
        self._wake.set()

    # --- Proposing -------------------------------------------------------------------------------

    async def _propose_forever(self) -> None:
        """Send what there is, one request at a time: answers then come in the order of states."""
        pause_ms = RETRY_MS
        while True:
            held, end_s = self._held()
            proposals = self._replicas.take_isr_changes(held)
            if not proposals:
                with trio.move_on_at(end_s):
                    await self._wake.wait()
                self._wake = trio.Event()
                continue
            is_done = True
            for start in range(0, len(proposals), PROPOSALS_MAX):
                answered = await self._propose(proposals[start : start + PROPOSALS_MAX])
                is_done = is_done and answered
            if is_done:
                pause_ms = RETRY_MS
                continue
            await trio.sleep(pause_ms / 1_000)
            pause_ms = min(2 * pause_ms, RETRY_MS_MAX)

    def _held(self) -> tuple[set[TopicPartition], float]:
        """Return the partitions for which nothing is asked now, and when that changes next."""
        now_s = trio.current_time()
        self._pauses = {
            topic_partition: pause
            for topic_partition, pause in self._pauses.items()
            if now_s < pause.end_s + RETRY_MS_MAX / 1_000
        }
        held = {tp: pause.end_s for tp, pause in self._pauses.items() if now_s < pause.end_s}
        return set(held), min(held.values(), default=math.inf)

    def _on_refused(self, topic_partition: TopicPartition, error: ErrorCode) -> None:
        """Back off before a change of this partition is proposed again, if it may succeed then."""
        if error in FINAL_REFUSALS:
            return  # nothing is asked before there are other metadata
        before = self._pauses.get(topic_partition)
        pause_ms = RETRY_MS
        if before is not None and error not in RESETTING_REFUSALS:
            pause_ms = min(2 * before.pause_ms, RETRY_MS_MAX)
        end_s = trio.current_time() + pause_ms / 1_000
        self._pauses[topic_partition] = _Pause(end_s, pause_ms)

    async def _propose(self, proposals: "IsrChanges") -> bool:
        """Ask for some changes, and pass on the answers; False if the controller gave none."""
        try:
            response = await self._channel.request(
                ALTER_PARTITION,
                _request(self._replicas.broker_id, self._broker_epoch(), proposals),
                timeout_ms=self._config.int("controller.socket.timeout.ms"),
            )
            if response.error_code != ErrorCode.NONE:
                raise KafkaError(ErrorCode(response.error_code), "AlterPartition was refused")
        except KafkaError as error:
            # Whether the changes were made is not known. Asking again tells.
            logger.warning("%d changes of ISRs are asked again: %s", len(proposals), error)
            for partition, proposal in proposals:
                partition.on_isr_answer(proposal, error.code)
            return False
        results = _results(response)
        for partition, proposal in proposals:
            key = (partition.topic_id, partition.topic_partition.partition)
            answer = _answer(results.get(key))
            name = partition.topic_partition
            if isinstance(answer, ErrorCode):
                self._on_refused(name, answer)
            else:
                self._pauses.pop(name, None)
            partition.on_isr_answer(proposal, answer)
            if isinstance(answer, ErrorCode):
                isr = [member.broker_id for member in proposal.isr]
                if answer is ErrorCode.NEW_LEADER_ELECTED and self._replicas.broker_id not in isr:
                    logger.warning("%s is given up, and led by another broker", name)
                    continue
                logger.info("%s: ISR %s was refused: %s", name, isr, answer.name)
        return True

    # --- In the course of time -------------------------------------------------------------------

    async def _tick_forever(self) -> None:
        while True:
            await trio.sleep(self._config.int("replica.lag.time.max.ms") / 2 / 1_000)
            self._replicas.tick()

    async def _checkpoint_forever(self) -> None:
        while True:
            interval_ms = self._config.int("replica.high.watermark.checkpoint.interval.ms")
            await trio.sleep(interval_ms / 1_000)
            self._replicas.write_high_watermarks()


def _request(broker_id: int, broker_epoch: int, proposals: "IsrChanges") -> AlterPartitionRequest:
    topics: dict[UUID, AlterPartitionTopic] = {}
    for partition, proposal in proposals:
        topic_id = partition.topic_id
        topic = topics.setdefault(topic_id, AlterPartitionTopic(topic_id=topic_id, partitions=[]))
        topic.partitions.append(
            AlterPartitionData(
                partition_index=partition.topic_partition.partition,
                leader_epoch=proposal.leader_epoch,
                new_isr=[member.broker_id for member in proposal.isr],
                new_isr_with_epochs=[
                    BrokerState(broker_id=member.broker_id, broker_epoch=member.broker_epoch)
                    for member in proposal.isr
                ],
                partition_epoch=proposal.partition_epoch,
            )
        )
    return AlterPartitionRequest(
        broker_id=broker_id, broker_epoch=broker_epoch, topics=list(topics.values())
    )


def _results(response: AlterPartitionResponse) -> dict[tuple[UUID, int], AlterPartitionResult]:
    return {
        (topic.topic_id, result.partition_index): result
        for topic in response.topics
        for result in topic.partitions
    }


def _answer(result: AlterPartitionResult | None) -> IsrAccepted | ErrorCode:
    if result is None:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if result.error_code != ErrorCode.NONE:
        return ErrorCode(result.error_code)
    return IsrAccepted(
        leader_epoch=result.leader_epoch,
        partition_epoch=result.partition_epoch,
        isr=tuple(result.isr),
    )
