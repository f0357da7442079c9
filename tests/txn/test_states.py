"""The table of states: what each answers to every API, as its docstring says (rules 102-109)."""

import pytest

from kafkalite.txn.states import LEGAL_PREDECESSORS, TransactionState
from kafkalite.txn.transactions import V1, V2
from kafkalite.wire.errors import ErrorCode
from tests.txn.harness import A, B, TransactionHarness

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT
LIVING = (EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT)

OK = ErrorCode.NONE
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS
INVALID = ErrorCode.INVALID_TXN_STATE
FENCED = ErrorCode.PRODUCER_FENCED
UNMAPPED = ErrorCode.INVALID_PRODUCER_ID_MAPPING


def code_name(value):
    return value.name if isinstance(value, ErrorCode | TransactionState) else str(value)


def table(rows):
    return [(state, *answers) for state, answers in rows.items()]


@pytest.mark.parametrize(
    ("state", "answer", "after"),
    table(
        {
            EMPTY: (OK, EMPTY),
            ONGOING: (BUSY, PREPARE_ABORT),
            PREPARE_COMMIT: (BUSY, PREPARE_COMMIT),
            PREPARE_ABORT: (BUSY, PREPARE_ABORT),
            COMPLETE_COMMIT: (OK, EMPTY),
            COMPLETE_ABORT: (OK, EMPTY),
        }
    ),
    ids=code_name,
)
@pytest.mark.parametrize("version", [V1, V2])
def test_init_producer_id(state, answer, after, version):
    """Rule 103."""
    harness = TransactionHarness(delivers=False)
    harness.reach(state, version=version)
    assert harness.init_code() is answer
    assert harness.state() is after


@pytest.mark.parametrize(
    ("state", "answer", "after"),
    table(
        {
            EMPTY: (OK, ONGOING),
            ONGOING: (OK, ONGOING),
            PREPARE_COMMIT: (BUSY, PREPARE_COMMIT),
            PREPARE_ABORT: (BUSY, PREPARE_ABORT),
            COMPLETE_COMMIT: (OK, ONGOING),
            COMPLETE_ABORT: (OK, ONGOING),
        }
    ),
    ids=code_name,
)
@pytest.mark.parametrize("version", [V1, V2])
def test_add_partitions(state, answer, after, version):
    """Rule 106; AddOffsetsToTxn is the same with a partition of `__consumer_offsets` (rule 107)."""
    harness = TransactionHarness()
    producer = harness.reach(state, version=version)
    assert harness.add(producer, B, version=version) is answer
    assert harness.state() is after
    assert (B in harness.transaction().partitions) == (answer is OK)


