"""A log directory: one owner, one identity, Kafka's files."""

from uuid import UUID

import pytest

from kafkalite.log.directories import (
    LogDirectory,
    LogDirectoryError,
    name_for_deletion,
    partition_of,
)
from kafkalite.log.disk import OsDisk
from kafkalite.types import TopicPartition
from tests.log.sim_disk import SimDisk

UNIQUE = UUID("0123456789abcdef0123456789abcdef")


def directory(disk=None):
    return LogDirectory(disk or SimDisk(), "/data")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("t-0", ("t", 0)),
        ("my.topic-with-1-12", ("my.topic-with-1", 12)),
        ("__consumer_offsets-49", ("__consumer_offsets", 49)),
        ("__cluster_metadata-0", None),
        ("t-0.0123456789abcdef0123456789abcdef-delete", None),
        ("t-x", None),
        ("lost+found", None),
        ("-1", None),
    ],
)
def test_partition_directories_are_known_by_name(name, found):
    assert partition_of(name) == found


def test_a_deleted_partitions_directory_has_a_name_of_its_own():
    """Rule 203; a long topic name is cut, as names have at most 255 characters."""
    name = name_for_deletion(TopicPartition("t", 3), UNIQUE)
    assert name == "t-3.0123456789abcdef0123456789abcdef-delete"
    name = name_for_deletion(TopicPartition("t" * 249, 3), UNIQUE)
    assert len(name) == 255
    assert name.endswith("t-3.0123456789abcdef0123456789abcdef-delete")


def test_two_brokers_never_share_a_directory():
    disk = SimDisk()
    first = directory(disk)
    first.open()
    with pytest.raises(LogDirectoryError, match="another broker"):
        directory(disk).open()
    first.close()
    first.close()
    directory(disk).open()


def test_a_directory_that_cannot_be_made_is_told():
    disk = SimDisk()
    disk.fail("make_directory")
    with pytest.raises(LogDirectoryError, match="/data"):
        directory(disk).open()


def test_identity_is_that_of_a_kraft_broker():
    disk = SimDisk()
    here = directory(disk)
    here.open()
    assert here.identity() == (None, None)
    here.identify(cluster_id="cluster", node_id=4, new_uuid=lambda: UNIQUE)
    here.identify(cluster_id="other", node_id=5, new_uuid=lambda: UNIQUE)
    assert here.identity() == ("cluster", 4)
    assert disk.read("/data/meta.properties") == (
        b"version=1\ncluster.id=cluster\nnode.id=4\ndirectory.id=ASNFZ4mrze8BI0VniavN7w\n"
        b"kafkalite.format=1\n"
    )


def test_identity_of_a_zookeeper_broker_is_understood():
    disk = SimDisk()
    here = directory(disk)
    here.open()
    disk.replace("/data/meta.properties", b"#comment\nversion=0\nbroker.id=7\ncluster.id=abc\n")
    assert here.identity() == ("abc", 7)


def test_directory_of_an_earlier_version_or_of_kafka_is_marked_with_the_format(caplog):
    disk = SimDisk()
    here = directory(disk)
    here.open()
    disk.replace("/data/meta.properties", b"version=1\nnode.id=4\ncluster.id=abc\n")
    heal = disk.fail("replace", "meta.properties")
    assert not here.identify(cluster_id="abc", node_id=4, new_uuid=lambda: UNIQUE)
    assert "the format's version cannot be noted" in caplog.text
    heal()
    assert not here.identify(cluster_id="abc", node_id=4, new_uuid=lambda: UNIQUE)
    marked = disk.read("/data/meta.properties")
    assert set(marked.splitlines()) == {
        b"version=1", b"node.id=4", b"cluster.id=abc", b"kafkalite.format=1"
    }  # fmt: skip
    disk.fail("replace", "meta.properties")
    assert not here.identify(cluster_id="abc", node_id=4, new_uuid=lambda: UNIQUE)  # unwritten
    assert here.identity() == ("abc", 4)


def test_directory_of_a_later_version_is_refused_in_one_line():
    disk = SimDisk()
    here = directory(disk)
    here.open()
    disk.replace("/data/meta.properties", b"version=1\nnode.id=4\nkafkalite.format=2\n")
    with pytest.raises(LogDirectoryError) as error:
        here.identity()
    assert str(error.value) == (
        "/data/meta.properties: kafkalite.format=2 was written by a later version of kafkalite, "
        "this one reads 1 and before"
    )


