"""What each version of clients sees of their transactions' coordinator (rules 101-110, 122)."""

import dataclasses

import pytest

from kafkalite.coordinator.shard import partition_for
from kafkalite.txn.states import TransactionState
from kafkalite.txn.transactions import EPOCH_MAX
from kafkalite.types import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkalite.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkalite.wire.messages.end_txn import EndTxnRequest
from kafkalite.wire.messages.find_coordinator import FindCoordinatorRequest
from kafkalite.wire.messages.init_producer_id import InitProducerIdRequest
from tests.txn.clients import GENERATIONS, JAVA_3, JAVA_4, OLD, Producer, batch, consume, produce
from tests.txn.inprocess import BROKER_ID, TOPICS, InProcessBroker

OK = ErrorCode.NONE
FENCED, EPOCH = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH
ID = "tx"


@pytest.fixture
def broker():
    return InProcessBroker()


def init(broker, version=5, *, name=ID, timeout_ms=60_000, expected=(-1, -1), **options):
    return getattr(broker, options.get("how", "ask"))(
        "INIT_PRODUCER_ID",
        version,
        InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected[0],
            producer_epoch=expected[1],
        ),
    )


def add_old(broker, version, producer, partitions, *, name=ID):
    """AddPartitionsToTxn as clients send it; return the codes by partition."""
    topics = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    answer = broker.ask(
        "ADD_PARTITIONS_TO_TXN",
        version,
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                for topic, indexes in topics.items()
            ],
        ),
    )
    return codes_of(answer.results_by_topic_v3_and_below)


def add_new(broker, version, *transactions):
    """AddPartitionsToTxn as brokers send it; return the codes by transactional id."""
    answer = broker.ask(
        "ADD_PARTITIONS_TO_TXN",
        version,
        AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=name,
                    producer_id=producer[0],
                    producer_epoch=producer[1],
                    verify_only=verify_only,
                    topics=[
                        AddPartitionsToTxnTopic(name=topic, partitions=[index])
                        for topic, index in partitions
                    ],
                )
                for name, producer, verify_only, partitions in transactions
            ]
        ),
    )
    assert answer.error_code == OK
    return {r.transactional_id: codes_of(r.topic_results) for r in answer.results_by_transaction}


def codes_of(topic_results):
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.partition_error_code)
        for topic in topic_results
        for partition in topic.results_by_partition
    }


def add_offsets(broker, version, producer, *, group="g", name=ID, how="ask"):
    request = AddOffsetsToTxnRequest(
        transactional_id=name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        group_id=group,
    )
    return ErrorCode(getattr(broker, how)("ADD_OFFSETS_TO_TXN", version, request).error_code)


def end(broker, version, producer, *, committed=True, name=ID, how="ask"):
    request = EndTxnRequest(
        transactional_id=name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=committed,
    )
    return getattr(broker, how)("END_TXN", version, request)


def transaction(broker, name=ID):
    shard = broker.runtime.shard_of(TRANSACTION_STATE_TOPIC, name)
    return shard._completed(name, broker.runtime._now())[0]


def state(broker, name=ID):
    return transaction(broker, name).state


def exhaust(broker, name=ID, epoch=EPOCH_MAX - 1):
    """Put the producer where no epoch is left for it."""
    shard = broker.runtime.shard_of(TRANSACTION_STATE_TOPIC, name)
    shard.transactions[name] = dataclasses.replace(shard.transactions[name], producer_epoch=epoch)
    return shard.transactions[name].identity


class TestFindCoordinator:
    """Rule 101."""

    def find(self, broker, key):
        answer = broker.ask(
            "FIND_COORDINATOR", 4, FindCoordinatorRequest(key_type=1, coordinator_keys=[key])
        )
        return answer.coordinators[0]

    def test_leader_of_the_transactional_ids_partition(self, broker):
        assert self.find(broker, ID).node_id == BROKER_ID

    def test_empty_id_has_none(self, broker):
        assert self.find(broker, "").error_code == ErrorCode.INVALID_REQUEST

    def test_state_is_kept_in_that_partition(self, broker):
        init(broker)
        index = partition_for(ID, TOPICS[TRANSACTION_STATE_TOPIC])
        sizes = [broker.partition(TRANSACTION_STATE_TOPIC, i).log_end_offset for i in (0, 1)]
        assert sizes[index] == 1
        assert sizes[1 - index] == 0


