"""What a worker hands to the producer, with a producer that only remembers."""

import pytest

from kafkalite.pipeline.pace import Pace
from kafkalite.pipeline.sender import Sender, SendFailed, SendPlan, producer_settings


class Message:
    def topic(self):
        return "t"


class DeliveryError:
    def str(self):
        return "Broker: Message size too large"


class Producer:
    """Has confluent_kafka's interface; time passes when it is polled."""

    def __init__(self, settings):
        self.settings = settings
        self.sent = []
        self.full = 0
        self.left = 0
        self.now = 100.0
        self.connected = []
        self.sent_at = []

    def produce(self, topic, value, key, partition, **options):
        if self.full:
            self.full -= 1
            raise BufferError
        self.sent.append((topic, value, key, partition, options))
        self.sent_at.append(self.now)

    def poll(self, seconds):
        self.now += seconds

    def flush(self, seconds):
        return self.left

    def list_topics(self, topic, seconds):
        self.connected.append(topic)
        self.now += 0.7

    def fail(self):
        self.settings["on_delivery"](DeliveryError(), Message())


@pytest.fixture
def make():
    """Make a sender and give it with its producer, whose time is the sender's."""

    def make(plan, index=0):
        producer = Producer({})

        def make_producer(settings):
            producer.settings = settings
            return producer

        return Sender(make_producer, plan, index=index, wall_clock=lambda: producer.now), producer

    return make


def plan(**options):
    return SendPlan(topic="t", producer={"a": 1}, **options)


def send(sender, *rows):
    """Rows are (key, value, time, partition, headers)."""
    sender.send(*(list(column) for column in zip(*rows, strict=True)))


def test_rows_become_records_with_all_they_have(make):
    sender, producer = make(plan())
    headers = [{"key": "h", "value": b"1"}, {"key": "h", "value": None}]
    send(sender, (b"k", b"v", 7, 2, headers), (None, None, None, None, None), (b"", b"", 8, 0, []))
    assert producer.sent == [
        ("t", b"v", b"k", 2, {"timestamp": 7, "headers": [("h", b"1"), ("h", None)]}),
        ("t", None, None, -1, {}),
        ("t", b"", b"", 0, {"timestamp": 8}),
    ]
    sender.finish()
    assert sender.result() == {"records": 3, "bytes": 2, "first_time": 7, "last_time": 8}


def test_full_queue_is_waited_for(make):
    sender, producer = make(plan())
    producer.full = 3
    send(sender, (b"k", b"v", None, None, None))
    assert len(producer.sent) == 1
    assert producer.now == pytest.approx(100.3)


def test_refused_record_ends_the_sending_with_the_first_reason(make):
    sender, producer = make(plan())
    producer.fail()
    with pytest.raises(SendFailed, match=r"^t: Broker: Message size too large$"):
        send(sender, (b"k", b"v", None, None, None))


def test_refusal_while_the_queue_is_full_is_noticed(make):
    sender, producer = make(plan())
    producer.full = 1
    producer.fail()
    with pytest.raises(SendFailed):
        send(sender, (b"k", b"v", None, None, None))
    assert producer.sent == []


def test_acknowledgement_is_not_a_failure(make):
    sender, producer = make(plan())
    producer.settings["on_delivery"](None, Message())
    sender.finish()


def test_records_never_acknowledged_are_a_failure(make):
    sender, producer = make(plan())
    producer.left = 4
    with pytest.raises(SendFailed, match="4 records were not acknowledged"):
        sender.finish()


def test_pace_starts_when_the_producer_is_connected(make):
    sender, producer = make(plan(pace=Pace(records_per_second=10)))
    sender.connect()
    assert producer.connected == ["t"]
    assert sender.started == pytest.approx(100.7)
    send(sender, *((None, b"v", None, None, None) for _ in range(3)))
    assert producer.sent_at == pytest.approx([100.7, 100.8, 100.9])


def test_later_slice_keeps_the_pace_of_the_whole(make):
    sender, producer = make(plan(pace=Pace(records_per_second=10), started=90.0), index=120)
    sender.connect()
    assert sender.started == 90.0
    send(sender, *((None, b"v", None, None, None) for _ in range(2)))
    assert producer.sent_at == pytest.approx([102.0, 102.1])


def test_without_pace_nothing_is_waited_for(make):
    sender, producer = make(plan())
    sender.connect()
    assert producer.connected == []
    send(sender, *((None, b"v", 10**15, None, None) for _ in range(3)))
    assert producer.sent_at == [100.0] * 3


def test_long_wait_looks_for_failures_each_second(make):
    sender, producer = make(plan(pace=Pace(speed=1), started=100.0))
    polls = []
    producer.poll = lambda seconds: (
        polls.append(seconds),
        setattr(producer, "now", producer.now + seconds),
    )
    send(sender, (None, b"v", 2_500, None, None))
    assert polls == pytest.approx([1.0, 1.0, 0.5, 0])


def test_producer_keeps_order_and_javas_partitions_unless_told_otherwise():
    settings = producer_settings("h:1", {"linger.ms": "5"})
    assert settings["bootstrap.servers"] == "h:1"
    assert settings["enable.idempotence"] is True
    assert settings["partitioner"] == "murmur2_random"
    assert settings["linger.ms"] == "5"
