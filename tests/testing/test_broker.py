"""A broker in this process, used by a real client and by its own methods."""

import contextlib
import threading

import pytest
import trio
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

import kafkalite
from kafkalite.client.admin import delete_records
from kafkalite.client.cluster import Client
from kafkalite.config import KafkaliteConfigError
from kafkalite.network.listeners import BindError
from kafkalite.testing import Broker
from kafkalite.testing.journal import find_api
from kafkalite.testing.setting_text import setting_text
from kafkalite.types import TopicPartition
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.group.streams.harness import Thread, task_lists
from tests.group.streams.speaking import heartbeat, join
from tests.group.streams.topologies import subtopology
from tests.raw_client import RawClient


@pytest.fixture(scope="module")
def shared_broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(shared_broker):
    shared_broker.reset()
    return shared_broker


@contextlib.contextmanager
def consuming(broker, group, *, topic="orders", client_id="c", **config):
    """A consumer that polls in a thread of its own; yields the list of values it has got."""
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group,
        "client.id": client_id,
        **config,
    }
    if "group.protocol" not in config:
        settings["heartbeat.interval.ms"] = 100  # with the other it is the broker's to say
    values = []
    changed = threading.Condition()
    stopping = threading.Event()

    def poll():
        consumer = Consumer(settings)
        consumer.subscribe([topic])
        while not stopping.is_set():
            message = consumer.poll(0.02)
            if message is not None and message.error() is None:
                with changed:
                    values.append(message.value())
                    changed.notify_all()
        consumer.close()

    def wait_for(count):
        with changed:
            assert changed.wait_for(lambda: len(values) >= count, timeout=10)
        return values

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield wait_for
    finally:
        stopping.set()
        thread.join()


class TestLife:
    def test_brokers_run_side_by_side(self):
        with Broker() as first, Broker() as second:
            assert first.port != second.port
            first.create_topic("only-here")
            assert (first.topics(), second.topics()) == (["only-here"], [])

    def test_shortcut_is_the_same_class(self):
        assert kafkalite.Broker is Broker

    def test_data_directory_is_kept_and_found_again(self, tmp_path):
        with Broker(data_dir=tmp_path) as broker:
            broker.produce("orders", b"v", key=b"k")
        with Broker(data_dir=tmp_path) as broker:
            assert [(r.key, r.value) for r in broker.records("orders")] == [(b"k", b"v")]

    def test_settings_are_taken_by_kafkas_names(self):
        config = {
            "num.partitions": 3,
            "auto.create.topics.enable": True,
            "log.cleanup.policy": ["compact", "delete"],
        }
        with Broker(config=config) as broker:
            broker.produce("orders", b"v", key=b"k")
            assert len(broker.server.services.replicas.partitions_of("orders")) == 3

    def test_wrong_setting_is_raised_where_it_was_given(self):
        with pytest.raises(KafkaliteConfigError, match=r"num\.partitions"):
            Broker(config={"num.partitions": "many"}).start()

    def test_taken_port_is_raised_and_leaves_nothing_behind(self, broker):
        with pytest.raises(BindError, match=str(broker.port)):
            Broker(port=broker.port).start()

    def test_broker_that_stopped_says_so(self):
        broker = Broker()
        with pytest.raises(RuntimeError, match="not running"):
            broker.topics()
        with broker:
            assert repr(broker) == f"<kafkalite.testing.Broker at {broker.bootstrap}>"
        assert repr(broker) == "<kafkalite.testing.Broker not running>"
        broker.stop()
        for use in (broker.topics, broker.reset, broker.start):
            with pytest.raises(RuntimeError, match=r"not running|started already"):
                use()

    def test_who_waits_is_told_that_it_was_stopped(self):
        broker = Broker().start()
        waits = threading.Event()
        raised = []

        async def waiting(*_):
            waits.set()
            await trio.sleep_forever()

        broker._wait_group = waiting

        def wait():
            try:
                broker.wait_stable("g", timeout_s=60)
            except RuntimeError as error:
                raised.append(str(error))

        thread = threading.Thread(target=wait)
        thread.start()
        assert waits.wait(10)
        broker.stop()
        thread.join()
        assert raised == ["the broker was stopped meanwhile"]

    def test_broker_that_died_is_told_of_when_it_is_stopped(self):
        broker = Broker().start()

        def die():
            raise AssertionError("a bug")

        broker._token.run_sync_soon(die)
        broker._thread.join()
        with pytest.raises(RuntimeError, match="ended by itself"):
            broker.stop()