@pytest.mark.parametrize(
    ("state", "answer"),
    table(
        {
            EMPTY: (ErrorCode.TRANSACTION_ABORTABLE,),
            ONGOING: (OK,),
            PREPARE_COMMIT: (BUSY,),
            PREPARE_ABORT: (BUSY,),
            COMPLETE_COMMIT: (ErrorCode.TRANSACTION_ABORTABLE,),
            COMPLETE_ABORT: (ErrorCode.TRANSACTION_ABORTABLE,),
        }
    ),
    ids=code_name,
)
def test_verify_partitions(state, answer):
    """Rule 113."""
    harness = TransactionHarness()
    producer = harness.reach(state)
    try:
        code = harness.verify(producer, A)[A]
    except Exception as error:
        code = error.code
    assert code is answer
    assert harness.state() is state


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    table(
        {
            EMPTY: (INVALID, INVALID),
            ONGOING: (OK, OK),
            PREPARE_COMMIT: (BUSY, INVALID),
            PREPARE_ABORT: (INVALID, BUSY),
            COMPLETE_COMMIT: (OK, INVALID),
            COMPLETE_ABORT: (INVALID, OK),
        }
    ),
    ids=code_name,
)
def test_end_txn_of_the_first_protocol(state, commit, abort):
    """Rule 109: the epoch stays, so that a retry cannot be told from the next EndTxn."""
    for committed, answer in ((True, commit), (False, abort)):
        harness = TransactionHarness(delivers=False)
        producer = harness.reach(state)
        records = len(harness.log)
        assert harness.end_code(producer, committed=committed) is answer
        if state is ONGOING:
            assert harness.state() is (PREPARE_COMMIT if committed else PREPARE_ABORT)
        else:
            assert (harness.state(), len(harness.log)) == (state, records)


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    table(
        {
            EMPTY: (INVALID, OK),
            ONGOING: (OK, OK),
            PREPARE_COMMIT: (BUSY, BUSY),
            PREPARE_ABORT: (BUSY, BUSY),
            COMPLETE_COMMIT: (INVALID, OK),
            COMPLETE_ABORT: (INVALID, OK),
        }
    ),
    ids=code_name,
)
def test_end_txn_of_the_second_protocol_with_the_current_epoch(state, commit, abort):
    """Rule 122: it is about the next transaction; to abort one that has not begun is allowed."""
    for committed, answer in ((True, commit), (False, abort)):
        harness = TransactionHarness(delivers=False)
        producer = harness.reach(state, version=V2)
        assert harness.end_code(producer, committed=committed, version=V2) is answer
        if answer is OK:
            assert harness.state() is (PREPARE_COMMIT if committed else PREPARE_ABORT)
        else:
            assert harness.state() is state


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    table(
        {
            EMPTY: (FENCED, FENCED),
            ONGOING: (FENCED, FENCED),
            PREPARE_COMMIT: (BUSY, INVALID),
            PREPARE_ABORT: (INVALID, BUSY),
            COMPLETE_COMMIT: (OK, INVALID),
            COMPLETE_ABORT: (INVALID, OK),
        }
    ),
    ids=code_name,
)
def test_end_txn_of_the_second_protocol_with_the_epoch_before(state, commit, abort):
    """Rule 122: it is a retry, answered like the first time and without another record."""
    for committed, answer in ((True, commit), (False, abort)):
        harness = TransactionHarness()
        producer = harness.reach(state, version=V2)
        records = len(harness.log)
        before = producer._replace(producer_epoch=producer.producer_epoch - 1)
        assert harness.end_code(before, committed=committed, version=V2) is answer
        if answer is OK:
            assert harness.end(before, committed=committed, version=V2) == producer
        assert (harness.state(), len(harness.log)) == (state, records)


@pytest.mark.parametrize("version", [V1, V2])
@pytest.mark.parametrize("state", LIVING, ids=code_name)
class TestWhoMayAsk:
    def check(self, state, version, change, answer):
        harness = TransactionHarness()
        producer = harness.reach(state, version=version)
        other = change(producer)
        records = len(harness.log)
        assert harness.add(other, B, version=version) is answer
        for committed in (True, False):
            assert harness.end_code(other, committed=committed, version=version) is answer
        with pytest.raises(Exception, match=answer.name):
            harness.verify(other, A)
        assert (harness.state(), len(harness.log)) == (state, records)

    def test_other_producer_id_is_unmapped(self, state, version):
        """Rule 106."""
        self.check(state, version, lambda p: p._replace(producer_id=5), UNMAPPED)

    def test_later_epoch_is_fenced(self, state, version):
        """Rule 106: epochs are the coordinator's to give."""
        self.check(
            state, version, lambda p: p._replace(producer_epoch=p.producer_epoch + 1), FENCED
        )

    def test_earlier_epoch_is_fenced(self, state, version):
        self.check(
            state, version, lambda p: p._replace(producer_epoch=p.producer_epoch - 2), FENCED
        )


def test_unknown_transactional_id_has_no_producer():
    """Rule 106."""
    harness = TransactionHarness()
    producer = (5, 0)
    assert harness.add(producer, A) is UNMAPPED
    assert harness.end_code(producer, committed=True) is UNMAPPED
    assert harness.end_code(producer, committed=True, version=V2) is UNMAPPED
    with pytest.raises(Exception, match="INVALID_PRODUCER_ID_MAPPING"):
        harness.verify(producer, A)


class TestTable:
    def test_every_state_has_predecessors_and_says_what_it_answers(self):
        assert list(LEGAL_PREDECESSORS) == list(TransactionState)

    def test_nothing_comes_after_death(self):
        """A dead id that is used again begins anew."""
        for state in TransactionState:
            assert TransactionState.DEAD not in LEGAL_PREDECESSORS[state]

    def test_labels_are_kafkas(self):
        assert [state.label for state in TransactionState] == [
            "Empty",
            "Ongoing",
            "PrepareCommit",
            "PrepareAbort",
            "CompleteCommit",
            "CompleteAbort",
            "Dead",
            "PrepareEpochFence",
        ]
