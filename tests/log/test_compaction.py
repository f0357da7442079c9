"""What compaction keeps: rules 205-208, against a model of the log's meaning."""

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.log.compaction import (
    ENTRY_BYTES,
    BatchFilter,
    CleanedTransactionMetadata,
    LastRecord,
    OffsetMap,
)
from kafkalite.log.producer_state import ProducerStates
from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import (
    Record,
    build_batch,
    control_batch,
    crc_matches,
    empty_batch,
    iterate_batches,
    iterate_records,
    read_batch_header,
    read_end_marker,
)

RETENTION_MS = 1000


@dataclass
class SmallLog:
    """A list of batches, with what a broker knows of them."""

    batches: list = field(default_factory=list)
    aborted: list = field(default_factory=list)
    end: int = 0
    states: ProducerStates = field(default_factory=ProducerStates)

    def append(
        self, *pairs, producer_id=-1, epoch=0, codec=Codec.NONE, transactional=False, **more
    ):
        """Append a batch of (key, value) pairs; timestamps are offsets."""
        records = [
            Record(self.end + n, self.end + n, key, value, [("n", b"%d" % n)])
            for n, (key, value) in enumerate(pairs)
        ]
        state = self.states.get(producer_id)
        self._add(
            build_batch(
                records,
                base_offset=self.end,
                leader_epoch=7,
                producer_id=producer_id,
                producer_epoch=-1 if producer_id < 0 else epoch,
                base_sequence=-1 if producer_id < 0 else (state.last_sequence + 1 if state else 0),
                codec=codec,
                transactional=transactional,
                **more,
            )
        )

    def mark(self, producer_id, *, is_commit, epoch=0):
        self._add(
            control_batch(
                is_commit=is_commit,
                producer_id=producer_id,
                producer_epoch=epoch,
                coordinator_epoch=0,
                timestamp_ms=self.end,
                base_offset=self.end,
                leader_epoch=7,
            )
        )

    def _add(self, batch):
        header = read_batch_header(batch)
        if header.producer_id >= 0:
            marker = read_end_marker(batch) if header.is_control else None
            aborted = self.states.update(header, base_offset=self.end, marker=marker)
            if aborted is not None:
                self.aborted.append(aborted)
        self.batches.append(bytes(batch))
        self.end = header.next_offset

    def compact(self, *, now_ms=0, first_dirty=0, memory_bytes=1 << 20, upper=None):
        """Compact in place up to `upper`; return the end of what is clean now."""
        upper = self.end if upper is None else upper
        offset_map = OffsetMap(memory_bytes, first_dirty)
        walk = CleanedTransactionMetadata(self.aborted)
        below = [batch for batch in self.batches if read_batch_header(batch).last_offset < upper]
        for batch in below:
            header = read_batch_header(batch)
            if header.is_control:
                walk.on_control_batch(memoryview(batch), header)
            elif not walk.on_batch(header) and header.next_offset > first_dirty:
                if offset_map.is_full:
                    break
                offset_map.add_batch(memoryview(batch), header)
            offset_map.advance_to(header.next_offset)
        batch_filter = BatchFilter(
            offset_map,
            aborted=self.aborted,
            last_records={
                state.producer_id: LastRecord(state.last_offset, state.epoch)
                for state in self.states
            },
            upper_offset=upper,
            now_ms=now_ms,
            delete_retention_ms=RETENTION_MS,
        )
        kept = []
        aborted = []
        for batch in below:
            result = batch_filter.filter(memoryview(batch), read_batch_header(batch))
            if result.aborted is not None:
                aborted.append(result.aborted)
            if result.data is not None:
                assert read_batch_header(result.data) == result.header
                kept.append(bytes(result.data))
        self.batches[: len(below)] = kept
        self.aborted = aborted + [entry for entry in self.aborted if entry.last_offset >= upper]
        self.statistics = batch_filter.statistics
        return offset_map.end_offset

    def headers(self):
        return [header for _, header in iterate_batches(b"".join(self.batches))]

    def records(self, *, committed=False):
        """All data records, or those that a read_committed consumer is given."""
        dropped = {(entry.producer_id, entry.first_offset): entry for entry in self.aborted}
        found = []
        for batch in self.batches:
            header = read_batch_header(batch)
            if header.is_control:
                continue
            if (
                committed
                and header.is_transactional
                and any(
                    entry.producer_id == header.producer_id
                    and entry.first_offset <= header.base_offset <= entry.last_offset
                    for entry in dropped.values()
                )
            ):
                continue
            found += iterate_records(batch)
        return found

    def offsets(self):
        return [record.offset for record in self.records()]

    def table(self):
        """What a consumer that keeps the last value of each key ends up with."""
        table = {}
        for record in self.records(committed=True):
            if record.key is not None:
                table[record.key] = record.value
        return {key: value for key, value in table.items() if value is not None}