class TestInitProducerId:
    @pytest.mark.parametrize("version", range(6))
    def test_every_version(self, broker, version):
        """Rule 103."""
        for epoch in (0, 1):
            answer = init(broker, version)
            assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (
                OK,
                1000,
                epoch,
            )

    def test_empty_id_is_refused(self, broker):
        assert init(broker, name="").error_code == ErrorCode.INVALID_REQUEST

    @pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
    def test_timeout_out_of_bounds_is_refused(self, broker, timeout_ms):
        """Rule 103: transaction.max.timeout.ms."""
        answer = init(broker, timeout_ms=timeout_ms)
        assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert (answer.producer_id, answer.producer_epoch) == (-1, -1)

    @pytest.mark.parametrize("expected", [(1000, -1), (-1, 0)])
    def test_half_an_identity_is_refused(self, broker, expected):
        """Rule 104."""
        assert init(broker, expected=expected).error_code == ErrorCode.INVALID_REQUEST

    @pytest.mark.parametrize(("version", "code"), [(3, EPOCH), (4, FENCED), (5, FENCED)])
    def test_zombie_is_refused_in_words_that_it_knows(self, broker, version, code):
        """Rules 104, 108."""
        init(broker)
        assert init(broker, version, expected=(999, 0)).error_code == code

    @pytest.mark.parametrize("version", [0, 3, 5])
    def test_open_transaction_has_the_caller_come_again(self, broker, version):
        """Rule 103."""
        Producer(broker).init().send("out", 0, "a")
        assert init(broker, version).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert state(broker) is TransactionState.COMPLETE_ABORT
        answer = init(broker, version)
        assert (answer.error_code, answer.producer_epoch) == (OK, 2)

    def test_new_producer_id_comes_with_the_next_block_if_need_be(self, broker):
        broker.metadata.left = 0
        answer = init(broker, how="wait")
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (OK, 1000, 0)

    def test_exhausted_epochs_bring_a_new_producer_id(self, broker):
        """Rule 105."""
        init(broker)
        exhaust(broker)
        answer = init(broker)
        assert (answer.producer_id, answer.producer_epoch) == (1001, 0)

    def test_coordinator_elsewhere_is_said(self, broker):
        broker.runtime.set_leaderships(TRANSACTION_STATE_TOPIC, 2, {})
        assert init(broker).error_code == ErrorCode.NOT_COORDINATOR


