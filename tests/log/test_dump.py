"""What dump-log prints; with Apache's own tool as the oracle where it can be had."""

import struct
from uuid import UUID

import pytest

from compat_tests.apache_kafka import KAFKA_3_9, KAFKA_4, ApacheBroker, run_tool
from kafkalite.log.checkpoint import (
    write_epochs,
    write_offsets,
    write_partition_metadata,
    write_properties,
)
from kafkalite.log.cleaner import CleanerSettings, clean, plan_cleaning
from kafkalite.log.disk import OsDisk
from kafkalite.log.dump import Dump, DumpOptions
from kafkalite.log.leader_epochs import EpochStart
from kafkalite.log.producer_state import ProducerStates
from kafkalite.log.transaction_index import AbortedTransaction, encode_aborted
from kafkalite.log.validate import AppendOrigin
from kafkalite.types import TopicPartition
from kafkalite.wire.compression import Codec
from kafkalite.wire.records import (
    Record,
    build_batch,
    control_batch,
    empty_batch,
    iterate_batches,
    read_batch_header,
    read_end_marker,
    set_offset_and_epoch,
)
from tests.log.log_kit import NOW_MS, append, batch, make_log, marker
from tests.log.sim_disk import SimDisk

LOG = "00000000000000000000.log"


def dump(path, **options):
    found = Dump(OsDisk(), DumpOptions(**options))
    return list(found.lines(str(path))), found.problems


class TestLog:
    def test_line_of_a_batch(self, tmp_path):
        data = build_batch(
            [Record(7, 1000, b"k", b"v"), Record(8, 1001, b"k", None)],
            base_offset=7,
            leader_epoch=2,
            producer_id=5,
            producer_epoch=1,
            base_sequence=2**31 - 1,
            codec=Codec.LZ4,
            transactional=True,
            delete_horizon_ms=900,
        )
        path = tmp_path / "00000000000000000007.log"
        path.write_bytes(data)
        header = read_batch_header(data)
        lines, problems = dump(path)
        assert lines == [
            f"Dumping {path}",
            "Log starting offset: 7",
            "baseOffset: 7 lastOffset: 8 count: 2 baseSequence: 2147483647 lastSequence: 0 "
            "producerId: 5 producerEpoch: 1 partitionLeaderEpoch: 2 isTransactional: true "
            "isControl: false deleteHorizonMs: OptionalLong[900] position: 0 CreateTime: 1001 "
            f"size: {len(data)} magic: 2 compresscodec: lz4 crc: {header.crc} isvalid: true",
        ]
        assert problems == []

    def test_records_and_contents(self, tmp_path):
        path = tmp_path / LOG
        path.write_bytes(
            build_batch(
                [
                    Record(0, 1, b"key", b"value", [("a", b""), ("b", None)]),
                    Record(1, 2, None, b"\xff"),
                    Record(3, 3, b"", None),
                ],
                log_append_time_ms=77,
            )
        )
        lines, problems = dump(path, records=True)
        assert lines[3:] == [
            "| offset: 0 LogAppendTime: 77 keySize: 3 valueSize: 5 sequence: -1 headerKeys: [a,b]",
            "| offset: 1 LogAppendTime: 77 keySize: -1 valueSize: 1 sequence: -1 headerKeys: []",
            "| offset: 3 LogAppendTime: 77 keySize: 0 valueSize: -1 sequence: -1 headerKeys: []",
        ]
        assert problems == [f"Non-consecutive offsets in {path}: 1 is followed by 3"]
        lines, _ = dump(path, contents=True)
        assert [line.partition("headerKeys: ")[2] for line in lines[3:]] == [
            "[a,b] key: key payload: value",
            "[] payload: \ufffd",
            "[] key: ",
        ]

    def test_contents_by_a_decoder(self, tmp_path):
        """For internal topics, whose keys and values are structures."""
        path = tmp_path / LOG
        path.write_bytes(build_batch([Record(0, 1, b"k", b"v")], producer_id=1, base_sequence=2))
        lines, _ = dump(path, contents=True, decode=lambda record: (f"<{record.offset}>", "<>"))
        assert lines[3].endswith("sequence: 2 headerKeys: [] key: <0> payload: <>")

    def test_markers(self, tmp_path):
        options = {"producer_id": 1, "producer_epoch": 0, "coordinator_epoch": 4, "timestamp_ms": 9}
        path = tmp_path / LOG
        path.write_bytes(
            control_batch(is_commit=True, **options)
            + control_batch(is_commit=False, base_offset=1, **options)
            + build_batch([Record(2, 9, b"\0\0\0\2", b"")], base_offset=2, control=True)
        )
        lines, _ = dump(path, contents=True)
        assert [line.partition("[] ")[2] for line in lines if line.startswith("|")] == [
            "endTxnMarker: COMMIT coordinatorEpoch: 4",
            "endTxnMarker: ABORT coordinatorEpoch: 4",
            "controlType: UNKNOWN",
        ]

    def test_wrong_crc_and_torn_tail(self, tmp_path):
        data = build_batch([Record(0, 1, b"k", b"v")])
        data[-1] ^= 1
        path = tmp_path / LOG
        for tail in (b"torn", bytes(data[:65]), bytes(data[:16]) + b"\0" * 60):
            path.write_bytes(data + tail)
            lines, _ = dump(path)
            assert lines[2].endswith("isvalid: false")
            assert lines[3:] == [f"Found {len(tail)} invalid bytes at the end of {LOG}"]

    def test_unreadable_records_are_a_problem_of_their_file(self, tmp_path):
        data = build_batch([Record(0, 1, b"k", b"v")])
        data[22] = Codec.GZIP
        path = tmp_path / LOG
        path.write_bytes(data)
        lines, problems = dump(path, records=True)
        assert len(lines) == 3
        assert str(path) in problems[0]

    def test_unknown_codec_is_shown(self, tmp_path):
        data = build_batch([Record(0, 1, b"k", b"v")])
        data[22] = 7
        path = tmp_path / LOG
        path.write_bytes(data)
        assert "compresscodec: unknown(7)" in dump(path)[0][2]

    def test_files_under_way_to_another_name(self, tmp_path):
        path = tmp_path / f"{LOG}.deleted"
        path.write_bytes(b"")
        assert dump(path) == ([f"Dumping {path}", "Log starting offset: 0"], [])


