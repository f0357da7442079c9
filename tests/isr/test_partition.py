"""One partition: its bounds, and who is told when they move. Reads of transactions: see
test_read_committed; answers to requests: tests/api."""

import pytest

from kafkalite.isr.partition import Partition
from kafkalite.isr.partition_read import IsolationLevel
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import iterate_batches
from tests.log.log_kit import NOW_MS, TP, batch, make_log


@pytest.fixture
def partition():
    return Partition(make_log(), leader_epoch=3)


def append(partition, *values):
    return partition.append(batch(*values), now_ms=NOW_MS)


def read(partition, offset, **options):
    given = {
        "max_bytes": 1 << 20,
        "min_one_batch": True,
        "isolation": IsolationLevel.READ_UNCOMMITTED,
    }
    return partition.read(offset, **{**given, **options})


def test_bounds_follow_the_log(partition):
    """One replica: the high watermark is the log end."""
    assert partition.topic_partition == TP
    info = append(partition, "a", "b", "c")
    assert (info.first_offset, info.last_offset) == (0, 2)
    partition.delete_records_before(1)
    bounds = (
        partition.log_start_offset,
        partition.last_stable_offset,
        partition.high_watermark,
        partition.log_end_offset,
    )
    assert bounds == (1, 3, 3, 3)


def test_batches_are_written_in_the_epoch_of_the_leader(partition):
    """Rule 100."""
    append(partition, "a")
    partition.begin_epoch(4)
    append(partition, "b")
    epochs = [
        header.partition_leader_epoch
        for data in partition.read_batches(0)
        for _, header in iterate_batches(data)
    ]
    assert epochs == [3, 4]


def test_replay_begins_where_it_is_told_to(partition):
    append(partition, "a", "b")
    append(partition, "c")
    assert len(list(partition.read_batches(0))) == 2
    assert len(list(partition.read_batches(2))) == 1
    assert list(partition.read_batches(3)) == []


class TestWatching:
    @pytest.fixture
    def told(self, partition):
        told = []
        self.watcher = lambda: told.append(partition.log_end_offset)
        partition.watch(self.watcher)
        return told

    def test_appends_are_told(self, partition, told):
        append(partition, "a")
        append(partition, "b", "c")
        assert told == [1, 3]

    def test_refused_appends_are_not(self, partition, told):
        with pytest.raises(KafkaError):
            partition.append(bytearray(b"nonsense"), now_ms=NOW_MS)
        assert told == []

    def test_deleted_records_are_told_once(self, partition, told):
        append(partition, "a", "b")
        partition.delete_records_before(1)
        partition.delete_records_before(1)
        assert told == [2, 2]

    def test_new_epoch_and_end_are_told(self, partition, told):
        partition.begin_epoch(9)
        partition.close()
        partition.close()
        append(partition, "a")
        assert told == [0, 0]

    def test_who_watches_no_more_is_not_told(self, partition, told):
        partition.unwatch(self.watcher)
        partition.unwatch(self.watcher)
        append(partition, "a")
        assert told == []

    def test_watcher_may_leave_while_all_are_told(self, partition, told):
        partition.watch(lambda: partition.unwatch(self.watcher))
        append(partition, "a")
        append(partition, "b")
        assert told == [1]


class TestCutReads:
    """Whether a reader is told that more is there than it was given (rule 71)."""

    @pytest.fixture
    def size(self, partition):
        for value in "abc":
            append(partition, value * 100)
        return partition.log.size_bytes // 3

    def test_read_to_the_end_is_not_cut(self, partition, size):
        assert not read(partition, 0).has_more
        assert not read(partition, 0, max_bytes=3 * size).has_more
        assert not read(partition, 3).has_more

    def test_read_within_a_limit_is_cut(self, partition, size):
        for max_bytes in (0, size, 3 * size - 1):
            assert read(partition, 0, max_bytes=max_bytes).has_more

    def test_read_of_nothing_because_of_a_limit_is_cut(self, partition, size):
        result = read(partition, 0, max_bytes=size - 1, min_one_batch=False)
        assert (len(result.region), result.has_more) == (0, True)

    def test_read_to_the_end_of_an_older_segment_is_cut(self):
        partition = Partition(make_log(segment_bytes=300), leader_epoch=0)
        for value in "abc":
            append(partition, value * 100)
        assert len(partition.log.segments) == 3
        assert [read(partition, offset).has_more for offset in range(3)] == [True, True, False]

    def test_read_up_to_an_empty_active_segment_is_not_cut(self, partition, size):
        partition.log.roll()
        assert not read(partition, 0).has_more

    def test_read_up_to_an_open_transaction_is_not_cut(self, partition, size):
        records = batch("x", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
        partition.append(records, now_ms=NOW_MS)
        committed = IsolationLevel.READ_COMMITTED
        assert not read(partition, 0, isolation=committed).has_more
        assert not read(partition, 3, isolation=committed).has_more


@pytest.mark.parametrize("epoch", [-1, 3])
def test_client_of_this_epoch_is_welcome(partition, epoch):
    partition.check_leader_epoch(epoch)


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_client_of_another_epoch_is_told_both(partition, epoch, code):
    """Rule 76."""
    with pytest.raises(KafkaError, match=rf"t-0: client at leader epoch {epoch}, leader at 3") as e:
        partition.check_leader_epoch(epoch)
    assert e.value.code is code


@pytest.mark.parametrize(
    ("policy", "refused"),
    [(("delete",), False), (("compact",), True), (("compact", "delete"), False), ((), False)],
)
def test_records_of_a_topic_that_is_only_compacted_stay(policy, refused):
    """Rule 35."""
    partition = Partition(make_log(cleanup_policy=frozenset(policy)), leader_epoch=0)
    append_with_key = batch("a", keys=[b"k"])
    partition.append(append_with_key, now_ms=NOW_MS)
    if refused:
        with pytest.raises(KafkaError, match=r"cleanup\.policy") as refusal:
            partition.delete_records_before(1)
        assert refusal.value.code is ErrorCode.POLICY_VIOLATION
    else:
        assert partition.delete_records_before(1) == 1


@pytest.mark.parametrize(
    ("offset", "last_fetched_epoch", "diverging"),
    [(2, 3, None), (1, 3, None), (2, 4, None), (4, 3, (3, 2)), (3, 3, (3, 2))],
)
def test_reader_of_another_history_is_told_where_it_left_this_one(
    partition, offset, last_fetched_epoch, diverging
):
    """Rule 77: epoch 3 has offsets 0-1, epoch 4 the rest."""
    append(partition, "a", "b")
    partition.begin_epoch(4)
    append(partition, "c", "d")
    result = read(partition, offset, last_fetched_epoch=last_fetched_epoch)
    assert result.diverging == diverging
    assert (result.region is None) is (diverging is not None)


@pytest.mark.parametrize(("offset", "last_fetched_epoch"), [(1, 9), (0, 3)])
def test_reader_of_an_unknown_history_is_out_of_range(partition, offset, last_fetched_epoch):
    """Rule 77."""
    append(partition, "a", "b")
    partition.delete_records_before(1)
    with pytest.raises(KafkaError) as refused:
        read(partition, offset, last_fetched_epoch=last_fetched_epoch)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
