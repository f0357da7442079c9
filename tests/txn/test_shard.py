"""A shard of transactional ids: its log, its markers, its time (rules 109, 110, 118, 121)."""

import pytest

from kafkalite.coordinator.records import decode_batch
from kafkalite.txn.events import MarkersWritten
from kafkalite.txn.settings import TransactionSettings
from kafkalite.txn.shard import COMPLETION_DELAY_MS
from kafkalite.txn.shards import TransactionShards
from kafkalite.txn.states import TransactionState
from kafkalite.txn.transactions import V1, V2, ProducerIdentity
from kafkalite.types import TRANSACTION_STATE_TOPIC
from kafkalite.wire.errors import ErrorCode
from tests.txn.harness import (
    ID,
    MINUTE,
    SECOND,
    SHARD,
    TIMEOUT_MS,
    A,
    B,
    TransactionHarness,
)
from tests.txn.test_states import LIVING

DAY = 24 * 60 * MINUTE


@pytest.fixture
def harness():
    return TransactionHarness()


class TestMarkers:
    def test_outcome_is_in_the_log_before_markers_are_asked_for(self, harness):
        """Rule 109."""
        harness.delivers = False
        producer = harness.init()
        harness.add(producer, A, B)
        assert harness.sent == []
        harness.end(producer, committed=True)
        (markers,) = harness.sent
        assert (markers.transactional_id, markers.shard) == (ID, SHARD)
        assert (markers.committed, markers.partitions) == (True, [A, B])
        assert (markers.producer, markers.client_version) == (producer, V1)
        assert not markers.is_again
        assert harness.logged() == ["EMPTY", "ONGOING", "PREPARE_COMMIT"]

    def test_nothing_is_sent_if_the_outcome_could_not_be_written(self, harness):
        producer = harness.reach(TransactionState.ONGOING)
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        refusal = harness.end_code(producer, committed=True)
        assert refusal is ErrorCode.NOT_ENOUGH_REPLICAS
        assert harness.sent == []
        harness.refuse_appends_with = None
        assert harness.end_code(producer, committed=False) is ErrorCode.NONE
        assert harness.state() is TransactionState.COMPLETE_ABORT

    @pytest.mark.parametrize(
        "producer", [ProducerIdentity(1000, 1), ProducerIdentity(5, 0)], ids=str
    )
    def test_news_of_another_transaction_is_ignored(self, harness, producer):
        harness.reach(TransactionState.PREPARE_COMMIT)
        harness.ask(MarkersWritten(ID, producer))
        harness.ask(MarkersWritten("unknown", producer))
        assert harness.state() is TransactionState.PREPARE_COMMIT

    def test_news_that_come_twice_are_ignored(self, harness):
        harness.reach(TransactionState.COMPLETE_COMMIT)
        harness.advance(COMPLETION_DELAY_MS)
        harness.acknowledge(harness.sent[0])
        assert harness.state() is TransactionState.COMPLETE_COMMIT
        assert harness.shard._ended == {}


