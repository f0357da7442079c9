"""What a follower makes of its leader's answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.isr.follower import (
    BACKOFF_MIN_MS,
    Append,
    Follower,
    ListLeaderOffsets,
    Nothing,
    Position,
    RestartAt,
    TruncateTo,
    slices,
    truncation_offset,
)
from kafkalite.log.leader_epochs import EpochStart, LeaderEpochFileCache
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.fetch import EpochEndOffset, PartitionData
from kafkalite.wire.records import Record, build_batch

NOW_MS = 1_000
POSITION = Position(offset=10, last_fetched_epoch=3, leader_epoch=5, log_start_offset=2)


def follower(position=POSITION, high_watermark=10, backoff_max_ms=1_000):
    one = Follower(backoff_max_ms=backoff_max_ms)
    assert one.begin(position, high_watermark=high_watermark) is None
    return one


def answer(one, *, fetched=POSITION, current=POSITION, end_offset_for=None, **data):
    part = PartitionData(**{"records": None, **data})
    return one.on_answer(fetched, current, part, end_offset_for=end_offset_for, now_ms=NOW_MS)


def diverging(epoch, end_offset):
    return {"diverging_epoch": EpochEndOffset(epoch=epoch, end_offset=end_offset)}


class TestAnswers:
    def test_records_are_appended_and_bounds_taken_over(self):
        one = follower()
        action = answer(one, records=b"abc", high_watermark=12, log_start_offset=4)
        assert action == Append(b"abc", 12, 4)
        one.on_appended(POSITION._replace(offset=11), leader_high_watermark=12)
        assert one.lag == 1
        assert not one.is_in_sync
        one.on_appended(POSITION._replace(offset=13), leader_high_watermark=12)
        assert one.is_in_sync

    def test_bounds_come_without_records_too(self):
        """Rule 169: the high watermark lags by one round trip."""
        assert answer(follower(), high_watermark=9, log_start_offset=2) == Append(b"", 9, 2)

    @pytest.mark.parametrize(
        "fetched",
        [
            POSITION._replace(leader_epoch=4),
            POSITION._replace(offset=9),
            POSITION._replace(last_fetched_epoch=2),
        ],
    )
    def test_answer_to_a_fetch_of_before_means_nothing(self, fetched):
        for data in ({"records": b"abc"}, {"error_code": 1}, diverging(1, 1)):
            one = follower()
            assert answer(one, fetched=fetched, **data) == Nothing()
            assert one.may_fetch(NOW_MS)

    def test_answer_of_a_leader_whose_epoch_has_not_begun_here_means_nothing(self):
        later = POSITION._replace(leader_epoch=6)
        assert answer(follower(), fetched=later, current=later, records=b"abc") == Nothing()

    def test_retention_may_work_during_a_fetch(self):
        moved = POSITION._replace(log_start_offset=7)
        assert isinstance(answer(follower(), current=moved, records=b"abc"), Append)

    def test_fenced_partition_waits_for_another_epoch(self):
        """Rule 173."""
        one = follower()
        action = answer(one, error_code=ErrorCode.FENCED_LEADER_EPOCH)
        assert action == Nothing(ErrorCode.FENCED_LEADER_EPOCH)
        assert not one.may_fetch(10**9)
        one.begin(POSITION._replace(leader_epoch=6), high_watermark=10)
        assert one.may_fetch(0)

    def test_other_errors_pass_and_are_tried_again_less_and_less_often(self):
        one = follower(backoff_max_ms=100)
        waits = []
        for _ in range(5):
            action = answer(one, error_code=ErrorCode.UNKNOWN_LEADER_EPOCH)
            assert action == Nothing(ErrorCode.UNKNOWN_LEADER_EPOCH)
            waits.append(one.due_ms - NOW_MS)
            assert not one.may_fetch(one.due_ms - 1)
            assert one.may_fetch(one.due_ms)
        assert waits == [BACKOFF_MIN_MS, 2 * BACKOFF_MIN_MS, 4 * BACKOFF_MIN_MS, 100, 100]
        one.on_appended(POSITION, leader_high_watermark=10)
        answer(one, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert one.due_ms - NOW_MS == BACKOFF_MIN_MS

    def test_failure_that_nothing_mends_ends_with_the_epoch(self):
        one = follower()
        one.pause()
        assert not one.may_fetch(10**9)


class TestBounds:
    """Rule 172."""

    def bounds(self, start, end, one=None):
        one = one or follower()
        return one.on_bounds(
            POSITION, leader_start_offset=start, leader_end_offset=end, now_ms=NOW_MS
        )

    def test_offset_out_of_range_is_asked_about(self):
        action = answer(follower(), error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        assert action == ListLeaderOffsets()

    def test_log_longer_than_that_of_an_unclean_leader_is_cut(self):
        assert self.bounds(0, 7) == TruncateTo(7)

    @pytest.mark.parametrize("end", [2, 1, 0])
    def test_log_wholly_beyond_that_of_an_unclean_leader_begins_anew(self, end):
        assert self.bounds(0, end) == RestartAt(end)

    def test_log_that_ends_before_the_leader_begins_is_begun_anew_there(self):
        assert self.bounds(11, 20) == RestartAt(11)

    @pytest.mark.parametrize("bounds", [(10, 20), (0, 10), (10, 10)])
    def test_offset_that_is_in_range_by_now_is_tried_again(self, bounds):
        one = follower()
        assert self.bounds(*bounds, one) == Nothing()
        assert one.due_ms > NOW_MS


class TestTruncation:
    """Rule 171."""

    def test_log_without_epochs_is_cut_to_what_is_known_to_be_committed(self):
        one = Follower(backoff_max_ms=1)
        without = POSITION._replace(last_fetched_epoch=-1)
        assert one.begin(without, high_watermark=6) == TruncateTo(6)
        assert one.begin(without, high_watermark=10) is None

    def test_divergence_cuts_but_not_below_the_start_of_the_log(self):
        epochs = LeaderEpochFileCache([EpochStart(1, 0), EpochStart(3, 8)])

        def end_offset_for(epoch):
            return epochs.end_offset_for(epoch, 10)

        def cut(epoch, end_offset):
            return answer(follower(), end_offset_for=end_offset_for, **diverging(epoch, end_offset))

        assert cut(3, 9) == TruncateTo(9)
        assert cut(1, 5) == TruncateTo(5)
        assert cut(1, 1) == TruncateTo(2)
        assert cut(2, 9) == TruncateTo(8)

    def test_leader_that_knows_no_epoch_is_taken_at_its_word(self):
        assert truncation_offset(-1, 4, 10, None) == 4
        assert truncation_offset(-1, 14, 10, None) == 10
        assert truncation_offset(7, 4, 10, lambda epoch: (-1, -1)) == 4


class ModelLog:
    """A log as the epochs of its records; offset and epoch tell which record it is."""

    def __init__(self, epochs=()):
        self.records = list(epochs)
        starts = {}
        for offset, epoch in enumerate(self.records):
            starts.setdefault(epoch, offset)
        self.epochs = LeaderEpochFileCache(EpochStart(*entry) for entry in starts.items())

    def end_offset_for(self, epoch):
        return self.epochs.end_offset_for(epoch, len(self.records))

    def position(self, leader_epoch):
        return Position(len(self.records), self.epochs.latest, leader_epoch, 0)

    def truncate_to(self, offset):
        del self.records[offset:]
        self.epochs.truncate_from_end(offset)

    def append(self, epochs):
        for epoch in epochs:
            self.epochs.assign(epoch, len(self.records))
            self.records.append(epoch)


def answer_of(leader, position):
    """Answer a fetch as a leader does (rule 77)."""
    if position.last_fetched_epoch >= 0:
        epoch, end_offset = leader.end_offset_for(position.last_fetched_epoch)
        if end_offset < 0:
            return PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE, records=None)
        if epoch < position.last_fetched_epoch or end_offset < position.offset:
            return PartitionData(records=None, **diverging(epoch, end_offset))
    if position.offset > len(leader.records):
        return PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE, records=None)
    return PartitionData(records=bytes(leader.records[position.offset :]))


@st.composite
def two_logs(draw):
    """Two logs that were one up to a point; after it no epoch wrote to both."""
    common = draw(st.lists(st.integers(0, 5), max_size=8))
    mine = draw(st.lists(st.sampled_from([6, 8, 10, 12]), max_size=8))
    theirs = draw(st.lists(st.sampled_from([7, 9, 11, 13]), max_size=8))
    return sorted(common), sorted(mine), sorted(theirs)


@given(two_logs(), st.booleans())
def test_diverged_log_becomes_the_leaders_and_keeps_what_they_share(logs, leader_wrote):
    """Rule 171, KIP-101 and KIP-279: whatever epochs there were that the other side missed."""
    common, mine, theirs = logs
    leader, log = ModelLog(common + theirs), ModelLog(common + mine)
    leader_epoch = 20
    if leader_wrote:
        leader.append([leader_epoch])
    # A leader notes its epoch before it writes anything in it.
    leader.epochs.assign(leader_epoch, len(leader.records))
    one = Follower(backoff_max_ms=1)
    one.begin(log.position(leader_epoch), high_watermark=0)
    for _ in range(len(mine) + 2):
        position = log.position(leader_epoch)
        action = one.on_answer(
            position,
            position,
            answer_of(leader, position),
            end_offset_for=log.end_offset_for,
            now_ms=0,
        )
        if isinstance(action, Append):
            log.append(action.records)
            break
        assert isinstance(action, TruncateTo), action
        assert len(common) <= action.offset < len(log.records), "no step in vain, none too far"
        log.truncate_to(action.offset)
    assert log.records == leader.records


BATCHES = [
    bytes(build_batch([Record(0, 0, None, b"x" * size)], base_offset=index))
    for index, size in enumerate([10, 200, 10, 10, 1_000, 10])
]


class TestSlices:
    @given(st.integers(1, 2_000), st.integers(0, 80))
    def test_pieces_are_whole_batches_of_limited_size(self, max_bytes, torn):
        whole = b"".join(BATCHES) + BATCHES[0][:torn]
        pieces = [bytes(piece) for piece in slices(memoryview(whole), max_bytes)]
        assert b"".join(pieces) == whole
        ends = [0]
        for batch in BATCHES:
            ends.append(ends[-1] + len(batch))
        position = 0
        for piece in pieces[:-1]:
            assert position in ends
            position += len(piece)
            assert position in ends
            assert len(piece) <= max_bytes or piece in BATCHES

    def test_what_is_no_batch_is_left_to_the_log(self):
        garbage = b"\xff" * 100 + bytes(100)
        assert [bytes(piece) for piece in slices(memoryview(garbage), 10)] == [garbage]
        assert list(slices(memoryview(b""), 10)) == [b""]
