"""Transactions: what commits is seen whole, what does not is seen by nobody who asks for that."""

from __future__ import annotations

import random
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.apache_kafka import KAFKA_3_9, KAFKA_4
from compat_tests.clients import Client, all_clients
from compat_tests.driver import (
    ClientError,
    ConsumedRecord,
    Driver,
    decode_bytes,
    encode_bytes,
    error_name,
)
from compat_tests.scenarios.admin import wait_until
from compat_tests.scenarios.registry import Bench, scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: What a producer is told whose place another took, by the version of the API that it spoke.
FENCED = {"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}

#: Says that a reader has seen the whole of a partition; written outside of transactions.
LAST = b"last"


@dataclass(slots=True)
class Producer:
    """A transactional producer inside a driver."""

    driver: Driver
    name: str

    def call(self, op: str, **arguments: Any) -> Any:
        """Send one transactional operation to the driver."""
        return self.driver.call(f"txn_{op}", producer=self.name, **arguments)

    def begin(self) -> None:
        self.call("begin")

    def commit(self) -> None:
        self.call("commit")

    def abort(self) -> None:
        self.call("abort")

    def send(self, topic: str, values: Sequence[bytes], partition: int = 0) -> list[int]:
        """Send values and return their offsets; raises `ClientError` if one was refused."""
        records = [
            {"partition": partition, "key": encode_bytes(b"key"), "value": encode_bytes(value)}
            for value in values
        ]
        results = self.call("send", topic=topic, records=records)["results"]
        for result in results:
            if "error" in result:
                error = result["error"]
                raise ClientError(error_name(error["code"]), error.get("message", ""))
        return [result["offset"] for result in results]

    def transform(self, group: str, source: str, target: str, count: int) -> list[ConsumedRecord]:
        """Do the next `count` records of a group in a transaction; it is left open."""
        reply = self.call("transform", group=group, source=source, target=target, count=count)
        return [consumed(fields) for fields in reply["records"]]


def consumed(fields: Mapping[str, Any]) -> ConsumedRecord:
    """Return a record of a driver's reply; what these scenarios do not look at is left out."""
    return ConsumedRecord(
        partition=fields["partition"],
        offset=fields["offset"],
        timestamp=None,
        timestamp_type=None,
        key=decode_bytes(fields["key"]),
        value=decode_bytes(fields["value"]),
        headers=(),
    )


@contextmanager
def producer_of(driver: Driver, transactional_id: str, **options: Any) -> Iterator[Producer]:
    """A transactional producer; one that cannot go on just vanishes at the end."""
    producer = Producer(driver, f"producer-{uuid.uuid4().hex[:8]}")
    producer.call("open", transactional_id=transactional_id, **options)
    try:
        yield producer
    finally:
        producer.call("close")


def read(
    driver: Driver,
    topic: str,
    isolation: str,
    partitions: Sequence[int] = (0,),
    *,
    is_waiting: bool = False,
    timeout_ms: int = 20000,
) -> dict[int, list[bytes]]:
    """Return the values of each partition before `LAST`, as this isolation level shows them.

    Args:
        driver: who reads.
        topic: of a test.
        isolation: "read_committed" or "read_uncommitted".
        partitions: all that are read; each must hold `LAST`.
        is_waiting: whether the reader is expected not to get as far as `LAST`.
        timeout_ms: how long to read.
    """
    reply = driver.call(
        "read_until",
        topic=topic,
        partitions=list(partitions),
        isolation=isolation,
        last=encode_bytes(LAST),
        timeout_ms=timeout_ms,
    )
    values: dict[int, list[bytes]] = {index: [] for index in partitions}
    offsets: dict[int, int] = {}
    for record in reply["records"]:
        index, value = record["partition"], decode_bytes(record["value"])
        assert record["offset"] > offsets.get(index, -1), "offsets go up"
        offsets[index] = record["offset"]
        if value != LAST:
            values[index].append(value or b"")
    assert reply["reached"] is not is_waiting, (isolation, values)
    return values


def committed(bench: Bench, topic: str, *partitions: int) -> dict[int, list[bytes]]:
    """Return what the client under test reads with read_committed."""
    return read(bench.driver, topic, "read_committed", partitions or (0,))


def uncommitted(bench: Bench, topic: str, *partitions: int) -> dict[int, list[bytes]]:
    """Return what the client under test reads with read_uncommitted."""
    return read(bench.driver, topic, "read_uncommitted", partitions or (0,))


def group_offsets(bench: Bench, group: str, topic: str) -> dict[int, int]:
    """Return the offsets that a group has committed in a topic."""
    return bench.helper.group_offsets(group).get(topic, {})


def write_last(bench: Bench, topic: str, *partitions: int) -> None:
    """Write `LAST` to partitions; after it a reader knows that it has seen the rest."""
    records = [{"partition": index, "value": LAST} for index in partitions or (0,)]
    assert all(result.error is None for result in bench.helper.produce(topic, records))


def send_and_commit(producer: Producer, topic: str, values: Sequence[bytes]) -> None:
    """End a transaction with some more records; either may be where its producer is refused."""
    producer.send(topic, values)
    producer.commit()


def values_of(word: str, count: int) -> list[bytes]:
    return [f"{word} {i}".encode() for i in range(count)]


def version_1_and_2(bench: Bench) -> tuple[Driver, Driver]:
    """Return Java drivers that speak the transaction protocols of KIP-98 and of KIP-890."""

    def client(version: str) -> Client:
        return next(c for c in all_clients() if (c.name, c.version) == ("Java", version))

    return bench.driver_of(client(KAFKA_3_9)), bench.driver_of(client(KAFKA_4))


@scenario("transaction: commit", "transactions")
def committed_records_are_seen(bench: Bench) -> None:
    topic = bench.topic()
    sent = [values_of(f"transaction {i}", 4) for i in range(3)]
    with producer_of(bench.driver, bench.name()) as producer:
        for i, values in enumerate(sent):
            producer.begin()
            # Each marker takes an offset.
            assert producer.send(topic, values) == [i * 5 + j for j in range(4)]
            producer.commit()
    write_last(bench, topic)
    expected = {0: [value for values in sent for value in values]}
    assert committed(bench, topic) == expected
    assert uncommitted(bench, topic) == expected
    # 12 records, 3 markers, the last record.
    assert bench.helper.list_offsets(topic, {0: "latest"}) == {0: 16}


@scenario("transaction: abort", "transactions")
def aborted_records_are_seen_by_those_who_do_not_care(bench: Bench) -> None:
    topic = bench.topic()
    aborted, kept, aborted_later = values_of("no", 3), values_of("yes", 2), values_of("never", 4)
    with producer_of(bench.driver, bench.name()) as producer:
        producer.begin()
        producer.send(topic, aborted)
        producer.abort()
        producer.begin()
        producer.send(topic, kept)
        producer.commit()
        producer.begin()
        producer.send(topic, aborted_later)
        producer.abort()
    write_last(bench, topic)
    assert committed(bench, topic) == {0: kept}
    assert uncommitted(bench, topic) == {0: aborted + kept + aborted_later}


@scenario("transaction: read_committed waits for the end", "transactions")
def open_transactions_hold_back_read_committed(bench: Bench) -> None:
    topic = bench.topic()
    before, inside = values_of("before", 3), values_of("inside", 3)
    bench.helper.produce(topic, [{"partition": 0, "value": value} for value in before])
    with producer_of(bench.driver, bench.name()) as producer:
        producer.begin()
        producer.send(topic, inside)
        write_last(bench, topic)
        waiting = read(bench.driver, topic, "read_committed", is_waiting=True, timeout_ms=1500)
        assert waiting == {0: before}
        assert uncommitted(bench, topic) == {0: before + inside}
        producer.commit()
    assert committed(bench, topic) == {0: before + inside}


@scenario("transaction: several topics and partitions", "transactions")
def a_transaction_is_whole_over_partitions(bench: Bench) -> None:
    topics = [bench.topic(partitions=3), bench.topic(partitions=2)]
    places = [(topics[0], 0), (topics[0], 2), (topics[1], 0), (topics[1], 1)]
    with producer_of(bench.driver, bench.name()) as producer:
        for word, end in (("kept", producer.commit), ("dropped", producer.abort)) * 2:
            producer.begin()
            for topic, index in places:
                producer.send(topic, values_of(f"{word} {index}", 2), index)
            end()
    for topic in topics:
        indexes = [index for place, index in places if place == topic]
        write_last(bench, topic, *indexes)
        kept = {index: values_of(f"kept {index}", 2) for index in indexes}
        dropped = {index: values_of(f"dropped {index}", 2) for index in indexes}
        assert committed(bench, topic, *indexes) == {i: kept[i] * 2 for i in indexes}
        assert uncommitted(bench, topic, *indexes) == {
            i: (kept[i] + dropped[i]) * 2 for i in indexes
        }


@scenario("transaction: empty", "transactions")
def empty_transactions_end(bench: Bench) -> None:
    topic = bench.topic()
    with producer_of(bench.driver, bench.name()) as producer:
        for end in (producer.commit, producer.abort, producer.commit):
            producer.begin()
            end()
        producer.begin()
        producer.send(topic, values_of("value", 1))
        producer.commit()
        producer.begin()
        producer.abort()
    write_last(bench, topic)
    assert committed(bench, topic) == {0: values_of("value", 1)}
    assert bench.helper.list_offsets(topic, {0: "latest"}) == {0: 3}


@scenario("transaction: a zombie is fenced", "transactions")
def a_second_producer_takes_the_place_of_the_first(bench: Bench) -> None:
    topic, name = bench.topic(), bench.name()
    with producer_of(bench.driver, name) as zombie:
        zombie.begin()
        zombie.send(topic, values_of("zombie", 2))
        with producer_of(bench.driver, name) as successor:
            # Some clients take their place only now.
            successor.begin()
            with pytest.raises(ClientError) as refused:
                send_and_commit(zombie, topic, values_of("too late", 1))
            assert refused.value.code in FENCED, refused.value
            successor.send(topic, values_of("successor", 2))
            successor.commit()
    write_last(bench, topic)
    assert committed(bench, topic) == {0: values_of("successor", 2)}
    assert uncommitted(bench, topic) == {0: values_of("zombie", 2) + values_of("successor", 2)}


@scenario("transaction: timeout", "transactions")
def a_transaction_that_takes_too_long_is_aborted(bench: Bench) -> None:
    topic, name = bench.topic(), bench.name()
    # confluent-kafka 2.6.1 takes a second to deliver its first record, within this time.
    with producer_of(bench.driver, name, timeout_ms=2500) as slow:
        slow.begin()
        slow.send(topic, values_of("slow", 2))
        write_last(bench, topic)
        # Reads on as soon as the broker has aborted it.
        assert committed(bench, topic) == {0: []}
        with pytest.raises(ClientError) as refused:
            slow.commit()
        assert refused.value.code in FENCED | {"INVALID_TXN_STATE"}, refused.value
    with producer_of(bench.driver, name) as producer:
        producer.begin()
        assert producer.send(topic, values_of("next", 1)) == [4]
        producer.commit()
    # The values, `LAST` and the abort's marker before; the marker now, when read_committed has it.
    assert uncommitted(bench, topic) == {0: values_of("slow", 2)}


@scenario("transaction: consume, transform, produce", "transactions")
def offsets_are_part_of_the_transaction(bench: Bench) -> None:
    source, target, group = bench.topic(partitions=2), bench.topic(partitions=2), bench.name()
    sent = {index: values_of(f"partition {index}", 5) for index in range(2)}
    for index, values in sent.items():
        records = [{"partition": index, "key": b"key", "value": value} for value in values]
        bench.helper.produce(source, records)
    done: dict[int, int] = {}
    with producer_of(bench.driver, bench.name(), group=group, source=source) as producer:
        for count, is_kept in ((3, False), (3, True), (4, False), (3, True), (4, True)):
            records = producer.transform(group, source, target, count)
            assert group_offsets(bench, group, source) == done
            if is_kept:
                producer.commit()
                done.update((record.partition, record.offset + 1) for record in records)
                wait_until(lambda: group_offsets(bench, group, source) == done)
            else:
                producer.abort()
                assert group_offsets(bench, group, source) == done
    assert done == {0: 5, 1: 5}
    write_last(bench, target, 0, 1)
    assert committed(bench, target, 0, 1) == {
        index: [b"seen " + value for value in values] for index, values in sent.items()
    }


@scenario("transaction: a group waits for pending offsets", "transactions", "require_stable")
def members_start_where_the_open_transaction_ends(bench: Bench) -> None:
    source, target, group = bench.topic(), bench.topic(), bench.name()
    sent = values_of("value", 6)
    bench.helper.produce(source, [{"partition": 0, "key": b"k", "value": v} for v in sent])
    other = next(driver for driver in version_1_and_2(bench) if driver is not bench.driver)
    with ExitStack() as opened:
        holder = opened.enter_context(producer_of(other, bench.name()))
        first = holder.transform(group, source, target, 4)
        assert [record.value for record in first] == sent[:4]
        options = {"group": group, "source": source}
        producer = opened.enter_context(producer_of(bench.driver, bench.name(), **options))
        pool = opened.enter_context(ThreadPoolExecutor(1))
        taken = pool.submit(producer.transform, group, source, target, 2)
        # It must not begin at 0: that depends on how the transaction ends.
        with pytest.raises(TimeoutError):
            taken.result(0.7)
        holder.commit()
        assert [record.value for record in taken.result(20)] == sent[4:]
        producer.commit()
    wait_until(lambda: bench.helper.group_offsets(group) == {source: {0: 6}})


@scenario("transaction: many, interleaved", "transactions:interleaved")
def transactions_of_two_producers_do_not_touch(bench: Bench) -> None:
    topic = bench.topic()
    numbers = random.Random(17)
    kept: list[bytes] = []
    everything: list[bytes] = []
    with (
        producer_of(bench.driver, bench.name()) as first,
        producer_of(bench.driver, bench.name()) as second,
    ):
        inside: dict[str, list[bytes] | None] = {first.name: None, second.name: None}
        fate: list[tuple[bytes, list[bool]]] = []
        ends: dict[str, list[bool]] = {}
        for i in range(60):
            producer = numbers.choice([first, second])
            if inside[producer.name] is None:
                producer.begin()
                inside[producer.name], ends[producer.name] = [], []
            if numbers.random() < 0.6:
                value = f"{i}".encode() * numbers.randrange(1, 300)
                producer.send(topic, [value])
                everything.append(value)
                fate.append((value, ends[producer.name]))
            else:
                is_kept = numbers.random() < 0.5
                (producer.commit if is_kept else producer.abort)()
                ends[producer.name].append(is_kept)
                inside[producer.name] = None
        for producer in (first, second):
            if inside[producer.name] is not None:
                producer.commit()
                ends[producer.name].append(True)
        kept = [value for value, end in fate if end == [True]]
    write_last(bench, topic)
    assert committed(bench, topic) == {0: kept}
    assert uncommitted(bench, topic) == {0: everything}


@scenario("transaction: beside V1 and V2 clients", "transactions")
def both_protocols_work_in_one_partition(bench: Bench) -> None:
    topic = bench.topic()
    drivers = [bench.driver, *version_1_and_2(bench)]
    words = ("own", "V1", "V2")
    with ExitStack() as opened:
        producers = [opened.enter_context(producer_of(driver, bench.name())) for driver in drivers]
        for round_number in range(3):
            for producer, word in zip(producers, words, strict=True):
                producer.begin()
                producer.send(topic, [f"{word} {round_number} a".encode()])
            for producer, word in zip(producers, words, strict=True):
                producer.send(topic, [f"{word} {round_number} b".encode()])
            # In each round another one commits.
            for i, producer in enumerate(producers):
                (producer.commit if i == round_number else producer.abort)()
    write_last(bench, topic)
    kept = [f"{words[i]} {i} {part}".encode() for i in range(3) for part in "ab"]
    written = [f"{word} {i} {part}".encode() for i in range(3) for part in "ab" for word in words]
    for driver in drivers:
        assert read(driver, topic, "read_committed") == {0: kept}
        assert read(driver, topic, "read_uncommitted") == {0: written}


@scenario("transaction: reads those of V1 and V2 clients", "read_committed")
def readers_of_one_client_see_transactions_of_others(bench: Bench) -> None:
    topic = bench.topic(partitions=2)
    with ExitStack() as opened:
        first, second = (
            opened.enter_context(producer_of(driver, bench.name()))
            for driver in version_1_and_2(bench)
        )
        for i in range(6):
            first.begin()
            first.send(topic, [f"V1 {i}".encode()], i % 2)
            second.begin()
            second.send(topic, [f"V2 {i}".encode()], i % 2)
            (first.commit if i < 3 else first.abort)()
            (second.abort if i < 3 else second.commit)()
    write_last(bench, topic, 0, 1)
    assert committed(bench, topic, 0, 1) == {
        0: [b"V1 0", b"V1 2", b"V2 4"],
        1: [b"V1 1", b"V2 3", b"V2 5"],
    }
    assert uncommitted(bench, topic, 0, 1) == {
        0: [b"V1 0", b"V2 0", b"V1 2", b"V2 2", b"V1 4", b"V2 4"],
        1: [b"V1 1", b"V2 1", b"V1 3", b"V2 3", b"V1 5", b"V2 5"],
    }
