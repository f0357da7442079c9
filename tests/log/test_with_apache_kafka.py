"""Apache Kafka and this log on each other's files: its tools, and a broker on the same data."""

import shutil
import time

import pytest
import trio

from compat_tests.apache_kafka import KAFKA_3_9, KAFKA_4, ApacheBroker, run_tool
from kafkalite.clock import SystemClock
from kafkalite.log.disk import OsDisk
from kafkalite.log.log import Log
from kafkalite.log.manager import LogManager
from kafkalite.log.validate import AppendOrigin
from kafkalite.log_config import LogConfig
from kafkalite.types import TopicPartition
from kafkalite.wire.compression import Codec
from kafkalite.wire.records import iterate_records
from tests.log.log_kit import NOW_MS, TOPIC_ID, append, contents, marker

pytestmark = [pytest.mark.kafka_dir, pytest.mark.slow]

PLAIN, TXN, CLEANED = (TopicPartition(topic, 0) for topic in ("plain", "txn", "cleaned"))


# --- Apache's tools on our files -----------------------------------------------------------------


def files_of(log: Log, *kinds):
    return [
        f"{log.directory}/{entry.name}"
        for entry in OsDisk().list(log.directory)
        if entry.name.endswith(kinds)
    ]


def write_everything(manager):
    """Write logs with all that a log can hold: segments, codecs, transactions, compaction."""
    config = LogConfig(segment_bytes=20_000, index_interval_bytes=300, segment_ms=2**60)
    plain = manager.create(PLAIN, TOPIC_ID, config)
    for number in range(300):
        append(
            plain,
            *[f"{number}.{index} " * 20 for index in range(3)],
            timestamps=[NOW_MS + number * 10 + index * 7 for index in range(3)],
            codec=list(Codec)[number % 5],
            epoch=number // 100,
        )
    txn = manager.create(TXN, TOPIC_ID, config)
    for number in range(100):
        producer_id = number % 3
        append(
            txn,
            "x" * 300,
            timestamp=NOW_MS + number,
            producer_id=producer_id,
            producer_epoch=1,
            base_sequence=number // 3,
            transactional=producer_id > 0,
        )
        if number % 10 == 9:
            txn.append_as_leader(
                marker(producer_id or 1, 1, commit=number % 20 == 9, timestamp=NOW_MS + number),
                leader_epoch=0,
                now_ms=NOW_MS,
                origin=AppendOrigin.COORDINATOR,
            )
    cleaned = manager.create(
        CLEANED,
        TOPIC_ID,
        LogConfig(
            segment_bytes=2000,
            index_interval_bytes=300,
            segment_ms=2**60,
            cleanup_policy=frozenset({"compact"}),
        ),
    )
    for number in range(200):
        append(
            cleaned,
            number,
            keys=[str(number % 30).encode()],
            timestamp=NOW_MS + number,
        )
    trio.run(manager.compact, CLEANED)
    return [plain, txn, cleaned]


def check_with_dump_log(version, logs):
    """Let kafka-dump-log look at all files; it has nothing to complain of."""
    logs_and_indexes = [
        path for log in logs for path in files_of(log, ".log", ".index", ".timeindex")
    ]
    others = [path for log in logs for path in files_of(log, ".snapshot", ".txnindex")]
    assert len(others) > 10
    for options, paths in (
        (("--deep-iteration", "--print-data-log"), [p for p in logs_and_indexes if ".log" in p]),
        (("--verify-index-only",), [p for p in logs_and_indexes if "index" in p]),
        (("--index-sanity-check",), [p for p in logs_and_indexes if "index" in p]),
        ((), others),
    ):
        done = run_tool(version, "kafka-dump-log", *options, "--files", ",".join(paths))
        errors = [
            line
            for line in done.stderr.splitlines()
            # Gaps are what compaction is for.
            if "Non-consecutive" not in line and "is followed by" not in line
        ]
        assert errors == [], (options, errors)
        assert "isvalid: false" not in done.stdout
        assert "invalid bytes" not in done.stdout
        if "--index-sanity-check" in options:
            passed = done.stdout.count("passed sanity check")
            empty = done.stdout.count("is empty")
            assert passed + empty >= len(paths)
            assert passed > 15


@pytest.mark.parametrize("version", [KAFKA_4, KAFKA_3_9])
def test_kafka_dump_log_finds_nothing_wrong_while_the_broker_runs_and_after(version, tmp_path):
    manager = LogManager([str(tmp_path / "data")], OsDisk(syncs=False), SystemClock())
    manager.claim(node_id=1)
    logs = write_everything(manager)
    for log in logs:
        append(log, "the indexes lag behind this", keys=[b"k"], timestamp=NOW_MS + 10**6)
    check_with_dump_log(version, logs)
    manager.close()
    check_with_dump_log(version, logs)


