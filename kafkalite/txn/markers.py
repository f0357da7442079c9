"""Delivers the markers that end transactions to the leaders of their partitions (rules 110-112).

Partitions of this broker are written to directly, without a task switch; others by WriteTxnMarkers,
all that is for one broker together. What cannot be written yet is tried again until it can, where
the metadata says by then, and a coordinator that finds a prepared transaction in its log has all
markers written again, so that nothing is forgotten.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import trio

from kafkalite.clock import Clock
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.deferred import Promise
from kafkalite.meta.peers import Peers
from kafkalite.txn.events import MarkersWritten, SendMarkers
from kafkalite.txn.marker_writer import Marker, MarkerWriter
from kafkalite.txn.request_batcher import RequestBatcher
from kafkalite.txn.verification_guards import FindPartition
from kafkalite.types import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

logger = logging.getLogger("kafkalite.txn")

RETRY_MS = 100
"""Between two attempts to write a marker that was refused."""

CHANNEL = "markers"
"""A channel of their own: the leader answers when its followers have them, which may take long."""

LeaderOf = Callable[[TopicPartition], int | None]


@dataclass(slots=True, frozen=True)
class _Written:
    """A marker in a log of this broker, which counts once the high watermark is at `end_offset`."""

    end_offset: int
    leader_epoch: int


@dataclass(slots=True, eq=False)
class _PendingMarker:
    """One marker that another broker was asked to write, or is to be."""

    delivery: "_PendingCompletion"
    topic_partition: TopicPartition
    broker_id: int
    coordinator_epoch: int = -1
    """Of the request, once it is sent."""
    rests_until_ms: int | None = None
    """Set when it failed: when to think of another."""


class _PendingCompletion:
    """The markers of one transaction that are not known to be written.

    `remaining` has a partition's marker if it is in the log here, None if it is not yet; `errands`
    has those that others see to.
    """

    __slots__ = ("errands", "markers", "remaining")

    def __init__(self, markers: SendMarkers) -> None:
        self.markers = markers
        self.remaining: dict[TopicPartition, _Written | None] = dict.fromkeys(markers.partitions)
        self.errands: dict[TopicPartition, _PendingMarker] = {}


class TransactionMarkerChannelManager:
    """Sees to it that every marker gets written, and tells the coordinator when they are."""

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        writer: MarkerWriter,
        clock: Clock,
        *,
        find_partition: FindPartition,
        exists: Callable[[TopicPartition], bool],
        broker_id: int,
        leader_of: LeaderOf,
        peers: Peers | None,
        request_timeout_ms: int,
    ) -> None:
        """Make a sender.

        Args:
            runtime: of the transaction coordinators.
            writer: for partitions of this broker.
            clock: for the time between attempts.
            find_partition: returns a partition that this broker leads.
            exists: whether the cluster has a partition at all.
            broker_id: of this broker.
            leader_of: returns the broker that leads a partition.
            peers: the other brokers, if there may be any.
            request_timeout_ms: how long they may take.
        """
        self._runtime = runtime
        self._writer = writer
        self._clock = clock
        self._find_partition = find_partition
        self._exists = exists
        self._broker_id = broker_id
        self._leader_of = leader_of
        self._peers = peers
        self._request_timeout_ms = request_timeout_ms
        self._batcher: RequestBatcher[_PendingMarker] = RequestBatcher(self._send)
        self._new: deque[_PendingCompletion] = deque()
        self._waiting: dict[tuple[int, str], _PendingCompletion] = {}
        self._wakeup = trio.Event()
        self._is_inline = False

    def __len__(self) -> int:
        """Transactions whose markers are not all written."""
        return len(self._new) + len(self._waiting)

    def add(self, markers: SendMarkers) -> None:
        """Take over the markers of a transaction, to be delivered soon."""
        # A coordinator that was loaded anew sends again what it sent before.
        self._waiting.pop((markers.shard, markers.transactional_id), None)
        self._new.append(_PendingCompletion(markers))
        if not self._is_inline:
            self._wakeup.set()

    def begin_inline(self) -> None:
        """Queue markers without waking the task; the caller must call `flush_inline`."""
        self._is_inline = True

    def flush_inline(self) -> None:
        """Write the markers that were added; what does not succeed is left to `run`."""
        self._is_inline = False
        while self._new:
            delivery = self._new.popleft()
            if not self._is_done(delivery):
                key = (delivery.markers.shard, delivery.markers.transactional_id)
                self._waiting[key] = delivery
                self._wakeup.set()

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Deliver what nobody waits for, and what did not succeed at once, until cancelled."""
        async with trio.open_nursery() as nursery:
            if self._peers is not None:
                nursery.start_soon(self._batcher.run)
            task_status.started()
            while True:
                self._wakeup = trio.Event()
                self.flush_inline()
                for key, delivery in [*self._waiting.items()]:
                    if self._is_done(delivery) and self._waiting.get(key) is delivery:
                        del self._waiting[key]
                patience = RETRY_MS / 1000 if self._waiting else float("inf")
                with trio.move_on_after(patience):
                    await self._wakeup.wait()

    # --- Here -----------------------------------------------------------------------------------

    def _is_done(self, delivery: _PendingCompletion) -> bool:
        """Write what can be written; return whether nothing is left to be done."""
        markers = delivery.markers
        shard = self._find_partition(TopicPartition(TRANSACTION_STATE_TOPIC, markers.shard))
        if shard is None:
            return True  # whoever coordinates the transaction now sends them
        marker = Marker(
            markers.producer, shard.leader_epoch, markers.committed, markers.client_version
        )
        try:
            for topic_partition in [*delivery.remaining]:
                if self._is_delivered(topic_partition, marker, delivery):
                    del delivery.remaining[topic_partition]
            if not delivery.remaining:
                self._acknowledge(markers)
        except KafkaError as error:
            # The coordinator has changed, or its log has been lost and is loaded anew: whoever
            # finds the prepared transaction sends its markers.
            logger.info("markers of %s are left to others: %s", markers.transactional_id, error)
            return True
        return not delivery.remaining

    def _is_delivered(
        self, topic_partition: TopicPartition, marker: Marker, delivery: _PendingCompletion
    ) -> bool:
        """Write the marker of one partition if it is not; return whether it is there for good.

        Raises:
            KafkaError: TRANSACTION_COORDINATOR_FENCED.
        """
        partition = self._find_partition(topic_partition)
        if partition is None:
            delivery.remaining[topic_partition] = None  # what was written may be cut off
            if not self._exists(topic_partition):
                return True  # deleted, with all that was part of the transaction
            self._entrust(topic_partition, delivery)
            return False
        written = delivery.remaining[topic_partition]
        was_written = written is not None
        if written is None or written.leader_epoch != partition.leader_epoch:
            may_be_there = was_written or delivery.markers.is_again
            if may_be_there and self._writer.is_written(topic_partition, marker):
                end_offset = partition.log_end_offset
            else:
                try:
                    end_offset = self._writer.write(topic_partition, marker)
                except KafkaError as error:
                    delivery.remaining[topic_partition] = None
                    return self._is_finished(topic_partition, error, delivery)
            written = _Written(end_offset, partition.leader_epoch)
            delivery.remaining[topic_partition] = written
        if partition.high_watermark < written.end_offset:
            partition.watch(self._on_progress)
            return False
        if was_written:
            # Should another marker wait there too, it is looked at after RETRY_MS at the latest.
            partition.unwatch(self._on_progress)
        return True

    def _is_finished(
        self, topic_partition: TopicPartition, error: KafkaError, delivery: _PendingCompletion
    ) -> bool:
        """Return whether a partition that refused a marker will never need it."""
        if error.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
            raise error
        if error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
            logger.info("%s has a later marker already: %s", topic_partition, error)
            return True
        if not self._exists(topic_partition):
            return True
        logger.info(
            "marker of %s for %s is tried again: %s",
            delivery.markers.transactional_id,
            topic_partition,
            error,
        )
        return False

    def _on_progress(self) -> None:
        self._wakeup.set()

    def _acknowledge(self, markers: SendMarkers) -> None:
        answer = self._runtime.handle(
            TRANSACTION_STATE_TOPIC,
            markers.transactional_id,
            MarkersWritten(markers.transactional_id, markers.producer),
        )
        if isinstance(answer, Promise):
            answer.close()

    # --- Elsewhere ------------------------------------------------------------------------------

    def _entrust(self, topic_partition: TopicPartition, delivery: _PendingCompletion) -> None:
        """Have the leader of a partition write its marker, unless it is about to."""
        if self._peers is None:
            return
        leader = self._leader_of(topic_partition)
        errand = delivery.errands.get(topic_partition)
        if errand is not None:
            is_under_way = errand.rests_until_ms is None and errand.broker_id == leader
            if is_under_way or (errand.rests_until_ms or 0) > self._clock.monotonic_ms():
                return
            del delivery.errands[topic_partition]
        if leader is None or leader == self._broker_id:
            return  # there is none now, or its log is being opened
        errand = _PendingMarker(delivery, topic_partition, leader)
        delivery.errands[topic_partition] = errand
        self._batcher.add(leader, errand)

    async def _send(self, broker_id: int, errands: list[_PendingMarker]) -> None:
        """Ask a broker to write markers, and take note of what it says of each."""
        assert self._peers is not None
        failure: KafkaError | None = None
        codes: dict[tuple[int, TopicPartition], ErrorCode] = {}
        errands = [errand for errand in errands if self._is_wanted(errand)]
        try:
            requests = _gather(errands)
            if requests:
                response = await self._peers.request(
                    broker_id,
                    WRITE_TXN_MARKERS,
                    WriteTxnMarkersRequest(markers=[marker for marker, _ in requests]),
                    timeout_ms=self._request_timeout_ms,
                    channel=CHANNEL,
                )
                codes = _codes_of(requests, response)
        except KafkaError as error:
            failure = error
        finally:
            for errand in errands:
                code = codes.get((id(errand.delivery), errand.topic_partition))
                self._finish(errand, KafkaError(code) if code is not None else failure)
            self._wakeup.set()

    def _is_wanted(self, errand: _PendingMarker) -> bool:
        """Whether an errand is still to be done; it is then made out for this epoch."""
        markers = errand.delivery.markers
        shard = self._find_partition(TopicPartition(TRANSACTION_STATE_TOPIC, markers.shard))
        if shard is None or errand.delivery.errands.get(errand.topic_partition) is not errand:
            return False
        errand.coordinator_epoch = shard.leader_epoch
        return True

    def _finish(self, errand: _PendingMarker, answer: KafkaError | None) -> None:
        """Deal with what came of an errand; None if that will not be known."""
        delivery, topic_partition = errand.delivery, errand.topic_partition
        if answer is not None and answer.code is ErrorCode.NONE:
            delivery.remaining.pop(topic_partition, None)
            delivery.errands.pop(topic_partition, None)
            return
        errand.rests_until_ms = self._clock.monotonic_ms() + RETRY_MS
        if answer is None or topic_partition not in delivery.remaining:
            return
        try:
            if self._is_finished(topic_partition, answer, delivery):
                delivery.remaining.pop(topic_partition)
        except KafkaError:
            self._on_fenced(errand)

    def _on_fenced(self, errand: _PendingMarker) -> None:
        """Drop markers of a fenced coordinator: a later one sends them, if it is another broker."""
        markers = errand.delivery.markers
        shard = self._find_partition(TopicPartition(TRANSACTION_STATE_TOPIC, markers.shard))
        key = (markers.shard, markers.transactional_id)
        if shard is not None and shard.leader_epoch > errand.coordinator_epoch:
            return  # asked in an earlier epoch, and to be asked again in this one
        logger.info("markers of %s are left to a later coordinator", markers.transactional_id)
        if self._waiting.get(key) is errand.delivery:
            del self._waiting[key]


