"""Log directories after a crash, or when somebody has changed their files."""

from random import Random

import pytest

from kafkalite.log.directories import LogDirectoryError
from kafkalite.log.disk import OsDisk
from kafkalite.log_config import LogConfig
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.log.log_kit import NOW_MS, append, contents
from tests.log.manager_kit import T0, T1, TOPIC_ID, U0, create, start
from tests.log.sim_disk import SimDisk


def test_a_broker_killed_at_any_moment_starts_with_what_was_acknowledged():
    """Several partitions, deletions, checkpoints and restarts; killed between any two changes."""
    random = Random(5)
    disk = SimDisk()
    manager = start(disk, segment_bytes=300)
    config = LogConfig(segment_bytes=300)
    expected = {}  # of each partition: acknowledged (offset, value) from its log start on
    history = [(len(disk.trace), {})]
    partitions = [T0, T1, U0]
    for step in range(120):
        tp = random.choice(partitions)
        log = manager.get(tp)
        if log is None:
            manager.create(tp, TOPIC_ID, config)
            expected[tp] = []
        elif random.random() < 0.7:
            info = append(log, f"{tp} {step}" + "." * random.randint(0, 80))
            expected[tp] = [*expected[tp], (info.first_offset, None)]
        elif random.random() < 0.2:
            del expected[tp]
            manager.delete(tp)
        elif random.random() < 0.5:
            log.flush_now()
            manager.write_all_checkpoints()
        else:
            log.delete_records_before(log.log_end_offset // 2)
            log.apply_retention(NOW_MS)
            base = log.segments.first.base_offset
            expected[tp] = [each for each in expected[tp] if each[0] >= base]
        if step % 40 == 39:
            manager.close()
            manager = start(disk, segment_bytes=300)
        history.append((len(disk.trace), dict(expected)))
    for changes in range(history[0][0], len(disk.trace) + 1):
        before = [state for at, state in history if at <= changes][-1]
        after = next((state for at, state in history if at >= changes), before)
        crashed = SimDisk.replay(disk.trace, changes)
        found = start(crashed, segment_bytes=300)
        assert found.offline == {}
        for tp in partitions:
            if tp in before and tp in after:
                log = found.get(tp)
                wanted = {offset for offset, _ in before[tp]} & {o for o, _ in after[tp]}
                there = {offset for offset, _ in contents(log)}
                assert {o for o in wanted if o >= log.log_start_offset} <= there, (changes, tp)


def test_a_broker_on_a_real_disk_survives_a_kill(tmp_path):
    disk = OsDisk(syncs=False)
    manager = start(disk, paths=[str(tmp_path)])
    log = create(manager)
    for number in range(100):
        append(log, number)
    manager.close(clean=False)
    with open(tmp_path / "t-0" / f"{0:020d}.log", "ab") as file:
        file.write(b"\0\0\0torn")
    manager = start(disk, paths=[str(tmp_path)])
    assert len(contents(manager.get(T0))) == 100
    manager.close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    assert manager.logs() == []


def test_directory_in_the_way_is_set_aside(caplog):
    """It is of no topic that is known, so nobody asked for it to be deleted."""
    disk = SimDisk()
    manager = start(disk)
    disk.make_directory("/data/t-0")
    disk.replace("/data/t-0/00000000000000000000.log", b"precious")
    create(manager)
    (path,) = [each.name for each in disk.list("/data") if each.name.endswith("-stray")]
    assert disk.read(f"/data/{path}/00000000000000000000.log") == b"precious"
    assert path in caplog.text


def test_directory_in_the_way_that_cannot_be_set_aside_stays():
    disk = SimDisk()
    manager = start(disk)
    disk.make_directory("/data/t-0")
    disk.replace("/data/t-0/00000000000000000000.log", b"precious")
    disk.fail("rename", "/data/t-0")
    with pytest.raises(KafkaError) as error:
        create(manager)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert disk.read("/data/t-0/00000000000000000000.log") == b"precious"


@pytest.mark.parametrize("gone", ["/data/t-0", "/data"])
def test_log_whose_files_vanish_is_offline_at_the_next_look(gone, caplog):
    disk = SimDisk()
    manager = start(disk)
    log, other = create(manager), create(manager, T1)
    failed = []
    manager.on_failed = failed.append
    append(log, "a")
    append(other, "a")
    manager.keeper._look_for_files()
    assert not failed
    disk.remove(gone)
    append(log, "acknowledged into the void, for a second")
    manager.keeper._look_for_files()
    manager.keeper._look_for_files()
    with pytest.raises(KafkaError) as error:
        append(log, "b")
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert failed == [log]
    assert [record.message for record in caplog.records] == [
        f"{gone} is not there any more; what it holds is offline"
    ]
    append(other, "c")
    manager.keeper._look_for_files()
    assert failed == ([log, other] if gone == "/data" else [log])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "it is empty"),
        (b"#only a comment\n", "it is empty"),
        (b"version=2\ncluster.id=abc\nnode.id=1\n", "version 2 is not known"),
        (b"version=1\nnode.id=one\n", "invalid literal"),
    ],
)
def test_meta_properties_that_say_nothing_or_too_much_stop_the_start(content, told):
    disk = SimDisk()
    disk.make_directory("/data")
    disk.replace("/data/meta.properties", content)
    with pytest.raises(LogDirectoryError, match=told) as error:
        start(disk)
    assert "/data/meta.properties" in str(error.value)


def test_missing_meta_properties_beside_partitions_are_told_of(caplog):
    disk = SimDisk()
    manager = start(disk)
    append(create(manager), "a")
    manager.close()
    disk.remove("/data/meta.properties")
    manager = start(disk)
    assert contents(manager.get(T0)) == [(0, "a")]
    assert "/data has partitions and no meta.properties" in caplog.text


def test_metadata_beside_the_logs_are_noted_once():
    disk = SimDisk()
    manager = start(disk)
    assert not manager.has_metadata
    manager.note_metadata()
    assert manager.has_metadata
    properties = disk.read("/data/meta.properties")
    assert b"node.id=1" in properties
    disk.fail("replace", "meta.properties")
    manager.note_metadata()
    manager.close()
    assert start(disk).has_metadata
