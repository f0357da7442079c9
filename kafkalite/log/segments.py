"""The segments of one log, in order of their base offsets."""

from bisect import bisect_right, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kafkalite.log.segment import Segment


def _base_offset(segment: "Segment") -> int:
    return segment.base_offset


class Segments:
    """A sorted list of segments; the last one is active, that is, it gets the appends."""

    __slots__ = ("_segments",)

    def __init__(self, segments: "Iterable[Segment]" = ()) -> None:
        self._segments = sorted(segments, key=_base_offset)

    def __iter__(self) -> "Iterator[Segment]":
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def active(self) -> "Segment":
        """The segment that gets the appends."""
        return self._segments[-1]

    @property
    def first(self) -> "Segment":
        """The oldest segment."""
        return self._segments[0]

    @property
    def closed(self) -> "list[Segment]":
        """All segments but the active one."""
        return self._segments[:-1]

    @property
    def size_bytes(self) -> int:
        """Bytes of all log files."""
        return sum(segment.size for segment in self._segments)

    def from_offset(self, offset: int) -> "list[Segment]":
        """Return the segment that may hold `offset` and all after it.

        All of them if `offset` lies before the first.
        """
        index = bisect_right(self._segments, offset, key=_base_offset)
        return self._segments[max(index - 1, 0) :]

    def after(self, segment: "Segment") -> "Segment | None":
        """Return the segment that follows, None behind the active one."""
        index = bisect_right(self._segments, segment.base_offset, key=_base_offset)
        return self._segments[index] if index < len(self._segments) else None

    def add(self, segment: "Segment") -> None:
        """Put a segment in its place. No other may have its base offset."""
        insort(self._segments, segment, key=_base_offset)

    def remove(self, segments: "Iterable[Segment]") -> None:
        """Take segments out."""
        gone = {segment.base_offset for segment in segments}
        self._segments = [each for each in self._segments if each.base_offset not in gone]
