from types import SimpleNamespace

import pytest

from kafkalite.api.describe_log_dirs import HANDLERS, refuse
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from tests.api.metadata_kit import MetadataKit

(HANDLER,) = HANDLERS


class Logs:
    """Two directories, of which the second has lost its disk."""

    def __init__(self):
        self.paths = ["/one", "/two"]
        self.homes = {
            TopicPartition("a", 1): "/one",
            TopicPartition("a", 0): "/one",
            TopicPartition("b", 0): "/two",
            TopicPartition("moving", 0): None,
        }

    def logs(self):
        return [
            SimpleNamespace(topic_partition=tp, size_bytes=100 + tp.partition, log_end_offset=7)
            for tp in self.homes
        ]

    def path_of(self, topic_partition):
        return self.homes[topic_partition]

    def usage(self, path):
        if path == "/two":
            raise OSError
        return 1000, 400


@pytest.fixture
def kit():
    made = MetadataKit()
    made.services.logs = Logs()
    marks = {TopicPartition("a", 0): 9}
    made.services.replicas = SimpleNamespace(
        find=lambda tp: SimpleNamespace(high_watermark=marks[tp]) if tp in marks else None
    )
    return made


def describe(kit, topics, version=5):
    wanted = None
    if topics is not None:
        wanted = [DescribableLogDirTopic(topic=name, partitions=p) for name, p in topics.items()]
    return kit.ask(HANDLER, DescribeLogDirsRequest(topics=wanted), version)


def content(result):
    return {t.name: [p.partition_index for p in t.partitions] for t in result.topics}


@pytest.mark.parametrize("version", range(1, 6))
def test_every_directory_is_described(kit, version):
    """KIP-113; v4: sizes of the volume (KIP-827)."""
    one, two = describe(kit, None, version).results
    assert (one.log_dir, one.error_code, content(one)) == ("/one", 0, {"a": [0, 1]})
    assert (two.log_dir, content(two)) == ("/two", {"b": [0]})
    known = version >= 4
    assert (one.total_bytes, one.usable_bytes) == ((1000, 400) if known else (-1, -1))
    assert not one.is_cordoned


def test_sizes_and_lags_of_partitions(kit):
    first, second = describe(kit, None).results[0].topics[0].partitions
    assert (first.partition_size, first.offset_lag, first.is_future_key) == (100, 2, False)
    assert (second.partition_size, second.offset_lag) == (101, 0)


def test_only_what_is_asked_for_is_described(kit):
    """Rule 221: what is not here is left out."""
    one, two = describe(kit, {"a": [1, 7], "nosuch": [0]}).results
    assert (content(one), content(two)) == ({"a": [1]}, {})
    for nothing in ({}, {"a": []}):
        assert [content(result) for result in describe(kit, nothing).results] == [{}, {}]


def test_a_failed_directory_says_so(kit):
    two = describe(kit, None).results[1]
    assert two.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (two.total_bytes, two.usable_bytes) == (-1, -1)


def test_an_error_of_the_whole_request(kit):
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert refuse(None, error, kit.context(5)).error_code == -1


def test_relative_directories_are_told_by_their_absolute_paths(kit, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    kit.services.logs.paths = ["one"]
    kit.services.logs.homes = {}
    (directory,) = describe(kit, None).results
    assert directory.log_dir == f"{tmp_path}/one"