def pairs(text):
    """Parse `a1 b2 a-`: key and value, `-` for a tombstone."""
    return [
        (word[:1].encode(), None if word[1:] == "-" else word[1:].encode()) for word in text.split()
    ]


@pytest.fixture
def log():
    return SmallLog()


class TestOffsetMap:
    def test_latest_offset_of_each_key(self, log):
        log.append(*pairs("a1 b1 a2"))
        log.append((None, b"x"), (b"k" * 100, b"y"), codec=Codec.ZSTD)
        offset_map = OffsetMap(1 << 20, 0)
        for batch in log.batches:
            offset_map.add_batch(memoryview(batch), read_batch_header(batch))
        assert [offset_map.latest(key) for key in (b"a", b"b", b"k" * 100, b"c")] == [2, 1, 4, -1]
        assert len(offset_map) == 3

    def test_long_keys_differ_from_short_ones(self, log):
        """A digest has a length that no exact key has."""
        keys = [b"k" * length for length in range(40)]
        log.append(*((key, b"") for key in keys))
        offset_map = OffsetMap(1 << 20, 0)
        offset_map.add_batch(memoryview(log.batches[0]), read_batch_header(log.batches[0]))
        assert [offset_map.latest(key) for key in keys] == list(range(40))

    def test_memory_is_bounded_but_for_one_batch(self):
        offset_map = OffsetMap(10 * ENTRY_BYTES, 0)
        log = SmallLog()
        log.append(*((b"%d" % n, b"") for n in range(10)))
        assert not offset_map.is_full
        offset_map.add_batch(memoryview(log.batches[0]), read_batch_header(log.batches[0]))
        assert offset_map.is_full

    def test_clean_records_are_not_in_the_map(self, log):
        log.append(*pairs("a1 b1 c1"))
        offset_map = OffsetMap(1 << 20, 1)
        offset_map.add_batch(memoryview(log.batches[0]), read_batch_header(log.batches[0]))
        assert [offset_map.latest(key) for key in (b"a", b"b", b"c")] == [-1, 1, 2]


