"""How fast Spark reads a topic and replays flights, here and from another broker side by side.

Run: python benchmarks/spark.py [--against HOST:PORT]
Spark and the clients take most of the time; what differs between two brokers is what matters.
"""

import sys
import tempfile
import time
import uuid
from pathlib import Path

import click
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

sys.path.insert(0, str(Path(__file__).parent.parent))

from examples import flights
from kafkalite.pipeline.replay import ReplayJob, replay
from kafkalite.pipeline.session import spark_session
from spark_tests.broker import serving

RECORDS = 1_000_000
VALUE = bytes(range(100))
PARTITIONS = 4


def fill(bootstrap: str, topic: str) -> None:
    """Write the records to a new topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": RECORDS})
    for number in range(RECORDS):
        producer.produce(topic, VALUE, partition=number % PARTITIONS)
    assert producer.flush(120) == 0


def read_rate(spark, bootstrap: str, topic: str) -> float:
    """Return records per second of a batch query that looks at every column of every record."""
    started = time.perf_counter()
    rows = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    rows.option("subscribe", topic).load().write.format("noop").mode("overwrite").save()
    return RECORDS / (time.perf_counter() - started)


def replay_rate(spark, bootstrap: str, file: Path) -> float:
    """Return records per second of a replay of the flights, without sorting them."""
    job = ReplayJob(
        bootstrap=bootstrap,
        topic=f"flights-{uuid.uuid4().hex[:8]}",
        paths=(str(file),),
        key="concat(carrier, flight)",
        time="scheduled",
        create_partitions=PARTITIONS,
    )
    done = replay(spark, job)
    return done.records / done.seconds


@click.command()
@click.option("--against", metavar="HOST:PORT", help="Another broker, measured in turn.")
@click.option("--rounds", default=4, show_default=True, help="Rounds; the first warms Spark up.")
def main(against: str | None, rounds: int) -> None:
    """Print one table: median over the rounds, in thousand records per second."""
    with tempfile.TemporaryDirectory() as name, serving(Path(name)) as own:
        brokers = {"kafkalite": own.bootstrap, **({"other": against} if against else {})}
        spark = spark_session(master="local[2]")
        file = flights.write_source(Path(name) / "flights.parquet")
        topic = f"records-{uuid.uuid4().hex[:8]}"
        rates: dict[tuple[str, str], list[float]] = {}
        for bootstrap in brokers.values():
            fill(bootstrap, topic)
        for round_ in range(rounds):
            for broker, bootstrap in brokers.items():
                found = {
                    "Spark batch read": read_rate(spark, bootstrap, topic),
                    "flights replay": replay_rate(spark, bootstrap, file),
                }
                for what, rate in found.items() if round_ else ():
                    rates.setdefault((what, broker), []).append(rate)
        spark.stop()
        for (what, broker), values in sorted(rates.items()):
            middle = sorted(values)[len(values) // 2]
            spread = f"{min(values) / 1000:,.0f}-{max(values) / 1000:,.0f}"
            click.echo(f"{what:18} {broker:10} {middle / 1000:8,.0f} k/s  ({spread})")


if __name__ == "__main__":
    main()
