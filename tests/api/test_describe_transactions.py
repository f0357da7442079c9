"""What operators see of transactions: DescribeTransactions, ListTransactions, DescribeProducers."""

import pytest

from kafkalite.txn.transactions import V2
from kafkalite.types import TRANSACTION_STATE_TOPIC
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.api_versions import ApiVersionsRequest
from kafkalite.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kafkalite.wire.messages.describe_transactions import DescribeTransactionsRequest
from kafkalite.wire.messages.list_transactions import ListTransactionsRequest
from tests.txn.clients import JAVA_3, Producer
from tests.txn.inprocess import InProcessBroker

OK = ErrorCode.NONE


@pytest.fixture
def broker():
    broker = InProcessBroker()
    Producer(broker, "idle").init()
    producer = broker.producer = Producer(broker, "busy", JAVA_3).init()
    producer.send("out", 0, "a", "b")
    producer.send("out", 1, "c")
    broker.advance(5_000)
    done = Producer(broker, "done").init()
    done.send("in", 0, "d")
    done.commit()
    return broker


def describe(broker, *names):
    request = DescribeTransactionsRequest(transactional_ids=[*names])
    return broker.ask("DESCRIBE_TRANSACTIONS", 0, request).transaction_states


def list_all(broker, version=2, **filters):
    return broker.ask("LIST_TRANSACTIONS", version, ListTransactionsRequest(**filters))


def names(answer):
    assert answer.error_code == OK
    return sorted(state.transactional_id for state in answer.transaction_states)


class TestDescribe:
    def test_open_transaction(self, broker):
        (found,) = describe(broker, "busy")
        assert (found.error_code, found.transaction_state) == (OK, "Ongoing")
        assert (found.producer_id, found.producer_epoch) == broker.producer.identity
        assert found.transaction_timeout_ms == 60_000
        assert found.transaction_start_time_ms == broker.clock.wall_ms() - 5_000
        assert [(topic.topic, topic.partitions) for topic in found.topics] == [("out", [0, 1])]

    def test_each_id_is_answered_by_itself(self, broker):
        states = describe(broker, "idle", "unknown", "", "done")
        assert [state.transactional_id for state in states] == ["idle", "unknown", "", "done"]
        assert [ErrorCode(state.error_code) for state in states] == [
            OK,
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            ErrorCode.INVALID_REQUEST,
            OK,
        ]
        assert [state.transaction_state for state in states] == ["Empty", "", "", "CompleteCommit"]

    def test_coordinator_elsewhere_is_said(self, broker):
        broker.runtime.set_leaderships(TRANSACTION_STATE_TOPIC, 2, {})
        assert describe(broker, "busy")[0].error_code == ErrorCode.NOT_COORDINATOR


class TestList:
    @pytest.mark.parametrize("version", [0, 1, 2])
    def test_every_version(self, broker, version):
        assert names(list_all(broker, version)) == ["busy", "done", "idle"]

    def test_by_state(self, broker):
        assert names(list_all(broker, state_filters=["Ongoing", "Empty"])) == ["busy", "idle"]

    def test_states_that_do_not_exist_are_named(self, broker):
        answer = list_all(broker, state_filters=["Ongoing", "Odd"])
        assert (names(answer), answer.unknown_state_filters) == (["busy"], ["Odd"])
        answer = list_all(broker, state_filters=["Odd", "Even"])
        assert (names(answer), answer.unknown_state_filters) == ([], ["Odd", "Even"])

    def test_by_producer_id(self, broker):
        found = list_all(broker, producer_id_filters=[broker.producer.identity[0], 7])
        assert names(found) == ["busy"]

    def test_by_duration(self, broker):
        """KIP-994."""
        ongoing = {"state_filters": ["Ongoing"]}
        assert names(list_all(broker, duration_filter=4_999, **ongoing)) == ["busy"]
        assert names(list_all(broker, duration_filter=5_000, **ongoing)) == []

    def test_by_pattern(self, broker):
        """KIP-1152."""
        assert names(list_all(broker, transactional_id_pattern="(busy|idle)")) == ["busy", "idle"]
        assert names(list_all(broker, transactional_id_pattern="")) == ["busy", "done", "idle"]

    def test_pattern_that_is_none_is_refused(self, broker):
        answer = list_all(broker, transactional_id_pattern="(")
        assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION

    def test_loading_coordinator_is_said(self, broker):
        for index in (0, 1):
            partition = broker.partition(TRANSACTION_STATE_TOPIC, index)
            broker.replicas.all[partition.topic_partition] = type(partition)(
                partition.log, leader_epoch=1
            )
        broker._lead()
        assert list_all(broker).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_describe_producers_shows_the_open_transaction(broker):
    """KIP-664: how `kafka-transactions find-hanging` knows them."""
    topics = [
        TopicRequest(name="out", partition_indexes=[0]),
        TopicRequest(name="in", partition_indexes=[0]),
    ]
    answer = broker.ask("DESCRIBE_PRODUCERS", 0, DescribeProducersRequest(topics=topics))
    (busy,) = answer.topics[0].partitions[0].active_producers
    assert (busy.producer_id, busy.producer_epoch) == broker.producer.identity
    assert (busy.current_txn_start_offset, busy.last_sequence) == (0, 1)
    (done,) = answer.topics[1].partitions[0].active_producers
    assert done.current_txn_start_offset == -1
    assert (done.producer_epoch, done.coordinator_epoch) == (1, 0)


@pytest.mark.parametrize(("version", "names_it"), [(0, False), (2, False), (3, False), (4, True)])
def test_second_protocol_is_advertised(broker, version, names_it):
    """Rule 122. A feature whose least version is 0 is unreadable to clients before v4."""
    answer = broker.ask(
        "API_VERSIONS",
        version,
        ApiVersionsRequest(client_software_name="test", client_software_version="1"),
    )
    supported = [f for f in answer.supported_features if f.name == "transaction.version"]
    finalized = [f for f in answer.finalized_features if f.name == "transaction.version"]
    assert [(f.min_version, f.max_version) for f in supported] == ([(0, V2)] if names_it else [])
    levels = [(f.min_version_level, f.max_version_level) for f in finalized]
    assert levels == ([(V2, V2)] if version >= 3 else [])
    assert (answer.finalized_features_epoch >= 0) == (version >= 3)
