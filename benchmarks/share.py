"""How fast a share group consumes, in records/s, beside Apache Kafka.

Run: python benchmarks/share.py [--records COUNT] [--consumers COUNT]
The consumers are Apache's own: kafka-share-consumer-perf-test, each a process with implicit
acknowledgement, against a topic of four partitions that is filled before. A process says how long
it consumed, so the start of the Java machines does not count.
"""

import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.compare.brokers import Apache, BrokerUnderTest, Kafkalite
from compat_tests.apache_kafka import KAFKA_4, run_tool
from tests.share.probe import Probe

PARTITIONS = 4
RECORD_BYTES = 100
GROUP = "measured"
TOOL = "org.apache.kafka.tools.ShareConsumerPerformance"
TIMEOUT_S = 300


def consumed_per_second(broker: BrokerUnderTest, records: int, consumers: int) -> float:
    """Return the records that all consumers together get in a second."""
    topic = broker.create_topic(PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "queue.buffering.max.messages": 0})
    value = bytes(RECORD_BYTES)
    for number in range(records):
        producer.produce(topic, value, partition=number % PARTITIONS)
        if not number % 10_000:
            producer.poll(0)
    producer.flush(120)
    del producer  # or it looks for its broker when that is gone
    probe = Probe(broker.port, group=GROUP)
    probe.set_group(share_auto_offset_reset="earliest")
    probe.client.close()

    def consume(_: int) -> subprocess.CompletedProcess[str]:
        return run_tool(
            KAFKA_4,
            TOOL,
            *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", GROUP),
            *("--num-records", str(records // consumers), "--timeout", "60000"),
            timeout=TIMEOUT_S,
        )

    with ThreadPoolExecutor(consumers) as threads:
        done = [*threads.map(consume, range(consumers))]
    return sum(_rate(each.stdout) for each in done)


def _rate(printed: str) -> float:
    """Return nMsg.sec of the line of figures after the line of their names."""
    lines = [line.split(", ") for line in printed.splitlines() if line.count(", ") >= 5]
    names, figures = lines[0], lines[-1]
    return float(figures[names.index("nMsg.sec")])


def main() -> None:
    """Measure both brokers, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--consumers", type=int, default=1)
    options = parser.parse_args()
    for make in (Kafkalite, Apache):
        with make() as broker:
            rate = consumed_per_second(broker, options.records, options.consumers)
            print(
                f"{broker.name}: {options.consumers} share consumer(s), "
                f"{options.records:,} records: {rate:,.0f} records/s",
                flush=True,
            )


if __name__ == "__main__":
    main()