class TestCompletion:
    def test_record_is_written_along_with_the_next_of_the_same_id(self, harness):
        """One append less for each transaction of a busy producer."""
        producer = harness.reach(TransactionState.COMPLETE_COMMIT)
        batches = len(harness.log)
        assert harness.logged()[-1] == "PREPARE_COMMIT"
        harness.add(producer, A)
        assert len(harness.log) == batches + 1
        assert harness.logged()[-2:] == ["COMPLETE_COMMIT", "ONGOING"]

    @pytest.mark.parametrize("version", [V1, V2])
    def test_transaction_costs_two_appends_of_the_coordinator(self, harness, version):
        """With the record itself and its marker: four."""
        producer = harness.init()
        batches = len(harness.log)
        for _ in range(10):
            harness.add(producer, A, version=version)
            producer = harness.end(producer, committed=True, version=version)
        assert len(harness.log) - batches == 20

    def test_record_is_written_soon_if_nothing_else_is(self, harness):
        harness.reach(TransactionState.COMPLETE_ABORT)
        harness.reach(TransactionState.COMPLETE_COMMIT, name="other")
        batches = len(harness.log)
        harness.advance(COMPLETION_DELAY_MS)
        assert harness.logged()[-1] == "COMPLETE_ABORT"
        assert harness.logged("other")[-1] == "COMPLETE_COMMIT"
        assert len(harness.log) == batches + 1
        harness.advance(10 * COMPLETION_DELAY_MS)
        assert len(harness.log) == batches + 1

    def test_record_that_was_refused_is_written_later(self, harness):
        harness.reach(TransactionState.COMPLETE_COMMIT)
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        harness.advance(COMPLETION_DELAY_MS)
        assert harness.state() is TransactionState.COMPLETE_COMMIT
        harness.refuse_appends_with = None
        harness.advance(COMPLETION_DELAY_MS)
        assert harness.logged()[-1] == "COMPLETE_COMMIT"

    def test_refused_transition_leaves_the_completion_to_be_written(self, harness):
        producer = harness.reach(TransactionState.COMPLETE_COMMIT)
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        assert harness.add(producer, A) is ErrorCode.NOT_ENOUGH_REPLICAS
        harness.refuse_appends_with = None
        assert harness.add(producer, A) is ErrorCode.NONE
        assert harness.logged()[-2:] == ["COMPLETE_COMMIT", "ONGOING"]


class TestTimeout:
    """Rule 118."""

    def test_open_transaction_is_aborted_when_its_time_has_come(self, harness):
        producer = harness.reach(TransactionState.ONGOING)
        harness.advance(TIMEOUT_MS - 1)
        assert harness.state() is TransactionState.ONGOING
        harness.advance(1)
        assert harness.state() is TransactionState.COMPLETE_ABORT
        (markers,) = harness.sent
        assert (markers.committed, markers.producer) == (False, (1000, 1))
        assert harness.add(producer, A) is ErrorCode.PRODUCER_FENCED

    @pytest.mark.parametrize(
        ("version", "commit", "abort"),
        [
            (V1, ErrorCode.PRODUCER_FENCED, ErrorCode.PRODUCER_FENCED),
            (V2, ErrorCode.INVALID_TXN_STATE, ErrorCode.NONE),
        ],
    )
    def test_its_producer_learns_of_it_when_it_ends_the_transaction(
        self, harness, version, commit, abort
    ):
        """In the second protocol an abort passes for a retry, and is done indeed."""
        producer = harness.reach(TransactionState.ONGOING, version=version)
        harness.advance(TIMEOUT_MS)
        assert harness.end_code(producer, committed=True, version=version) is commit
        assert harness.end_code(producer, committed=False, version=version) is abort
        assert harness.init() == (1000, 2)

    def test_more_partitions_do_not_prolong_it(self, harness):
        producer = harness.reach(TransactionState.ONGOING)
        harness.advance(TIMEOUT_MS - 1)
        harness.add(producer, B)
        harness.advance(1)
        assert harness.state() is TransactionState.COMPLETE_ABORT
        assert harness.sent[0].partitions == [A, B]

    def test_every_transaction_has_its_own(self, harness):
        producer = harness.reach(TransactionState.ONGOING)
        harness.advance(TIMEOUT_MS - 1)
        harness.end(producer, committed=True)
        harness.add(producer, B)
        harness.advance(TIMEOUT_MS - 1)
        assert harness.state() is TransactionState.ONGOING
        harness.advance(1)
        assert harness.state() is TransactionState.COMPLETE_ABORT

    @pytest.mark.parametrize(
        "state", [state for state in LIVING if state is not TransactionState.ONGOING]
    )
    def test_there_is_none_without_an_open_transaction(self, harness, state):
        harness.reach(state)
        records = len(harness.logged())
        harness.advance(2 * TIMEOUT_MS)
        assert harness.state() is state
        assert len(harness.logged()) - records <= 1

    def test_abort_that_could_not_be_written_is_tried_again(self, harness):
        """Else the last stable offset would be stuck."""
        harness.reach(TransactionState.ONGOING)
        harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
        harness.advance(TIMEOUT_MS + SECOND)
        assert harness.state() is TransactionState.ONGOING
        harness.refuse_appends_with = None
        harness.advance(harness.settings.abort_retry_interval_ms)
        assert harness.state() is TransactionState.COMPLETE_ABORT

    def test_it_goes_on_where_the_coordinator_moved(self, harness):
        harness.reach(TransactionState.ONGOING)
        harness.advance(TIMEOUT_MS - 5 * SECOND)
        other = harness.restarted()
        other.advance(5 * SECOND - 1)
        assert other.state() is TransactionState.ONGOING
        other.advance(1)
        assert other.state() is TransactionState.COMPLETE_ABORT

    def test_it_has_passed_while_there_was_no_coordinator(self, harness):
        harness.reach(TransactionState.ONGOING)
        harness.now_ms += 2 * TIMEOUT_MS
        other = harness.restarted()
        other.advance(0)
        assert other.state() is TransactionState.COMPLETE_ABORT

    def test_clock_that_was_set_back_does_not_prolong_it(self, harness):
        harness.reach(TransactionState.ONGOING)
        harness.now_ms -= DAY
        other = harness.restarted()
        other.advance(TIMEOUT_MS)
        assert other.state() is TransactionState.COMPLETE_ABORT