class TestIndexes:
    @pytest.fixture
    def log(self, tmp_path):
        log = make_log(OsDisk(), directory=str(tmp_path), index_interval_bytes=0)
        for number in range(4):
            append(log, "a", "b", timestamp=NOW_MS + number)
        log.roll()
        return log

    def test_entries(self, log, tmp_path):
        size = len(batch("a", "b"))
        lines, problems = dump(tmp_path / "00000000000000000000.index")
        assert lines[1:] == [f"offset: {2 * n + 1} position: {n * size}" for n in range(1, 4)]
        assert problems == []
        lines, problems = dump(tmp_path / "00000000000000000000.timeindex")
        assert lines[1:] == [f"timestamp: {NOW_MS + n} offset: {2 * n + 1}" for n in range(1, 4)]
        assert problems == []

    def test_empty(self, log, tmp_path):
        path = tmp_path / "00000000000000000008.index"
        assert dump(path)[0][1:] == [f"{path} is empty."]
        assert dump(tmp_path / "00000000000000000008.timeindex")[0][1:] == []

    def test_preallocated_zeros_are_no_entries(self, log, tmp_path):
        for kind in ("index", "timeindex"):
            path = tmp_path / f"00000000000000000000.{kind}"
            before = dump(path)
            path.write_bytes(path.read_bytes() + bytes(240))
            assert dump(path) == before

    def test_entries_that_contradict_the_log(self, log, tmp_path):
        path = tmp_path / "00000000000000000000.index"
        path.write_bytes(struct.pack(">iiii", 4, 0, 7, 100_000))
        _, problems = dump(path)
        assert problems == [
            f"Mismatches in {path}: index offset 4, log offset 1",
            f"Mismatches in {path}: index offset 7, log offset -1",
        ]
        path.write_bytes(b"")
        path = tmp_path / "00000000000000000000.timeindex"
        entries = [(NOW_MS + 1, 2), (NOW_MS + 9, 3), (NOW_MS + 2, 5), (NOW_MS + 20, 99)]
        path.write_bytes(b"".join(struct.pack(">qi", *entry) for entry in entries))
        _, problems = dump(path)
        assert [problem.removeprefix(f"{path}: ") for problem in problems] == [
            "indexed offset 2 is not the last of a batch in the log, found 3",
            f"index timestamp {NOW_MS + 9}, log timestamp {NOW_MS + 1}",
            f"timestamp {NOW_MS + 2} follows {NOW_MS + 9}, out of order",
            "indexed offset 99 is not the last of a batch in the log, found -1",
        ]

    def test_sibling_of_a_renamed_file(self, log, tmp_path):
        for kind in ("log", "index", "timeindex"):
            path = tmp_path / f"00000000000000000000.{kind}"
            path.rename(f"{path}.deleted")
        for kind in ("index", "timeindex"):
            lines, problems = dump(tmp_path / f"00000000000000000000.{kind}.deleted")
            assert len(lines) == 4
            assert problems == []


