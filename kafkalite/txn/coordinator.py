"""The transaction coordinator as the APIs see it: ask, and what follows is done."""

from collections.abc import Callable
from typing import Any

import trio

from kafkalite.clock import Clock
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.txn.events import SendMarkers
from kafkalite.txn.markers import FindPartition, MarkerSender, MarkerWriter
from kafkalite.txn.put_off import PutOff
from kafkalite.types import TRANSACTION_STATE_TOPIC, TopicPartition


class TransactionCoordinator:
    """All transactional ids that are coordinated here.

    Attributes:
        markers: writes markers to partitions of this broker, also for other coordinators.
        put_off: batches that have to come again before their successors may.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        clock: Clock,
        *,
        find_partition: FindPartition,
        exists: Callable[[TopicPartition], bool],
    ) -> None:
        """Make the coordinator over a runtime that has its effects performed by `perform`.

        Args:
            runtime: with shards of transactions and of groups.
            clock: for the time in markers.
            find_partition: returns a partition that this broker leads, None for others.
            exists: whether the cluster has a partition at all.
        """
        self._runtime = runtime
        self.put_off = PutOff()
        self.markers = MarkerWriter(runtime, find_partition, clock, self.put_off)
        self._sender = MarkerSender(
            runtime, self.markers, find_partition=find_partition, exists=exists
        )

    def perform(self, effect: object) -> None:
        """Take over an effect of a shard."""
        assert isinstance(effect, SendMarkers)
        self._sender.add(effect)

    def ask(self, transactional_id: str, event: object) -> Any:
        """Return a shard's answer, or `Parked`.

        Markers that the event leads to are written before this returns, where they can be: the
        next request of the same producer finds its transaction complete.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, or the shard's refusal.
        """
        self._sender.expect()
        try:
            return self._runtime.handle(TRANSACTION_STATE_TOPIC, transactional_id, event)
        finally:
            self._sender.deliver()

    def ask_all(self, event: object) -> list[Any]:
        """Return the answer of every shard that is coordinated here; each may be `Parked`.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS.
        """
        return self._runtime.handle_all(TRANSACTION_STATE_TOPIC, event)

    def unfinished(self) -> int:
        """Return how many transactions are decided and have markers that are not written."""
        return len(self._sender)

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Deliver markers that could not be written at once, until cancelled."""
        await self._sender.run(task_status=task_status)