_Request = tuple[WritableTxnMarker, list[_PendingMarker]]


def _gather(errands: Iterable[_PendingMarker]) -> list[_Request]:
    """Return one marker for each transaction, and the errands that it is for."""
    by_delivery: dict[int, list[_PendingMarker]] = {}
    for errand in errands:
        by_delivery.setdefault(id(errand.delivery), []).append(errand)
    return [(_marker_of(group), group) for group in by_delivery.values()]


def _marker_of(errands: list[_PendingMarker]) -> WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for errand in errands:
        name, index = errand.topic_partition
        topics.setdefault(name, []).append(index)
    markers = errands[0].delivery.markers
    return WritableTxnMarker(
        producer_id=markers.producer.producer_id,
        producer_epoch=markers.producer.producer_epoch,
        transaction_result=markers.committed,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
            for name, indexes in topics.items()
        ],
        coordinator_epoch=errands[0].coordinator_epoch,
        transaction_version=markers.client_version,
    )


def _codes_of(
    requests: list[_Request], response: WriteTxnMarkersResponse
) -> dict[tuple[int, TopicPartition], ErrorCode]:
    """Return what was answered for each delivery and partition; answers are in order."""
    codes = {}
    for (marker, errands), result in zip(requests, response.markers, strict=False):
        if result.producer_id != marker.producer_id:
            break  # not an answer to this; everything else is asked again
        for topic in result.topics:
            for part in topic.partitions:
                place = TopicPartition(topic.name, part.partition_index)
                codes[id(errands[0].delivery), place] = ErrorCode(part.error_code)
    return codes
