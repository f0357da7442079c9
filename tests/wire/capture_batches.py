"""Writes testdata/batches anew: what clients send, as Apache's broker stored it.

    python -m tests.wire.capture_batches

Needs what the compatibility tests need (Java and Maven, Go, Node). A broker keeps the bytes of a
client's batch but for offset and leader epoch, so these files are the clients' own work.
"""

import tempfile
from pathlib import Path

from compat_tests.apache_kafka import ApacheBroker
from compat_tests.clients import all_clients
from compat_tests.driver import encode_bytes
from kafkalite.wire.records import iterate_batches

TARGET = Path(__file__).parent / "testdata" / "batches"
CODECS = ("gzip", "snappy", "lz4", "zstd")
CLIENTS = ("Java", "confluent-kafka", "kafka-python", "aiokafka", "franz-go", "sarama", "kafkajs")

RECORD_COUNT = 250
TIMESTAMP_MS = 1_700_000_000_000


def key(number: int) -> bytes:
    return b"key-%d" % number


def value(number: int) -> bytes:
    """Altogether more than 64 KiB, so that codecs with blocks write several."""
    return b"The same words again and again, as logs have them. " * 7 + b"%d" % number


def records() -> list[dict[str, object]]:
    return [
        {
            "partition": 0,
            "key": encode_bytes(key(number)),
            "value": encode_bytes(value(number)),
            "headers": [["h", encode_bytes(b"x")]],
            "timestamp": TIMESTAMP_MS + number,
        }
        for number in range(RECORD_COUNT)
    ]


def main() -> None:
    latest = {client.name: client for client in all_clients() if client.name in CLIENTS}
    with tempfile.TemporaryDirectory() as scratch:
        data_dir = Path(scratch) / "data"
        with ApacheBroker(config={"num.partitions": 1}, data_dir=data_dir) as broker:
            for client in latest.values():
                driver = client.start(broker.bootstrap)
                for codec in CODECS:
                    driver.call(
                        "produce",
                        topic=f"{client.name}-{codec}",
                        records=records(),
                        acks="all",
                        codec=codec,
                        idempotence=False,
                    )
                driver.close()
        TARGET.mkdir(parents=True, exist_ok=True)
        for client in latest.values():
            for codec in CODECS:
                data = (data_dir / f"{client.name}-{codec}-0" / f"{0:020d}.log").read_bytes()
                batches = [
                    (h.record_count, data[at : at + h.size]) for at, h in iterate_batches(data)
                ]
                _, largest = max(batches)
                (TARGET / f"{client.id}-{codec}.batch").write_bytes(largest)


if __name__ == "__main__":
    main()