class TestExpiration:
    """Rule 118."""

    @pytest.fixture
    def harness(self):
        return TransactionHarness(expiration_ms=DAY, expiration_check_interval_ms=MINUTE)

    @pytest.mark.parametrize(
        "state",
        [
            TransactionState.EMPTY,
            TransactionState.COMPLETE_COMMIT,
            TransactionState.COMPLETE_ABORT,
        ],
    )
    def test_id_that_nobody_uses_is_forgotten(self, harness, state):
        harness.reach(state)
        harness.advance(DAY - MINUTE)
        assert harness.state() is state
        harness.advance(2 * MINUTE)
        assert harness.state() is TransactionState.DEAD
        assert harness.logged()[-1] == "DEAD"
        assert harness.restarted().state() is TransactionState.DEAD

    @pytest.mark.parametrize(
        "state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT]
    )
    def test_id_with_unfinished_business_is_not(self, harness, state):
        harness.reach(state)
        harness.advance(2 * DAY)
        assert harness.state() is state

    def test_id_in_use_is_not(self, harness):
        producer = harness.init()
        for _ in range(5):
            harness.advance(DAY - 2 * MINUTE)
            harness.add(producer, A)
            harness.end(producer, committed=True)
        assert harness.state() is TransactionState.COMPLETE_COMMIT

    def test_forgotten_id_begins_anew(self, harness):
        producer = harness.init()
        harness.advance(DAY + MINUTE)
        assert harness.add(producer, A) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert harness.init() == (1001, 0)

    def test_timer_of_a_forgotten_id_does_nothing(self, harness):
        producer = harness.init(timeout_ms=15 * MINUTE)
        harness.add(producer, A)
        harness.end(producer, committed=True)
        harness.settings = harness.shard.settings = TransactionSettings(
            expiration_ms=1, expiration_check_interval_ms=MINUTE
        )
        harness.advance(3 * MINUTE)
        assert harness.state() is TransactionState.DEAD
        harness.advance(15 * MINUTE)
        assert harness.state() is TransactionState.DEAD


