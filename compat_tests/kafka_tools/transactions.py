"""What an operator does about transactions with Kafka's tools."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.apache_kafka import is_4, run_tool
from compat_tests.kafka_tools.scenarios import ToolBench, tools
from kafkalite.wire.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.records import Record, build_batch
from tests.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOL = "kafka-transactions"
ANSWER_S = 30


@contextmanager
def open_transaction(bench: ToolBench, topic: str, count: int) -> Iterator[tuple[Producer, str]]:
    """Give a producer inside a transaction of `count` records, and its transactional id."""
    transactional_id = bench.name()
    producer = Producer(
        {"bootstrap.servers": bench.bootstrap, "transactional.id": transactional_id, "log_level": 0}
    )
    producer.init_transactions(ANSWER_S)
    producer.begin_transaction()
    for i in range(count):
        producer.produce(topic, b"%d" % i)
    assert producer.flush(ANSWER_S) == 0
    yield producer, transactional_id


def rows_of(table: str) -> list[dict[str, str]]:
    """Return the rows of a table that the tool printed, by the names of the columns."""
    header, *rows = [line.split() for line in table.strip().splitlines()]
    # The one column whose value may hold blanks is the last.
    return [
        dict(zip(header, [*row[: len(header) - 1], " ".join(row[len(header) - 1 :])], strict=True))
        for row in rows
    ]


@tools("kafka-transactions: list, describe, describe-producers")
def list_and_describe(bench: ToolBench) -> None:
    topic = bench.topic()
    with open_transaction(bench, topic, 3) as (producer, transactional_id):
        (listed,) = [
            row
            for row in rows_of(bench.run(TOOL, "list"))
            if row["TransactionalId"] == transactional_id
        ]
        assert listed["TransactionState"] == "Ongoing"
        (found,) = rows_of(bench.run(TOOL, "describe", "--transactional-id", transactional_id))
        assert found["ProducerId"] == listed["ProducerId"]
        assert found["TransactionState"] == "Ongoing"
        assert found["TransactionTimeoutMs"] == "60000"
        assert found["TopicPartitions"] == f"{topic}-0"
        place = ("--topic", topic, "--partition", "0")
        (writer,) = rows_of(bench.run(TOOL, "describe-producers", *place))
        assert writer["ProducerId"] == listed["ProducerId"]
        assert writer["LastSequence"] == "2"
        assert writer["CurrentTransactionStartOffset"] == "0"
        producer.commit_transaction(ANSWER_S)
    (found,) = rows_of(bench.run(TOOL, "describe", "--transactional-id", transactional_id))
    assert found["TransactionState"] == "CompleteCommit"
    (writer,) = rows_of(bench.run(TOOL, "describe-producers", *place))
    assert writer["CurrentTransactionStartOffset"] == "None"
    unknown = ("--transactional-id", bench.name())
    assert "ID could not be found" in bench.refused(TOOL, "describe", *unknown)


@tools("kafka-transactions: find-hanging, abort")
def find_and_abort(bench: ToolBench) -> None:
    topic = bench.topic()
    with open_transaction(bench, topic, 2) as (producer, _):
        # What its coordinator knows of does not hang, however long it takes.
        assert hanging(bench, topic) == []
        producer.abort_transaction(ANSWER_S)
    plant_hanging_transaction(bench, topic)
    (found,) = hanging(bench, topic)
    assert found["StartOffset"] == "3"
    assert read_committed(bench, topic) == (0, 3)
    place = ("--topic", topic, "--partition", "0")
    bench.run(TOOL, "abort", *place, "--start-offset", found["StartOffset"])
    assert hanging(bench, topic) == []
    # Its two records are passed over, and so are the markers of both.
    assert read_committed(bench, topic) == (0, 6)


def hanging(bench: ToolBench, topic: str) -> list[dict[str, str]]:
    """Return the transactions of a topic that no coordinator will ever end, however young."""
    at_once = ("--max-transaction-timeout", "0")
    return rows_of(bench.run(TOOL, "find-hanging", "--topic", topic, *at_once))


def plant_hanging_transaction(bench: ToolBench, topic: str) -> None:
    """Write two records of a transaction that no coordinator knows of, as bugs of old did."""
    broker = SimpleNamespace(port=int(bench.bootstrap.rpartition(":")[2]))
    brokers = ("kafka-configs", "--entity-type", "brokers", "--entity-default", "--alter")
    verification = "transaction.partition.verification.enable"
    bench.run(*brokers, "--add-config", f"{verification}=false")
    try:
        with closing(RawClient(broker)) as client:
            asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            producer = client.ask(INIT_PRODUCER_ID, 4, asked)
            assert producer.error_code == 0
            # An hour old: it would be over by now, had anybody been told of it.
            timestamp = int(time.time() * 1000) - 3_600_000
            records = [
                Record(offset=i, timestamp=timestamp, key=None, value=b"ghost") for i in range(2)
            ]
            batch = build_batch(
                records,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                base_sequence=0,
                transactional=True,
            )
            partition = PartitionProduceData(index=0, records=batch)
            written = client.ask(
                PRODUCE,
                9,
                ProduceRequest(
                    transactional_id="ghost",
                    acks=-1,
                    timeout_ms=10_000,
                    topic_data=[TopicProduceData(name=topic, partition_data=[partition])],
                ),
            )
            (answer,) = written.responses[0].partition_responses
            assert answer.error_code == 0, answer
    finally:
        bench.run(*brokers, "--delete-config", verification)


def read_committed(bench: ToolBench, topic: str) -> tuple[int, int]:
    """Return how many records readers of committed ones see, and how far they come."""
    consumer = Consumer(
        {
            "bootstrap.servers": bench.bootstrap,
            "group.id": "unused-by-assign",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    count = 0
    deadline = time.monotonic() + ANSWER_S
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                count += 1
            elif message is not None:
                return count, message.offset()
    finally:
        consumer.close()
    raise AssertionError(f"no end of {topic}")


@tools("kafka-dump-log: --transaction-log-decoder")
def decode_the_transaction_log(bench: ToolBench) -> None:
    topic = bench.topic(partitions=2)
    with open_transaction(bench, topic, 2) as (producer, transactional_id):
        producer.commit_transaction(ANSWER_S)
        producer.begin_transaction()
        producer.produce(topic, b"value", partition=1)
        assert producer.flush(ANSWER_S) == 0
        producer.abort_transaction(ANSWER_S)
        # The completion of a transaction may be written with what comes next.
        producer.begin_transaction()
        producer.produce(topic, b"value", partition=1)
        producer.commit_transaction(ANSWER_S)
    states = [(state, places) for name, state, places in decoded(bench) if name == transactional_id]
    assert states[0] == ("Empty", [])
    assert ("Ongoing", [f"{topic}-1"]) in states
    ended = [(state, places) for state, places in states if state not in ("Empty", "Ongoing")]
    assert [state for state, _ in ended][:5] == [
        "PrepareCommit",
        "CompleteCommit",
        "PrepareAbort",
        "CompleteAbort",
        "PrepareCommit",
    ]
    assert [places for _, places in ended][2:4] == [[f"{topic}-1"], []]


#: By the number that stands for a state in the log.
_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
)
#: How the tool writes a record: in 4.x as JSON, in 3.9 in words of its own.
_JSON = re.compile(r"^\| .* key: (\{.*\}) payload: (\{.*\})$", re.MULTILINE)
_WORDS = re.compile(r"transactionalId=(\S+) payload: .*state=(\w+),partitions=\[(.*?)\]")


def decoded(bench: ToolBench) -> list[tuple[str, str, list[str]]]:
    """Return (transactional id, state, partitions) of each record of the transaction log."""
    where = ("--bootstrap-server", bench.bootstrap)
    listing = run_tool(bench.version, "kafka-log-dirs", *where, "--describe").stdout
    described = json.loads(next(line for line in listing.splitlines() if line.startswith("{")))
    (log_dir,) = described["brokers"][0]["logDirs"]
    files = sorted(Path(log_dir["logDir"]).glob("__transaction_state-*/*.log"))
    written = ",".join(str(path) for path in files if path.stat().st_size > 0)
    decoder = ("--transaction-log-decoder", "--files", written)
    out = run_tool(bench.version, "kafka-dump-log", *decoder).stdout
    if not is_4(bench.version):
        return [
            (name, state, places.split(",") if places else [])
            for name, state, places in _WORDS.findall(out)
        ]
    found = []
    for key, payload in _JSON.findall(out):
        value = json.loads(payload)["data"]
        places = [
            f"{entry['topic']}-{index}"
            for entry in value["transactionPartitions"] or ()
            for index in entry["partitionIds"]
        ]
        name = json.loads(key)["data"]["transactionalId"]
        found.append((name, _STATES[value["transactionStatus"]], places))
    return found
