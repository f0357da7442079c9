"""What operators are told of transactions (KIP-664, KIP-994, KIP-1152)."""

import re

import pytest

from kafkalite.txn.states import TransactionState
from kafkalite.wire.errors import KafkaError
from tests.txn.harness import ID, SECOND, TIMEOUT_MS, A, B, C, TransactionHarness


@pytest.fixture
def harness():
    return TransactionHarness()


class TestDescribe:
    def test_open_transaction(self, harness):
        producer = harness.init()
        harness.advance(SECOND)
        harness.add(producer, A, B, C)
        found = harness.describe()
        assert found.transactional_id == ID
        assert found.transaction_state == "Ongoing"
        assert (found.producer_id, found.producer_epoch) == producer
        assert found.transaction_timeout_ms == TIMEOUT_MS
        assert found.transaction_start_time_ms == harness.now.wall_ms
        assert [(t.topic, t.partitions) for t in found.topics] == [("a", [0, 1]), ("c", [0])]

    def test_id_without_a_transaction(self, harness):
        harness.init()
        found = harness.describe()
        assert (found.transaction_state, found.topics) == ("Empty", [])
        assert found.transaction_start_time_ms == -1

    def test_transaction_whose_markers_are_written_is_complete(self, harness):
        """Whether the log says so yet or not."""
        harness.reach(TransactionState.COMPLETE_COMMIT)
        assert harness.logged()[-1] == "PREPARE_COMMIT"
        assert harness.describe().transaction_state == "CompleteCommit"

    def test_unknown_id(self, harness):
        with pytest.raises(KafkaError, match="TRANSACTIONAL_ID_NOT_FOUND"):
            harness.describe()


class TestList:
    @pytest.fixture
    def harness(self):
        harness = TransactionHarness()
        harness.reach(TransactionState.EMPTY, name="idle")
        harness.reach(TransactionState.ONGOING, name="old")
        harness.advance(10 * SECOND)
        harness.reach(TransactionState.ONGOING, name="young")
        harness.reach(TransactionState.COMPLETE_ABORT, name="done")
        return harness

    def test_everything(self, harness):
        assert harness.list() == ["idle", "old", "young", "done"]

    def test_by_state(self, harness):
        assert harness.list(states=frozenset({TransactionState.ONGOING})) == ["old", "young"]
        assert harness.list(states=frozenset({TransactionState.COMPLETE_ABORT})) == ["done"]

    def test_by_producer_id(self, harness):
        assert harness.list(producer_ids=frozenset({1000, 1003, 5})) == ["idle", "done"]

    def test_by_duration(self, harness):
        harness.advance(5 * SECOND)
        assert "young" not in harness.list(longer_than_ms=5 * SECOND)
        assert "old" in harness.list(longer_than_ms=5 * SECOND)
        assert "young" in harness.list(longer_than_ms=5 * SECOND - 1)

    def test_by_pattern_of_the_whole_id(self, harness):
        assert harness.list(pattern=re.compile("o.*")) == ["old"]
        assert harness.list(pattern=re.compile("o")) == []

    def test_by_everything_at_once(self, harness):
        ongoing = frozenset({TransactionState.ONGOING})
        assert harness.list(states=ongoing, producer_ids=frozenset({1002})) == ["young"]
        assert harness.list(states=ongoing, pattern=re.compile("done")) == []
