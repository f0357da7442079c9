import pytest

from kafkalite.client import cluster as cluster_module
from kafkalite.client import producer as producer_module
from kafkalite.client.cluster import Client
from kafkalite.client.errors import ClientError
from kafkalite.client.producer import Producer
from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.metadata import METADATA
from kafkalite.wire.messages.produce import (
    PRODUCE,
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kafkalite.wire.records import iterate_records, read_whole_header
from tests.client.fake_broker import FakeBroker


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(cluster_module, "PAUSE_MS", 0)


def answer_all(code=0, message=None, record_errors=()):
    def answer(request):
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    partition_responses=[
                        PartitionProduceResponse(
                            index=data.index,
                            error_code=code,
                            error_message=message,
                            record_errors=list(record_errors),
                        )
                        for data in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    return answer


def sent_records(request):
    return {
        data.index: [
            (record.key, record.value, record.headers) for record in iterate_records(data.records)
        ]
        for topic in request.topic_data
        for data in topic.partition_data
    }


def broker_with(answer, partitions=1, **options):
    return FakeBroker({PRODUCE: answer}, topics={"orders": partitions}, **options)


def test_records_are_sent_as_they_were_given():
    with broker_with(answer_all()) as broker, Client(broker.bootstrap) as client:
        producer = Producer(client, "orders", codec=Codec.GZIP)
        producer.send(b"v", key=b"k", headers=[("a", b"1"), ("b", None)], timestamp_ms=77)
        producer.send(None, partition=0, timestamp_ms=78)
        producer.flush()
        assert producer.record_count == 2
        (request,) = broker.seen(PRODUCE)
        assert request.acks == -1
        batch = request.topic_data[0].partition_data[0].records
        assert read_whole_header(batch).codec is Codec.GZIP
        assert [record.timestamp for record in iterate_records(batch)] == [77, 78]
        assert sent_records(request) == {
            0: [(b"k", b"v", [("a", b"1"), ("b", None)]), (None, None, [])]
        }


def test_key_decides_the_partition_as_in_java():
    with broker_with(answer_all(), partitions=10) as broker, Client(broker.bootstrap) as client:
        producer = Producer(client, "orders")
        producer.send(b"v", key=b"foobar")
        producer.flush()
        expected = (-790332482 & 0x7FFFFFFF) % 10
        assert list(sent_records(broker.seen(PRODUCE)[0])) == [expected]


def test_keyless_batches_take_turns():
    with broker_with(answer_all(), partitions=2) as broker, Client(broker.bootstrap) as client:
        producer = Producer(client, "orders")
        for value in (b"1", b"2", b"3"):
            producer.send(value)
            producer.flush()
        assert [list(sent_records(r)) for r in broker.seen(PRODUCE)] == [[0], [1], [0]]


def test_full_batch_is_sent_without_a_flush(monkeypatch):
    monkeypatch.setattr(producer_module, "BATCH_BYTES", 1000)
    with broker_with(answer_all()) as broker, Client(broker.bootstrap) as client:
        producer = Producer(client, "orders")
        for _ in range(3):
            producer.send(bytes(600))
        assert [len(sent_records(r)[0]) for r in broker.seen(PRODUCE)] == [2]
        producer.flush()
        assert producer.record_count == 3


def test_partitions_together_hold_a_bounded_amount(monkeypatch):
    monkeypatch.setattr(producer_module, "PENDING_MAX_BYTES", 1000)
    with broker_with(answer_all(), partitions=3) as broker, Client(broker.bootstrap) as client:
        producer = Producer(client, "orders")
        for index in range(3):
            producer.send(bytes(400), partition=index)
        assert [sorted(sent_records(r)) for r in broker.seen(PRODUCE)] == [[0, 1, 2]]


def test_partition_that_is_not_there_is_named():
    with (
        broker_with(answer_all(), partitions=2) as broker,
        Client(broker.bootstrap) as client,
        pytest.raises(ClientError, match=r"'orders' has no partition 2; it has 2"),
    ):
        Producer(client, "orders").send(b"v", partition=2)


def test_moved_leader_is_asked_for_and_followed():
    with broker_with(answer_all(), node_id=2) as second:
        moved = [answer_all(6), answer_all()]  # NOT_LEADER_OR_FOLLOWER
        with broker_with(moved, node_id=1) as first, Client(first.bootstrap) as client:
            first.others = [second]
            producer = Producer(client, "orders")
            first.leader_of = {0: 2}
            producer.send(b"v")
            producer.flush()
            assert producer.record_count == 1
            assert len(first.seen(PRODUCE)) == len(second.seen(PRODUCE)) == 1
            assert len(first.seen(METADATA)) == 2


def test_stored_batch_is_not_sent_again_when_another_was_refused():
    def answer(request):
        response = answer_all()(request)
        for partition in response.responses[0].partition_responses:
            if partition.index == 1 and len(broker.seen(PRODUCE)) == 1:
                partition.error_code = 6
        return response

    with broker_with(answer, partitions=2) as broker, Client(broker.bootstrap) as client:
        producer = Producer(client, "orders")
        producer.send(b"a", partition=0)
        producer.send(b"b", partition=1)
        producer.flush()
        assert [sorted(sent_records(r)) for r in broker.seen(PRODUCE)] == [[0, 1], [1]]
        assert producer.record_count == 2


def test_refusal_names_partition_and_record():
    bad = BatchIndexAndErrorMessage(batch_index=3, batch_index_error_message="no key")
    answer = answer_all(87, "one or more records are bad", [bad])
    with broker_with(answer) as broker, Client(broker.bootstrap) as client:
        producer = Producer(client, "orders")
        producer.send(b"v")
        with pytest.raises(KafkaError, match=r"INVALID_RECORD: orders-0: .* \(record 3: no key\)"):
            producer.flush()


def test_acks_0_is_not_waited_for():
    with broker_with(lambda request: None) as broker, Client(broker.bootstrap) as client:
        producer = Producer(client, "orders", acks=0)
        producer.send(b"v")
        producer.flush()
        assert producer.record_count == 1


def test_nothing_to_send_sends_nothing():
    with broker_with(answer_all()) as broker, Client(broker.bootstrap) as client:
        Producer(client, "orders").flush()
        assert broker.seen(PRODUCE) == []
