"""All logs of a broker: start, stop, creation, deletion, crash."""

from uuid import UUID

import pytest

from kafkalite.log.directories import LogDirectoryError
from kafkalite.log.manager import LogManager
from kafkalite.log_config import LogConfig
from kafkalite.types import ZERO_UUID, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.log.log_kit import NOW_MS, FakeClock, append, contents
from tests.log.manager_kit import T0, T1, TOPIC_ID, U0, Uuids, create, start
from tests.log.sim_disk import SimDisk

# --- Starting and stopping -----------------------------------------------------------------------


def test_a_first_start_makes_and_keeps_a_cluster_id():
    disk = SimDisk()
    manager = LogManager(["/a", "/b/"], disk, FakeClock(), new_uuid=Uuids())
    cluster_id = manager.claim(node_id=3)
    assert len(cluster_id) == 22
    assert manager.paths == ["/a", "/b"]
    manager.close()
    again = LogManager(["/a", "/b", "/c"], disk, FakeClock())
    assert again.claim(node_id=3) == cluster_id
    assert cluster_id.encode() in disk.read("/c/meta.properties")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"node_id": 4}, r"belongs to node.id 3, this broker is node.id 4"),
        ({"node_id": 3, "cluster_id": "other"}, "belongs to cluster"),
    ],
)
def test_a_directory_of_another_broker_or_cluster_is_refused(arguments, message):
    disk = SimDisk()
    LogManager(["/a"], disk, FakeClock()).claim(node_id=3)
    disk.locked.clear()
    manager = LogManager(["/a"], disk, FakeClock())
    with pytest.raises(LogDirectoryError, match=message):
        manager.claim(**arguments)
    LogManager(["/a"], disk, FakeClock()).claim(node_id=3)


def test_new_directories_are_given_back_and_others_are_not():
    disk = SimDisk()
    start(disk, paths=["/a"], node_id=3).close()
    manager = start(disk, paths=["/a", "/b"], node_id=3)
    manager.release_claim()
    manager.close()
    start(disk, paths=["/b"], node_id=4).close()
    with pytest.raises(LogDirectoryError, match=r"belongs to node.id 3"):
        start(disk, paths=["/a"], node_id=4)


def test_two_brokers_do_not_share_a_directory():
    disk = SimDisk()
    first = start(disk)
    with pytest.raises(LogDirectoryError):
        start(disk)
    first.close()
    start(disk)


def test_logs_are_found_again_after_a_clean_stop():
    disk = SimDisk()
    manager = start(disk)
    log = create(manager)
    append(log, "a", producer_id=5, producer_epoch=0, base_sequence=0)
    create(manager, T1)
    manager.close()
    assert disk.open_count == 0
    seen = []
    again = LogManager(["/data"], disk, FakeClock())
    again.claim(node_id=1)
    logs = again.load(lambda _: LogConfig(), progress=lambda *step: seen.append(step))
    assert seen == [(1, 2, T0), (2, 2, T1)]
    assert [each.topic_partition for each in logs] == [T0, T1]
    log = again.get(T0)
    assert (log.topic_id, log.local_log.recovery_point) == (TOPIC_ID, 1)
    assert contents(log) == [(0, "a")]
    assert log.producers.get(5) is not None
    assert again.get(U0) is None
    assert again.logs() == logs
    assert again.path_of(T0) == "/data"
    assert again.path_of(U0) is None
    assert again.usage("/data")[0] > 0


def test_settings_are_asked_for_by_partition():
    disk = SimDisk()
    manager = start(disk)
    create(manager, T0)
    create(manager, U0)
    manager.close()
    manager = start(disk, load=False)
    manager.load(lambda tp: LogConfig(segment_bytes=100 if tp == U0 else 200))
    assert manager.get(T0).config.segment_bytes == 200
    assert manager.get(U0).config.segment_bytes == 100


def test_a_crash_is_recovered_from_only_once():
    disk = SimDisk()
    manager = start(disk)
    append(create(manager), "a")
    manager.close(clean=False)
    disk.files[f"/data/t-0/{0:020d}.log"].data += b"torn"
    manager = start(disk)
    assert contents(manager.get(T0)) == [(0, "a")]
    assert manager.get(T0).local_log.recovery_point == 0
    manager.close()
    disk.bytes_read = 0
    start(disk)
    assert disk.bytes_read < 1000


def test_a_crash_while_starting_is_still_a_crash():
    """The marker of a clean stop is gone before anything is opened (KAFKA-10471)."""
    disk = SimDisk()
    manager = start(disk)
    append(create(manager), "a")
    manager.close()
    crashed = start(disk.copy())
    crashed_disk = crashed._disk.copy()
    with pytest.raises(FileNotFoundError):
        crashed_disk.read("/data/.kafka_cleanshutdown")