class TestAddPartitions:
    @pytest.mark.parametrize("version", range(4))
    def test_every_version_of_clients(self, broker, version):
        """Rule 106."""
        init(broker)
        wanted = [("out", 0), ("out", 1), ("in", 0)]
        assert add_old(broker, version, (1000, 0), wanted) == dict.fromkeys(wanted, OK)
        assert add_old(broker, version, (1000, 0), wanted[:1]) == {("out", 0): OK}
        assert [*transaction(broker).partitions] == wanted

    @pytest.mark.parametrize("version", range(4))
    def test_one_partition_that_does_not_exist_fails_all(self, broker, version):
        """Rule 106."""
        init(broker)
        codes = add_old(broker, version, (1000, 0), [("out", 0), ("out", 9), ("none", 0)])
        assert codes == {
            ("out", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
            ("out", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert state(broker) is TransactionState.EMPTY

    def test_clients_cannot_add_internal_topics(self, broker):
        init(broker)
        codes = add_old(broker, 3, (1000, 0), [(TRANSACTION_STATE_TOPIC, 0), ("out", 0)])
        assert codes == {
            (TRANSACTION_STATE_TOPIC, 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ("out", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        }

    @pytest.mark.parametrize(
        ("version", "code"), [(0, EPOCH), (1, EPOCH), (2, FENCED), (3, FENCED)]
    )
    def test_zombie_is_refused_in_words_that_it_knows(self, broker, version, code):
        """Rule 108."""
        init(broker)
        init(broker)
        assert add_old(broker, version, (1000, 0), [("out", 0)]) == {("out", 0): code}

    def test_other_refusals(self, broker):
        """Rule 106."""
        unmapped = {("out", 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}
        assert add_old(broker, 3, (1000, 0), [("out", 0)]) == unmapped
        init(broker)
        assert add_old(broker, 3, (7, 0), [("out", 0)]) == unmapped
        invalid = {("out", 0): ErrorCode.INVALID_REQUEST}
        assert add_old(broker, 3, (1000, 0), [("out", 0)], name="") == invalid

    def test_next_transaction_waits_for_the_markers_of_the_last(self, broker):
        """Rule 110."""
        producer = Producer(broker, generation=JAVA_3).init()
        producer.send("out", 0, "a")
        broker.disk.fail("append", "out-0", times=1)
        assert producer.end_once(commit=True) is OK
        assert producer.add("out", 0) is ErrorCode.CONCURRENT_TRANSACTIONS
        broker.settle(for_ms=200)
        assert producer.add("out", 0) is OK
        assert consume(broker, "out") == ["a"]

    @pytest.mark.parametrize("version", [4, 5])
    def test_brokers_add_to_several_transactions(self, broker, version):
        init(broker)
        init(broker, name="other")
        assert add_new(
            broker,
            version,
            (ID, (1000, 0), False, [("out", 0)]),
            ("other", (1001, 0), False, [("out", 1)]),
            ("unknown", (5, 0), False, [("out", 1)]),
            (ID, (1000, 5), False, [("out", 1)]),
        ) == {
            ID: {("out", 1): FENCED},
            "other": {("out", 1): OK},
            "unknown": {("out", 1): ErrorCode.INVALID_PRODUCER_ID_MAPPING},
        }
        assert [*transaction(broker).partitions] == [("out", 0)]
        assert transaction(broker).client_version == 2

    @pytest.mark.parametrize("version", [4, 5])
    def test_brokers_verify_partitions(self, broker, version):
        """Rule 113. In v4 too, as by Kafka: brokers tell their clients what these know."""
        init(broker)
        add_old(broker, 3, (1000, 0), [("out", 0)])
        codes = add_new(broker, version, (ID, (1000, 0), True, [("out", 0), ("out", 1)]))
        assert codes == {ID: {("out", 0): OK, ("out", 1): ErrorCode.TRANSACTION_ABORTABLE}}
        assert [*transaction(broker).partitions] == [("out", 0)]

    @pytest.mark.parametrize("version", [4, 5])
    def test_clients_of_a_cluster_are_refused_what_brokers_ask(self, version):
        broker = InProcessBroker(config={"zookeeper.connect": "elsewhere:2181"})
        init(broker)
        broker.context.is_inter_broker = False
        request = AddPartitionsToTxnRequest(
            transactions=[AddPartitionsToTxnTransaction(transactional_id=ID)]
        )
        answer = broker.ask("ADD_PARTITIONS_TO_TXN", version, request)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert add_old(broker, 3, (1000, 0), [("out", 0)]) == {("out", 0): OK}

    def test_broker_that_is_alone_refuses_nobody(self, broker):
        init(broker)
        broker.context.is_inter_broker = False
        codes = add_new(broker, 5, (ID, (1000, 0), False, [("out", 0)]))
        assert codes == {ID: {("out", 0): OK}}


class TestAddOffsets:
    @pytest.mark.parametrize("version", range(5))
    def test_partition_of_the_group_is_added(self, broker, version):
        """Rule 107."""
        init(broker)
        assert add_offsets(broker, version, (1000, 0), group="some group") is OK
        index = partition_for("some group", TOPICS[CONSUMER_OFFSETS_TOPIC])
        expected = TopicPartition(CONSUMER_OFFSETS_TOPIC, index)
        assert [*transaction(broker).partitions] == [expected]

    @pytest.mark.parametrize(
        ("version", "code"), [(0, EPOCH), (1, EPOCH), (2, FENCED), (4, FENCED)]
    )
    def test_zombie_is_refused_in_words_that_it_knows(self, broker, version, code):
        """Rule 108."""
        init(broker)
        init(broker)
        assert add_offsets(broker, version, (1000, 0)) is code

    def test_other_refusals(self, broker):
        assert add_offsets(broker, 4, (1000, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert add_offsets(broker, 4, (1000, 0), name="") is ErrorCode.INVALID_REQUEST

    def test_name_that_cannot_be_stored_is_refused(self, broker):
        """A request has room for so much only as invalid UTF-8, which is longer once it is read."""
        code = add_offsets(broker, 4, (1000, 0), name="\ufffd" * 20_000, how="wait")
        assert code is ErrorCode.INVALID_REQUEST

    def test_topic_of_offsets_is_made_first(self):
        """Producers ask for this before they look for the group's coordinator."""
        topics = {name: TOPICS[name] for name in TOPICS if name != CONSUMER_OFFSETS_TOPIC}
        broker = InProcessBroker(topics=topics)
        init(broker)

        async def ensure_topic(name):
            broker.create(name, 2)

        broker.topic_creation.ensure_topic = ensure_topic
        assert add_offsets(broker, 4, (1000, 0), how="wait") is OK
        assert next(iter(transaction(broker).partitions)).topic == CONSUMER_OFFSETS_TOPIC

    def test_topic_of_offsets_that_cannot_be_made_is_asked_for_again(self):
        """What is wrong with its settings would end a Java producer for good."""
        topics = {name: TOPICS[name] for name in TOPICS if name != CONSUMER_OFFSETS_TOPIC}
        broker = InProcessBroker(topics=topics)
        init(broker)

        async def ensure_topic(name):
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "3 of 1")

        broker.topic_creation.ensure_topic = ensure_topic
        code = add_offsets(broker, 4, (1000, 0), how="wait")
        assert code is ErrorCode.COORDINATOR_NOT_AVAILABLE


class TestEndTxn:
    @pytest.mark.parametrize("version", range(6))
    @pytest.mark.parametrize("committed", [True, False])
    def test_every_version(self, broker, version, committed):
        """Rules 109, 122."""
        init(broker)
        add_old(broker, 3, (1000, 0), [("out", 0)])
        answer = end(broker, version, (1000, 0), committed=committed)
        assert answer.error_code == OK
        expected = (1000, 1) if version >= 5 else (-1, -1)
        assert (answer.producer_id, answer.producer_epoch) == expected
        done = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
        assert state(broker) is done

    def test_retry_is_answered_alike(self, broker):
        """Rules 109, 122."""
        init(broker)
        add_old(broker, 3, (1000, 0), [("out", 0)])
        first, second = (end(broker, 5, (1000, 0)) for _ in range(2))
        assert first == second
        add_old(broker, 3, (1000, 1), [("out", 0)])
        assert [end(broker, 4, (1000, 1)).error_code for _ in range(2)] == [OK, OK]

    @pytest.mark.parametrize(
        ("version", "code"), [(0, EPOCH), (1, EPOCH), (2, FENCED), (4, FENCED), (5, FENCED)]
    )
    def test_zombie_is_refused_in_words_that_it_knows(self, broker, version, code):
        """Rule 108."""
        init(broker)
        init(broker)
        init(broker)
        answer = end(broker, version, (1000, 0))
        assert answer.error_code == code
        assert (answer.producer_id, answer.producer_epoch) == (-1, -1)

    def test_wrong_state_changes_nothing(self, broker):
        """Rule 109."""
        init(broker)
        for version in (3, 5):
            code = end(broker, version, (1000, 0)).error_code
            assert code == ErrorCode.INVALID_TXN_STATE
        assert state(broker) is TransactionState.EMPTY

    def test_other_refusals(self, broker):
        answer = end(broker, 5, (1000, 0))
        assert answer.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert end(broker, 5, (1000, 0), name="").error_code == ErrorCode.INVALID_REQUEST

    @pytest.mark.parametrize("left", [1000, 0])
    def test_exhausted_epochs_bring_a_new_producer_id(self, broker, left):
        """Rules 105, 122."""
        init(broker)
        producer = exhaust(broker)
        add_old(broker, 3, producer, [("out", 0)])
        broker.metadata.left = left
        answer = end(broker, 5, producer, how="wait")
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (OK, 1001, 0)

    def test_outcome_is_decided_though_a_marker_cannot_be_written(self, broker):
        """Rules 109, 110: the answer comes when the decision is in the log."""
        producer = Producer(broker, generation=JAVA_3).init()
        producer.send("out", 0, "a")
        producer.send("out", 1, "b")
        broker.disk.fail("append", "out-1", times=2)
        assert producer.end_once(commit=True) is OK
        assert state(broker) is TransactionState.PREPARE_COMMIT
        assert (consume(broker, "out", 0), consume(broker, "out", 1)) == (["a"], [])
        assert producer.end_once(commit=True) is ErrorCode.CONCURRENT_TRANSACTIONS
        broker.settle(for_ms=500)
        assert consume(broker, "out", 1) == ["b"]
        assert producer.end_once(commit=True) is OK


class TestCost:
    @pytest.mark.parametrize("generation", GENERATIONS)
    def test_transaction_of_one_record_costs_four_appends(self, broker, generation):
        """The partition added, the record, the decision, the marker; and no task switch."""
        producer = Producer(broker, generation=generation).init()
        producer.send("out", 0, "first")
        producer.commit()
        before = broker.appends()
        for number in range(10):
            producer.send("out", 0, f"v{number}")
            producer.commit()
        assert broker.appends() - before == 40

    def test_partitions_of_one_request_are_added_at_once(self, broker):
        """Second protocol: one record of the coordinator for each Produce request."""
        producer = Producer(broker, generation=JAVA_4).init()
        before = broker.partition(TRANSACTION_STATE_TOPIC, partition_for(ID, 2)).log_end_offset
        codes = produce(
            broker,
            12,
            {("out", i): batch(["a"], producer.identity, 0) for i in (0, 1)},
        )
        assert set(codes.values()) == {OK}
        after = broker.partition(TRANSACTION_STATE_TOPIC, partition_for(ID, 2)).log_end_offset
        assert after - before == 1


@pytest.mark.parametrize("generation", [OLD, JAVA_3, JAVA_4])
def test_clients_of_both_protocols_side_by_side(broker, generation):
    """Rule 122."""
    producers = [Producer(broker, f"tx-{n}", g).init() for n, g in enumerate(GENERATIONS)]
    for number, producer in enumerate(producers):
        producer.send("out", 0, f"v{number}")
    for producer in producers:
        producer.end(commit=producer.generation == generation)
    expected = [f"v{n}" for n, g in enumerate(GENERATIONS) if g == generation]
    assert consume(broker, "out") == expected
