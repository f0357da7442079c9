"""The transaction coordinator as the APIs see it: ask, and what follows is done."""

from collections.abc import Callable
from typing import TypeVar

import trio

from kafkalite.clock import Clock
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.coordinator.shard import Event
from kafkalite.deferred import Promise
from kafkalite.log.sequence_hold import SequenceHold
from kafkalite.meta.peers import Peers
from kafkalite.txn.add_partitions_manager import AddPartitionsToTxnManager
from kafkalite.txn.events import AddPartitions, Codes, SendMarkers, VerifyPartitions
from kafkalite.txn.marker_writer import MarkerWriter
from kafkalite.txn.markers import LeaderOf, TransactionMarkerChannelManager
from kafkalite.txn.verification_guards import FindPartition, VerificationGuards
from kafkalite.types import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

DEFAULT_REQUEST_TIMEOUT_MS = 30_000
"""Default of request.timeout.ms."""

Answer = TypeVar("Answer")


class TransactionCoordinator:
    """All transactional ids that are coordinated here, and the way to those that are not.

    Attributes:
        markers: writes markers to partitions of this broker, also for other coordinators.
        guards: questions to coordinators whose answers are under way.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        clock: Clock,
        *,
        sequence_hold: SequenceHold,
        find_partition: FindPartition,
        exists: Callable[[TopicPartition], bool],
        broker_id: int = -1,
        leader_of: LeaderOf = lambda _: None,
        peers: Peers | None = None,
        request_timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS,
    ) -> None:
        """Make the coordinator over a runtime that has its effects performed by `perform`.

        Args:
            runtime: with shards of transactions and of groups.
            clock: for the time in markers, and of attempts.
            sequence_hold: batches that come again; none when their transaction has ended.
            find_partition: returns a partition that this broker leads, None for others.
            exists: whether the cluster has a partition at all.
            broker_id: of this broker.
            leader_of: returns the broker that leads a partition, None if there is none now.
            peers: the other brokers; None if there are none, ever.
            request_timeout_ms: how long they may take to answer.
        """
        self._runtime = runtime
        self._broker_id = broker_id
        self._leader_of = leader_of
        self.guards = VerificationGuards(find_partition)
        self.markers = MarkerWriter(runtime, find_partition, clock, sequence_hold, self.guards)
        self._sender = TransactionMarkerChannelManager(
            runtime,
            self.markers,
            clock,
            find_partition=find_partition,
            exists=exists,
            broker_id=broker_id,
            leader_of=leader_of,
            peers=peers,
            request_timeout_ms=request_timeout_ms,
        )
        self._elsewhere = (
            None
            if peers is None
            else AddPartitionsToTxnManager(peers, timeout_ms=request_timeout_ms)
        )

    def perform(self, effect: object) -> None:
        """Take over an effect of a shard."""
        assert isinstance(effect, SendMarkers)
        self._sender.add(effect)

    def ask(self, transactional_id: str, event: Event[Answer]) -> Answer | Promise[Answer]:
        """Return the answer of a shard of this broker, or `Promise`.

        Markers that the event leads to are written before this returns, where they can be: the
        next request of the same producer finds its transaction complete, if all of it is here and
        replicated at once.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, or the shard's refusal.
        """
        self._sender.begin_inline()
        try:
            return self._runtime.handle(TRANSACTION_STATE_TOPIC, transactional_id, event)
        finally:
            self._sender.flush_inline()

    def add_or_verify(
        self, transactional_id: str, event: AddPartitions | VerifyPartitions
    ) -> Codes | Promise[Codes | None] | None:
        """Return what the coordinator of an id, wherever it is, says of partitions led here.

        That is the answer of a shard, or a `Promise`, which has a code for each
        partition.

        Raises:
            KafkaError: as `ask`; COORDINATOR_NOT_AVAILABLE if there is no coordinator now.
        """
        if self._elsewhere is None:
            return self.ask(transactional_id, event)
        place = self._runtime.location_of(TRANSACTION_STATE_TOPIC, transactional_id)
        if place is not None and place.is_here:
            return self.ask(transactional_id, event)
        leader = None if place is None else self._leader_of(place.topic_partition)
        if leader is None or leader == self._broker_id:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"nobody coordinates transactional id {transactional_id!r} now",
            )
        return self._elsewhere.ask(leader, event)

    def ask_all(self, event: Event[Answer]) -> list[Answer | Promise[Answer]]:
        """Return the answer of every shard that is coordinated here; each may be `Promise`.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS.
        """
        return self._runtime.handle_all(TRANSACTION_STATE_TOPIC, event)

    def unfinished(self) -> int:
        """Return how many transactions are decided and have markers that are not written."""
        return len(self._sender)

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Deliver markers that could not be written at once, and ask others, until cancelled."""
        async with trio.open_nursery() as nursery:
            if self._elsewhere is not None:
                nursery.start_soon(self._elsewhere.run)
            await nursery.start(self._sender.run)
            task_status.started()
