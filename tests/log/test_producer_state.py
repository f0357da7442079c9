"""Idempotent and transactional producers: semantics parts D and G (111-117)."""

import pytest

from kafkalite.log.producer_state import (
    DOUBTED_MAX,
    DOUBTS,
    AppendedBatch,
)
from kafkalite.log.transaction_index import AbortedTransaction
from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import CONTROL, TRANSACTIONAL, EndMarker
from tests.log.producer_state_kit import COMMIT, LARGEST, SmallLog, header_of

ABORT = EndMarker(is_commit=False, coordinator_epoch=0)


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
