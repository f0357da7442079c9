"""The sorted list of a log's segments."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from kafkalite.log.segments import Segments


@dataclass(eq=False)
class FakeSegment:
    base_offset: int
    size: int = 1


@given(st.sets(st.integers(0, 30), min_size=1), st.integers(0, 31), st.randoms())
def test_segments_are_found_by_offset(base_offsets, offset, random):
    order = list(base_offsets)
    random.shuffle(order)
    half = len(order) // 2
    segments = Segments(FakeSegment(base) for base in order[:half])
    for base in order[half:]:
        segments.add(FakeSegment(base))
    ordered = sorted(base_offsets)
    below = [base for base in ordered if base <= offset]
    above = [base for base in ordered if base > offset]
    assert [each.base_offset for each in segments] == ordered
    assert len(segments) == len(ordered)
    assert segments.first.base_offset == ordered[0]
    assert segments.active.base_offset == ordered[-1]
    assert [each.base_offset for each in segments.closed] == ordered[:-1]
    assert segments.size_bytes == len(ordered)
    found = segments.from_offset(offset)
    assert [each.base_offset for each in found] == (below[-1:] + above if below else ordered)
    after = segments.after(found[0])
    rest = ordered[ordered.index(found[0].base_offset) + 1 :]
    assert (after.base_offset if after else None) == (rest[0] if rest else None)


def test_removed_segments_are_gone():
    segments = Segments([FakeSegment(0), FakeSegment(5), FakeSegment(9)])
    segments.remove([segments.first, segments.active])
    assert [each.base_offset for each in segments] == [5]
