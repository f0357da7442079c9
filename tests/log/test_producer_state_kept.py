"""What is remembered of producers: how long, in snapshots, and against the history of a log."""

import struct

import pytest
from crc32c import crc32c
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkalite.log.producer_state import (
    ProducerStates,
    read_snapshot,
)
from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import CONTROL, TRANSACTIONAL, EndMarker
from tests.log.producer_state_kit import COMMIT, LARGEST, SmallLog, header_of


class TestExpiry:
    """Rule 62."""

    def test_silent_producers_are_forgotten(self, log):
        log.append(0, producer_id=1, timestamp=1000)
        log.append(0, producer_id=2, timestamp=1001)
        assert log.states.remove_expired(1999, expiration_ms=1000) == 0
        assert log.states.remove_expired(2000, expiration_ms=1000) == 1
        assert log.states.get(1) is None
        assert len(log.states) == 1
        assert log.append(77, producer_id=1) == 2

    def test_not_while_a_transaction_is_open(self, log):
        log.write(0, timestamp=0)
        assert log.states.remove_expired(10**9, expiration_ms=1) == 0


class TestSnapshot:
    """Rule 63; the bytes are those of Kafka's ProducerSnapshot version 1."""

    def test_bytes(self, log):
        log.append(0, producer_id=1, epoch=2, count=3, timestamp=77)
        log.end_transaction(EndMarker(is_commit=True, coordinator_epoch=6), producer_id=5)
        log.write(8, producer_id=7, timestamp=78)
        entries = (
            struct.pack(">qhiqiqiq", 1, 2, 2, 2, 2, 77, -1, -1)
            + struct.pack(">qhiqiqiq", 5, 0, -1, -1, 0, 1000, 6, -1)
            + struct.pack(">qhiqiqiq", 7, 0, 8, 4, 0, 78, -1, 4)
        )
        covered = struct.pack(">i", 3) + entries
        expected = struct.pack(">hI", 1, crc32c(covered)) + covered
        assert log.states.snapshot() == expected

    def test_loaded_states_answer_as_before(self, log):
        log.append(LARGEST, count=3)
        log.write(0, producer_id=3)
        log.write(0, producer_id=2)
        log.end_transaction(COMMIT, producer_id=3)
        log.write(1, producer_id=3)
        again = SmallLog()
        again.end = log.end
        again.append(0, producer_id=99)
        again.states.load(log.states.snapshot())
        assert again.states.get(99) is None
        assert again.states.snapshot() == log.states.snapshot()
        assert again.states.first_unstable_offset == 4
        again.end_transaction(COMMIT, producer_id=2)
        assert again.states.first_unstable_offset == 6
        assert again.append(LARGEST, count=3).first_offset == 0
        assert again.append(2) == again.end - 1

    def test_last_five_batches_are_kept_behind_what_kafka_reads(self, log):
        """Rule 232: Kafka's readers take as many entries as the count says, and all for the CRC."""
        for sequence in range(0, 14, 2):
            log.append(sequence, count=2, timestamp=sequence)
            log.append(sequence // 2, producer_id=2)
        log.append(0, producer_id=3)
        snapshot = log.states.snapshot()
        (crc,) = struct.unpack_from(">I", snapshot, 2)
        assert crc == crc32c(snapshot[6:])
        entries = struct.iter_unpack(">qhiqiqiq", snapshot[10 : 10 + 3 * 46])
        assert [entry[0] for entry in entries] == [1, 2, 3]
        again = ProducerStates()
        again.load(snapshot)
        assert [state.batches for state in again] == [state.batches for state in log.states]
        assert again.get(1).batches[0] == (4, 5, 6, 7, 4)
        assert len(again.get(1).batches) == 5
        assert again.snapshot() == snapshot

    def test_snapshot_of_kafka_has_the_last_batch(self, log):
        for sequence in range(3):
            log.append(sequence)
        covered = log.states.snapshot()[6 : 10 + 46]
        for more in (b"", b"?", b"of a later Kafka, who knows"):
            snapshot = struct.pack(">hI", 1, crc32c(covered + more)) + covered + more
            (state,) = read_snapshot(snapshot)
            assert [batch.first_sequence for batch in state.batches] == [2]

    def test_earlier_batches_that_are_cut_off_make_it_corrupt(self, log):
        for sequence in range(3):
            log.append(sequence)
        covered = log.states.snapshot()[6:-1]
        self.assert_corrupt(log, struct.pack(">hI", 1, crc32c(covered)) + covered)

    def test_empty(self, log):
        assert read_snapshot(log.states.snapshot()) == []

    @pytest.mark.parametrize("cut", [1, 45, 46, 50, 56])
    def test_truncated_snapshot_is_corrupt(self, log, cut):
        log.append(0)
        self.assert_corrupt(log, log.states.snapshot()[:-cut])

    @pytest.mark.parametrize("at", [0, 1, 2, 9, 20])
    def test_damaged_snapshot_is_corrupt(self, log, at):
        log.append(0)
        damaged = bytearray(log.states.snapshot())
        damaged[at] ^= 4
        self.assert_corrupt(log, bytes(damaged))

    def test_count_must_be_that_of_the_entries(self, log):
        log.append(0)
        good = log.states.snapshot()
        covered = struct.pack(">i", 2) + good[10:]
        self.assert_corrupt(log, struct.pack(">hI", 1, crc32c(covered)) + covered)

    def assert_corrupt(self, log, snapshot):
        with pytest.raises(KafkaError) as caught:
            log.states.load(snapshot)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
        assert len(log.states) == 1


class AgainstHistory(RuleBasedStateMachine):
    """Compare with a model that keeps the whole log and derives every answer from it.

    Small sets of producers, epochs and sequences make collisions likely; sequences begin near the
    largest, so that they wrap.
    """

    producers = st.integers(1, 3)
    epochs = st.integers(0, 2)
    sequences = st.integers(-4, 8).map(lambda sequence: sequence % 2**31)
    counts = st.integers(1, 3)

    def __init__(self):
        super().__init__()
        self.states = ProducerStates()
        self.log = []  # (header, base_offset, marker)
        self.end = 0

    def history(self, producer_id):
        return [entry for entry in self.log if entry[0].producer_id == producer_id]

    def open_since(self, producer_id):
        first = None
        for header, base_offset, marker in self.history(producer_id):
            if marker is not None:
                first = None
            elif header.is_transactional and first is None:
                first = base_offset
        return first

    def expected(self, header):
        """Return a refusal's code, the offset of the original, or None if it is to be appended."""
        history = self.history(header.producer_id)
        if not history:
            return None
        epoch = history[-1][0].producer_epoch
        since_epoch = []
        for entry in reversed(history):
            if entry[0].producer_epoch != epoch:
                break
            if entry[2] is None:
                since_epoch.insert(0, entry)
        if header.producer_epoch == epoch:
            for earlier, base_offset, _ in since_epoch[-5:]:
                if (earlier.base_sequence, earlier.last_sequence) == (
                    header.base_sequence,
                    header.last_sequence,
                ):
                    return base_offset
        if header.producer_epoch < epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if self.open_since(header.producer_id) is not None and not header.is_transactional:
            return ErrorCode.INVALID_TXN_STATE
        last = since_epoch[-1][0].last_sequence if since_epoch else -1
        wanted = 0 if header.producer_epoch > epoch else (last + 1) % 2**31
        if header.base_sequence != wanted:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        return None

    def try_append(self, header):
        expected = self.expected(header)
        if isinstance(expected, ErrorCode):
            with pytest.raises(KafkaError) as caught:
                self.states.check(header)
            assert caught.value.code is expected
            return
        answer = self.states.check(header)
        if answer is not None:
            assert answer.first_offset == expected
            return
        assert expected is None
        self.states.update(header, base_offset=self.end)
        self.log.append((header, self.end, None))
        self.end += header.record_count

    @rule(
        producer_id=producers,
        epoch=epochs,
        sequence=sequences,
        count=counts,
        transactional=st.booleans(),
    )
    def append_anything(self, producer_id, epoch, sequence, count, transactional):
        attributes = TRANSACTIONAL if transactional else 0
        self.try_append(
            header_of(
                sequence, count=count, producer_id=producer_id, epoch=epoch, attributes=attributes
            )
        )

    @rule(producer_id=producers, count=counts, transactional=st.booleans())
    def append_next(self, producer_id, count, transactional):
        state = self.states.get(producer_id)
        sequence = 0 if state is None else (state.last_sequence + 1) % 2**31
        epoch = 0 if state is None else state.epoch
        attributes = TRANSACTIONAL if transactional else 0
        self.try_append(
            header_of(
                sequence, count=count, producer_id=producer_id, epoch=epoch, attributes=attributes
            )
        )

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def append_again(self, data):
        header, _, marker = data.draw(st.sampled_from(self.log))
        if marker is None:
            self.try_append(header)

    @rule(producer_id=producers, bump=st.integers(0, 1), is_commit=st.booleans())
    def end_transaction(self, producer_id, bump, is_commit):
        state = self.states.get(producer_id)
        epoch = bump + (0 if state is None else state.epoch)
        header = header_of(
            -1, producer_id=producer_id, epoch=epoch, attributes=TRANSACTIONAL | CONTROL
        )
        marker = EndMarker(is_commit=is_commit, coordinator_epoch=0)
        first_offset = self.open_since(producer_id)
        assert self.states.check(header, origin=AppendOrigin.COORDINATOR, marker=marker) is None
        aborted = self.states.update(header, base_offset=self.end, marker=marker)
        self.log.append((header, self.end, marker))
        self.end += 1
        if is_commit or first_offset is None:
            assert aborted is None
        else:
            assert aborted[:3] == (producer_id, first_offset, self.end - 1)
            still_open = [self.open_since(other) for other in (1, 2, 3)]
            assert aborted.last_stable_offset == min(
                (offset for offset in still_open if offset is not None), default=self.end
            )

    @rule()
    def restart_from_a_snapshot(self):
        again = ProducerStates()
        again.load(self.states.snapshot())
        self.states = again

    @rule()
    def replay_the_whole_log(self):
        """What recovery builds is what service had built."""
        again = ProducerStates()
        for header, base_offset, marker in self.log:
            assert again.check(header, origin=AppendOrigin.REPLICATION, marker=marker) is None
            again.update(header, base_offset=base_offset, marker=marker)
        assert again.snapshot() == self.states.snapshot()
        self.states = again

    @invariant()
    def first_unstable_offset_is_that_of_the_oldest_open_transaction(self):
        offsets = [self.open_since(producer_id) for producer_id in (1, 2, 3)]
        assert self.states.first_unstable_offset == min(
            (offset for offset in offsets if offset is not None), default=None
        )


TestAgainstHistory = pytest.mark.slow(AgainstHistory.TestCase)


TestAgainstHistory.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
