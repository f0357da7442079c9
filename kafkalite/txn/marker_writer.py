"""Writes the markers that end transactions to partitions of this broker (rules 111, 112).

The same code serves the coordinator next door and WriteTxnMarkers from others.
"""

from dataclasses import dataclass

from kafkalite.clock import Clock
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.isr.partition import Partition
from kafkalite.log.sequence_hold import SequenceHold
from kafkalite.log.validate import AppendOrigin
from kafkalite.txn.transactions import EPOCH_MAX, V2, ProducerIdentity
from kafkalite.txn.verification_guards import FindPartition, VerificationGuards
from kafkalite.types import CONSUMER_OFFSETS_TOPIC, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import control_batch


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
        sequence_hold: SequenceHold,
        guards: VerificationGuards,
    ) -> None:
        self._runtime = runtime
        self._guards = guards
        self._sequence_hold = sequence_hold
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
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"{topic_partition} is not led by this broker",
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
        self._sequence_hold.forget(topic_partition, producer_id)
        self._sequence_hold.forget((partition.topic_id, topic_partition.partition), producer_id)
        self._guards.on_marker(topic_partition, producer_id)
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
        info = partition.append(
            batch, now_ms=now_ms, origin=AppendOrigin.COORDINATOR, all_acks=True
        )
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
