"""Delivers the markers that end transactions to the leaders of their partitions (rules 110-112).

Partitions of this broker are written to directly, without a task switch: the same code answers
WriteTxnMarkers. What cannot be written yet is tried again until it can, and a coordinator that
finds a prepared transaction in its log has all markers written again, so that nothing is forgotten.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import trio

from kafkalite.clock import Clock
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.coordinator.slot import Parked
from kafkalite.isr.partition import Partition
from kafkalite.log.validate import AppendOrigin
from kafkalite.txn.events import MarkersWritten, SendMarkers
from kafkalite.txn.put_off import PutOff
from kafkalite.txn.transactions import EPOCH_MAX, V2, ProducerIdentity
from kafkalite.types import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import control_batch

logger = logging.getLogger("kafkalite.txn")

RETRY_MS = 100
"""Between two attempts to write a marker that was refused."""

FindPartition = Callable[[TopicPartition], Partition | None]


@dataclass(slots=True)
class Marker:
    """The end of one transaction, as every partition of it is told."""

    producer: ProducerIdentity
    coordinator_epoch: int
    committed: bool
    client_version: int


class MarkerWriter:
    """Appends markers to partitions that this broker leads."""

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        find_partition: FindPartition,
        clock: Clock,
        put_off: PutOff,
    ) -> None:
        self._runtime = runtime
        self._put_off = put_off
        self._find_partition = find_partition
        self._clock = clock

    def partition(self, topic_partition: TopicPartition) -> Partition:
        """Return a partition that is led here.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        partition = self._find_partition(topic_partition)
        if partition is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic_partition} is not on this broker"
            )
        return partition

    def write(self, topic_partition: TopicPartition, marker: Marker) -> int:
        """Append a marker; return the offset (exclusive) that the high watermark has to reach.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED (rule 112), or what
                the partition or its coordinator answers.
        """
        partition = self.partition(topic_partition)
        _check_is_of_this_transaction(partition, marker)
        producer_id, producer_epoch = marker.producer
        self._put_off.forget(topic_partition, producer_id)
        if topic_partition.topic == CONSUMER_OFFSETS_TOPIC:
            return self._runtime.end_transaction(
                topic_partition,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=marker.coordinator_epoch,
                committed=marker.committed,
            )
        now_ms = self._clock.wall_ms()
        batch = control_batch(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            is_commit=marker.committed,
            timestamp_ms=now_ms,
        )
        info = partition.append(batch, now_ms=now_ms, origin=AppendOrigin.COORDINATOR)
        return info.last_offset + 1

    def is_written(self, topic_partition: TopicPartition, marker: Marker) -> bool:
        """Whether a partition needs no marker because it had it before, or had nothing to end."""
        partition = self._find_partition(topic_partition)
        if partition is None:
            return False
        producer = partition.log.producers.get(marker.producer.producer_id)
        return (
            producer is not None
            and producer.epoch >= marker.producer.producer_epoch
            and producer.transaction_first_offset < 0
        )


def _check_is_of_this_transaction(partition: Partition, marker: Marker) -> None:
    """Refuse a marker that came so late that it would end the next transaction (KIP-1228).

    In V2 a marker has the epoch after that of the records it is for. Only where the epochs have
    run out it may have the same.

    Raises:
        KafkaError: INVALID_PRODUCER_EPOCH.
    """
    if marker.client_version < V2:
        return
    producer_id, producer_epoch = marker.producer
    producer = partition.log.producers.get(producer_id)
    if (
        producer is not None
        and producer.transaction_first_offset >= 0
        and producer.epoch == producer_epoch != EPOCH_MAX
    ):
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"{partition.topic_partition}: the marker of producer {producer_id} at epoch "
            f"{producer_epoch} is for a transaction before the open one",
        )


class _Delivery:
    """The markers of one transaction that are not known to be written.

    `remaining` has, by partition, the offset that its high watermark must reach; None before the
    marker is appended.
    """

    __slots__ = ("markers", "remaining")

    def __init__(self, markers: SendMarkers) -> None:
        self.markers = markers
        self.remaining: dict[TopicPartition, int | None] = dict.fromkeys(markers.partitions)


class MarkerSender:
    """Sees to it that every marker gets written, and tells the coordinator when they are."""

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        writer: MarkerWriter,
        *,
        find_partition: FindPartition,
        exists: Callable[[TopicPartition], bool],
    ) -> None:
        """Make a sender.

        Args:
            runtime: of the transaction coordinators.
            writer: for partitions of this broker.
            find_partition: returns a partition that this broker leads.
            exists: whether the cluster has a partition at all.
        """
        self._runtime = runtime
        self._writer = writer
        self._find_partition = find_partition
        self._exists = exists
        self._new: deque[_Delivery] = deque()
        self._waiting: dict[tuple[int, str], _Delivery] = {}
        self._wakeup = trio.Event()
        self._is_inline = False

    def __len__(self) -> int:
        """Transactions whose markers are not all written."""
        return len(self._new) + len(self._waiting)

    def add(self, markers: SendMarkers) -> None:
        """Take over the markers of a transaction, to be delivered soon."""
        # A coordinator that was loaded anew sends again what it sent before.
        self._waiting.pop((markers.shard, markers.transactional_id), None)
        self._new.append(_Delivery(markers))
        if not self._is_inline:
            self._wakeup.set()

    def expect(self) -> None:
        """Leave what is added from now on to a call of `deliver` that is certain to come."""
        self._is_inline = True

    def deliver(self) -> None:
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
        task_status.started()
        while True:
            self._wakeup = trio.Event()
            self.deliver()
            for key, delivery in [*self._waiting.items()]:
                if self._is_done(delivery) and self._waiting.get(key) is delivery:
                    del self._waiting[key]
            patience = RETRY_MS / 1000 if self._waiting else float("inf")
            with trio.move_on_after(patience):
                await self._wakeup.wait()

    def _is_done(self, delivery: _Delivery) -> bool:
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
        self, topic_partition: TopicPartition, marker: Marker, delivery: _Delivery
    ) -> bool:
        """Write the marker of one partition if it is not; return whether it is there for good.

        Raises:
            KafkaError: TRANSACTION_COORDINATOR_FENCED.
        """
        end_offset = delivery.remaining[topic_partition]
        was_written = end_offset is not None
        if end_offset is None:
            if delivery.markers.is_again and self._writer.is_written(topic_partition, marker):
                return True
            try:
                end_offset = self._writer.write(topic_partition, marker)
            except KafkaError as error:
                return self._is_settled(topic_partition, error, delivery)
            delivery.remaining[topic_partition] = end_offset
        partition = self._find_partition(topic_partition)
        if partition is None:
            return True
        if partition.high_watermark < end_offset:
            partition.watch(self._on_progress)
            return False
        if was_written:
            # Should another marker wait there too, it is looked at after RETRY_MS at the latest.
            partition.unwatch(self._on_progress)
        return True

    def _is_settled(
        self, topic_partition: TopicPartition, error: KafkaError, delivery: _Delivery
    ) -> bool:
        """Return whether a partition that refused a marker will never need it."""
        if error.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
            raise error
        if error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
            logger.info("%s has a later marker already: %s", topic_partition, error)
            return True
        if not self._exists(topic_partition):
            return True  # deleted, with all that was part of the transaction
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
        if isinstance(answer, Parked):
            answer.forget()
