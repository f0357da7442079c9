"""Data directories of the version before are opened; those of a later one are refused.

testdata/data-0.1-*.tar.gz were left by kafkalite 0.1.0, by a broker that was stopped and by one
that was killed. Both hold: 100 records of `orders` (compressed, two partitions), a compacted
topic `names`, `paid` with two committed transactions and an aborted one between them, and offsets
that the group `billing` committed.
"""

import subprocess
import sys
import tarfile
from pathlib import Path

import confluent_kafka
import pytest

from kafkalite.testing import Broker

TESTDATA = Path(__file__).parent / "testdata"
WAYS = ["stopped", "killed"]

pytestmark = pytest.mark.slow


@pytest.fixture(params=WAYS)
def left(request, tmp_path):
    with tarfile.open(TESTDATA / f"data-0.1-{request.param}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / request.param


def values(broker, topic, isolation):
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"reader-{isolation}",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    consumer.subscribe([topic])
    found = []
    while True:
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            break
        found.append(message.value().decode())
    consumer.close()
    return found


def committed(broker, group, topic, count):
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    partitions = [confluent_kafka.TopicPartition(topic, index) for index in range(count)]
    offsets = [each.offset for each in consumer.committed(partitions, timeout=10)]
    consumer.close()
    return offsets


def test_all_that_the_version_before_left_is_there(left):
    with Broker(config={"log.dirs": str(left)}) as broker:
        records = broker.records("orders")
        assert sorted(record.value for record in records) == sorted(
            b"order %d" % number for number in range(100)
        )
        assert {record.key for record in records} == {b"customer-%d" % n for n in range(7)}
        assert committed(broker, "billing", "orders", 2) == [50, 42]
        assert values(broker, "paid", "read_committed") == [
            "committed 0", "committed 1", "committed 0", "committed 1"
        ]  # fmt: skip
        assert len(values(broker, "paid", "read_uncommitted")) == 6
        names = broker.server.services.replicas.partition("names", 0)
        assert names.log.config.cleanup_policy == {"compact"}
        broker.produce("orders", b"order 100", partition=0)
        assert broker.server.services.replicas.partition("orders", 0).log_end_offset == 51
    lines = (left / "meta.properties").read_text().splitlines()
    assert "kafkalite.format=1" in lines


def test_transactional_producer_goes_on(left):
    with Broker(config={"log.dirs": str(left)}) as broker:
        settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": "payments"}
        producer = confluent_kafka.Producer(settings)
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("paid", b"committed later")
        producer.commit_transaction(10)
        assert values(broker, "paid", "read_committed")[-1] == "committed later"


def test_data_of_a_later_version_stop_the_start_with_one_line(tmp_path):
    properties = tmp_path / "meta.properties"
    properties.write_text("version=1\nnode.id=1\ncluster.id=abc\nkafkalite.format=2\n")
    command = [sys.executable, "-m", "kafkalite", "serve", "--data-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"kafkalite: {properties}: kafkalite.format=2 was written by a later version of "
        "kafkalite, this one reads 1 and before\n"
    )
    assert properties.read_text().endswith("kafkalite.format=2\n")
