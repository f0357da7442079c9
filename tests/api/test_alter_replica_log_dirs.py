"""Rule 274."""

from types import SimpleNamespace

import pytest

from kafkalite.api.alter_replica_log_dirs import HANDLERS, refuse
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.api.metadata_kit import MetadataKit

(HANDLER,) = HANDLERS


class Logs:
    paths = ("/one", "/two")

    def path_of(self, topic_partition):
        return "/one" if topic_partition == TopicPartition("a", 0) else None


def request(*wanted):
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=[index])]
            )
            for path, name, index in wanted
        ]
    )


def codes(response):
    return {
        (topic.topic_name, each.partition_index): each.error_code
        for topic in response.results
        for each in topic.partitions
    }


@pytest.fixture
def kit():
    made = MetadataKit()
    made.services.logs = Logs()
    for name in ("a", "b"):
        made.create(name, partitions=2)
    return made


@pytest.mark.parametrize(
    ("path", "name", "code"),
    [
        ("/one", "a", ErrorCode.NONE),
        ("/two", "a", ErrorCode.UNSUPPORTED_VERSION),
        ("/three", "a", ErrorCode.LOG_DIR_NOT_FOUND),
        ("/one", "b", ErrorCode.REPLICA_NOT_AVAILABLE),
        ("/one", "c", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/three", "c", ErrorCode.LOG_DIR_NOT_FOUND),
        ("/one", "n" * 214, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_may_be_asked_to_stay_where_it_is(kit, path, name, code, version):
    assert codes(kit.ask(HANDLER, request((path, name, 0)), version)) == {(name, 0): code}


def test_relative_directories_are_known_by_their_absolute_paths(kit, monkeypatch, tmp_path):
    """As DescribeLogDirs tells them, and Kafka's LogManager."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Logs, "paths", ("one", "two"))
    monkeypatch.setattr(Logs, "path_of", lambda self, topic_partition: "one")
    asked = request((f"{tmp_path}/one", "a", 0), (f"{tmp_path}/two", "b", 0), ("one", "a", 1))
    assert codes(kit.ask(HANDLER, asked)) == {
        ("a", 0): ErrorCode.NONE,
        ("b", 0): ErrorCode.UNSUPPORTED_VERSION,
        ("a", 1): ErrorCode.LOG_DIR_NOT_FOUND,
    }


def test_the_last_directory_named_counts(kit):
    asked = request(("/two", "a", 0), ("/one", "a", 0), ("/one", "a", 1))
    found = codes(kit.ask(HANDLER, asked))
    assert found == {("a", 0): 0, ("a", 1): ErrorCode.REPLICA_NOT_AVAILABLE}


def test_an_error_is_told_of_each_partition():
    error = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    found = codes(refuse(request(("/one", "a", 0)), error, SimpleNamespace()))
    assert found == {("a", 0): ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
