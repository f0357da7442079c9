"""Checks of whole brokers: their partitions while they run, and their logs at the end."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kafkalite.isr.partition import Partition
from kafkalite.meta.ensemble import Ensemble
from kafkalite.meta.image import NO_LEADER, Image
from kafkalite.meta.store import CommitEvent
from kafkalite.sim.envelope import Envelope
from kafkalite.sim.hosts import Host
from kafkalite.sim.invariants import InvariantBroken, Invariants
from kafkalite.types import TopicPartition
from kafkalite.wire.records import read_batch_header


@dataclass(slots=True)
class WatchedEnsemble(Ensemble):
    """An ensemble whose every commit is checked."""

    invariants: Invariants = field(default_factory=Invariants)
    envelope: Envelope = field(default_factory=Envelope)

    def append(self, commit: CommitEvent) -> None:
        """Take up one more commit."""
        before = self.image
        # Without arguments, super() looks for the class that slots have replaced.
        Ensemble.append(self, commit)
        self.invariants.on_metadata(before, self.image)
        self.envelope.on_commit(self.image, self.live())


class Auditor:
    """Looks at the partitions of all brokers from time to time.

    Args:
        invariants: what is checked.
        hosts: the brokers.
    """

    def __init__(self, invariants: Invariants, hosts: Sequence[Host]) -> None:
        self._invariants = invariants
        self._hosts = hosts
        self._checked: dict[tuple[int, int, TopicPartition], int] = {}
        self._batches: dict[tuple[TopicPartition, int], tuple[int, int, int]] = {}

    def look(self) -> None:
        """Check every partition of every broker that runs."""
        for host in self._hosts:
            if host.broker is not None:
                for partition in host.broker.services.replicas.partitions():
                    if partition.log.failure is None:
                        self._check(host, partition)

    def _check(self, host: Host, partition: Partition) -> None:
        place = partition.topic_partition
        high_watermark = partition.high_watermark
        self._invariants.on_bounds(
            place,
            log_start_offset=partition.log_start_offset,
            last_stable_offset=partition.last_stable_offset,
            high_watermark=high_watermark,
            log_end_offset=partition.log_end_offset,
        )
        if partition.is_leader:
            self._invariants.on_lead(place, host.broker_id, partition.leader_epoch)
            self._invariants.on_high_watermark(
                place, host.broker_id, partition.leader_epoch, high_watermark
            )
        key = (host.broker_id, host.starts, place)
        checked = self._checked.get(key, partition.log_start_offset)
        for batch in partition.log.read_batches(checked, high_watermark):
            header = read_batch_header(batch)
            what = (header.next_offset, header.crc, header.partition_leader_epoch)
            known = self._batches.setdefault((place, header.base_offset), what)
            if known != what:
                raise InvariantBroken(
                    f"{place}: the batch at {header.base_offset} was committed as (next offset, "
                    f"CRC, epoch) {known}, and broker {host.broker_id} has {what}"
                )
            checked = header.next_offset
        self._checked[key] = checked

    def unhealed(self, image: Image) -> str:
        """Say what is not yet as it should be when all faults are over; empty if all is well."""
        for topic in image.topics.values():
            for index, state in enumerate(topic.partitions):
                place = TopicPartition(topic.name, index)
                if state.leader == NO_LEADER or set(state.isr) != set(state.replicas):
                    return f"{place} has leader {state.leader} and ISR {state.isr}"
                replicas = list(self._replicas(place))
                if len(replicas) < len(state.replicas):
                    return f"{place} is at {len(replicas)} brokers"
                ends = {each.log_end_offset for each in replicas}
                marks = {each.high_watermark for each in replicas}
                if len(ends | marks) > 1:
                    return f"{place} ends at {ends}, its high watermarks are {marks}"
        return ""

    def compare(self, image: Image) -> None:
        """Check that all replicas are the same, byte by byte."""
        for topic in image.topics.values():
            for index in range(len(topic.partitions)):
                place = TopicPartition(topic.name, index)
                replicas = list(self._replicas(place))
                end = min(each.high_watermark for each in replicas)
                if len({_content(each, end) for each in replicas}) > 1:
                    raise InvariantBroken(f"{place}: replicas differ below {end}")

    def _replicas(self, place: TopicPartition) -> Iterable[Partition]:
        for host in self._hosts:
            if host.broker is not None:
                partition = host.broker.services.replicas.hosted(place)
                if partition is not None:
                    yield partition


def _content(partition: Partition, end: int) -> bytes:
    log = partition.log
    return b"".join(log.read_batches(log.log_start_offset, end))