def test_kafka_dump_log_finds_nothing_wrong_after_a_recovery(tmp_path):
    disk = OsDisk(syncs=False)
    manager = LogManager([str(tmp_path / "data")], disk, SystemClock())
    manager.claim(node_id=1)
    logs = write_everything(manager)
    before = [contents(log) for log in logs]
    manager.close(clean=False)
    for log in logs:
        with open(log.segments.active.path(".log"), "ab") as file:
            file.write(b"\0" * 100)
    manager = LogManager([str(tmp_path / "data")], disk, SystemClock())
    manager.claim(node_id=1)
    policies = {CLEANED: frozenset({"compact"})}
    logs = manager.load(
        lambda tp: LogConfig(
            index_interval_bytes=300, cleanup_policy=policies.get(tp, frozenset({"delete"}))
        )
    )
    check_with_dump_log(KAFKA_4, sorted(logs, key=str))
    assert [contents(manager.get(tp)) for tp in (PLAIN, TXN, CLEANED)] == before


# --- Apache's broker and ours on one directory ---------------------------------------------------

BROKER = {
    "log.index.interval.bytes": 500,
    "num.partitions": 1,
    "transaction.state.log.num.partitions": 2,
    "offsets.topic.num.partitions": 2,
}


def produce_plain(bootstrap, values, *, codec="none"):
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 0,
            "batch.num.messages": 7,
        }
    )
    for value in values:
        producer.produce("plain", value.encode())
    assert producer.flush(30) == 0


def produce_transactions(bootstrap, *, leave_open=False):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "one"})
    producer.init_transactions(30)
    for number in range(4):
        producer.begin_transaction()
        for index in range(3):
            producer.produce("txn", f"{'abort' if number % 2 else 'commit'} {number}.{index}")
        if number % 2:
            producer.flush(30)
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    if leave_open:
        producer.begin_transaction()
        producer.produce("txn", "open")
        assert producer.flush(30) == 0
    return producer


def consume(bootstrap, topic, count, *, isolation="read_committed"):
    from confluent_kafka import OFFSET_BEGINNING, Consumer
    from confluent_kafka import TopicPartition as At

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": isolation,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([At(topic, 0, OFFSET_BEGINNING)])
    found = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append((message.offset(), message.value().decode()))
    consumer.close()
    return found


@pytest.fixture(scope="module")
def apache_directories(tmp_path_factory):
    """Return what Apache left: (after a clean stop, after a kill, records of `plain` in each)."""
    root = tmp_path_factory.mktemp("apache")
    data = root / "data"
    broker = ApacheBroker(config=BROKER, data_dir=data)
    try:
        broker.start()
        broker.run_tool(
            "kafka-topics",
            *("--create", "--topic", "plain", "--partitions", "1", "--replication-factor", "1"),
            *("--config", "segment.bytes=1048576", "--config", "segment.ms=604800000"),
        )
        values = [f"{number} " * 200 for number in range(6000)]
        for codec, start in (("none", 0), ("zstd", 2000), ("lz4", 4000)):
            produce_plain(broker.bootstrap, values[start : start + 2000], codec=codec)
        produce_transactions(broker.bootstrap)
        request = root / "delete.json"
        request.write_text(
            '{"version":1,"partitions":[{"topic":"plain","partition":0,"offset":100}]}'
        )
        broker.run_tool("kafka-delete-records", "--offset-json-file", str(request))
        broker.stop()
        clean = root / "clean"
        shutil.copytree(data, clean)
        broker.start()
        more = [f"more {number}" for number in range(500)]
        produce_plain(broker.bootstrap, more)
        holder = produce_transactions(broker.bootstrap, leave_open=True)
        broker.stop(kill=True)
        killed = root / "killed"
        shutil.copytree(data, killed)
        del holder
    finally:
        broker.close()
    first = list(enumerate(values))[100:]
    return clean, killed, first, first + list(enumerate(more, 6000))


def opened(path, disk=None):
    for name in (".lock",):
        (path / name).unlink(missing_ok=True)
    manager = LogManager([str(path)], disk or OsDisk(syncs=False), SystemClock())
    manager.claim(node_id=0)
    manager.load(lambda _: LogConfig(segment_bytes=1 << 20))
    assert manager.offline == {}
    return manager


def decided(log):
    """Return the values of `txn` that a read_committed consumer would see."""
    aborted = [
        (a.producer_id, a.first_offset, a.last_offset)
        for a in log.aborted_transactions(0, log.log_end_offset)
    ]
    upper = log.first_unstable_offset
    found = []
    for data in log.read_batches(0, upper):
        producer_id = int.from_bytes(data[43:51], "big", signed=True)
        if data[22] & 0x20:
            continue
        found += [
            record.value.decode()
            for record in iterate_records(data)
            if not any(p == producer_id and f <= record.offset <= n for p, f, n in aborted)
        ]
    return found


