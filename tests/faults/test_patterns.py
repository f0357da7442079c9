"""Faults as other projects' tests make them, said in JSON over HTTP.

The patterns are those of librdkafka's mock cluster (errors pushed for an API), kfake's control
functions (an answer, a closed connection or a delay for a key), sarama's mock broker (a sequence
of answers), and of Apache Kafka: its mock client (answers prepared in an order) and its proxy
(a connection closed after the request was applied, an error for the clients of some name).
"""

import json
import urllib.request

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from kafkalite.testing import Broker

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shared_broker():
    with Broker(http=True) as broker:
        yield broker


@pytest.fixture
def broker(shared_broker):
    call(shared_broker, "DELETE", "/faults")
    shared_broker.reset()
    shared_broker.create_topic("orders", partitions=2)
    yield shared_broker
    call(shared_broker, "DELETE", "/faults")


def call(broker, method, path, body=None):
    request = urllib.request.Request(
        f"{broker.http_url}/api/v1/control{path}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def fault(broker, **said):
    """Add a rule; return its path."""
    return f"/faults/{call(broker, 'POST', '/faults', said)['id']}"


def hits(broker, path, *, wait=0):
    return call(broker, "GET", f"{path}?wait_hits={wait}&timeout_s=20")["hits"]


def producer(broker, **config):
    return Producer({"bootstrap.servers": broker.bootstrap, "retry.backoff.ms": 20, **config})


def consumer(broker, group="g", **config):
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
            "retry.backoff.ms": 50,
            **config,
        }
    )


def send(client, value=b"x", *, topic="orders", partition=0):
    failures = []
    client.produce(topic, value, partition=partition, on_delivery=lambda e, _: failures.append(e))
    assert client.flush(20) == 0
    return failures[0]


def first(client):
    message = client.poll(20)
    assert message is not None
    assert message.error() is None
    return message


def test_errors_pushed_for_produce_are_persisted_in_the_end(broker):
    """librdkafka: three KAFKA_STORAGE_ERROR for Produce, and the record is there once."""
    path = fault(broker, api="Produce", error="KAFKA_STORAGE_ERROR", times=3)
    assert send(producer(broker, **{"enable.idempotence": True})) is None
    assert hits(broker, path) == 3
    assert len(broker.records("orders")) == 1


def test_a_coordinator_that_is_looked_for_four_times(broker):
    """librdkafka: COORDINATOR_NOT_AVAILABLE for FindCoordinator, asked again with a backoff."""
    broker.produce("orders", b"x", partition=0)
    path = fault(broker, api="FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", times=4)
    client = consumer(broker)
    client.subscribe(["orders"])
    assert first(client).value() == b"x"
    assert hits(broker, path) == 4
    client.close()


def test_offsets_that_cannot_be_fetched_for_a_moment(broker):
    """librdkafka: a coordinator's error for OffsetFetch before partitions are assigned by hand."""
    broker.produce("orders", b"x", partition=0)
    said = {"api": "OffsetFetch", "group": "g", "error": "COORDINATOR_LOAD_IN_PROGRESS"}
    path = fault(broker, **said, times=1)
    client = consumer(broker)
    client.assign([TopicPartition("orders", 0)])
    assert first(client).value() == b"x"
    assert hits(broker, path) == 1
    client.close()


def test_offsets_of_a_partition_that_are_asked_for_again(broker):
    """librdkafka: errors for ListOffsets, until the leader answers."""
    broker.produce("orders", b"x", partition=0)
    path = fault(broker, api="ListOffsets", topic="orders", error="LEADER_NOT_AVAILABLE", times=3)
    client = consumer(broker)
    client.assign([TopicPartition("orders", 0)])
    assert first(client).value() == b"x"
    assert hits(broker, path) == 3
    client.close()


def test_one_topic_of_many_cannot_be_written(broker):
    """kfake: a control function that looks for a topic in Produce, and refuses that alone."""
    broker.create_topic("broken")
    path = fault(broker, api="Produce", topic="broken", error="INVALID_RECORD")
    client = producer(broker)
    assert send(client, topic="orders") is None
    assert send(client, topic="broken").name() == "INVALID_RECORD"
    assert hits(broker, path) == 1
    assert broker.records("broken") == []
    assert len(broker.records("orders")) == 1