class TestTopics:
    def test_topic_is_there_for_clients_at_once(self, broker):
        broker.create_topic("orders", partitions=3, config={"retention.ms": 60_000})
        metadata = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10)
        assert len(metadata.topics["orders"].partitions) == 3

    def test_refusals_are_raised(self, broker):
        broker.create_topic("orders")
        with pytest.raises(KafkaError) as caught:
            broker.create_topic("orders")
        assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        with pytest.raises(KafkaError) as caught:
            broker.delete_topic("nope")
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_name_can_be_used_again_at_once(self, broker):
        broker.produce("orders", b"old")
        broker.delete_topic("orders")
        broker.create_topic("orders")
        assert broker.records("orders") == []

    def test_reset_forgets_everything(self, broker):
        broker.produce("orders", b"v")
        with consuming(broker, "g", **{"auto.offset.reset": "earliest"}) as wait_for:
            wait_for(1)
        assert broker.requests("JoinGroup")
        broker.reset()
        assert broker.topics() == []
        assert broker.requests("JoinGroup") == []
        with pytest.raises(TimeoutError, match=r"no coordinator yet|does not exist"):
            broker.wait_stable("g", timeout_s=0.01)

    @pytest.mark.slow
    def test_consumer_that_lives_through_a_reset_joins_again(self, broker):
        broker.produce("orders", b"before")
        config = {"auto.offset.reset": "earliest", "topic.metadata.refresh.interval.ms": 100}
        with consuming(broker, "g", **config) as wait_for:
            wait_for(1)
            broker.reset()
            broker.produce("orders", b"after")
            assert wait_for(2) == [b"before", b"after"]


class TestRecords:
    def test_what_a_client_wrote_is_decoded(self, broker):
        producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "zstd"})
        producer.produce("orders", b"v", b"k", headers=[("a", b"1"), ("n", None)], timestamp=77)
        producer.produce("orders", None)
        producer.flush(10)
        first, second = broker.records("orders")
        assert (first.topic, first.partition, first.offset, first.timestamp) == ("orders", 0, 0, 77)
        assert (first.key, first.value, first.headers) == (b"k", b"v", [("a", b"1"), ("n", None)])
        assert (second.offset, second.key, second.value, second.headers) == (1, None, None, [])

    def test_partition_of_a_key_is_that_of_javas_client(self, broker):
        broker.create_topic("orders", partitions=10)
        broker.produce("orders", b"v", key=b"foobar")
        expected = (-790332482 & 0x7FFFFFFF) % 10
        assert [r.partition for r in broker.records("orders")] == [expected]
        assert broker.records("orders", partition=(expected + 1) % 10) == []

    def test_offsets_are_told(self, broker):
        broker.create_topic("orders", partitions=2)
        assert [broker.produce("orders", b"v", partition=1) for _ in range(3)] == [0, 1, 2]
        assert [r.offset for r in broker.records("orders", partition=1)] == [0, 1, 2]
        assert [r.offset for r in broker.records("orders", read_committed=True)] == [0, 1, 2]

    def test_open_and_aborted_transactions_can_be_left_out(self, broker):
        settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": "t"}
        producer = Producer(settings)
        producer.init_transactions(10)
        for value, end in [
            (b"aborted", producer.abort_transaction),
            (b"committed", producer.commit_transaction),
            (b"open", producer.flush),
        ]:
            producer.begin_transaction()
            producer.produce("orders", value)
            producer.flush(10)
            end()
        values = [record.value for record in broker.records("orders")]
        assert values == [b"aborted", b"committed", b"open"]
        values = [record.value for record in broker.records("orders", read_committed=True)]
        assert values == [b"committed"]
        producer.abort_transaction()

    @pytest.mark.parametrize("partition", [None, 7])
    def test_what_is_not_there_is_refused(self, broker, partition):
        with pytest.raises(KafkaError) as caught:
            broker.records("nope", partition)
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TestWaiting:
    def test_nothing_is_lost_by_a_consumer_that_starts_at_latest(self, broker):
        broker.create_topic("orders", partitions=3)
        with consuming(broker, "g", **{"auto.offset.reset": "latest"}) as wait_for:
            broker.wait_assigned("g")
            for partition in range(3):
                broker.produce("orders", b"%d" % partition, partition=partition)
            assert sorted(wait_for(3)) == [b"0", b"1", b"2"]

    @pytest.mark.slow
    def test_second_member_is_waited_for(self, broker):
        broker.create_topic("orders", partitions=2)
        with consuming(broker, "g", client_id="a") as first:
            broker.wait_assigned("g", 1)
            with consuming(broker, "g", client_id="b") as second:
                broker.wait_assigned("g", 2)
                for partition in range(2):
                    broker.produce("orders", b"v", partition=partition)
                assert len(first(1)) == len(second(1)) == 1

    def test_consumers_of_kafka_4_are_waited_for_too(self, broker):
        """KIP-848: the broker assigns, and nobody tells when a member reads."""
        broker.create_topic("orders", partitions=2)
        config = {"group.protocol": "consumer", "auto.offset.reset": "latest"}
        with consuming(broker, "g", client_id="a", **config) as first:
            broker.wait_assigned("g", 1)
            for partition in range(2):
                broker.produce("orders", b"%d" % partition, partition=partition)
            assert sorted(first(2)) == [b"0", b"1"]
            with consuming(broker, "g", client_id="b", **config) as second:
                broker.wait_assigned("g", 2)
                broker.wait_stable("g")
                for partition in range(2):
                    broker.produce("orders", b"v", partition=partition)
                assert (len(first(3)), len(second(1))) == (3, 1)
                with pytest.raises(TimeoutError, match=r"Stable at epoch 3; members: a \(orders-"):
                    broker.wait_assigned("g", 3, timeout_s=0.01)
            broker.wait_assigned("g", 1)

    def test_commit_of_all_that_is_there_is_waited_for(self, broker):
        broker.create_topic("orders", partitions=2)
        for _ in range(3):
            broker.produce("orders", b"v", partition=1)
        config = {"auto.offset.reset": "earliest", "auto.commit.interval.ms": 20}
        with consuming(broker, "g", **config):
            broker.wait_committed("g", "orders")
            broker.wait_committed("g", "orders", 1, offset=3)
            with pytest.raises(
                TimeoutError, match=r"has not committed orders-0 up to 1 after 0.01 s"
            ):
                broker.wait_committed("g", "orders", 0, offset=1, timeout_s=0.01)
            with pytest.raises(TimeoutError, match=r"orders-1 up to 4 .* committed: orders-1 at 3"):
                broker.wait_committed("g", "orders", 1, offset=4, timeout_s=0.01)

    def test_group_is_described_when_it_does_something_else(self, broker):
        broker.create_topic("orders")
        with consuming(broker, "g", client_id="me"):
            broker.wait_stable("g")
            with pytest.raises(
                TimeoutError,
                match=r"no 2 members that read after 0.01 s: group 'g' is Stable in "
                r"generation \d+; members: me \(orders-0\); committed: nothing",
            ):
                broker.wait_assigned("g", 2, timeout_s=0.01)
            with pytest.raises(
                TimeoutError, match=r"group 'other' (does not exist|has no coordinator)"
            ):
                broker.wait_stable("other", timeout_s=0.01)

    def test_streams_threads_are_waited_for_until_they_know_where_to_read(self, broker):
        broker.create_topic("in1", partitions=2)
        a = Thread("a", topology=(subtopology("0", "in1"),))
        with RawClient(broker, client_id="me") as client:
            join(client, "app", a)
            broker.wait_stable("app")
            has = {"active_tasks": task_lists("0_0 0_1"), "standby_tasks": [], "warmup_tasks": []}
            told = (
                r"no 1 members that read .* group 'app' is Stable in epoch 2; members: me \(0_0 0_1"
            )
            with pytest.raises(TimeoutError, match=told):
                broker.wait_assigned("app", timeout_s=0.01)
            heartbeat(client, "app", a, **has)
            with pytest.raises(TimeoutError):
                broker.wait_assigned("app", timeout_s=0.01)
            partitions = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in (0, 1)]
            topics = [ListOffsetsTopic(name="in1", partitions=partitions)]
            client.ask(LIST_OFFSETS, 7, ListOffsetsRequest(replica_id=-1, topics=topics))
            broker.wait_assigned("app")
            with pytest.raises(TimeoutError):
                broker.wait_assigned("app", 2, timeout_s=0.01)

    def test_a_streams_group_that_is_not_ready_is_not_stable(self, broker):
        a = Thread("a", topology=(subtopology("0", "gone"),))
        with RawClient(broker) as client:
            join(client, "app", a)
            with pytest.raises(
                TimeoutError, match=r"is NotReady in epoch 2; members: raw \(no tasks"
            ):
                broker.wait_stable("app", timeout_s=0.01)


