"""Batch reads with read_committed where transactions are open, cut into, or many at a time."""

import json
import random
import uuid

import pytest
from confluent_kafka import Producer

from spark_tests.streams import values
from spark_tests.topics import wait_until

COMMITTED = {"kafka.isolation.level": "read_committed"}
ANSWER_SECONDS = 30


@pytest.fixture
def producers(bootstrap):
    """Makes transactional producers, whose transactions a test begins and ends."""

    def make():
        settings = {"bootstrap.servers": bootstrap, "transactional.id": f"t-{uuid.uuid4().hex[:8]}"}
        producer = Producer(settings)
        producer.init_transactions(ANSWER_SECONDS)
        return producer

    return make


def send(producer, topic, *numbers):
    for number in numbers:
        producer.produce(topic, f"v{number}", partition=0)
    assert producer.flush(ANSWER_SECONDS) == 0


def wait_stable(topics, topic, end):
    """Wait until readers of committed records come to this end: markers follow the answer."""
    wait_until(lambda: topics.watermarks(topic)[1] == end, f"{topic} is stable up to {end}")


def numbered(*numbers):
    return [f"v{number}" for number in numbers]


def test_batch_ends_before_an_open_transaction(topics, source, producers):
    topic, producer = topics.create(), producers()
    topics.fill(topic, 3)
    producer.begin_transaction()
    send(producer, topic, 3, 4)
    topics.fill(topic, 2, first=5)
    assert values(source(subscribe=topic, **COMMITTED)) == numbered(0, 1, 2)
    assert values(source(subscribe=topic)) == numbered(*range(7))
    producer.commit_transaction(ANSWER_SECONDS)
    wait_stable(topics, topic, 8)
    assert values(source(subscribe=topic, **COMMITTED)) == numbered(*range(7))


def test_batch_may_start_and_end_inside_an_aborted_transaction(topics, source, producers):
    topic, producer = topics.create(), producers()
    producer.begin_transaction()
    # One batch each, so that the reads begin and end between batches of the transaction.
    for number in range(6):
        send(producer, topic, number)
    producer.abort_transaction(ANSWER_SECONDS)
    wait_stable(topics, topic, 7)
    topics.fill(topic, 2, first=6)

    def read(start, end):
        offsets = {
            "startingOffsets": json.dumps({topic: {"0": start}}),
            "endingOffsets": json.dumps({topic: {"0": end}}),
        }
        return values(source(subscribe=topic, **offsets, **COMMITTED))

    assert read(2, 5) == []
    assert read(3, 9) == numbered(6, 7)
    assert read(0, 8) == numbered(6)


def test_interleaved_transactions_are_told_apart(topics, source, producers):
    topic = topics.create()
    pair = [producers(), producers()]
    chance = random.Random(5)
    kept = []
    inside = {}
    ended = 0
    for number in range(120):
        producer = chance.choice(pair)
        if producer not in inside:
            producer.begin_transaction()
            inside[producer] = []
        send(producer, topic, number)
        inside[producer].append(number)
        if chance.random() < 0.3:
            numbers = inside.pop(producer)
            ended += 1
            if chance.random() < 0.5:
                producer.commit_transaction(ANSWER_SECONDS)
                kept += numbers
            else:
                producer.abort_transaction(ANSWER_SECONDS)
    for producer in inside:
        producer.abort_transaction(ANSWER_SECONDS)
    wait_stable(topics, topic, 120 + ended + len(inside))
    assert values(source(subscribe=topic, **COMMITTED)) == numbered(*sorted(kept))
    assert source(subscribe=topic, minPartitions="5", **COMMITTED).count() == len(kept)
    assert source(subscribe=topic).count() == 120