def test_an_unusable_identity_is_told():
    disk = SimDisk()
    here = directory(disk)
    here.open()
    heal = disk.fail("replace", "meta.properties")
    with pytest.raises(LogDirectoryError):
        here.identify(cluster_id="cluster", node_id=4, new_uuid=lambda: UNIQUE)
    heal()
    disk.replace("/data/meta.properties", b"node.id=seven\n")
    with pytest.raises(LogDirectoryError, match=r"meta\.properties"):
        here.identity()


def test_the_clean_stop_marker_is_good_for_one_start():
    disk = SimDisk()
    here = directory(disk)
    here.open()
    assert not here.consume_clean_shutdown_marker()
    here.leave_clean_stop()
    assert disk.read("/data/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":-1}'
    assert here.consume_clean_shutdown_marker()
    assert here.had_clean_stop
    assert not here.consume_clean_shutdown_marker()
    assert not here.had_clean_stop


def test_only_partitions_are_partitions(caplog):
    disk = SimDisk()
    here = directory(disk)
    here.open()
    for name in (
        "t-0",
        "t-1.0123-delete",
        "t-2.0123-future",
        "t-3.0123-stray",
        "secure",
        "__cluster_metadata-0",
        "strange",
    ):
        disk.make_directory(f"/data/{name}")
    disk.replace("/data/bootstrap.checkpoint", b"")
    found, deleted = here.partitions()
    assert found == [(("t", 0), "/data/t-0")]
    assert deleted == ["/data/t-1.0123-delete"]
    assert [record.args[0] for record in caplog.records] == ["/data/strange"]


def test_checkpoints_are_written_when_they_change():
    disk = SimDisk()
    here = directory(disk)
    here.open()
    offsets = {TopicPartition("t", 0): 5}
    assert here.recovery_points() == {}
    assert here.write("recovery-point-offset-checkpoint", offsets, sync=False) == [
        "/data/recovery-point-offset-checkpoint",
        "/data",
    ]
    changes = len(disk.trace)
    assert here.write("recovery-point-offset-checkpoint", dict(offsets)) == []
    assert len(disk.trace) == changes
    assert disk.read("/data/recovery-point-offset-checkpoint") == b"0\n1\nt 0 5\n"
    again = directory(disk)
    assert again.recovery_points() == offsets
    assert again.write("log-start-offset-checkpoint", offsets) == []
    assert again.log_starts() == offsets
    assert again.high_watermarks() == again.cleaner_offsets() == {}


@pytest.mark.parametrize("content", [b"9\n", b"0\n1\n", b"0\n1\nt 0\n", b"\0\0\0\0\n\0", b"\xff\n"])
def test_a_torn_checkpoint_is_taken_for_empty(content, caplog):
    disk = SimDisk()
    here = directory(disk)
    here.open()
    disk.replace("/data/recovery-point-offset-checkpoint", content)
    assert here.recovery_points() == {}
    disk.fail("read", "log-start")
    assert here.log_starts() == {}


@pytest.mark.parametrize(
    ("clean", "booted", "is_lost"),
    [(True, True, False), (True, False, False), (False, False, False), (False, True, True)],
)
def test_loss_of_power_is_told_from_the_end_of_the_process(clean, booted, is_lost, caplog):
    """By the machine's boot id, where the stop was not in order (rule 234)."""
    disk = SimDisk()
    directory = LogDirectory(disk, "/data")
    directory.open()
    directory.consume_clean_shutdown_marker()
    assert not directory.take_power_loss(0)  # nothing was here to be lost
    if clean:
        directory.leave_clean_stop()
    disk.boots += booted
    directory.consume_clean_shutdown_marker()
    assert directory.take_power_loss(3) is is_lost
    assert ("may have lost power" in caplog.text) is is_lost
    directory.consume_clean_shutdown_marker()
    assert not directory.take_power_loss(3)


def test_without_boot_ids_each_stop_out_of_order_may_be_a_loss_of_power():
    disk = SimDisk()
    disk.boot_id = lambda: ""
    directory = LogDirectory(disk, "/data")
    directory.open()
    for _ in range(2):
        directory.consume_clean_shutdown_marker()
        assert directory.take_power_loss(3)


def test_machine_has_a_boot_id():
    assert OsDisk().boot_id() == OsDisk().boot_id() != ""
