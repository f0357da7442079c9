"""What transactions cost: how many a second, and how fast their records are consumed."""

import time

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.process import running
from benchmarks.result import Result
from kafkalite.client.admin import create_topic
from kafkalite.client.cluster import Client

RECORD_BYTES = 100
SIZES = (1, 10, 100)
"""Records of one transaction."""
SECONDS = 3.0
CONSUMED_RECORDS = 500_000
CONSUMED_PER_TRANSACTION = 10_000
TOPIC = "transactions"


def transactions() -> list[Result]:
    """One confluent-kafka producer that commits again and again, then two consumers after it."""
    value = bytes(RECORD_BYTES)
    results = []
    with running() as broker:
        with Client(broker.bootstrap) as client:
            create_topic(client, TOPIC, partitions=1)
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "transactional.id": "bench", "linger.ms": 0}
        )
        producer.init_transactions(10)

        def one_transaction(size):
            producer.begin_transaction()
            for _ in range(size):
                producer.produce(TOPIC, value, partition=0)
            producer.commit_transaction(10)

        one_transaction(1)
        for size in SIZES:
            count, began = 0, time.perf_counter()
            while (seconds := time.perf_counter() - began) < SECONDS:
                one_transaction(size)
                count += 1
            what = f"transactions of {size} {'record' if size == 1 else 'records'}"
            results.append(Result(what=what, value=count / seconds, unit="transactions/s"))
        for _ in range(CONSUMED_RECORDS // CONSUMED_PER_TRANSACTION):
            one_transaction(CONSUMED_PER_TRANSACTION)
        results += [
            Result(
                what=f"confluent-kafka consumer of transactions, {isolation}",
                value=_consumed_per_second(broker.bootstrap, isolation),
                unit="records/s",
            )
            for isolation in ("read_uncommitted", "read_committed")
        ]
    return results


def _consumed_per_second(bootstrap: str, isolation: str) -> float:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": isolation, "isolation.level": isolation}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    count, began = 0, time.perf_counter()
    while count < CONSUMED_RECORDS:
        count += len(consumer.consume(10_000, timeout=5))
    seconds = time.perf_counter() - began
    consumer.close()
    return count / seconds
