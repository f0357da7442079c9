"""Idempotent and transactional producers: semantics parts D and G (111-117)."""

import struct

import pytest
from crc32c import crc32c
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkalite.log.producer_state import (
    DOUBTED_MAX,
    DOUBTS,
    AppendedBatch,
    ProducerStates,
    read_snapshot,
)
from kafkalite.log.transaction_index import AbortedTransaction
from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import CONTROL, TRANSACTIONAL, BatchHeader, EndMarker

LARGEST = 2**31 - 1
COMMIT = EndMarker(is_commit=True, coordinator_epoch=0)
ABORT = EndMarker(is_commit=False, coordinator_epoch=0)


def header_of(sequence, *, count=1, producer_id=1, epoch=0, attributes=0, timestamp=1000):
    return BatchHeader(
        base_offset=0,
        batch_length=100,
        partition_leader_epoch=0,
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=count,
    )


class SmallLog:
    """Producer states with a log end: what `Log` does with them."""

    def __init__(self):
        self.states = ProducerStates()
        self.end = 0

    def append(self, sequence, *, origin=AppendOrigin.CLIENT, verified=True, **fields):
        header = header_of(sequence, **fields)
        original = self.states.check(header, origin=origin, verified=verified)
        if original is not None:
            return original
        base_offset = self.end
        self.end += header.last_offset_delta + 1
        assert self.states.update(header, base_offset=base_offset) is None
        return base_offset

    def write(self, sequence, **fields):
        """Append within a transaction."""
        return self.append(sequence, attributes=TRANSACTIONAL, **fields)

    def end_transaction(self, marker, *, origin=AppendOrigin.COORDINATOR, **fields):
        header = header_of(-1, attributes=TRANSACTIONAL | CONTROL, **fields)
        self.states.check(header, origin=origin, marker=marker)
        self.end += 1
        return self.states.update(header, base_offset=self.end - 1, marker=marker)

    def refusal(self, sequence, **fields):
        with pytest.raises(KafkaError) as caught:
            self.append(sequence, **fields)
        assert str(fields.get("producer_id", 1)) in caught.value.message
        return caught.value.code