def test_fetches_that_fail_until_the_test_says_so(broker):
    """kfake: every Fetch ends with a closed connection; a service that replays never gets ready."""
    broker.produce("orders", b"x", partition=0)
    path = fault(broker, api="Fetch", disconnect=True)
    client = consumer(broker, **{"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50})
    client.assign([TopicPartition("orders", 0, 0)])
    assert hits(broker, path, wait=2) >= 2
    assert client.poll(0) is None
    call(broker, "DELETE", path)
    assert first(client).value() == b"x"
    client.close()


def test_loads_that_are_in_flight_for_longer(broker):
    """kfake: ListOffsets and OffsetForLeaderEpoch sleep, while others are served."""
    broker.produce("orders", b"x", partition=0)
    path = fault(broker, api=["ListOffsets", "OffsetForLeaderEpoch"], delay_s=0.2)
    client = consumer(broker)
    client.assign([TopicPartition("orders", 0)])
    assert send(producer(broker), b"y") is None
    assert [first(client).value(), first(client).value()] == [b"x", b"y"]
    assert hits(broker, path) >= 1
    client.close()


def test_a_commit_whose_first_answer_never_comes(broker):
    """kfake: the first OffsetCommit is failed by hand, the second one is the cluster's own."""
    broker.produce("orders", b"x", partition=0)
    client = consumer(broker, **{"retry.backoff.ms": 100})
    client.subscribe(["orders"])
    message = first(client)
    path = fault(broker, api="OffsetCommit", group="g", disconnect=True, once=True)
    client.commit(message, asynchronous=False)
    assert hits(broker, path) == 1
    broker.wait_committed("g", "orders", 0)
    client.close()


def test_a_sequence_of_answers_to_a_commit(broker):
    """sarama: a mock sequence, loading and then fine: one retry."""
    broker.produce("orders", b"x", partition=0)
    client = consumer(broker)
    client.subscribe(["orders"])
    message = first(client)
    path = fault(broker, api="OffsetCommit", sequence=["COORDINATOR_LOAD_IN_PROGRESS", "ok"])
    client.commit(message, asynchronous=False)
    assert hits(broker, path) == 2
    assert len(broker.requests("OffsetCommit")) == 2
    client.close()


def test_a_topic_that_brokers_do_not_know_of_yet(broker):
    """kfake: after CreateTopics the next metadata say that the topic is unknown."""
    broker.create_topic("new")
    path = fault(broker, api="Metadata", topic="new", error="UNKNOWN_TOPIC_OR_PARTITION", times=3)
    assert (
        send(producer(broker, **{"topic.metadata.propagation.max.ms": 20_000}), topic="new") is None
    )
    assert hits(broker, path) == 3


def test_a_producer_whose_coordinator_loads_and_then_moves(broker):
    """Kafka's mock client: InitProducerId answered with two errors, and then by the cluster."""
    answers = ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "ok"]
    path = fault(broker, api="InitProducerId", transactional_id="tx", sequence=answers)
    client = producer(broker, **{"transactional.id": "tx"})
    client.init_transactions(20)
    assert hits(broker, path) == 3
    client.begin_transaction()
    assert send(client) is None
    client.commit_transaction(20)
    assert len(broker.records("orders", read_committed=True)) == 1


def test_a_commit_that_was_applied_before_its_connection_closed(broker):
    """Kafka's proxy: EndTxn reaches the broker, and its answer nobody."""
    client = producer(broker, **{"transactional.id": "tx"})
    client.init_transactions(20)
    client.begin_transaction()
    assert send(client) is None
    path = fault(broker, api="EndTxn", transactional_id="tx", lose_reply=True, once=True)
    client.commit_transaction(20)
    assert hits(broker, path) == 1
    assert len(broker.requests("EndTxn")) == 2
    assert len(broker.records("orders", read_committed=True)) == 1


def test_a_restore_that_is_out_of_range_begins_again(broker):
    """Kafka's proxy: OFFSET_OUT_OF_RANGE for the consumer of that name, which has no reset."""
    for value in (b"1", b"2", b"3"):
        broker.produce("orders", value, partition=0)
    said = {"api": "Fetch", "client_id": "*-restore-consumer", "topic": "orders", "partition": 0}
    path = fault(broker, **said, error="OFFSET_OUT_OF_RANGE", once=True)
    other = consumer(broker, **{"client.id": "app-consumer"})
    other.assign([TopicPartition("orders", 0, 0)])
    assert [first(other).value() for _ in range(3)] == [b"1", b"2", b"3"]
    other.close()
    assert hits(broker, path) == 0
    restore = consumer(
        broker, **{"client.id": "app-restore-consumer", "auto.offset.reset": "error"}
    )
    restore.assign([TopicPartition("orders", 0, 1)])  # its checkpoint
    told = restore.poll(20)
    assert told.error().code() == KafkaError._AUTO_OFFSET_RESET
    restore.assign([TopicPartition("orders", 0, 0)])  # without the state that it had
    assert [first(restore).value() for _ in range(3)] == [b"1", b"2", b"3"]
    assert hits(broker, path) == 1
    restore.close()
