"""Batches that must not be overtaken by their successors (KIP-890)."""

import pytest

from kafkalite.txn.put_off import PutOff
from kafkalite.txn.transactions import ProducerIdentity
from kafkalite.types import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.txn.clients import GENERATIONS, JAVA_3, Producer, consume
from tests.txn.inprocess import InProcessBroker

PLACE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
PRODUCER = ProducerIdentity(7, 3)


@pytest.fixture
def put_off():
    return PutOff()


def is_refused(put_off, sequence, *, place=PLACE, producer=PRODUCER):
    try:
        put_off.check(place, producer, sequence)
    except KafkaError as error:
        return error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    return False


def test_successors_wait_for_the_first(put_off):
    put_off.note(PLACE, PRODUCER, 4)
    assert is_refused(put_off, 5)
    assert is_refused(put_off, 6)
    assert not is_refused(put_off, 4)
    assert not is_refused(put_off, 5)


def test_the_first_of_several_counts(put_off):
    put_off.note(PLACE, PRODUCER, 4)
    put_off.note(PLACE, PRODUCER, 5)
    put_off.note(PLACE, PRODUCER, 3)
    assert is_refused(put_off, 4)
    assert not is_refused(put_off, 3)


def test_other_partitions_and_producers_are_not_concerned(put_off):
    put_off.note(PLACE, PRODUCER, 4)
    assert not is_refused(put_off, 5, place=OTHER)
    assert not is_refused(put_off, 5, producer=ProducerIdentity(8, 3))


def test_next_epoch_begins_anew(put_off):
    put_off.note(PLACE, PRODUCER, 4)
    later = PRODUCER._replace(producer_epoch=4)
    put_off.note(PLACE, later, 9)
    assert is_refused(put_off, 10, producer=later)
    assert not is_refused(put_off, 9, producer=later)
    put_off.note(PLACE, PRODUCER, 4)
    assert not is_refused(put_off, 5, producer=later)


def test_end_of_the_transaction_ends_it(put_off):
    put_off.note(PLACE, PRODUCER, 4)
    put_off.forget(PLACE, 7)
    put_off.forget(OTHER, 7)
    assert not is_refused(put_off, 5)


def test_there_is_an_end_to_what_is_remembered(put_off):
    for number in range(PutOff.MAX + 5):
        put_off.note(PLACE, ProducerIdentity(number, 0), 0)
    assert len(put_off) == PutOff.MAX
    assert not is_refused(put_off, 1, producer=ProducerIdentity(4, 0))
    assert is_refused(put_off, 1, producer=ProducerIdentity(5, 0))


@pytest.mark.parametrize("generation", GENERATIONS)
def test_batches_under_way_keep_their_order_while_the_coordinator_comes_back(generation):
    """The first batch of a producer that the partition knows nothing of (rule 58)."""
    broker = InProcessBroker()
    producer = Producer(broker, generation=generation).init()
    if not producer.is_second:
        producer.add("out", 0)
    led = broker.replicas.partitions_of(TRANSACTION_STATE_TOPIC)
    broker.runtime.set_leaderships(TRANSACTION_STATE_TOPIC, 2, {})
    assert producer.write("out", 0, "first")[0] is ErrorCode.NOT_ENOUGH_REPLICAS
    broker.runtime.set_leaderships(TRANSACTION_STATE_TOPIC, 2, led)
    broker.settle()
    producer.sequences["out", 0] = 1
    code, _ = producer.write("out", 0, "second")
    assert code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.sequences["out", 0] = 0
    producer.send("out", 0, "first")
    producer.send("out", 0, "second")
    producer.commit()
    assert consume(broker, "out") == ["first", "second"]


def test_marker_lets_the_next_transaction_begin_where_it_is():
    broker = InProcessBroker()
    producer = Producer(broker, generation=JAVA_3).init()
    producer.add("out", 0)
    led = broker.replicas.partitions_of(TRANSACTION_STATE_TOPIC)
    broker.runtime.set_leaderships(TRANSACTION_STATE_TOPIC, 2, {})
    producer.write("out", 0, "given up")
    broker.runtime.set_leaderships(TRANSACTION_STATE_TOPIC, 2, led)
    broker.settle()
    producer.abort()
    assert len(broker.transactions.put_off) == 0
