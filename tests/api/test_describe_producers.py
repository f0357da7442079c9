"""DescribeProducers: who writes to a partition (KIP-664)."""

import pytest

from kafkalite.api.describe_producers import HANDLERS
from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tests.api.data_kit import NOW_MS, DataKit
from tests.log.log_kit import marker

(HANDLER,) = HANDLERS


@pytest.fixture
async def kit():
    kit = await DataKit().start()
    await kit.create("t", 2)
    return kit


def ask(kit, *indexes, topic="t"):
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=topic, partition_indexes=list(indexes))]
    )
    (answered,) = kit.ask(HANDLER, request).topics
    assert answered.name == topic
    return answered.partitions


def states(partition):
    return [
        (
            p.producer_id,
            p.producer_epoch,
            p.last_sequence,
            p.last_timestamp,
            p.coordinator_epoch,
            p.current_txn_start_offset,
        )
        for p in partition.active_producers
    ]


async def test_producers_are_told_with_what_they_wrote_last(kit):
    kit.append("a")
    kit.append("b", "c", producer_id=5, producer_epoch=1, base_sequence=0)
    kit.append("d", producer_id=6, producer_epoch=0, base_sequence=0, transactional=True)
    first, second = ask(kit, 0, 1)
    assert (first.error_code, second.error_code) == (0, 0)
    assert states(first) == [(5, 1, 1, NOW_MS, -1, -1), (6, 0, 0, NOW_MS, -1, 3)]
    assert states(second) == []


async def test_end_of_a_transaction_is_told(kit):
    kit.append("a", producer_id=6, producer_epoch=0, base_sequence=0, transactional=True)
    end = marker(6, commit=True, coordinator_epoch=3, timestamp=NOW_MS + 5)
    kit.partition().append(end, now_ms=0, origin=AppendOrigin.COORDINATOR)
    (partition,) = ask(kit, 0)
    assert states(partition) == [(6, 0, 0, NOW_MS + 5, 3, -1)]


async def test_unknown_and_offline_partitions_are_told(kit):
    kit.partition("t", 1).log.failure = "gone"
    for found, code in zip(
        [*ask(kit, 1, 7), *ask(kit, 0, topic="u")],
        [
            ErrorCode.KAFKA_STORAGE_ERROR,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ],
        strict=True,
    ):
        assert found.error_code == code
        assert found.error_message
        assert found.active_producers == []


async def test_refusal_of_a_request_is_told_for_every_partition(kit):
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[4, 5])])
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    (topic,) = HANDLER.refuse(request, error, kit.context(0)).topics
    assert [(p.partition_index, p.error_code, p.error_message) for p in topic.partitions] == [
        (4, -1, None),
        (5, -1, None),
    ]