class TestKeys:
    """Rule 205."""

    @pytest.mark.parametrize("codec", Codec)
    def test_last_record_of_each_key_stays_at_its_offset(self, log, codec):
        log.append(*pairs("a1 b1 a2"), codec=codec)
        log.append(*pairs("c1 b2"), codec=codec)
        log.append(*pairs("a3 d1"), codec=codec)
        before = {record.offset: record for record in log.records()}
        log.compact()
        assert log.offsets() == [3, 4, 5, 6]
        assert all(record == before[record.offset] for record in log.records())
        assert {header.codec for header in log.headers()} == {codec}

    def test_batch_that_keeps_all_its_records_is_not_rewritten(self, log):
        log.append(*pairs("a1 b1"), codec=Codec.GZIP)
        before = list(log.batches)
        log.compact()
        assert log.batches == before

    def test_what_is_left_of_a_batch_keeps_its_offsets_and_sequences(self, log):
        log.append(*pairs("a1 b1 c1 a2"), producer_id=5, epoch=3)
        log.append(*pairs("c2 d1"), producer_id=5, epoch=3)
        whole = log.headers()[0]
        log.compact()
        header = log.headers()[0]
        assert header.record_count == 2
        assert header.max_timestamp == 3
        for name in ("base_offset", "last_offset", "base_sequence", "last_sequence"):
            assert getattr(header, name) == getattr(whole, name)
        for name in ("producer_id", "producer_epoch", "partition_leader_epoch", "attributes"):
            assert getattr(header, name) == getattr(whole, name)
        assert crc_matches(log.batches[0], 0, header)

    def test_log_append_time_stays_that_of_all_records(self, log):
        log.append(*pairs("a1 b1"), log_append_time_ms=500)
        log.append(*pairs("b2 a-"), log_append_time_ms=600)
        log.compact(now_ms=50)
        (record, tombstone) = log.records()
        assert (record.timestamp, tombstone.timestamp) == (600, 600)
        log.append(*pairs("b3"))
        log.compact(now_ms=10**6)
        log.append(*pairs("d1 e1"), log_append_time_ms=700)
        log.append(*pairs("e2"))
        log.compact()
        assert [record.timestamp for record in log.records()] == [4, 700, 7]
        assert log.headers()[1].is_log_append_time

    def test_keyless_records_are_dropped(self, log):
        log.append((None, b"x"), (b"a", b"1"))
        log.compact()
        assert log.offsets() == [1]
        assert log.statistics.keyless_records == 1
        assert (log.statistics.records_read, log.statistics.records_kept) == (2, 1)

    def test_records_beyond_a_full_map_stay(self, log):
        for text in ("a1", "b1", "a2", "b2"):
            log.append(*pairs(text))
        assert log.compact(memory_bytes=2 * ENTRY_BYTES) == 2
        assert log.offsets() == [0, 1, 2, 3]
        assert log.compact(first_dirty=2, memory_bytes=2 * ENTRY_BYTES) == 4
        assert log.offsets() == [2, 3]

    def test_first_batch_is_mapped_whatever_its_size(self, log):
        """Else a batch with more keys than the map may hold would stop compaction for ever."""
        log.append(*pairs("a1 b1 c1"))
        assert log.compact(memory_bytes=0) == 3

    def test_last_batch_of_the_round_stays_even_if_empty(self, log):
        """Rule 207: the end of the clean part must be told from the log."""
        log.append(*pairs("a1"))
        log.append((None, b"x"))
        log.append(*pairs("a2"))
        log.compact(upper=2)
        assert [(header.base_offset, header.record_count) for header in log.headers()] == [
            (0, 1),
            (1, 0),
            (2, 1),
        ]
        before = list(log.batches)
        log.compact(upper=2)
        assert log.batches == before
        log.compact()
        assert [header.base_offset for header in log.headers()] == [2]

    def test_damaged_batch_stops_the_pass(self, log):
        log.append(*pairs("a1 b1"))
        damaged = bytearray(log.batches[0])
        damaged[-1] ^= 1
        log.batches[0] = bytes(damaged)
        for first_dirty in (0, 2):  # when the map is made, or when the clean part is copied
            with pytest.raises(KafkaError) as caught:
                log.compact(first_dirty=first_dirty)
            assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


class TestTombstones:
    """Rule 206 (KIP-534)."""

    @pytest.mark.parametrize("codec", Codec)
    def test_tombstone_gets_its_horizon_at_the_first_cleaning_and_goes_after_it(self, log, codec):
        log.append(*pairs("a1"), codec=codec)
        log.append(*pairs("a- b1"), codec=codec)
        before = log.records()[1:]
        log.compact(now_ms=5000)
        header = log.headers()[0]
        assert header.has_delete_horizon
        assert header.base_timestamp == 5000 + RETENTION_MS
        assert header.max_timestamp == 2
        assert log.records() == before
        log.compact(now_ms=5999)
        assert log.headers() == [header]
        log.compact(now_ms=6000)
        assert log.offsets() == [2]
        assert log.records() == before[1:]
        assert log.headers()[0].base_timestamp == 6000  # kept, though of no use any more

    def test_superseded_tombstone_goes_at_once(self, log):
        log.append(*pairs("a-"))
        log.append(*pairs("a1"))
        log.compact()
        assert log.offsets() == [1]

    def test_empty_value_is_no_tombstone(self, log):
        log.append(*pairs("a1"))
        log.append((b"a", b""))
        log.compact()
        log.compact(now_ms=10**9)
        assert log.offsets() == [1]

    def test_tombstone_behind_the_map_stays(self, log):
        log.append(*pairs("a1 b1"))
        log.append(*pairs("a-"))
        log.compact(memory_bytes=2 * ENTRY_BYTES, now_ms=0)
        log.compact(memory_bytes=2 * ENTRY_BYTES, now_ms=10**9)
        assert log.offsets() == [0, 1, 2]