class TestRequests:
    def test_are_found_by_api_and_client(self, broker):
        producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "mine"})
        producer.produce("orders", b"v")
        producer.flush(10)
        (seen,) = broker.requests("Produce", client_id="mine")
        assert seen.message.acks == -1
        assert broker.requests(ApiKey.PRODUCE, client_id="other") == []
        assert seen in broker.requests()

    def test_names_are_kafkas(self):
        assert find_api("JoinGroup") is find_api("JOIN_GROUP") is ApiKey.JOIN_GROUP
        with pytest.raises(ValueError, match="no API named 'Nope'"):
            find_api("Nope")


def test_records_that_were_deleted_are_not_told(broker):
    broker.create_topic("orders")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 1_000})
    for number in range(5):
        producer.produce("orders", str(number))
    assert producer.flush(20) == 0
    with Client(broker.bootstrap) as client:
        delete_records(client, {TopicPartition("orders", 0): 3})  # amid the one batch
    assert [record.value for record in broker.records("orders")] == [b"3", b"4"]


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (3, "3"), ("x", "x"), (["a", "b"], "a,b"), (0.5, "0.5")]
)
def test_settings_are_written_as_in_server_properties(value, text):
    assert setting_text(value) == text


def test_topic_partition_is_what_offsets_are_named_by():
    assert str(TopicPartition("orders", 1)) == "orders-1"
