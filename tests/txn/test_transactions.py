"""Producer ids and epochs through the life of a transactional id (rules 103-106, 122)."""

from dataclasses import replace

import pytest

from kafkalite.txn.states import TransactionState
from kafkalite.txn.transactions import (
    EPOCH_MAX,
    NO_PRODUCER_ID,
    V1,
    V2,
    ProducerIdentity,
    is_exhausted,
)
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.txn.harness import ID, TIMEOUT_MS, A, B, C, TransactionHarness

LAST_EPOCH = EPOCH_MAX - 1


@pytest.fixture
def harness():
    return TransactionHarness()


def set_epoch(harness, epoch, **changes):
    """Put a producer's epoch where it takes thirty thousand transactions to get."""
    for shard in (harness.shard, harness.replica):
        shard.transactions[ID] = replace(
            shard.transactions[ID], producer_epoch=epoch, last_producer_epoch=-1, **changes
        )
    return harness.transaction().identity


class TestFirstProducer:
    def test_new_id_gets_a_producer_id_and_epoch_0(self, harness):
        """Rule 103."""
        assert harness.init() == (1000, 0)
        assert harness.init("other") == (1001, 0)

    def test_who_expected_something_of_an_unknown_id_begins_anew(self, harness):
        """Its transactional id has expired."""
        assert harness.init(expected=(7, 3)) == (1000, 0)

    def test_producer_id_is_asked_for_only_where_one_is_needed(self, harness):
        harness.init()
        harness.init()
        assert harness.next_producer_id == 1001


class TestNextProducer:
    def test_epoch_rises_and_fences_the_one_before(self, harness):
        """Rule 103: a zombie cannot go on."""
        zombie = harness.init()
        assert harness.init() == (1000, 1)
        assert harness.add(zombie, A) is ErrorCode.PRODUCER_FENCED

    @pytest.mark.parametrize("version", [V1, V2])
    def test_open_transaction_is_aborted_and_its_producer_fenced(self, harness, version):
        """Rule 103: the new producer is told to come again, and finds everything done."""
        zombie = harness.reach(TransactionState.ONGOING, version=version)
        assert harness.init_code() is ErrorCode.CONCURRENT_TRANSACTIONS
        assert harness.state() is TransactionState.COMPLETE_ABORT
        (markers,) = harness.sent
        assert (markers.committed, markers.partitions) == (False, [A])
        assert markers.producer == (1000, 1)
        assert harness.init() == (1000, 2)
        for committed in (True, False):
            refusal = harness.end_code(zombie, committed=committed, version=version)
            assert refusal is ErrorCode.PRODUCER_FENCED

    def test_settings_of_the_new_producer_hold(self, harness):
        harness.init(timeout_ms=5000)
        harness.init(timeout_ms=7000)
        assert harness.transaction().timeout_ms == 7000

    def test_no_partition_of_the_transaction_before_remains(self, harness):
        harness.reach(TransactionState.COMPLETE_COMMIT)
        harness.init()
        assert harness.transaction().partitions == {}
        assert harness.transaction().start_timestamp_ms == -1


class TestSameProducer:
    """KIP-360: a producer goes on after an error (rule 104)."""

    def test_current_identity_gets_the_next_epoch(self, harness):
        producer = harness.init()
        assert harness.init(expected=producer) == (1000, 1)

    def test_retry_gets_the_same_epoch_again(self, harness):
        producer = harness.init()
        assert harness.init(expected=producer) == (1000, 1)
        assert harness.init(expected=producer) == (1000, 1)

    def test_retry_is_over_when_another_producer_came(self, harness):
        zombie = harness.init()
        harness.init(expected=zombie)
        harness.init()
        for expected in (zombie, ProducerIdentity(1000, 1)):
            assert harness.init_code(expected=expected) is ErrorCode.PRODUCER_FENCED

    def test_retry_is_refused_after_the_coordinator_moved(self, harness):
        """Kafka's log does not say who had the epoch before; a refusal is the safe side."""
        producer = harness.init()
        harness.init(expected=producer)
        other = harness.restarted()
        assert other.init_code(expected=producer) is ErrorCode.PRODUCER_FENCED

    @pytest.mark.parametrize("expected", [(999, 0), (1001, 0), (1000, 5)])
    def test_identity_that_was_never_given_is_fenced(self, harness, expected):
        harness.init()
        assert harness.init_code(expected=expected) is ErrorCode.PRODUCER_FENCED

    def test_open_transaction_is_aborted_before_its_producer_goes_on(self, harness):
        producer = harness.reach(TransactionState.ONGOING)
        assert harness.init_code(expected=producer) is ErrorCode.CONCURRENT_TRANSACTIONS
        assert harness.state() is TransactionState.COMPLETE_ABORT

    def test_zombie_cannot_abort_the_transaction_of_its_successor(self, harness):
        """Kafka would abort it, and refuse the zombie only when it comes again."""
        zombie = harness.init()
        producer = harness.init()
        harness.add(producer, A)
        assert harness.init_code(expected=zombie) is ErrorCode.PRODUCER_FENCED
        assert harness.state() is TransactionState.ONGOING

    @pytest.mark.parametrize(
        "state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT]
    )
    def test_identity_is_looked_at_before_the_state(self, harness, state):
        harness.reach(state)
        assert harness.init_code(expected=(999, 0)) is ErrorCode.PRODUCER_FENCED
        busy = harness.init_code(expected=harness.transaction().identity)
        assert busy is ErrorCode.CONCURRENT_TRANSACTIONS

    def test_producer_that_lost_the_answer_to_its_end_txn_can_go_on(self, harness):
        """V2: EndTxn gave it an epoch that it has not heard of."""
        producer = harness.init()
        harness.add(producer, A, version=V2)
        harness.end(producer, committed=True, version=V2)
        assert harness.init(expected=producer) == (1000, 1)


