import pytest

from kafkalite.client import cluster as cluster_module
from kafkalite.client.cluster import Client
from kafkalite.client.consumer import Consumer
from kafkalite.client.offsets import READ_COMMITTED
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.fetch import (
    FETCH,
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kafkalite.wire.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkalite.wire.records import Record, build_batch, control_batch
from tests.client.fake_broker import FakeBroker

ORDERS_0 = TopicPartition("orders", 0)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(cluster_module, "PAUSE_MS", 0)


def batch(first, *values, **options):
    records = [Record(first + i, 1000 + i, None, value) for i, value in enumerate(values)]
    return bytes(build_batch(records, base_offset=first, **options))


def marker(offset, *, producer_id, is_commit):
    data = control_batch(
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        is_commit=is_commit,
        timestamp_ms=0,
    )
    data[:8] = offset.to_bytes(8, "big")
    return bytes(data)


def fetched(records=b"", *, error_code=0, aborted=None, partition=0):
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic="orders",
                partitions=[
                    PartitionData(
                        partition_index=partition,
                        error_code=error_code,
                        aborted_transactions=aborted,
                        records=records,
                    )
                ],
            )
        ]
    )


def beginning_at(offset):
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name="orders",
                partitions=[ListOffsetsPartitionResponse(partition_index=0, offset=offset)],
            )
        ]
    )


class TestPoll:
    def test_reads_to_the_end_and_no_further(self):
        data = batch(0, b"a", b"b", b"c")
        with FakeBroker({FETCH: fetched(data)}) as broker, Client(broker.bootstrap) as client:
            consumer = Consumer(client, {ORDERS_0: 0}, ends={ORDERS_0: 2})
            assert [record.value for record in consumer.poll()] == [b"a", b"b"]
            assert consumer.done
            assert list(consumer.poll()) == []
            assert len(broker.seen(FETCH)) == 1

    def test_starts_inside_of_a_batch(self):
        data = batch(0, b"a", b"b", b"c")
        with FakeBroker({FETCH: fetched(data)}) as broker, Client(broker.bootstrap) as client:
            consumer = Consumer(client, {ORDERS_0: 1})
            assert [(r.offset, r.timestamp) for r in consumer.poll()] == [(1, 1001), (2, 1002)]
            assert consumer.positions == {ORDERS_0: 3}
            assert not consumer.done

    def test_position_moves_with_each_record_that_is_taken(self):
        data = batch(0, b"a", b"b", b"c")
        with FakeBroker({FETCH: fetched(data)}) as broker, Client(broker.bootstrap) as client:
            consumer = Consumer(client, {ORDERS_0: 0})
            next(consumer.poll())
            assert consumer.positions == {ORDERS_0: 1}

    def test_gaps_of_compaction_are_passed(self):
        data = batch(0, b"a", last_offset_delta=5)
        with FakeBroker({FETCH: fetched(data)}) as broker, Client(broker.bootstrap) as client:
            consumer = Consumer(client, {ORDERS_0: 0}, ends={ORDERS_0: 6})
            assert [record.value for record in consumer.poll()] == [b"a"]
            assert consumer.done

    def test_cut_batch_at_the_end_of_an_answer_is_left_for_the_next(self):
        data = batch(0, b"a") + batch(1, b"b")[:-3]
        with FakeBroker({FETCH: fetched(data)}) as broker, Client(broker.bootstrap) as client:
            consumer = Consumer(client, {ORDERS_0: 0})
            assert [record.value for record in consumer.poll()] == [b"a"]
            assert consumer.positions == {ORDERS_0: 1}

    def test_leaders_are_asked_in_turn(self):
        second = FakeBroker({FETCH: fetched(batch(0, b"b"), partition=1)}, node_id=2)
        first = FakeBroker({FETCH: fetched(batch(0, b"a"))}, node_id=1, topics={"orders": 2})
        first.others, first.leader_of = [second], {1: 2}
        with first, second, Client(first.bootstrap) as client:
            consumer = Consumer(client, {ORDERS_0: 0, TopicPartition("orders", 1): 0})
            assert [(r.partition, r.value) for r in consumer.poll()] == [(0, b"a"), (1, b"b")]


class TestErrors:
    def test_moved_leader_is_asked_for_and_followed(self):
        second = FakeBroker({FETCH: fetched(batch(0, b"a"))}, node_id=2)
        with second, FakeBroker({FETCH: fetched(error_code=6)}, node_id=1) as first:
            first.others = [second]
            with Client(first.bootstrap) as client:
                consumer = Consumer(client, {ORDERS_0: 0})
                assert list(consumer.poll()) == []
                first.leader_of = {0: 2}
                assert [record.value for record in consumer.poll()] == [b"a"]

    def test_deleted_offsets_are_skipped_and_told(self):
        answers = {FETCH: fetched(error_code=1), LIST_OFFSETS: beginning_at(50)}
        with FakeBroker(answers) as broker, Client(broker.bootstrap) as client:
            consumer = Consumer(client, {ORDERS_0: 10})
            assert list(consumer.poll()) == []
            assert consumer.positions == {ORDERS_0: 50}
            assert consumer.skipped == ["orders-0: offsets 10 to 49 are deleted"]

    def test_offset_beyond_the_end_is_an_error(self):
        answers = {FETCH: fetched(error_code=1), LIST_OFFSETS: beginning_at(0)}
        with (
            FakeBroker(answers) as broker,
            Client(broker.bootstrap) as client,
            pytest.raises(KafkaError, match="orders-0 has no offset 10"),
        ):
            list(Consumer(client, {ORDERS_0: 10}).poll())

    @pytest.mark.parametrize(
        "answer", [fetched(error_code=29), FetchResponse(error_code=29)], ids=["partition", "all"]
    )
    def test_other_errors_are_raised(self, answer):
        with (
            FakeBroker({FETCH: answer}) as broker,
            Client(broker.bootstrap) as client,
            pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"),
        ):
            list(Consumer(client, {ORDERS_0: 0}).poll())


class TestTransactions:
    """Rules of KIP-98 as Kafka's CompletedFetch has them."""

    log = b"".join(
        [
            batch(0, b"committed", transactional=True, producer_id=1, producer_epoch=0),
            batch(1, b"aborted", transactional=True, producer_id=2, producer_epoch=0),
            batch(2, b"plain"),
            marker(3, producer_id=2, is_commit=False),
            marker(4, producer_id=1, is_commit=True),
            batch(5, b"later", transactional=True, producer_id=2, producer_epoch=0),
            marker(6, producer_id=2, is_commit=True),
        ]
    )
    aborted = (AbortedTransaction(producer_id=2, first_offset=1),)

    def read(self, isolation):
        answer = fetched(self.log, aborted=list(self.aborted))
        with FakeBroker({FETCH: answer}) as broker, Client(broker.bootstrap) as client:
            options = {} if isolation is None else {"isolation": isolation}
            consumer = Consumer(client, {ORDERS_0: 0}, ends={ORDERS_0: 7}, **options)
            values = [record.value for record in consumer.poll()]
            assert consumer.done
            return values

    def test_read_committed_leaves_out_what_was_aborted(self):
        assert self.read(READ_COMMITTED) == [b"committed", b"plain", b"later"]

    def test_read_uncommitted_leaves_out_markers_alone(self):
        assert self.read(None) == [b"committed", b"aborted", b"plain", b"later"]
