"""A machine whose clock is a day back after a restart: no promise depends on it."""

import time
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kafkalite.testing import Broker

DAY = timedelta(days=1)


def transactional(bootstrap):
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
    producer.init_transactions(10)
    return producer


def consumer(bootstrap, **settings):
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 2,
            **settings,
        }
    )


def values(bootstrap, count, **settings):
    """What a member of the group reads from where it left off."""
    reader = consumer(bootstrap, **settings)
    reader.subscribe(["t"])
    found = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        found += [message.value() for message in reader.consume(10, 0.2)]
    reader.commit(asynchronous=False)
    reader.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("clean", [True, False])
def test_offsets_transactions_and_sessions_outlive_a_clock_that_goes_back(tmp_path, clean):
    with Broker(data_dir=tmp_path) as broker:
        broker.clock.advance(DAY)
        broker.create_topic("t")
        plain = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        for value in (b"a", b"b"):
            plain.produce("t", value)
        assert plain.flush(10) == 0
        assert values(broker.bootstrap, 1) in ([b"a"], [b"a", b"b"])
        committed = consumer(broker.bootstrap).committed([TopicPartition("t", 0)], 10)[0].offset
        open_one = transactional(broker.bootstrap)
        open_one.begin_transaction()
        open_one.produce("t", b"never committed")
        assert open_one.flush(10) == 0
    if not clean:
        (tmp_path / ".kafka_cleanshutdown").unlink()
    with Broker(data_dir=tmp_path) as broker:
        assert broker.clock.now_ms() < time.time() * 1_000 + 3_600_000
        place = TopicPartition("t", 0)
        assert consumer(broker.bootstrap).committed([place], 10)[0].offset == committed
        # The open transaction is still open, keeps committed readers back, and its successor ends
        # it; then everything goes on.
        for level, end in (("read_committed", 2), ("read_uncommitted", 3)):
            reader = consumer(broker.bootstrap, **{"isolation.level": level})
            assert reader.get_watermark_offsets(place, 10) == (0, end)
        producer = transactional(broker.bootstrap)
        producer.begin_transaction()
        producer.produce("t", b"c")
        producer.commit_transaction(10)
        wanted = [b"a", b"b", b"c"][committed:]
        assert values(broker.bootstrap, len(wanted)) == wanted
        # Times of a day ahead make nobody expire at once, nor stay for ever.
        broker.clock.advance(timedelta(hours=2))
        assert consumer(broker.bootstrap).committed([place], 10)[0].offset > committed
