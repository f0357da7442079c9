"""Transactional writes that no transaction vouches for (rules 113, 114, 122, 123; KIP-890)."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.api.produce import HANDLERS
from kafkalite.deferred import Deferred
from kafkalite.txn.states import TransactionState
from kafkalite.types import TRANSACTION_STATE_TOPIC
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.api.test_transactions import state
from tests.txn.clients import (
    GENERATIONS,
    JAVA_3,
    OLD,
    VERSIONS,
    Producer,
    batch,
    consume,
    is_stable,
    produce,
)
from tests.txn.inprocess import InProcessBroker

OK = ErrorCode.NONE
FIRST = (OLD, JAVA_3)


@pytest.fixture
def broker():
    return InProcessBroker()


class TestFirstProtocol:
    """Rule 113."""

    @pytest.mark.parametrize(
        ("generation", "code"),
        [(OLD, ErrorCode.INVALID_TXN_STATE), (JAVA_3, ErrorCode.TRANSACTION_ABORTABLE)],
    )
    def test_partition_that_was_not_added_is_refused(self, broker, generation, code):
        """Rule 123: in words that the client knows."""
        producer = Producer(broker, generation=generation).init()
        producer.send("out", 1, "a")
        assert producer.write("out", 0, "b")[0] is code
        assert broker.partition("out", 0).log_end_offset == 0

    @pytest.mark.parametrize("generation", FIRST)
    def test_write_before_anything_was_added_is_refused(self, broker, generation):
        producer = Producer(broker, generation=generation).init()
        code = ErrorCode.INVALID_TXN_STATE
        code = code if generation == OLD else ErrorCode.TRANSACTION_ABORTABLE
        assert producer.write("out", 0, "a")[0] is code

    @pytest.mark.parametrize("generation", FIRST)
    def test_write_that_comes_after_the_end_does_not_hang(self, broker, generation):
        """Why KIP-890: it would belong to no transaction, and hold up readers for ever."""
        producer = Producer(broker, generation=generation).init()
        producer.send("out", 0, "a")
        producer.abort()
        assert producer.write("out", 0, "late")[0] in (
            ErrorCode.INVALID_TXN_STATE,
            ErrorCode.TRANSACTION_ABORTABLE,
        )
        assert is_stable(broker, "out")

    @pytest.mark.parametrize("generation", FIRST)
    def test_fenced_producer_hears_it_as_producers_expect(self, broker, generation):
        zombie = Producer(broker, generation=generation).init()
        zombie.add("out", 0)
        Producer(broker, generation=generation).init()
        assert zombie.write("out", 0, "a")[0] is ErrorCode.INVALID_PRODUCER_EPOCH

    @pytest.mark.parametrize("generation", FIRST)
    def test_strangers_producer_id_is_refused(self, broker, generation):
        producer = Producer(broker, generation=generation).init()
        producer.add("out", 0)
        producer.identity = (7, 0)
        assert producer.write("out", 0, "a")[0] is ErrorCode.INVALID_PRODUCER_ID_MAPPING

    @pytest.mark.parametrize("generation", FIRST)
    def test_once_begun_the_log_knows_the_transaction(self, broker, generation):
        """The coordinator is not asked again: it may be away."""
        producer = Producer(broker, generation=generation).init()
        producer.send("out", 0, "a")
        broker.runtime.set_leaderships(TRANSACTION_STATE_TOPIC, 2, {})
        assert producer.write("out", 0, "b")[0] is OK

    @pytest.mark.parametrize("generation", FIRST)
    def test_coordinator_that_cannot_be_asked_makes_the_client_try_again(self, broker, generation):
        """Rule 113: with the one error that makes every producer do so at once."""
        producer = Producer(broker, generation=generation).init()
        producer.add("out", 0)
        broker.runtime.set_leaderships(TRANSACTION_STATE_TOPIC, 2, {})
        assert producer.write("out", 0, "a")[0] is ErrorCode.NOT_ENOUGH_REPLICAS

    @pytest.mark.parametrize("generation", FIRST)
    def test_markers_under_way_make_the_client_try_again(self, broker, generation):
        producer = Producer(broker, generation=generation).init()
        producer.send("out", 0, "a")
        broker.disk.fail("append", "out-0", times=1)
        producer.end_once(commit=True)
        assert producer.write("out", 1, "b")[0] is ErrorCode.NOT_ENOUGH_REPLICAS

    def test_verification_can_be_switched_off(self):
        broker = InProcessBroker(config={"transaction.partition.verification.enable": "false"})
        producer = Producer(broker, generation=JAVA_3).init()
        assert producer.write("out", 0, "a")[0] is OK
        assert not is_stable(broker, "out")


class TestSecondProtocol:
    """Rule 122."""

    def test_writing_adds_the_partition(self, broker):
        producer = Producer(broker).init()
        assert producer.write("out", 0, "a")[0] is OK
        assert state(broker) is TransactionState.ONGOING
        producer.commit()
        assert consume(broker, "out") == ["a"]

    def test_markers_under_way_are_told_as_they_are(self, broker):
        """Clients of the second protocol know CONCURRENT_TRANSACTIONS here."""
        producer = Producer(broker).init()
        producer.send("out", 0, "a")
        broker.disk.fail("append", "out-0", times=1)
        assert producer.end_once(commit=True) is OK
        assert producer.write("out", 1, "b")[0] is ErrorCode.CONCURRENT_TRANSACTIONS
        broker.settle(for_ms=500)
        assert producer.write("out", 1, "b")[0] is OK

    def test_coordinator_that_cannot_be_asked_makes_the_client_try_again(self, broker):
        producer = Producer(broker).init()
        broker.runtime.set_leaderships(TRANSACTION_STATE_TOPIC, 2, {})
        assert producer.write("out", 0, "a")[0] is ErrorCode.NOT_ENOUGH_REPLICAS

    def test_write_of_the_transaction_before_is_refused(self, broker):
        producer = Producer(broker).init()
        producer.send("out", 0, "a")
        late = Producer(broker)
        late.identity = producer.identity
        producer.commit()
        producer.send("out", 0, "b")
        assert late.write("out", 1, "late")[0] is ErrorCode.INVALID_PRODUCER_EPOCH
        producer.commit()
        assert consume(broker, "out", 1) == []

    def test_switching_verification_off_changes_nothing(self):
        broker = InProcessBroker(config={"transaction.partition.verification.enable": "false"})
        producer = Producer(broker).init()
        producer.send("out", 0, "a")
        producer.commit()
        assert is_stable(broker, "out")


class TestRequests:
    @pytest.mark.parametrize("generation", GENERATIONS)
    def test_partitions_that_were_not_added_fail_alone(self, broker, generation):
        """Rule 37."""
        producer = Producer(broker, generation=generation).init()
        if not producer.is_second:
            producer.add("out", 0)
        codes = produce(
            broker,
            VERSIONS["PRODUCE"][generation],
            {
                ("out", 0): batch(["a"], producer.identity, 0),
                ("out", 1): batch(["b"], producer.identity, 0),
                ("none", 0): batch(["c"], producer.identity, 0),
            },
        )
        assert codes["out", 0] is OK
        assert (codes["out", 1] is OK) == producer.is_second
        assert codes["none", 0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    @pytest.mark.parametrize("version", [3, 9, 12])
    def test_transactional_records_name_their_transactional_id(self, broker, version):
        """Rule 113."""
        producer = Producer(broker).init()
        records = batch(["a"], producer.identity, 0)
        codes = produce(broker, version, {("out", 0): records}, transactional_id=None)
        assert codes == {("out", 0): ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}

    @pytest.mark.parametrize("generation", GENERATIONS)
    def test_plain_batch_inside_of_a_transaction_is_refused(self, broker, generation):
        """Rule 114."""
        producer = Producer(broker, generation=generation).init()
        producer.send("out", 0, "a")
        records = batch(["b"], producer.identity, 1, transactional=False)
        codes = produce(broker, VERSIONS["PRODUCE"][generation], {("out", 0): records})
        assert codes == {("out", 0): ErrorCode.INVALID_TXN_STATE}

    def test_transactional_id_with_plain_records_is_nothing_special(self, broker):
        records = batch(["a"], (-1, -1), -1, transactional=False)
        assert produce(broker, 12, {("out", 0): records}) == {("out", 0): OK}

    def test_records_of_two_producers_in_one_request_are_refused(self, broker):
        producer, other = Producer(broker, "tx").init(), Producer(broker, "ty").init()
        codes = produce(
            broker,
            12,
            {
                ("out", 0): batch(["a"], producer.identity, 0),
                ("out", 1): batch(["b"], other.identity, 0),
            },
        )
        assert set(codes.values()) == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}

    @pytest.mark.parametrize("generation", GENERATIONS)
    def test_retried_batch_is_answered_alike(self, broker, generation):
        """Rules 56, 61."""
        producer = Producer(broker, generation=generation).init()
        offset = producer.send("out", 0, "a")
        producer.sequences["out", 0] = 0
        assert producer.write("out", 0, "a") == (OK, offset)
        producer.commit()
        assert consume(broker, "out") == ["a"]

    def test_bytes_that_are_no_batch_are_refused_as_ever(self, broker):
        codes = produce(broker, 12, {("out", 0): b"\0" * 30, ("out", 1): b""})
        assert set(codes.values()) <= {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE}
        assert len(codes) == 2


class TestLagging:
    """With replicas, the coordinator's answer waits for them."""

    @pytest.fixture
    def broker(self, monkeypatch):
        broker = InProcessBroker()
        producer = broker.producer = Producer(broker).init()
        producer.identity = (1000, 0)
        return broker

    def lagging(self, broker, monkeypatch):
        """Hold the high watermark of the transaction log back until it is told to go on."""
        partition_type = type(broker.partition(TRANSACTION_STATE_TOPIC, 0))
        held = {}

        def high_watermark(self):
            end = self.log.log_end_offset
            return min(end, held.get(self.topic_partition, end))

        monkeypatch.setattr(partition_type, "high_watermark", property(high_watermark))
        for index in (0, 1):
            partition = broker.partition(TRANSACTION_STATE_TOPIC, index)
            held[partition.topic_partition] = partition.log.log_end_offset
        return held

    def test_write_waits_until_its_partition_is_part_of_the_transaction(self, broker, monkeypatch):
        held = self.lagging(broker, monkeypatch)
        records = memoryview(batch(["a"], broker.producer.identity, 0))
        request = ProduceRequest(
            transactional_id="tx",
            acks=-1,
            topic_data=[
                TopicProduceData(
                    name="out",
                    partition_data=[PartitionProduceData(index=0, records=records)],
                )
            ],
        )
        broker.context.api_version = 12
        answer = HANDLERS[0].handle(request, broker.context)
        assert isinstance(answer, Deferred)
        assert broker.partition("out", 0).log_end_offset == 0

        async def main():
            async with trio.open_nursery() as nursery:
                answers = []

                async def wait():
                    answers.append(await answer.wait())

                nursery.start_soon(wait)
                await wait_all_tasks_blocked()
                assert not answers
                held.clear()
                for index in (0, 1):
                    broker.partition(TRANSACTION_STATE_TOPIC, index).wake_all()
            return answers[0]

        response = trio.run(main)
        assert response.responses[0].partition_responses[0].error_code == OK
        assert broker.partition("out", 0).log_end_offset == 1