class TestOtherFiles:
    def test_producer_snapshot(self, tmp_path):
        states = ProducerStates()
        data = batch("a", "b", producer_id=5, producer_epoch=1, base_sequence=3, transactional=True)
        states.update(read_batch_header(data), base_offset=10)
        data = marker(6, commit=True, coordinator_epoch=9)
        states.update(read_batch_header(data), base_offset=12, marker=read_end_marker(data))
        path = tmp_path / "00000000000000000013.snapshot"
        path.write_bytes(states.snapshot())
        assert dump(path)[0][1:] == [
            "producerId: 5 producerEpoch: 1 coordinatorEpoch: -1 "
            f"currentTxnFirstOffset: OptionalLong[10] lastTimestamp: {NOW_MS} "
            f"firstSequence: 3 lastSequence: 4 lastOffset: 11 offsetDelta: 1 timestamp: {NOW_MS}",
            "producerId: 6 producerEpoch: 0 coordinatorEpoch: 9 "
            f"currentTxnFirstOffset: OptionalLong.empty lastTimestamp: {NOW_MS} ",
        ]

    def test_transaction_index(self, tmp_path):
        path = tmp_path / "00000000000000000000.txnindex"
        path.write_bytes(encode_aborted([AbortedTransaction(1, 2, 3, 4)]))
        assert dump(path)[0][1:] == [
            "version: 0 producerId: 1 firstOffset: 2 lastOffset: 3 lastStableOffset: 4"
        ]

    def test_text_files(self, tmp_path):
        disk = OsDisk()
        path = tmp_path / "recovery-point-offset-checkpoint"
        write_offsets(disk, str(path), {TopicPartition("a-b", 1): 20})
        assert dump(path)[0][1:] == ["partition: a-b-1 offset: 20"]
        path = tmp_path / "leader-epoch-checkpoint"
        write_epochs(disk, str(path), [EpochStart(3, 40)])
        assert dump(path)[0][1:] == ["epoch: 3 startOffset: 40"]
        path = tmp_path / "partition.metadata"
        write_partition_metadata(disk, str(path), UUID(int=1))
        assert dump(path)[0][1:] == ["topicId: AAAAAAAAAAAAAAAAAAAAAQ"]
        path = tmp_path / "meta.properties"
        write_properties(disk, str(path), {"node.id": "1"})
        assert dump(path)[0][1:] == ["node.id: 1"]

    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("00000000000000000000.snapshot", b"\0\1"),
            ("00000000000000000000.txnindex", b"\1" * 34),
            ("leader-epoch-checkpoint", b"1\n0\n"),
            ("some.log", b""),
        ],
    )
    def test_damage_is_a_problem_of_its_file(self, tmp_path, name, data):
        path = tmp_path / name
        path.write_bytes(data)
        lines, problems = dump(path)
        assert lines == [f"Dumping {path}"]
        assert len(problems) == 1
        assert str(path) in problems[0]

    def test_unknown_file(self, tmp_path):
        path = tmp_path / "notes.txt"
        path.write_bytes(b"")
        assert dump(path) == ([f"Dumping {path}"], [f"Ignoring unknown file {path}"])


@pytest.fixture(scope="module", params=[KAFKA_4, KAFKA_3_9])
def apache(request):
    """Return a function that dumps files with Apache's tool of a version."""

    def dump_with_apache(*paths, options=()):
        files = ",".join(str(path) for path in paths)
        done = run_tool(request.param, "kafka-dump-log", *options, "--files", files)
        return done.stdout.splitlines(), done.stderr.splitlines()

    return dump_with_apache


