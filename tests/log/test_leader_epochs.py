"""Leader epochs: what OffsetForLeaderEpoch answers, and truncation at both ends."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.log.leader_epochs import EpochStart, LeaderEpochFileCache


def epochs(*entries):
    return LeaderEpochFileCache(EpochStart(*entry) for entry in entries)


class TestEndOffset:
    """Rule 98."""

    known = ((2, 10), (4, 20), (7, 50))

    @pytest.mark.parametrize(
        ("asked", "answer"),
        [
            (7, (7, 99)),  # current: log end
            (4, (4, 50)),
            (2, (2, 20)),
            (3, (2, 20)),  # largest not above
            (5, (4, 50)),
            (6, (4, 50)),
            (1, (1, 10)),  # below all: start of the first, under its own name
            (0, (0, 10)),
            (8, (-1, -1)),
            (-1, (-1, -1)),
        ],
    )
    def test_answers(self, asked, answer):
        assert epochs(*self.known).end_offset_for(asked, 99) == answer

    def test_nothing_is_known_of_an_empty_log(self):
        assert epochs().end_offset_for(0, 0) == (-1, -1)
        assert epochs().latest == -1

    @pytest.mark.parametrize(("offset", "epoch"), [(9, -1), (10, 2), (19, 2), (20, 4), (500, 7)])
    def test_epoch_of_an_offset(self, offset, epoch):
        assert epochs(*self.known).epoch_at(offset) == epoch


def has_changed(known, method, *arguments):
    """Whether the entries are to be written after a call."""
    known.is_unwritten = False
    getattr(known, method)(*arguments)
    return known.is_unwritten


class TestAssign:
    def test_new_epoch_is_noted_once(self):
        known = epochs()
        assert has_changed(known, "assign", 3, 5)
        assert not has_changed(known, "assign", 3, 5)
        assert not has_changed(known, "assign", 3, 9)
        assert known.entries == [(3, 5)]
        assert known.latest == 3

    def test_epoch_without_records_gives_way_to_the_next(self):
        known = epochs((1, 0), (2, 10))
        known.assign(3, 10)
        assert known.entries == [(1, 0), (3, 10)]

    def test_conflicting_entries_go(self):
        known = epochs((1, 0), (2, 10), (5, 20))
        known.assign(3, 7)
        assert known.entries == [(1, 0), (3, 7)]

    def test_earlier_start_of_the_latest_epoch_wins(self):
        known = epochs((1, 0), (2, 10))
        assert has_changed(known, "assign", 2, 8)
        assert known.entries == [(1, 0), (2, 8)]

    def test_batches_without_epoch_are_ignored(self):
        known = epochs()
        assert not has_changed(known, "assign", -1, 0)
        assert known.entries == []

    @given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 100)), max_size=30))
    def test_entries_ascend_whatever_is_assigned(self, assigned):
        known = epochs()
        for epoch, offset in assigned:
            known.assign(epoch, offset)
        entries = known.entries
        for earlier, later in itertools.pairwise(entries):
            assert earlier.epoch < later.epoch
            assert earlier.start_offset < later.start_offset
        if assigned:
            assert known.latest >= 0


class TestTruncation:
    def test_from_end(self):
        known = epochs((1, 0), (2, 10), (3, 20))
        assert not has_changed(known, "truncate_from_end", 21)
        assert has_changed(known, "truncate_from_end", 20)
        assert known.entries == [(1, 0), (2, 10)]
        assert has_changed(known, "truncate_from_end", 0)
        assert known.entries == []
        assert not has_changed(known, "truncate_from_end", 0)

    def test_from_start(self):
        known = epochs((1, 5), (2, 10), (3, 20))
        assert not has_changed(known, "truncate_from_start", 4)
        assert not has_changed(known, "truncate_from_start", 5)
        assert has_changed(known, "truncate_from_start", 6)
        assert known.entries == [(1, 6), (2, 10), (3, 20)]
        assert has_changed(known, "truncate_from_start", 20)
        assert known.entries == [(3, 20)]
        assert has_changed(known, "truncate_from_start", 25)
        assert known.entries == [(3, 25)]

    def test_clear(self):
        known = epochs((1, 5))
        assert has_changed(known, "clear")
        assert known.entries == []

    @given(
        st.lists(st.integers(1, 5), min_size=1, max_size=10),
        st.integers(0, 60),
        st.integers(0, 60),
    )
    def test_offsets_that_remain_keep_their_epoch(self, lengths, start, end):
        known = epochs()
        offset = 0
        for epoch, length in enumerate(lengths):
            known.assign(epoch, offset)
            offset += length
        before = {at: known.epoch_at(at) for at in range(start, min(end, offset))}
        known.truncate_from_start(start)
        known.truncate_from_end(end)
        assert {at: known.epoch_at(at) for at in before} == before