def test_a_directory_that_apache_kafka_left_in_order_is_opened_as_it_is(
    apache_directories, tmp_path
):
    clean, _, records, _ = apache_directories
    shutil.copytree(clean, tmp_path / "data")
    manager = opened(tmp_path / "data")
    found = {log.topic_partition for log in manager.logs()}
    assert {PLAIN, TXN, TopicPartition("__transaction_state", 0)} <= found
    assert all(not tp.topic.startswith("__cluster") for tp in found)
    log = manager.get(PLAIN)
    assert (log.log_start_offset, log.log_end_offset) == (100, 6000)
    assert [each for each in contents(log) if each[0] >= 100] == records
    assert len(log.segments) > 1
    assert log.topic_id.int != 0
    assert log.leader_epoch >= 0
    assert len(log.producers) == 3
    assert sorted(state.last_sequence for state in log.producers) == [1999] * 3
    txn = manager.get(TXN)
    assert txn.first_unstable_offset is None
    assert decided(txn) == [f"commit {n}.{index}" for n in (0, 2) for index in range(3)]
    assert len(txn.aborted_transactions(0, txn.log_end_offset)) == 2
    for offset in (100, 3333, 5999):
        timestamp = next(
            record.timestamp
            for data in log.read_batches(offset)
            for record in iterate_records(data)
            if record.offset == offset
        )
        first, at, _ = log.offset_for_timestamp(timestamp, upper_offset=6000)
        assert at == timestamp
        assert first <= offset
    manager.close()


def test_a_directory_of_a_killed_apache_kafka_is_recovered(apache_directories, tmp_path):
    _, killed, _, records = apache_directories
    shutil.copytree(killed, tmp_path / "data")
    with open(tmp_path / "data" / "plain-0" / f"{0:020d}.timeindex", "r+b") as file:
        file.truncate(13)
    manager = opened(tmp_path / "data")
    log = manager.get(PLAIN)
    assert [each for each in contents(log) if each[0] >= 100] == records
    txn = manager.get(TXN)
    assert decided(txn) == [
        f"commit {n}.{index}" for _ in "ab" for n in (0, 2) for index in range(3)
    ]
    assert txn.first_unstable_offset == txn.log_end_offset - 1
    logs = [log, txn]
    manager.close(clean=False)
    done = run_tool(
        KAFKA_4,
        "kafka-dump-log",
        "--verify-index-only",
        "--files",
        ",".join(
            path for each in logs for path in files_of(each, "index") if "txn" not in path[-9:]
        ),
    )
    assert done.stderr == ""


@pytest.mark.parametrize("clean", [True, False])
def test_apache_kafka_goes_on_where_this_broker_stopped(apache_directories, tmp_path, clean):
    source, _, records, _ = apache_directories
    data = tmp_path / "data"
    shutil.copytree(source, data)
    manager = opened(data)
    log, txn = manager.get(PLAIN), manager.get(TXN)
    now_ms = SystemClock().wall_ms()
    ours = []
    for number in range(400):
        value = f"ours {number} " * 300
        info = append(
            log,
            value,
            epoch=log.leader_epoch,
            timestamp=now_ms,
            now_ms=now_ms,
            producer_id=999,
            producer_epoch=0,
            base_sequence=number,
        )
        ours.append((info.first_offset, value))
    log.delete_records_before(200)
    log.apply_retention(now_ms)
    assert len(log.segments) > 2
    for sequence, commit in ((0, False), (1, True)):
        append(
            txn,
            f"ours {commit}",
            epoch=txn.leader_epoch,
            timestamp=now_ms,
            now_ms=now_ms,
            producer_id=998,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )
        txn.append_as_leader(
            marker(998, commit=commit, timestamp=now_ms),
            leader_epoch=txn.leader_epoch,
            now_ms=now_ms,
            origin=AppendOrigin.COORDINATOR,
        )
    manager.write_all_checkpoints()
    manager.close(clean=clean)
    with ApacheBroker(config=BROKER, data_dir=data) as broker:
        wanted = [each for each in records + ours if each[0] >= 200]
        assert consume(broker.bootstrap, "plain", len(wanted)) == wanted
        committed = [value for _, value in consume(broker.bootstrap, "txn", 7)]
        assert committed == [f"commit {n}.{index}" for n in (0, 2) for index in range(3)] + [
            "ours True"
        ]
        produce_plain(broker.bootstrap, ["after"])
        assert "FATAL" not in broker.log_file.read_text()
        said = [
            line
            for line in broker.log_file.read_text().splitlines()
            if (" WARN " in line or " ERROR " in line) and "plain-0" in line
        ]
        assert not clean or said == []
    manager = opened(data)
    assert contents(manager.get(PLAIN))[-1][1] == "after"
    manager.close()
