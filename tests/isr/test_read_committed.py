"""What a reader of committed records is given of one partition (rules 72, 115-117)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.isr.offset_lookup import list_offset
from kafkalite.isr.partition import Partition
from kafkalite.isr.partition_read import LATEST_TIMESTAMP, IsolationLevel
from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.records import iterate_batches, iterate_records
from tests.log.log_kit import append, make_log, marker

COMMITTED = IsolationLevel.READ_COMMITTED
UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED


def make_partition(**config):
    return Partition(make_log(**config), leader_epoch=0)


def write(partition, producer_id, *values, epoch=0, sequence=None):
    """Append transactional records."""
    state = partition.log.producers.get(producer_id)
    if sequence is None:
        same = state is not None and state.epoch == epoch
        sequence = state.last_sequence + 1 if same else 0
    return append(
        partition.log,
        *values,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=True,
    ).first_offset


def end(partition, producer_id, *, commit, epoch=0):
    partition.append(
        marker(producer_id, epoch, commit=commit), now_ms=0, origin=AppendOrigin.COORDINATOR
    )


def read(partition, offset=0, *, isolation=COMMITTED, max_bytes=1 << 20):
    return partition.read(offset, max_bytes=max_bytes, min_one_batch=True, isolation=isolation)


def committed_values(partition, *, max_bytes=1 << 20):
    """What a consumer makes of fetches, as KIP-98 tells it to."""
    found = []
    offset = partition.log_start_offset
    while offset < partition.last_stable_offset:
        result = read(partition, offset, max_bytes=max_bytes)
        assert result.last_stable_offset == partition.last_stable_offset
        to_come = sorted(result.aborted, key=lambda aborted: aborted.first_offset)
        skipping = set()
        data = memoryview(result.region.read())
        assert data
        for position, header in iterate_batches(data):
            while to_come and to_come[0].first_offset <= header.last_offset:
                skipping.add(to_come.pop(0).producer_id)
            batch = data[position : position + header.size]
            if header.is_control:
                skipping.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipping):
                found += [
                    record.value.decode()
                    for record in iterate_records(batch)
                    if record.offset >= offset
                ]
            next_offset = header.next_offset
        assert not to_come, "told of a transaction that is not in what was returned"
        assert result.region.next_offset == next_offset
        offset = next_offset
    return found


class TestLastStableOffset:
    """Rule 115."""

    def test_without_transactions_it_is_the_high_watermark(self):
        partition = make_partition()
        append(partition.log, "a", "b")
        assert partition.last_stable_offset == partition.high_watermark == 2

    def test_open_transaction_holds_it(self):
        partition = make_partition()
        append(partition.log, "a")
        write(partition, 1, "b")
        append(partition.log, "c")
        assert (partition.last_stable_offset, partition.high_watermark) == (1, 3)

    def test_oldest_open_transaction_holds_it(self):
        partition = make_partition()
        for producer_id in (1, 2, 3):
            write(partition, producer_id, "x")
        end(partition, 2, commit=True)
        assert partition.last_stable_offset == 0
        end(partition, 1, commit=False)
        assert partition.last_stable_offset == 2
        end(partition, 3, commit=True)
        assert partition.last_stable_offset == partition.high_watermark == 6

    def test_reader_of_committed_records_stops_there(self):
        """Rule 72."""
        partition = make_partition()
        append(partition.log, "a")
        write(partition, 1, "b")
        region = read(partition).region
        assert [header.base_offset for _, header in iterate_batches(region.read())] == [0]
        assert len(read(partition, 1).region) == 0
        assert len(read(partition, 1, isolation=UNCOMMITTED).region) > 0

    def test_latest_offset_depends_on_who_asks(self):
        """Rule 92."""
        partition = make_partition()
        append(partition.log, "a")
        write(partition, 1, "b")
        assert list_offset(partition, LATEST_TIMESTAMP, COMMITTED)[0] == 1
        assert list_offset(partition, LATEST_TIMESTAMP, UNCOMMITTED)[0] == 2

    def test_deleted_beginning_of_a_transaction_does_not_hold_it(self):
        partition = make_partition()
        write(partition, 1, "a")
        append(partition.log, "b")
        partition.delete_records_before(1)
        assert partition.last_stable_offset == 1


class TestAbortedTransactions:
    """Rule 116."""

    @pytest.fixture
    def partition(self):
        """Aborted at 0-2, 3-5, 6-8."""
        partition = make_partition()
        for producer_id in (1, 2, 3):
            write(partition, producer_id, "x", "y")
            end(partition, producer_id, commit=False)
        return partition

    def listed(self, partition, offset=0, **options):
        aborted = read(partition, offset, **options).aborted
        return [(entry.producer_id, entry.first_offset) for entry in aborted]

    def test_all_of_what_is_returned(self, partition):
        assert self.listed(partition) == [(1, 0), (2, 3), (3, 6)]

    def test_none_of_what_is_returned_later(self, partition):
        one_batch = len(append(partition.log, "z") and read(partition, 9).region)
        assert self.listed(partition, max_bytes=one_batch) == [(1, 0)]
        assert self.listed(partition, 3, max_bytes=one_batch) == [(2, 3)]

    def test_none_of_what_was_returned_before(self, partition):
        assert self.listed(partition, 3) == [(2, 3), (3, 6)]
        assert self.listed(partition, 8) == [(3, 6)]

    def test_nothing_is_returned_and_nothing_listed(self, partition):
        assert self.listed(partition, 9) == []

    def test_reader_of_everything_is_told_nothing(self, partition):
        assert read(partition, isolation=UNCOMMITTED).aborted is None

    def test_committed_and_empty_transactions_are_not_listed(self):
        """Rule 117."""
        partition = make_partition()
        write(partition, 1, "x")
        end(partition, 1, commit=True)
        end(partition, 2, commit=False)
        assert self.listed(partition) == []

    def test_transactions_of_several_segments(self):
        partition = make_partition(segment_bytes=300)
        for producer_id in range(10):
            write(partition, producer_id, "x" * 50)
        for producer_id in range(10):
            end(partition, producer_id, commit=producer_id % 2 == 0)
        assert len(partition.log.segments) > 3
        first = read(partition)
        assert first.region.next_offset < 10
        listed = {aborted.producer_id for aborted in first.aborted}
        assert listed == {n for n in range(first.region.next_offset) if n % 2}


steps = st.lists(
    st.tuples(st.sampled_from(["write", "commit", "abort", "plain"]), st.integers(1, 4)),
    min_size=1,
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(steps, st.sampled_from([200, 1000, 1 << 20]), st.sampled_from([1, 150, 400, 1 << 20]))
def test_consumer_sees_what_was_committed_and_nothing_else(steps, segment_bytes, max_bytes):
    """Goal: any interleaving of transactions, over any segments and sizes of fetches."""
    partition = make_partition(segment_bytes=segment_bytes)
    outcomes = {}
    order = []
    open_values = {}
    for number, (what, producer_id) in enumerate(steps):
        value = f"v{number}"
        if what == "write":
            write(partition, producer_id, value)
            open_values.setdefault(producer_id, []).append(value)
            order.append(value)
        elif what == "plain":
            append(partition.log, value)
            outcomes[value] = True
            order.append(value)
        else:
            end(partition, producer_id, commit=what == "commit")
            for ended in open_values.pop(producer_id, []):
                outcomes[ended] = what == "commit"
    undecided = [value for value in order if value not in outcomes]
    stable = order[: order.index(undecided[0])] if undecided else order
    expected = [value for value in stable if outcomes[value]]
    assert committed_values(partition, max_bytes=max_bytes) == expected