@pytest.mark.kafka_dir
@pytest.mark.slow
class TestAgainstApache:
    """The same lines for the same files, whoever wrote them."""

    def assert_same(self, apache, *paths):
        theirs, complaints = apache(*paths, options=["--print-data-log"])
        ours = []
        for path in paths:
            lines, problems = dump(path, contents=True)
            assert problems == []
            ours += lines
        assert ours == theirs
        # Of consecutive offsets Apache's tool has an odd idea in files that do not begin at 0.
        assert not [line for line in complaints if "atch" in line or "not found" in line]

    def test_batches_of_every_codec(self, apache, tmp_path):
        path = tmp_path / LOG
        data = bytearray()
        for codec in Codec:
            for count, size in ((1, 10), (300, 700)):
                part = build_batch(
                    [Record(n, NOW_MS + n, b"k%d" % n, b"v" * size) for n in range(count)],
                    codec=codec,
                    producer_id=7,
                    producer_epoch=1,
                    base_sequence=5,
                )
                offset = max((h.next_offset for _, h in iterate_batches(data)), default=0)
                set_offset_and_epoch(part, 0, base_offset=offset, leader_epoch=3)
                data += part
        path.write_bytes(data)
        self.assert_same(apache, path)

    def test_all_files_of_a_log_with_transactions(self, apache, tmp_path):
        log = make_log(OsDisk(), directory=str(tmp_path / "t-0"), index_interval_bytes=100)
        for number in range(30):
            options = {"timestamp": NOW_MS + number, "keys": [b"a", b"b"]}
            if number % 3 == 0:
                append(log, "x", "y", codec=Codec(number % 5), **options)
            else:
                ids = {"producer_id": number % 3, "producer_epoch": 2, "transactional": True}
                state = log.producers.get(number % 3)
                sequence = 0 if state is None else state.last_sequence + 1
                append(log, "x", "y", base_sequence=sequence, **ids, **options)
            if number % 10 == 9:
                log.append_as_leader(
                    marker(number % 2 + 1, 2, commit=number == 19),
                    leader_epoch=0,
                    now_ms=NOW_MS,
                    origin=AppendOrigin.COORDINATOR,
                )
            if number == 15:
                log.roll()
        log.close()
        files = sorted((tmp_path / "t-0").iterdir())
        kinds = {path.suffix for path in files}
        assert {".log", ".index", ".timeindex", ".snapshot", ".txnindex"} <= kinds
        self.assert_same(apache, *[path for path in files if path.suffix != ""])

    def test_compacted_log(self, apache, tmp_path):
        disk = SimDisk()
        log = make_log(disk, cleanup_policy=frozenset({"compact"}))
        append(log, "1", keys=[b"a"], producer_id=3, producer_epoch=0, base_sequence=0)
        for codec in Codec:
            append(log, "1", "2", "3", keys=[b"a", b"b", b"c"], codec=codec)
        tombstones = [Record(0, NOW_MS, b"d", None), Record(1, NOW_MS + 1, b"e", b"1")]
        log.append_as_leader(build_batch(tombstones), leader_epoch=4, now_ms=NOW_MS)
        log.append_as_leader(
            marker(9), leader_epoch=4, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
        )
        log.roll()
        plan = plan_cleaning(log, checkpoint=None, stable_offset=99, now_ms=NOW_MS)
        work = clean(plan, disk, settings=CleanerSettings(), now_ms=NOW_MS)
        with pytest.raises(StopIteration):
            work.send(None)
        path = tmp_path / LOG
        path.write_bytes(disk.read(f"/data/t-0/{LOG}"))
        theirs, _ = apache(path, options=["--print-data-log"])
        assert "OptionalLong[" in "\n".join(theirs)
        lines, _ = dump(path, contents=True)
        assert lines == theirs

    def test_emptied_batch(self, apache, tmp_path):
        path = tmp_path / LOG
        header = read_batch_header(
            batch("a", "b", producer_id=1, producer_epoch=0, base_sequence=4)
        )
        path.write_bytes(empty_batch(header))
        self.assert_same(apache, path)


@pytest.mark.kafka_dir
@pytest.mark.slow
def test_files_of_an_apache_broker(apache, tmp_path):
    """Java's own batches in every codec, its indexes and snapshots: same lines, no problems."""
    with ApacheBroker(
        config={"log.index.interval.bytes": 100}, data_dir=tmp_path / "data"
    ) as broker:
        lines = "".join(f"key{n}:{'value ' * 50}{n}\n" for n in range(500))
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            broker.run_tool(
                "kafka-console-producer",
                "--topic",
                "t",
                "--compression-codec",
                codec,
                "--property",
                "parse.key=true",
                "--property",
                "key.separator=:",
                stdin=lines,
            )
    folder = tmp_path / "data" / "t-0"
    paths = sorted(
        path
        for path in folder.iterdir()
        if path.suffix in (".log", ".index", ".timeindex", ".snapshot")
    )
    theirs, _ = apache(*paths, options=["--print-data-log"])
    ours = []
    for path in paths:
        found, problems = dump(path, contents=True)
        assert problems == []
        ours += found
    assert ours == theirs
    text = "\n".join(ours)
    assert all(
        f"compresscodec: {codec}" in text for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    )
    assert "producerId: " in text
