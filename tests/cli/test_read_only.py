"""A data directory shown to clients, byte for byte as it was."""

import hashlib
import subprocess
import sys
import threading

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalite.cli.main import run
from kafkalite.testing import Broker

pytestmark = pytest.mark.slow


def bytes_of(directory):
    """Return what every file holds, and when it was changed."""
    return {
        str(path.relative_to(directory)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
            path.stat().st_ino,
        )
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A directory with records, an old segment that retention would delete, and offsets."""
    directory = tmp_path_factory.mktemp("theirs")
    with Broker(data_dir=directory, config={"node.id": 7}) as broker:
        broker.create_topic("orders", partitions=2, config={"segment.bytes": 1_048_576})
        broker.create_topic("short", config={"retention.ms": 1})
        broker.produce("short", b"old", timestamp_ms=1)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "zstd"})
        for number in range(500):
            producer.produce("orders", f"{number}", key=str(number), partition=number % 2)
        assert producer.flush(20) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "billing"})
        consumer.commit(offsets=[TopicPartition("orders", 0, 100)], asynchronous=False)
        consumer.close()
    return directory


class Shown:
    """A `kafkalite serve --read-only`."""

    def __init__(self, directory, *more):
        command = [sys.executable, "-m", "kafkalite", "serve", "--read-only", str(directory)]
        self.process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", "--http", "off", *more],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.line = self.process.stdout.readline()
        assert self.line.startswith("kafkalite ready"), self.line
        self.bootstrap = self.line.split("bootstrap=")[1].split()[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(30) == 0
        self.process.stdout.close()


def read(bootstrap, topic, partitions, count):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values, ends = [], 0
    while len(values) < count or ends < partitions:
        message = consumer.poll(20)
        assert message is not None
        ends += message.error() is not None
        values += [] if message.error() else [message.value()]
    consumer.close()
    return values


@pytest.mark.parametrize("is_clean", [True, False])
def test_not_a_byte_changes_and_all_is_there(data, is_clean):
    marker = data / ".kafka_cleanshutdown"
    if not is_clean and marker.exists():
        marker.unlink()  # as if its broker had been killed: the view is recovered, not the data
    before = bytes_of(data)
    with Shown(data) as first, Shown(data, "--profile", "test") as second:
        assert f"read-only={data}" in first.line
        for shown in (first, second):
            assert sorted(read(shown.bootstrap, "orders", 2, 500)) == sorted(
                str(n).encode() for n in range(500)
            )
            assert read(shown.bootstrap, "short", 1, 1) == [b"old"]
        group = Consumer({"bootstrap.servers": second.bootstrap, "group.id": "billing"})
        committed = group.committed([TopicPartition("orders", 0)], timeout=20)
        assert committed[0].offset == 100
        group.close()
    assert bytes_of(data) == before


def test_a_broker_that_runs_goes_on_while_it_is_shown(tmp_path):
    written = [str(number).encode() for number in range(200)]
    with Broker(data_dir=tmp_path) as owner:
        owner.create_topic("orders")
        for value in written:
            owner.produce("orders", value)
        before = bytes_of(tmp_path / "orders-0")
        with Shown(tmp_path) as shown:
            assert read(shown.bootstrap, "orders", 1, 200) == written
            assert bytes_of(tmp_path / "orders-0") == before
            owner.produce("orders", b"meanwhile")
            assert read(shown.bootstrap, "orders", 1, 200) == written  # as it was
        is_over = threading.Event()

        def write():
            while not is_over.is_set():
                owner.produce("orders", value := b"%d" % len(written))
                written.append(value)

        written.append(b"meanwhile")
        writer = threading.Thread(target=write)
        writer.start()
        try:
            with Shown(tmp_path) as shown:
                found = read(shown.bootstrap, "orders", 1, 201)
        finally:
            is_over.set()
            writer.join()
        assert found == written[: len(found)]
    with Broker(data_dir=tmp_path) as owner:
        assert [record.value for record in owner.records("orders")] == written


def test_what_would_write_is_refused_with_the_reason(data):
    before = bytes_of(data)
    with Shown(data) as shown:
        failures = []
        producer = Producer({"bootstrap.servers": shown.bootstrap})
        producer.produce("orders", b"x", on_delivery=lambda error, _: failures.append(error))
        producer.flush(20)
        assert failures[0].name() == "POLICY_VIOLATION"
        admin = AdminClient({"bootstrap.servers": shown.bootstrap})
        with pytest.raises(KafkaException, match="read-only"):
            admin.create_topics([NewTopic("new", 1)])["new"].result(20)
        consumer = Consumer(
            {
                "bootstrap.servers": shown.bootstrap,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["orders"])  # a group can be had, its commits cannot
        message = consumer.poll(20)
        assert message.error() is None
        with pytest.raises(KafkaException, match=r"TOPIC_AUTHORIZATION_FAILED"):
            consumer.commit(message, asynchronous=False)
        consumer.close()
    assert bytes_of(data) == before


def test_what_is_no_data_directory_is_told(tmp_path, capsys):
    assert run(["serve", "--read-only", str(tmp_path)]) == 1
    assert "no data directory" in capsys.readouterr().err
    assert run(["serve", "--read-only", str(tmp_path), "--data-dir", "x"]) == 2
    assert "contradict" in capsys.readouterr().err