def test_checkpoints_are_written_at_the_stop():
    disk = SimDisk()
    manager = start(disk)
    log = create(manager)
    append(log, "a", "b")
    log.delete_records_before(1)
    manager.write_high_watermarks({T0: 2, U0: 9})
    manager.close()
    assert disk.read("/data/log-start-offset-checkpoint") == b"0\n1\nt 0 1\n"
    assert disk.read("/data/replication-offset-checkpoint") == b"0\n1\nt 0 2\n"
    manager = start(disk)
    assert manager.get(T0).log_start_offset == 1
    assert manager.high_watermarks() == {T0: 2}


def test_checkpoints_survive_the_stop():
    disk = SimDisk()
    manager = start(disk)
    append(create(manager), "a", "b")
    manager.close()
    before = disk.read("/data/recovery-point-offset-checkpoint")
    assert manager.write_all_checkpoints() == []
    assert disk.read("/data/recovery-point-offset-checkpoint") == before != b"0\n0\n"


def test_a_log_that_cannot_be_closed_makes_the_stop_unclean(caplog):
    disk = SimDisk()
    manager = start(disk)
    append(create(manager), "a")
    append(create(manager, T1), "b")
    heal = disk.fail("replace", "t-0/")
    manager.close()
    heal()
    assert "not closed in order" in caplog.text
    manager = start(disk)
    assert contents(manager.get(T0)) == [(0, "a")]
    assert contents(manager.get(T1)) == [(0, "b")]


def test_a_stop_without_checkpoints_is_unclean(caplog):
    disk = SimDisk()
    manager = start(disk)
    append(create(manager), "a")
    heal = disk.fail("replace", "recovery-point")
    manager.close()
    heal()
    assert "not closed in order" in caplog.text
    with pytest.raises(FileNotFoundError):
        disk.read("/data/.kafka_cleanshutdown")


def test_an_offline_log_makes_the_stop_unclean():
    disk = SimDisk()
    manager = start(disk)
    log = create(manager)
    log.failure = "broken"
    manager.close()
    with pytest.raises(FileNotFoundError):
        disk.read("/data/.kafka_cleanshutdown")


def test_a_log_that_cannot_be_opened_is_offline_and_never_made_anew(caplog):
    disk = SimDisk()
    manager = start(disk)
    append(create(manager), "a", "b")
    append(create(manager, T1), "b")
    manager.close()
    size = len(disk.files[f"/data/t-0/{0:020d}.log"].data)
    disk.files[f"/data/t-0/{0:020d}.log"].data[16] = 9
    disk.replace("/data/log-start-offset-checkpoint", b"0\n1\nt 0 1\n")
    manager = start(disk)
    assert list(manager.offline) == [T0]
    assert "no record batch" in manager.offline[T0]
    assert manager.get(T0) is None
    with pytest.raises(KafkaError) as error:
        create(manager)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    manager.close()
    assert b"t 0 1\n" in disk.read("/data/recovery-point-offset-checkpoint")
    assert b"t 0 1\n" in disk.read("/data/log-start-offset-checkpoint")
    assert len(disk.files[f"/data/t-0/{0:020d}.log"].data) == size
    manager = start(disk)
    manager.delete(T0)
    assert manager.offline == {}
    assert create(manager).log_end_offset == 0


def test_an_unreadable_directory_is_told():
    disk = SimDisk()
    manager = start(disk, load=False)
    disk.fail("list")
    with pytest.raises(LogDirectoryError, match="/data"):
        manager.load(lambda _: LogConfig())


def test_a_partition_in_two_directories_is_refused():
    disk = SimDisk()
    for path in ("/a", "/b"):
        manager = start(disk, paths=[path])
        create(manager)
        manager.close()
    manager = start(disk, paths=["/a", "/b"], load=False)
    with pytest.raises(LogDirectoryError, match="t-0 is in /a and in /b"):
        manager.load(lambda _: LogConfig())


def test_a_torn_topic_id_is_no_reason_to_lose_a_log(caplog):
    """The file is not synced; the cluster's metadata know the id."""
    disk = SimDisk()
    manager = start(disk)
    append(create(manager), "a")
    manager.close()
    disk.replace("/data/t-0/partition.metadata", b"\0" * 40)
    manager = start(disk)
    assert manager.get(T0).topic_id == ZERO_UUID
    manager.set_topic_id(T0, TOPIC_ID)
    manager.close()
    assert start(disk).get(T0).topic_id == TOPIC_ID
    assert b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABw" in disk.read(
        "/data/t-0/partition.metadata"
    )


def test_a_topic_id_that_cannot_be_written_is_a_storage_error():
    disk = SimDisk()
    manager = start(disk)
    create(manager)
    disk.fail("replace")
    with pytest.raises(KafkaError) as error:
        manager.set_topic_id(T0, TOPIC_ID)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError) as error:
        manager.set_topic_id(U0, TOPIC_ID)
    assert error.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- Creating and deleting -----------------------------------------------------------------------