class TestEpochsRunOut:
    """Rule 105."""

    def test_last_epoch_is_kept_for_the_coordinator(self):
        assert [is_exhausted(epoch) for epoch in (0, LAST_EPOCH - 1, LAST_EPOCH, EPOCH_MAX)] == [
            False,
            False,
            True,
            True,
        ]

    def test_last_epoch_but_one_is_given(self, harness):
        harness.init()
        set_epoch(harness, LAST_EPOCH - 1)
        assert harness.init() == (1000, LAST_EPOCH)

    @pytest.mark.parametrize("is_expected", [True, False])
    def test_new_producer_id_after_the_last_epoch(self, harness, is_expected):
        harness.init()
        producer = set_epoch(harness, LAST_EPOCH)
        assert harness.init(expected=producer if is_expected else None) == (1001, 0)
        assert harness.transaction().previous_producer_id == 1000

    def test_retry_with_the_last_epoch_gets_the_new_producer_id_again(self, harness):
        harness.init()
        producer = set_epoch(harness, LAST_EPOCH)
        assert harness.init(expected=producer) == (1001, 0)
        assert harness.init(expected=producer) == (1001, 0)

    def test_zombie_of_the_producer_id_before_is_fenced(self, harness):
        harness.init()
        producer = set_epoch(harness, LAST_EPOCH)
        harness.init()
        assert harness.init_code(expected=producer) is ErrorCode.PRODUCER_FENCED
        earlier = (1000, LAST_EPOCH - 1)
        assert harness.init_code(expected=earlier) is ErrorCode.PRODUCER_FENCED

    def test_exhausted_id_still_knows_a_stranger(self, harness):
        harness.init()
        set_epoch(harness, LAST_EPOCH)
        assert harness.init_code(expected=(1000, 5)) is ErrorCode.PRODUCER_FENCED

    @pytest.mark.parametrize("epoch", [LAST_EPOCH - 1, LAST_EPOCH])
    def test_producer_with_the_last_epochs_can_be_fenced(self, harness, epoch):
        harness.init()
        producer = set_epoch(harness, epoch)
        harness.add(producer, A)
        assert harness.init_code() is ErrorCode.CONCURRENT_TRANSACTIONS
        assert harness.transaction().producer_epoch == epoch + 1
        assert harness.add(producer, A) is ErrorCode.PRODUCER_FENCED
        assert harness.init() == (1001, 0)

    def test_nobody_is_given_the_coordinators_own_epoch(self, harness):
        """Not even a producer that takes its abort for done (rule 122)."""
        harness.init()
        producer = set_epoch(harness, LAST_EPOCH)
        harness.add(producer, A, version=V2)
        harness.advance(TIMEOUT_MS)
        assert harness.transaction().producer_epoch == EPOCH_MAX
        refusal = harness.end_code(producer, committed=False, version=V2)
        assert refusal is ErrorCode.PRODUCER_FENCED

    def test_second_protocol_goes_on_with_a_new_producer_id(self, harness):
        harness.init()
        producer = set_epoch(harness, LAST_EPOCH)
        harness.add(producer, A, version=V2)
        assert harness.end(producer, committed=True, version=V2) == (1001, 0)
        (markers,) = harness.sent
        assert markers.producer == (1000, EPOCH_MAX)
        transaction = harness.transaction()
        assert transaction.identity == (1001, 0)
        assert (transaction.previous_producer_id, transaction.next_producer_id) == (
            1000,
            NO_PRODUCER_ID,
        )

    def test_retried_end_txn_of_the_old_producer_id_is_answered(self, harness):
        """Rule 122: also by a coordinator that has loaded its log."""
        harness.init()
        producer = set_epoch(harness, LAST_EPOCH)
        harness.add(producer, A, version=V2)
        harness.delivers = False
        harness.end(producer, committed=True, version=V2)
        busy = harness.end_code(producer, committed=True, version=V2)
        assert busy is ErrorCode.CONCURRENT_TRANSACTIONS
        harness.deliver()
        assert harness.end(producer, committed=True, version=V2) == (1001, 0)
        refusal = harness.end_code(producer, committed=False, version=V2)
        assert refusal is ErrorCode.INVALID_TXN_STATE
        harness.advance(5000)
        assert harness.restarted().end(producer, committed=True, version=V2) == (1001, 0)

    def test_producer_that_knows_its_new_id_waits_for_the_markers(self, harness):
        """It was told the id before the transaction of the old one is complete."""
        harness.init()
        producer = set_epoch(harness, LAST_EPOCH)
        harness.add(producer, A, version=V2)
        harness.delivers = False
        successor = harness.end(producer, committed=True, version=V2)
        assert harness.add(successor, B, version=V2) is ErrorCode.CONCURRENT_TRANSACTIONS
        bumped = ProducerIdentity(1000, EPOCH_MAX)
        assert harness.add(bumped, B, version=V2) is ErrorCode.CONCURRENT_TRANSACTIONS
        busy = harness.end_code(successor, committed=False, version=V2)
        assert busy is ErrorCode.CONCURRENT_TRANSACTIONS
        harness.deliver()
        assert harness.add(successor, B, version=V2) is ErrorCode.NONE