class TestTransactions:
    """Rule 208."""

    def test_aborted_records_go_and_their_marker_when_its_time_has_come(self, log):
        log.append(*pairs("a1"), producer_id=1, transactional=True)
        log.append(*pairs("a0 b0"), producer_id=2, transactional=True)
        log.mark(2, is_commit=False)
        log.mark(1, is_commit=True)
        log.append(*pairs("c1"), producer_id=2)
        log.append(*pairs("c1"), producer_id=1)
        log.compact(now_ms=100)
        assert log.offsets() == [0, 6]
        control = [header for header in log.headers() if header.is_control]
        assert [header.base_offset for header in control] == [3, 4]
        assert len(log.aborted) == 1  # batches were seen: still listed after the first round
        assert not any(header.has_delete_horizon for header in control)
        log.compact(now_ms=200)
        abort, commit = [header for header in log.headers() if header.is_control]
        assert abort.base_timestamp == 200 + RETENTION_MS
        assert not commit.has_delete_horizon
        assert log.aborted == []
        log.compact(now_ms=1199)
        assert [header.base_offset for header in log.headers() if header.is_control] == [3, 4]
        log.compact(now_ms=1200)
        assert [header.base_offset for header in log.headers() if header.is_control] == [4]

    def test_aborted_records_do_not_supersede_others(self, log):
        log.append(*pairs("a1"))
        log.append(*pairs("a2"), producer_id=2, transactional=True)
        log.mark(2, is_commit=False)
        log.append(*pairs("x1"))
        log.compact()
        assert log.table() == {b"a": b"1", b"x": b"1"}
        assert log.offsets() == [0, 3]

    def test_commit_marker_stays_while_a_record_of_its_transaction_does(self, log):
        log.append(*pairs("a1"), producer_id=1, transactional=True)
        log.mark(1, is_commit=True)
        log.append(*pairs("b1"), producer_id=1, epoch=1)
        log.append(*pairs("x1"))
        for now_ms in (0, 10**6, 2 * 10**6):
            log.compact(now_ms=now_ms)
            assert log.offsets() == [0, 2, 3]
            assert [header.base_offset for header in log.headers() if header.is_control] == [1]
        log.append(*pairs("a2"))
        for now_ms in (3 * 10**6, 4 * 10**6, 5 * 10**6):
            log.compact(now_ms=now_ms)
        assert [header.is_control for header in log.headers()] == [False] * 3

    def test_last_batch_of_an_active_producer_stays_even_if_empty(self, log):
        """Rule 207."""
        log.append(*pairs("a1 b1"), producer_id=1)
        log.append(*pairs("a2 b2"), producer_id=2)
        log.compact()
        first, second = log.headers()
        assert (first.record_count, first.last_sequence, first.next_offset) == (0, 1, 2)
        assert second.record_count == 2
        log.states.remove_expired(10**9, expiration_ms=1)
        log.compact()
        assert [header.producer_id for header in log.headers()] == [2]

    def test_last_marker_of_a_producer_without_records_stays(self, log):
        """It holds the epoch that fences the producer."""
        log.mark(1, is_commit=False, epoch=4)
        log.append(*pairs("x1"))
        for now_ms in (0, 10**6, 2 * 10**6):
            log.compact(now_ms=now_ms)
        marker, _ = log.headers()
        assert (marker.is_control, marker.producer_epoch, marker.record_count) == (True, 4, 0)
        log.states.clear()
        log.compact()
        assert [header.is_control for header in log.headers()] == [False]

    def test_control_records_of_other_kinds_stay(self, log):
        other = build_batch([Record(0, 0, b"\0\0\0\3", b"")], control=True)
        log._add(other)
        log.append(*pairs("x1"))
        log.compact(now_ms=10**9)
        assert log.batches[0] == other

    def test_emptied_batch_of_an_open_producer_counts_for_its_marker(self, log):
        log.append(*pairs("a1"), producer_id=1, transactional=True)
        log.mark(1, is_commit=False)
        log.append(*pairs("x1"))
        log.compact(now_ms=0)
        assert log.headers()[0].record_count == 0
        log.compact(now_ms=10)
        assert len(log.aborted) == 1
        empty = log.batches[0]
        assert empty == empty_batch(read_batch_header(empty))