class TestFirstBatch:
    """Rule 230: a log that has all that was ever written to it takes producers from the start."""

    @pytest.fixture
    def new(self):
        log = SmallLog()
        log.states.has_whole_history = True
        return log

    def refuses(self, log, sequence, **fields):
        code = log.refusal(sequence, **fields)
        assert code is ErrorCode.NOT_ENOUGH_REPLICAS
        return True

    def test_later_batch_waits_for_the_first(self, new):
        for sequence in (1, 2, 3, 4):
            assert self.refuses(new, sequence)
        assert [new.append(sequence) for sequence in range(5)] == [0, 1, 2, 3, 4]

    def test_producer_that_has_no_first_is_believed_the_third_time(self, new):
        """It wrote to another topic of the name; clients try at least so often."""
        for _ in range(DOUBTS):
            for sequence in (7, 8, 9):
                assert self.refuses(new, sequence)
        assert [new.append(sequence) for sequence in (7, 8, 9)] == [0, 1, 2]

    def test_earlier_one_is_waited_for_anew(self, new):
        for _ in range(DOUBTS):
            assert self.refuses(new, 7)
        assert self.refuses(new, 6)
        assert self.refuses(new, 7)
        assert self.refuses(new, 6)
        assert new.append(6) == 0
        assert new.append(7) == 1

    def test_other_epoch_is_waited_for_anew(self, new):
        for _ in range(DOUBTS):
            assert self.refuses(new, 7)
        assert self.refuses(new, 7, epoch=1)
        assert new.append(0, epoch=2) == 0

    def test_transactional_batch_waits_like_others(self, new):
        assert self.refuses(new, 1, attributes=TRANSACTIONAL)
        assert new.write(0) == 0
        assert new.write(1) == 1

    def test_known_producer_is_told_what_it_was_always_told(self, new):
        new.append(0)
        assert new.refusal(2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_replicas_take_what_the_leader_has(self, new):
        assert new.append(5, origin=AppendOrigin.REPLICATION) == 0

    @pytest.mark.parametrize("how", ["expired", "cleared", "loaded"])
    def test_log_that_has_forgotten_some_takes_any(self, new, how):
        """Rule 58."""
        new.append(0)
        snapshot = new.states.snapshot()
        if how == "expired":
            new.states.remove_expired(10_000, expiration_ms=1)
        elif how == "cleared":
            new.states.clear()
        else:
            new.states.load(snapshot)
        assert new.append(5, producer_id=2) == 1

    def test_as_long_as_none_is_expired_all_are_known(self, new):
        new.append(0)
        assert new.states.remove_expired(0, expiration_ms=1_000) == 0
        assert self.refuses(new, 5, producer_id=2)

    def test_is_bounded(self, new):
        for producer_id in range(DOUBTED_MAX + 1):
            assert self.refuses(new, 3, producer_id=producer_id)
        assert self.refuses(new, 3, producer_id=0)  # the count is lost, not the rule
        assert self.refuses(new, 3, producer_id=0)
        assert new.append(3, producer_id=0) == 0


@pytest.fixture
def log():
    return SmallLog()


class TestSequences:
    def test_batches_in_order_are_appended(self, log):
        assert [log.append(0, count=3), log.append(3), log.append(4)] == [0, 3, 4]
        state = log.states.get(1)
        assert (state.epoch, state.last_sequence, state.last_offset) == (0, 4, 4)
        assert state.last_timestamp == 1000

    def test_repeated_batch_gets_its_original_offset(self, log):
        """Rule 56: any of the last five, by (epoch, first sequence, last sequence)."""
        log.append(0, producer_id=9, count=10)
        for sequence in range(0, 12, 2):
            log.append(sequence, count=2, timestamp=sequence)
        for sequence in range(2, 12, 2):
            assert log.append(sequence, count=2) == AppendedBatch(
                sequence, sequence + 1, 10 + sequence, 11 + sequence, sequence
            )
        assert log.append(12) == 22

    def test_sixth_batch_back_is_out_of_order(self, log):
        for sequence in range(6):
            log.append(sequence)
        assert log.refusal(0) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_other_range_than_the_original_is_no_duplicate(self, log):
        log.append(0, count=3)
        assert log.refusal(0, count=2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert log.refusal(1, count=2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_gap_is_out_of_order(self, log):
        """Rule 57."""
        log.append(0)
        assert log.refusal(2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert log.append(1) == 1

    def test_sequences_wrap_to_zero(self, log):
        """Rule 57."""
        log.append(LARGEST - 1, count=2)
        assert log.refusal(1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert log.append(0) == 2
        assert log.append(LARGEST - 1, count=2).first_offset == 0

    def test_batch_that_wraps_within(self, log):
        log.append(LARGEST, count=3)
        assert log.states.get(1).last_sequence == 1
        assert log.append(2) == 3
        assert log.append(LARGEST, count=3).last_offset == 2

    def test_unknown_producer_may_begin_anywhere(self, log):
        """Rule 58."""
        assert log.append(4711) == 0
        assert log.append(4712) == 1

    def test_producers_do_not_mix(self, log):
        log.append(0, producer_id=1)
        log.append(0, producer_id=2)
        log.append(1, producer_id=1)
        assert log.refusal(0, producer_id=2, count=2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert {state.producer_id for state in log.states} == {1, 2}


class TestEpochs:
    """Rule 59."""

    def test_new_epoch_begins_at_zero(self, log):
        log.append(0)
        log.append(1)
        assert log.refusal(2, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert log.append(0, epoch=1) == 2
        assert log.append(1, epoch=1) == 3

    def test_old_epoch_is_fenced(self, log):
        log.append(0, epoch=1)
        assert log.refusal(1, epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert log.refusal(0, epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH

    def test_batches_of_an_old_epoch_are_no_duplicates(self, log):
        log.append(0)
        log.append(0, epoch=1)
        assert log.append(0, epoch=1).first_offset == 1
        assert len(log.states.get(1).batches) == 1

    def test_marker_of_a_new_epoch_restarts_sequences(self, log):
        log.write(0)
        log.write(1)
        log.end_transaction(ABORT, epoch=1)
        assert log.states.get(1).last_sequence == -1
        assert log.refusal(2, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert log.write(0, epoch=1) == 3

    def test_marker_of_the_same_epoch_keeps_sequences(self, log):
        log.write(0)
        log.end_transaction(COMMIT)
        assert log.append(0, attributes=TRANSACTIONAL).first_offset == 0
        assert log.write(1) == 2


class TestOrigins:
    def test_followers_take_what_the_leader_has(self, log):
        """Rule 66."""
        replication = {"origin": AppendOrigin.REPLICATION}
        log.append(5, epoch=3, **replication)
        log.append(9, epoch=3, **replication)
        log.append(0, epoch=1, **replication)
        assert log.states.get(1).epoch == 1
        log.write(1, epoch=1, **replication)
        log.append(2, epoch=1, **replication)

    def test_coordinators_are_not_asked_for_sequences(self, log):
        coordinator = {"origin": AppendOrigin.COORDINATOR}
        log.write(-1, **coordinator)
        log.write(-1, **coordinator)
        assert log.refusal(-1, epoch=-1, **coordinator) is ErrorCode.INVALID_PRODUCER_EPOCH

    def test_batches_without_sequence_have_no_last_sequence(self, log):
        log.write(-1, origin=AppendOrigin.COORDINATOR)
        assert log.states.get(1).last_sequence == -1


class TestTransactions:
    def test_first_unstable_offset_is_that_of_the_oldest_open_transaction(self, log):
        """Rule 115."""
        assert log.states.first_unstable_offset is None
        log.append(0, producer_id=9)
        log.write(0, producer_id=1)
        log.write(0, producer_id=2)
        log.write(1, producer_id=1)
        assert log.states.first_unstable_offset == 1
        log.end_transaction(COMMIT, producer_id=1)
        assert log.states.first_unstable_offset == 2
        log.write(2, producer_id=1)
        log.end_transaction(COMMIT, producer_id=2)
        assert log.states.first_unstable_offset == 5
        assert log.states.get(1).transaction_first_offset == 5
        log.end_transaction(ABORT, producer_id=1)
        assert log.states.first_unstable_offset is None

    def test_abort_gives_an_index_entry_and_commit_none(self, log):
        """Rules 116 and 117."""
        log.write(0, producer_id=1)
        log.write(0, producer_id=2)
        log.write(0, producer_id=3)
        assert log.end_transaction(ABORT, producer_id=2) == AbortedTransaction(2, 1, 3, 0)
        assert log.end_transaction(COMMIT, producer_id=1) is None
        assert log.end_transaction(ABORT, producer_id=3) == AbortedTransaction(3, 2, 5, 6)

    def test_empty_transaction_leaves_no_trace(self, log):
        """Rule 117."""
        assert log.end_transaction(ABORT, producer_id=4) is None
        state = log.states.get(4)
        assert (state.epoch, state.coordinator_epoch, state.last_offset) == (0, 0, -1)
        assert log.write(0, producer_id=4) == 1

    def test_zombie_coordinator_is_fenced(self, log):
        """Rule 112."""
        log.write(0)
        log.end_transaction(EndMarker(is_commit=True, coordinator_epoch=5))
        log.write(1)
        with pytest.raises(KafkaError) as caught:
            log.end_transaction(EndMarker(is_commit=True, coordinator_epoch=4))
        assert caught.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
        log.end_transaction(
            EndMarker(is_commit=True, coordinator_epoch=4), origin=AppendOrigin.REPLICATION
        )
        assert log.states.get(1).coordinator_epoch == 4

    def test_marker_of_an_old_producer_epoch_is_refused(self, log):
        """Rule 112."""
        log.write(0, epoch=2)
        with pytest.raises(KafkaError) as caught:
            log.end_transaction(ABORT, epoch=1)
        assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH

    def test_batch_outside_of_the_open_transaction_is_refused(self, log):
        """Rule 114."""
        log.write(0)
        assert log.refusal(1) is ErrorCode.INVALID_TXN_STATE
        log.end_transaction(COMMIT)
        assert log.append(1) == 2

    def test_first_batch_of_a_transaction_must_be_verified(self, log):
        """Rules 61 and 113."""
        unverified = {"verified": False, "attributes": TRANSACTIONAL}
        assert log.refusal(0, **unverified) is ErrorCode.INVALID_TXN_STATE
        log.write(0)
        log.append(1, **unverified)
        assert log.append(1, **unverified).first_offset == 1  # a duplicate needs no verification
        log.end_transaction(COMMIT)
        assert log.refusal(2, **unverified) is ErrorCode.INVALID_TXN_STATE
        assert log.append(2, verified=False) == 3

    def test_control_batches_without_marker_change_nothing(self, log):
        log.write(0)
        emptied = header_of(-1, attributes=TRANSACTIONAL | CONTROL)
        assert log.states.update(emptied, base_offset=1) is None
        assert log.states.first_unstable_offset == 0

    def test_decided_transaction_is_unstable_until_its_marker_is_replicated(self, log):
        """Rule 115, with followers: a marker above the watermark may be lost with the leader."""
        log.states.awaits_replication = True
        assert log.states.first_unstable_offset_below(0) is None
        log.write(0, producer_id=1)
        log.write(0, producer_id=2)
        log.end_transaction(ABORT, producer_id=2)
        log.end_transaction(COMMIT, producer_id=1)
        log.write(1, producer_id=2)
        assert log.states.first_unstable_offset == 4
        assert log.states.first_unstable_offset_below(2) == 0
        assert log.states.first_unstable_offset_below(3) == 0
        assert log.states.first_unstable_offset_below(4) == 4
        log.end_transaction(COMMIT, producer_id=2)
        assert log.states.first_unstable_offset_below(6) is None


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
