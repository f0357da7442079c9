"""History of what clients saw, and whether a Kafka may have shown it to them.

Producers and consumers note what they sent, what they were answered, and what they read; `check`
finds what no correct broker can have done. After the anomalies that Jepsen looks for in Kafka-like
systems: lost writes, duplicates, aborted and future reads, order, inconsistent offsets.

    history = History()
    sent = history.send("p1", "orders", 0, "v1")
    history.acknowledge(sent, offset=17)
    history.read("c1", "orders", 0, offset=17, value="v1")
    assert history.check() == []

Values must be unique over the whole history.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum


class Outcome(Enum):
    """State of a write when the history ends."""

    ACKNOWLEDGED = "acknowledged"
    """It must be there (for a transactional write: once its transaction committed)."""

    FAILED = "failed"
    """It must not be there: its transaction was aborted, or it was refused for good."""

    UNKNOWN = "unknown"
    """No answer came: it may be there, once."""


class Anomaly(Enum):
    """Anomaly that no correct broker shows."""

    LOST = "lost"
    """Acknowledged, but a reader passed its offset, or the end, without seeing it."""

    DUPLICATE = "duplicate"
    """One write at two places."""

    ABORTED_READ = "aborted read"
    """Read, though its transaction aborted or it was refused."""

    PHANTOM_READ = "phantom read"
    """Read, though nobody wrote it."""

    NON_MONOTONIC = "non-monotonic"
    """A reader went back, or one producer's writes are not in the order in which it sent them."""

    VANISHED = "vanished"
    """Read by somebody, and beyond the end of what is there now."""

    INCONSISTENT_OFFSETS = "inconsistent offsets"
    """Two values at one offset, or a write elsewhere than it was acknowledged to be."""


@dataclass(slots=True, frozen=True)
class Finding:
    """One anomaly, with what a person needs to look for it in a log."""

    anomaly: Anomaly
    topic: str
    partition: int
    description: str

    def __str__(self) -> str:
        return f"{self.anomaly.value} in {self.topic}-{self.partition}: {self.description}"


@dataclass(slots=True)
class Write:
    """One record that a producer sent. `offset` is -1 unless the broker told it."""

    producer: str
    topic: str
    partition: int
    value: str
    sequence: int
    outcome: Outcome = Outcome.UNKNOWN
    offset: int = -1


@dataclass(slots=True)
class _Reader:
    offset: int = -1
    """Last offset read; -1 before the first and after a seek."""


@dataclass(slots=True)
class _Place:
    """All that was read and promised of one partition."""

    values: dict[int, str] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    complete_to: int = 0
    """Some reader saw everything below this offset (exclusive), from `complete_from` on."""
    complete_from: int = 0


