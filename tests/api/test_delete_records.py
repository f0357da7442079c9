"""DeleteRecords: the log start moves up (rule 35)."""

import pytest

from kafkalite.api.delete_records import HANDLERS
from kafkalite.types import CONSUMER_OFFSETS_TOPIC
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.api.data_kit import DataKit

(HANDLER,) = HANDLERS
VERSIONS = range(3)
HIGH_WATERMARK = -1


@pytest.fixture
async def kit():
    kit = await DataKit().start()
    await kit.create("t", 2)
    kit.append("a", "b", "c", "d")
    return kit


def requested(*partitions, topic="t"):
    wanted = [DeleteRecordsPartition(partition_index=i, offset=offset) for i, offset in partitions]
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=wanted)])


def delete(kit, *partitions, topic="t", version=2):
    """Return (partition, error, low watermark) of each."""
    (answered,) = kit.ask(HANDLER, requested(*partitions, topic=topic), version).topics
    assert answered.name == topic
    return [(p.partition_index, p.error_code, p.low_watermark) for p in answered.partitions]


@pytest.mark.parametrize("version", VERSIONS)
async def test_log_start_moves_up_and_never_down(kit, version):
    assert delete(kit, (0, 2), version=version) == [(0, 0, 2)]
    assert kit.partition().log_start_offset == 2
    assert delete(kit, (0, 1), version=version) == [(0, 0, 2)]
    assert delete(kit, (0, 2), version=version) == [(0, 0, 2)]
    assert kit.partition().log_start_offset == 2


async def test_minus_one_is_the_high_watermark(kit):
    assert delete(kit, (0, HIGH_WATERMARK), (1, HIGH_WATERMARK)) == [(0, 0, 4), (1, 0, 0)]
    kit.append("e")
    assert kit.partition().log_start_offset == 4
    assert kit.partition().log_end_offset == 5


@pytest.mark.parametrize("offset", [5, 2**63 - 1, -2, -(2**63)])
async def test_offset_that_is_not_there_is_refused(kit, offset):
    assert delete(kit, (0, offset)) == [(0, ErrorCode.OFFSET_OUT_OF_RANGE, -1)]
    assert kit.partition().log_start_offset == 0


async def test_one_bad_partition_does_not_spoil_the_others(kit):
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(kit, (7, 0), (0, 1)) == [(7, unknown, -1), (0, 0, 1)]
    assert delete(kit, (0, 1), topic="u") == [(0, unknown, -1)]


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("compact", ErrorCode.POLICY_VIOLATION),
        ("compact,delete", ErrorCode.NONE),
        ("delete", ErrorCode.NONE),
    ],
)
async def test_topic_that_is_only_compacted_keeps_its_records(kit, policy, code):
    await kit.create("c", cleanup_policy=policy)
    kit.append("a", keys=[b"k"], topic="c")
    ((_, error, low_watermark),) = delete(kit, (0, 1), topic="c")
    assert (error, low_watermark) == (code, -1 if code else 1)


async def test_internal_topics_keep_their_records_whatever_their_policy(kit):
    """As Kafka: a coordinator would lose what it is about to replay."""
    await kit.create(CONSUMER_OFFSETS_TOPIC, cleanup_policy="delete")
    refused = [(0, ErrorCode.INVALID_TOPIC_EXCEPTION, -1)]
    assert delete(kit, (0, HIGH_WATERMARK), topic=CONSUMER_OFFSETS_TOPIC) == refused


async def test_offline_log_is_told(kit):
    kit.partition().log.failure = "gone"
    assert delete(kit, (0, 1)) == [(0, ErrorCode.KAFKA_STORAGE_ERROR, -1)]


async def test_refusal_of_a_request_is_told_for_every_partition(kit):
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    (topic,) = HANDLER.refuse(requested((4, 0), (5, 0)), error, kit.context(2)).topics
    assert [(p.partition_index, p.error_code, p.low_watermark) for p in topic.partitions] == [
        (4, -1, -1),
        (5, -1, -1),
    ]


def test_every_version_is_tested():
    assert DELETE_RECORDS.versions == (VERSIONS.start, VERSIONS.stop - 1)