class TestPartitions:
    def test_partitions_accumulate(self, harness):
        """Rule 106."""
        producer = harness.init()
        harness.add(producer, A)
        harness.add(producer, B, C)
        assert [*harness.transaction().partitions] == [A, B, C]

    def test_partition_that_is_there_already_costs_no_record(self, harness):
        producer = harness.init()
        harness.add(producer, A, B)
        records = len(harness.log)
        assert harness.add(producer, B) is ErrorCode.NONE
        assert len(harness.log) == records

    def test_start_is_that_of_the_first_partition(self, harness):
        producer = harness.init()
        harness.advance(1000)
        harness.add(producer, A)
        start_ms = harness.now.wall_ms
        harness.advance(1000)
        harness.add(producer, B)
        assert harness.transaction().start_timestamp_ms == start_ms
        assert harness.transaction().last_update_timestamp_ms == start_ms + 1000

    def test_next_transaction_begins_with_its_own_partitions(self, harness):
        producer = harness.reach(TransactionState.COMPLETE_COMMIT)
        harness.add(producer, C)
        assert [*harness.transaction().partitions] == [C]

    def test_only_what_was_added_is_verified(self, harness):
        """Rule 113."""
        producer = harness.init()
        harness.add(producer, A)
        assert harness.verify(producer, A, B) == {
            A: ErrorCode.NONE,
            B: ErrorCode.TRANSACTION_ABORTABLE,
        }


class TestSecondProtocol:
    """Rule 122."""

    def test_every_transaction_has_an_epoch_of_its_own(self, harness):
        producer = harness.init()
        for epoch in range(1, 4):
            harness.add(producer, A, version=V2)
            producer = harness.end(producer, committed=epoch % 2 == 0, version=V2)
            assert producer == (1000, epoch)
            assert harness.sent[-1].producer == producer

    def test_abort_of_a_transaction_that_has_not_begun_bumps_the_epoch(self, harness):
        producer = harness.init()
        assert harness.end(producer, committed=False, version=V2) == (1000, 1)
        assert harness.sent[-1].partitions == []
        transaction = harness.transaction()
        assert transaction.state is TransactionState.COMPLETE_ABORT
        assert transaction.start_timestamp_ms == harness.now.wall_ms

    @pytest.mark.parametrize("committed", [True, False])
    def test_end_of_the_next_transaction_waits_for_the_markers_of_this_one(
        self, harness, committed
    ):
        """A producer whose writes were put off for them may abort at once (KAFKA-18464).

        franz-go does: it must not be fenced by its own transaction before.
        """
        producer = harness.init()
        harness.add(producer, A, version=V2)
        harness.delivers = False
        producer = harness.end(producer, committed=committed, version=V2)
        busy = harness.end_code(producer, committed=False, version=V2)
        assert busy is ErrorCode.CONCURRENT_TRANSACTIONS
        harness.deliver()
        assert harness.end(producer, committed=False, version=V2) == (1000, 2)

    def test_write_of_the_transaction_before_is_too_late(self, harness):
        """Why KIP-890: it cannot become part of the next transaction."""
        producer = harness.init()
        harness.add(producer, A, version=V2)
        harness.end(producer, committed=True, version=V2)
        assert harness.add(producer, A, version=V2) is ErrorCode.PRODUCER_FENCED

    def test_client_may_change_from_one_protocol_to_the_other(self, harness):
        producer = harness.init()
        harness.add(producer, A, version=V2)
        assert harness.end(producer, committed=True, version=V1) == (1000, 0)
        harness.add(producer, A, version=V1)
        assert harness.end(producer, committed=True, version=V2) == (1000, 1)


def test_timeout_has_bounds():
    """Rule 103."""
    harness = TransactionHarness(max_timeout_ms=TIMEOUT_MS)
    for timeout_ms in (-1, 0, TIMEOUT_MS + 1, 2**31 - 1):
        assert harness.init_code(timeout_ms=timeout_ms) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert harness.init_code(timeout_ms=TIMEOUT_MS) is ErrorCode.NONE
    assert harness.init_code(timeout_ms=1) is ErrorCode.NONE


def test_refusals_name_what_there_is():
    harness = TransactionHarness()
    harness.init()
    with pytest.raises(KafkaError, match=r"tx has producer 1000 at epoch 0, not 1000 at 7"):
        harness.end(ProducerIdentity(1000, 7), committed=True)
