"""Invariants that hold at every step of a run, whatever has gone wrong.

A broken one raises `InvariantBroken` at the moment at which it breaks.
"""

from collections.abc import Hashable

from kafkalite.meta.image import NO_LEADER, Image, PartitionImage
from kafkalite.types import TopicPartition


class InvariantBroken(AssertionError):
    """The protocol, or what implements it, is wrong; the message says how."""


class Invariants:
    """Remembers what was so, and compares.

    Attributes:
        committed: records below a high watermark, by partition and offset; they are for good.
    """

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, list[Hashable]] = {}
        self._leaders: dict[tuple[TopicPartition, int], int] = {}
        self._written: dict[tuple[TopicPartition, int, int], Hashable] = {}
        self._high_watermarks: dict[tuple[TopicPartition, int, int], int] = {}
        self._epochs: dict[TopicPartition, tuple[int, int]] = {}

    def on_metadata(self, before: Image, after: Image, *, unclean: bool = False) -> None:
        """Check a commit of metadata."""
        for topic in after.topics.values():
            for index, state in enumerate(topic.partitions):
                known = before.partition(topic.name, index)
                if state is not known:
                    self._on_state(TopicPartition(topic.name, index), known, state, unclean=unclean)

    def _on_state(
        self,
        place: TopicPartition,
        before: PartitionImage | None,
        after: PartitionImage,
        *,
        unclean: bool,
    ) -> None:
        if not after.isr or not set(after.isr) <= set(after.replicas):
            raise InvariantBroken(f"{place}: ISR {after.isr} of replicas {after.replicas}")
        if after.leader not in (*after.isr, NO_LEADER):
            raise InvariantBroken(f"{place}: leader {after.leader} is not in the ISR {after.isr}")
        if before is None:
            return
        if (after.leader_epoch, after.partition_epoch) < (
            before.leader_epoch,
            before.partition_epoch,
        ):
            raise InvariantBroken(f"{place}: epochs go back from {before} to {after}")
        if after.leader != before.leader and after.leader_epoch == before.leader_epoch:
            raise InvariantBroken(f"{place}: two leaders in epoch {after.leader_epoch}")
        if after.leader not in (*before.isr, NO_LEADER) and not unclean:
            raise InvariantBroken(
                f"{place}: broker {after.leader} was elected and was not in sync {before.isr}"
            )

    def on_lead(self, place: TopicPartition, broker_id: int, leader_epoch: int) -> None:
        """Check a broker that takes itself for the leader."""
        leader = self._leaders.setdefault((place, leader_epoch), broker_id)
        if leader != broker_id:
            raise InvariantBroken(
                f"{place}: brokers {leader} and {broker_id} lead in epoch {leader_epoch}"
            )

    def on_write(
        self, place: TopicPartition, offset: int, leader_epoch: int, record: Hashable
    ) -> None:
        """Check a record that a leader or follower writes.

        Epoch and offset tell what a record is: two logs that have both in common share all before.
        """
        known = self._written.setdefault((place, offset, leader_epoch), record)
        if known != record:
            raise InvariantBroken(
                f"{place}: offset {offset} in epoch {leader_epoch} is {known} and {record}"
            )

    def on_bounds(
        self,
        place: TopicPartition,
        *,
        log_start_offset: int,
        last_stable_offset: int,
        high_watermark: int,
        log_end_offset: int,
    ) -> None:
        """Check the bounds of one replica."""
        if not log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset:
            raise InvariantBroken(
                f"{place}: log start {log_start_offset}, last stable offset {last_stable_offset}, "
                f"high watermark {high_watermark}, log end {log_end_offset}"
            )

    def on_high_watermark(
        self, place: TopicPartition, leader: int, leader_epoch: int, high_watermark: int
    ) -> None:
        """Check that a leader's high watermark never falls in its epoch."""
        key = (place, leader, leader_epoch)
        known = self._high_watermarks.get(key, 0)
        if high_watermark < known:
            raise InvariantBroken(
                f"{place}: the high watermark falls from {known} to {high_watermark} "
                f"in epoch {leader_epoch}"
            )
        self._high_watermarks[key] = high_watermark

    def on_committed(self, place: TopicPartition, offset: int, record: Hashable) -> None:
        """Check a record that a high watermark has passed; those before it were told already."""
        committed = self.committed.setdefault(place, [])
        if offset < len(committed):
            if committed[offset] != record:
                raise InvariantBroken(
                    f"{place}: offset {offset} was committed as {committed[offset]} "
                    f"and now as {record}"
                )
        elif offset == len(committed):
            committed.append(record)
        else:
            raise InvariantBroken(
                f"{place}: offset {offset} was committed, and nobody knows {len(committed)}"
            )