@st.composite
def histories(draw):
    """A log of batches and markers by three producers, one of them without ids."""
    log = SmallLog()
    open_transactions = {1: False, 2: False}
    for _ in range(draw(st.integers(1, 14))):
        producer_id = draw(st.sampled_from([-1, 1, 2]))
        if open_transactions.get(producer_id) and draw(st.booleans()):
            log.mark(producer_id, is_commit=draw(st.booleans()))
            open_transactions[producer_id] = False
            continue
        transactional = producer_id > 0 and (open_transactions[producer_id] or draw(st.booleans()))
        if transactional:
            open_transactions[producer_id] = True
        count = draw(st.integers(1, 4))
        values = st.sampled_from([None, b"", b"1", b"2"])
        log.append(
            *(
                (draw(st.sampled_from([b"a", b"b", b"c", b"d" * 20])), draw(values))
                for _ in range(count)
            ),
            producer_id=producer_id,
            transactional=transactional,
            codec=draw(st.sampled_from([Codec.NONE, Codec.LZ4])),
        )
    for producer_id, is_open in open_transactions.items():
        if is_open:
            log.mark(producer_id, is_commit=draw(st.booleans()))
    return log


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(log=histories(), data=st.data())
def test_meaning_of_the_log_never_changes(log, data):
    """Any rounds of compaction, at any times, with any memory: the same table for consumers, the
    same states of producers, and only records that were there."""
    table = log.table()
    before = {record.offset: record for record in log.records()}
    committed = {record.offset for record in log.records(committed=True)}
    now_ms = 10**6
    clean = 0
    for _ in range(data.draw(st.integers(1, 4), label="rounds")):
        now_ms += data.draw(st.sampled_from([0, 1, RETENTION_MS]), label="time")
        memory_bytes = data.draw(st.sampled_from([0, 2 * ENTRY_BYTES, 1 << 20]), label="memory")
        clean = log.compact(now_ms=now_ms, first_dirty=clean, memory_bytes=memory_bytes)
        assert log.table() == table
        assert all(before[record.offset] == record for record in log.records())
        assert {record.offset for record in log.records(committed=True)} <= committed
        headers = log.headers()
        assert headers[-1].next_offset == log.end
        for earlier, later in pairwise(headers):
            assert earlier.next_offset <= later.base_offset
        assert all(
            crc_matches(batch, 0, header)
            for batch, header in zip(log.batches, headers, strict=True)
        )
        again = ProducerStates()
        for batch, header in zip(log.batches, headers, strict=True):
            if header.producer_id >= 0:
                marker = read_end_marker(batch) if header.is_control else None
                again.update(header, base_offset=header.base_offset, marker=marker)
        assert again.first_unstable_offset is None
        for state in log.states:
            assert again.get(state.producer_id).epoch == state.epoch
            assert again.get(state.producer_id).last_sequence == state.last_sequence
    if clean == log.end and memory_bytes:
        latest = {}
        for record in before.values():
            if record.offset in committed:
                latest[record.key] = record.offset
        for record in log.records(committed=True):
            assert record.offset == latest[record.key]