class History:
    """A record of what clients did. Not safe for threads: give each its own and `merge`."""

    def __init__(self) -> None:
        self._writes: dict[str, Write] = {}
        self._sent_by: dict[str, int] = {}
        self._places: dict[tuple[str, int], _Place] = {}
        self._readers: dict[tuple[str, str, int], _Reader] = {}
        self._found: list[Finding] = []

    def send(self, producer: str, topic: str, partition: int, value: str) -> Write:
        """Note that `producer` sends `value`; calls of one producer are in the order of sending."""
        assert value not in self._writes, f"value {value!r} was sent before: values must be unique"
        sequence = self._sent_by.get(producer, 0)
        self._sent_by[producer] = sequence + 1
        write = Write(producer, topic, partition, value, sequence)
        self._writes[value] = write
        return write

    def acknowledge(self, write: Write, *, offset: int = -1) -> None:
        """Note that the write is there for good, and at which offset if the broker said so."""
        write.outcome = Outcome.ACKNOWLEDGED
        write.offset = offset

    def fail(self, write: Write) -> None:
        """Note that the write is not to be seen: refused for good, or aborted."""
        write.outcome = Outcome.FAILED

    def seek(self, consumer: str, topic: str, partition: int) -> None:
        """Note that `consumer` may go on anywhere: a seek, a rebalance, a restart."""
        self._readers.pop((consumer, topic, partition), None)

    def read(self, consumer: str, topic: str, partition: int, *, offset: int, value: str) -> None:
        """Note that `consumer` was given `value`; calls of one consumer are in order."""
        reader = self._readers.setdefault((consumer, topic, partition), _Reader())
        if offset <= reader.offset:
            self._find(
                Anomaly.NON_MONOTONIC,
                topic,
                partition,
                f"{consumer} read offset {offset} after {reader.offset}",
            )
        reader.offset = offset
        place = self._places.setdefault((topic, partition), _Place())
        known = place.values.setdefault(offset, value)
        if known != value:
            self._find(
                Anomaly.INCONSISTENT_OFFSETS,
                topic,
                partition,
                f"offset {offset} held {known!r}, then {value!r}",
            )
        first = place.read.setdefault(value, offset)
        if first != offset:
            self._find(
                Anomaly.DUPLICATE, topic, partition, f"{value!r} at offsets {first} and {offset}"
            )

    def complete(
        self, topic: str, partition: int, *, end_offset: int, start_offset: int = 0
    ) -> None:
        """Note that all from `start_offset` to `end_offset` (exclusive) was read by somebody."""
        place = self._places.setdefault((topic, partition), _Place())
        place.complete_from, place.complete_to = start_offset, end_offset

    def merge(self, other: "History") -> None:
        """Take over what another thread or process noted."""
        for value, write in other._writes.items():  # noqa: SLF001 - of its own kind
            assert value not in self._writes, f"value {value!r} was sent twice"
            self._writes[value] = write
        self._found += other._found  # noqa: SLF001
        for (topic, partition), place in other._places.items():  # noqa: SLF001
            for offset, value in place.values.items():
                self.read(
                    f"merged-{id(other)}-{offset}", topic, partition, offset=offset, value=value
                )
            if place.complete_to:
                self.complete(
                    topic, partition, end_offset=place.complete_to, start_offset=place.complete_from
                )

    def check(self) -> list[Finding]:
        """Return every anomaly, each once; an empty list is what one hopes for."""
        found = list(self._found)
        for key, place in self._places.items():
            found += self._check_reads(*key, place)
        for write in self._writes.values():
            found += self._check_write(write)
        return list(dict.fromkeys(found))

    def _check_reads(self, topic: str, partition: int, place: _Place) -> Iterable[Finding]:
        last: dict[str, Write] = {}
        for offset in sorted(place.values):
            value = place.values[offset]
            if offset >= place.complete_to > 0:
                yield Finding(
                    Anomaly.VANISHED,
                    topic,
                    partition,
                    f"{value!r} was read at {offset}, the end is {place.complete_to}",
                )
            write = self._writes.get(value)
            if write is None or (write.topic, write.partition) != (topic, partition):
                yield Finding(Anomaly.PHANTOM_READ, topic, partition, f"{value!r} at {offset}")
                continue
            if write.outcome is Outcome.FAILED:
                yield Finding(Anomaly.ABORTED_READ, topic, partition, f"{value!r} at {offset}")
            if write.offset not in (-1, offset):
                yield Finding(
                    Anomaly.INCONSISTENT_OFFSETS,
                    topic,
                    partition,
                    f"{value!r} was acknowledged at {write.offset} and read at {offset}",
                )
            before = last.get(write.producer)
            if before is not None and before.sequence > write.sequence:
                yield Finding(
                    Anomaly.NON_MONOTONIC,
                    topic,
                    partition,
                    f"{write.producer} sent {value!r} before {before.value!r}, it stands after it",
                )
            last[write.producer] = write

    def _check_write(self, write: Write) -> Iterable[Finding]:
        place = self._places.get((write.topic, write.partition), _Place())
        if write.outcome is not Outcome.ACKNOWLEDGED or write.value in place.read:
            return
        if write.offset < 0:
            passed = place.complete_to > 0
        else:
            passed = place.complete_from <= write.offset < place.complete_to
        if passed:
            at = f"acknowledged at offset {write.offset}" if write.offset >= 0 else "acknowledged"
            yield Finding(
                Anomaly.LOST,
                write.topic,
                write.partition,
                f"{write.value!r} of {write.producer} was {at} and is not there",
            )

    def _find(self, anomaly: Anomaly, topic: str, partition: int, description: str) -> None:
        self._found.append(Finding(anomaly, topic, partition, description))