class TestRestart:
    """Rule 121: at every state, after every record."""

    @pytest.mark.parametrize("state", LIVING)
    @pytest.mark.parametrize("version", [V1, V2])
    def test_state_is_that_of_before(self, harness, state, version):
        producer = harness.reach(state, version=version)
        other = harness.restarted(delivers=False)
        assert other.transaction().identity == producer
        assert other.state().is_prepared or other.state() is state

    @pytest.mark.parametrize(
        "state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT]
    )
    def test_markers_of_a_prepared_transaction_are_sent_again(self, harness, state):
        harness.reach(state)
        other = harness.restarted()
        (markers,) = other.sent
        assert markers.is_again
        assert markers.committed == (state is TransactionState.PREPARE_COMMIT)
        assert markers.partitions == [A]
        assert other.state().is_complete

    def test_completion_that_was_not_written_yet_is_found_again(self, harness):
        producer = harness.reach(TransactionState.COMPLETE_COMMIT, version=V2)
        other = harness.restarted(delivers=False)
        assert other.state() is TransactionState.PREPARE_COMMIT
        assert other.add(producer, A, version=V2) is ErrorCode.CONCURRENT_TRANSACTIONS
        other.deliver()
        assert other.state() is TransactionState.COMPLETE_COMMIT
        assert other.add(producer, A, version=V2) is ErrorCode.NONE

    def test_other_states_send_nothing(self, harness):
        for number, state in enumerate(LIVING):
            if not state.is_prepared:
                harness.reach(state, name=f"tx-{number}")
        harness.advance(COMPLETION_DELAY_MS)
        assert harness.restarted().sent == []

    def test_every_prefix_of_the_log_can_be_gone_on_from(self, harness):
        """Wherever the log ends, the next producer gets through and nothing stays open."""
        producer = harness.init()
        for version, committed in ((V1, True), (V2, False), (V2, True), (V1, False)):
            harness.add(producer, A, version=version)
            harness.add(producer, B, version=version)
            producer = harness.end(producer, committed=committed, version=version)
        harness.add(producer, A)
        harness.advance(TIMEOUT_MS)
        for batches in range(len(harness.log) + 1):
            other = harness.restarted(batches=batches)
            other.advance(TIMEOUT_MS + COMPLETION_DELAY_MS)
            assert other.state() not in (
                TransactionState.ONGOING,
                TransactionState.PREPARE_COMMIT,
                TransactionState.PREPARE_ABORT,
            )
            successor = other.init()
            assert other.add(successor, A) is ErrorCode.NONE
            assert other.end(successor, committed=True) == successor

    def test_prefixes_replay_to_the_state_of_their_time(self, harness):
        """Hard state is what the log says, no more and no less."""
        states = [dict(harness.shard.transactions)]
        producer = harness.init()
        states.append(dict(harness.shard.transactions))
        for committed in (True, False, True):
            for ask in (
                lambda: harness.add(producer, A, B),
                lambda outcome=committed: harness.end(producer, committed=outcome),
            ):
                ask()
                states.append(dict(harness.shard.transactions))
        assert len(states) == len(harness.log) + 1
        for batches, state in enumerate(states):
            other = harness.restarted(batches=batches, delivers=False)
            assert other.shard.transactions == state


class TestKind:
    def test_shards_belong_to_the_transaction_topic(self):
        kind = TransactionShards(TransactionSettings())
        assert kind.topic == TRANSACTION_STATE_TOPIC
        assert kind.new_shard(3).partition == 3

    def test_transactions_outlive_connections_and_topics(self):
        kind = TransactionShards(TransactionSettings())
        assert kind.event_for_disconnect(1) is None
        assert kind.event_for_deleted_topics(["a"]) is None

    def test_marker_in_its_log_means_nothing(self, harness):
        harness.reach(TransactionState.ONGOING)
        harness.shard.replay_marker(1000, committed=True)
        assert harness.state() is TransactionState.ONGOING


def test_log_has_one_batch_for_each_step(harness):
    harness.reach(TransactionState.COMPLETE_COMMIT)
    sizes = [len([*decode_batch(batch, harness.codec)]) for batch in harness.log]
    assert sizes == [1, 1, 1]
