"""The next target of a group: in slices where it takes longer than a turn (decision 0082)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.slices import Computation, Sliced

if TYPE_CHECKING:
    from kafkalite.group.kinds import Group

AT_ONCE_UNITS = 15_000
"""Work that a heartbeat may do itself, with what its records will take."""
SLICE_UNITS = 3_000
SLICE_PAUSE_MS = 1
"""Others have their turn between two slices."""
RECORD_UNITS = 12
"""To encode, append and replay a record, without what is in it."""

TargetType = TypeVar("TargetType")


@dataclass(slots=True)
class Targets(Generic[TargetType]):
    """A target: what all members are to have.

    Attributes:
        by_member: in the order of Kafka's hash map.
        changed: members that are to have something else than before, in that order, with the work
            that their records will be.
    """

    by_member: Mapping[str, TargetType]
    changed: Mapping[str, int]


@dataclass(slots=True, kw_only=True)
class NewTarget:
    """A group's next target, while it is computed and written.

    Attributes:
        group: as it is; its kind's own class.
        epoch: that the target is for.
        work: to be done.
        heir: returns who has a member's place now; None where nobody has.
        record: makes the record of a member's target.
        epoch_record: makes the record that ends the target, by the wall time.
        last_written: record that was given to the log, which may have refused it.
    """

    group: "Group"
    epoch: int
    work: Computation[Targets[Any]]
    heir: Callable[[str], str | None]
    record: Callable[[str, Any], StoredRecord]
    epoch_record: Callable[[int], StoredRecord]
    last_written: StoredRecord | None = None
    _unwritten: Iterator[tuple[str, int]] | None = None

    @property
    def is_refused(self) -> bool:
        """Whether the log did not take what was written last."""
        return self.last_written is not None and self.last_written.offset < 0

    def advance(self) -> None:
        """Compute the next slice."""
        self.work.advance(SLICE_UNITS)

    def next_records(self, wall_ms: int) -> tuple[list[StoredRecord], bool]:
        """Return the next slice of records, and whether they are the last."""
        targets = self.work.outcome
        if self._unwritten is None:
            self._unwritten = iter(targets.changed.items())
        found: list[StoredRecord] = []
        units = 0
        for member_id, record_units in self._unwritten:
            heir = self.heir(member_id)
            if heir == member_id or (heir is not None and heir not in targets.by_member):
                found.append(self.record(heir, targets.by_member[member_id]))
            units += record_units
            if units >= SLICE_UNITS:
                self.last_written = found[-1] if found else None
                return found, False
        return [*found, self.epoch_record(wall_ms)], True


def at_once(work: Sliced[Targets[TargetType]]) -> Targets[TargetType] | None:
    """Return the targets if one turn is enough for them, None otherwise."""
    computation = Computation(work)
    return computation.outcome if computation.advance(AT_ONCE_UNITS) else None