def test_new_logs_go_where_the_fewest_are():
    manager = start(paths=["/a", "/b"])
    for partition in range(4):
        create(manager, TopicPartition("t", partition))
    assert sorted(manager.path_of(TopicPartition("t", n)) for n in range(4)) == [
        "/a",
        "/a",
        "/b",
        "/b",
    ]


def test_a_refused_creation_leaves_nothing():
    disk = SimDisk()
    manager = start(disk)
    heal = disk.fail("create", ".timeindex")
    with pytest.raises(KafkaError) as error:
        create(manager)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.get(T0) is None
    assert "/data/t-0" not in disk.directories
    heal()
    append(create(manager), "a")


def test_a_deleted_log_frees_its_name_at_once():
    """Rule 203."""
    disk = SimDisk()
    manager = start(disk)
    log = create(manager)
    append(log, "old")
    region = log.read(0, max_bytes=100, upper=log.log_end_position, min_one_batch=True)
    manager.delete(T0)
    manager.delete(T0)
    assert manager.get(T0) is None
    assert [name for name in disk.directories if name.endswith("-delete")] == [
        f"/data/t-0.{UUID(int=3).hex}-delete"
    ]
    with pytest.raises(KafkaError):
        append(log, "late")
    fresh = create(manager)
    append(fresh, "new")
    assert contents(fresh) == [(0, "new")]
    assert len(region.read()) == len(region) > 0


def test_what_was_being_deleted_goes_with_the_next_start():
    disk = SimDisk()
    manager = start(disk)
    append(create(manager), "old")
    manager.delete(T0)
    manager.close()
    manager = start(disk)
    assert manager.logs() == []
    assert len(manager.keeper._removals) == 1


def test_a_stray_log_is_set_aside_and_kept(caplog):
    disk = SimDisk()
    manager = start(disk)
    append(create(manager), "precious")
    manager.rename_as_stray(T0)
    assert manager.get(T0) is None
    (path,) = [each.name for each in disk.list("/data") if each.name.endswith("-stray")]
    assert path.startswith("t-0.")
    (line,) = [record.message for record in caplog.records]
    assert f"it is kept as /data/{path}" in line
    assert create(manager).log_end_offset == 0
    manager.close()
    again = start(disk)
    assert [log.topic_partition for log in again.logs()] == [T0]
    assert path in [each.name for each in disk.list("/data")]
    again.delete(T0)
    disk.rename(f"/data/{path}", "/data/t-0")
    again.close()
    assert contents(start(disk).get(T0)) == [(0, "precious")]


def test_a_stray_log_that_cannot_be_renamed_is_offline():
    disk = SimDisk()
    manager = start(disk)
    create(manager)
    disk.fail("rename")
    with pytest.raises(KafkaError) as error:
        manager.rename_as_stray(T0)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert list(manager.offline) == [T0]
    manager.rename_as_stray(U0)


def test_a_directory_that_is_gone_already_is_deleted():
    disk = SimDisk()
    manager = start(disk)
    create(manager)
    disk.remove("/data/t-0")
    manager.delete(T0)
    assert manager.get(T0) is None


def test_a_refused_deletion_leaves_the_log_offline_until_it_succeeds():
    disk = SimDisk()
    manager = start(disk)
    append(create(manager), "old")
    heal = disk.fail("rename")
    with pytest.raises(KafkaError) as error:
        manager.delete(T0)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError) as error:
        create(manager)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    heal()
    manager.delete(T0)
    assert create(manager).log_end_offset == 0


def test_a_new_log_never_takes_over_what_lies_under_its_name():
    disk = SimDisk()
    manager = start(disk)
    other = SimDisk()
    append(create(start(other)), "foreign")
    for path, content in other.files.items():
        if "/t-0/" in path:
            disk.make_directory("/data/t-0")
            disk.replace(path, bytes(content.data))
    assert create(manager).log_end_offset == 0


def test_a_new_log_inherits_no_checkpoint_of_a_deleted_one():
    """A crash would find its data below a recovery point that they never reached."""
    disk = SimDisk()
    manager = start(disk)
    log = create(manager, cleanup_policy=frozenset({"compact"}))
    append(log, *range(50), keys=[b"k"] * 50)
    log.delete_records_before(40)
    log.roll()
    log.flush_now()
    manager.set_cleaner_offset(log, 50)
    manager.write_all_checkpoints()
    manager.delete(T0)
    append(create(manager), "new")
    crashed = disk.copy()
    for name in ("recovery-point-offset", "log-start-offset", "cleaner-offset"):
        assert b"t 0 5" not in crashed.read(f"/data/{name}-checkpoint")
        assert b"t 0 4" not in crashed.read(f"/data/{name}-checkpoint")
    assert contents(start(crashed).get(T0)) == [(0, "new")]


def test_unknown_partitions_are_told():
    manager = start()
    with pytest.raises(KafkaError) as error:
        manager.apply_retention(T0, NOW_MS)
    assert error.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
