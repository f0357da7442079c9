"""A log's `.snapshot` files, and the replay that continues where one of them ends.

A snapshot named by offset N is the producers' state made by all batches below N (rule 63).
"""

from typing import TYPE_CHECKING

from kafkalite.log.producer_state import read_snapshot
from kafkalite.log.segment import SNAPSHOT_SUFFIX, file_name
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.records import read_end_marker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkalite.log.disk import Disk
    from kafkalite.log.producer_state import ProducerStates
    from kafkalite.log.segment import Segment


class Snapshots:
    """The snapshot files in one partition's directory.

    Attributes:
        offsets: those there are files for.
    """

    __slots__ = ("_directory", "_disk", "offsets")

    def __init__(self, disk: "Disk", directory: str, offsets: "Iterable[int]" = ()) -> None:
        self._disk = disk
        self._directory = directory
        self.offsets = set(offsets)

    def path(self, offset: int) -> str:
        """Return where the snapshot of an offset is."""
        return f"{self._directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"

    def move(self, directory: str) -> None:
        """Follow a rename of the partition's directory."""
        self._directory = directory

    def write(self, states: "ProducerStates", offset: int) -> None:
        """Write the state as of `offset` (exclusive), the log end offset of now."""
        self._disk.replace(self.path(offset), states.snapshot(), sync=False)
        self.offsets.add(offset)

    def load(self, states: "ProducerStates", offset: int) -> int | None:
        """Load the latest snapshot at or before `offset`; return its offset, None if none.

        Damaged ones are removed and the next older one is taken, as Kafka does.
        """
        for candidate in sorted((at for at in self.offsets if at <= offset), reverse=True):
            try:
                states.load(self._disk.read(self.path(candidate)))
            except (KafkaError, FileNotFoundError):
                self.remove([candidate])
            else:
                return candidate
        states.clear()
        return None

    def is_whole(self, offset: int) -> bool:
        """Tell whether a snapshot can be loaded."""
        try:
            read_snapshot(self._disk.read(self.path(offset)))
        except (KafkaError, FileNotFoundError):
            return False
        return True

    def remove(self, offsets: "Iterable[int]") -> None:
        """Remove the snapshots of these offsets, where there are any."""
        for offset in list(offsets):
            if offset in self.offsets:
                self._disk.remove(self.path(offset))
                self.offsets.discard(offset)

    def remove_after(self, offset: int) -> None:
        """Remove snapshots of offsets > `offset`: what they describe was truncated."""
        self.remove(at for at in self.offsets if at > offset)

    def remove_stray(self, base_offsets: "set[int]") -> None:
        """Remove snapshots that belong to no segment, but for the latest one."""
        latest = max(self.offsets, default=-1)
        self.remove(at for at in self.offsets if at not in base_offsets and at != latest)


def restore(
    snapshots: Snapshots, states: "ProducerStates", segments: "Iterable[Segment]", end_offset: int
) -> None:
    """Bring `states` to what they were when the log ended at `end_offset` (exclusive).

    From the latest snapshot that helps, and the headers of the batches behind it.
    """
    start_offset = snapshots.load(states, end_offset)
    for segment in segments:
        if segment.base_offset < end_offset:
            replay(segment, states, -1 if start_offset is None else start_offset, end_offset)
            segment.close()


def replay(
    segment: "Segment", states: "ProducerStates", start_offset: int, end_offset: int
) -> None:
    """Tell `states` of the batches of a segment from `start_offset` up to `end_offset`.

    The transaction index is not written: it is older than the snapshot, or rebuilt by recovery.
    """
    position = 0
    if start_offset > segment.base_offset:
        span = segment.locate(start_offset)
        if span is None:
            return
        position = span.position
    for at, header in segment.headers(position):
        if header.base_offset >= end_offset:
            return
        if header.producer_id >= 0 and header.base_offset >= start_offset:
            marker = None
            if header.is_control:
                marker = read_end_marker(segment.file.pread(header.size, at))
            states.update(header, base_offset=header.base_offset, marker=marker)
