"""OffsetForLeaderEpoch: where the epochs of leaders ended (rules 98 and 99)."""

import pytest

from kafkalite.api.offset_for_leader_epoch import HANDLERS
from kafkalite.meta.events import RegisterBroker
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.api.data_kit import DataKit

(HANDLER,) = HANDLERS
VERSIONS = range(2, 5)
UNKNOWN = (-1, -1)


@pytest.fixture
async def kit():
    """Epoch 0 at offsets 0-1, epoch 1 without records, epoch 2 at 2-4, epoch 3 as yet empty."""
    kit = await DataKit().start()
    await kit.create("t")
    kit.append("a", "b")
    await raise_epochs(kit)
    await raise_epochs(kit)
    kit.append("c", "d", "e")
    await raise_epochs(kit)
    return kit


async def raise_epochs(kit):
    await kit.metadata.submit(
        RegisterBroker(broker_id=1, endpoints={"PLAINTEXT": ("", 9092)}, restarted=True)
    )


def requested(*partitions, topic="t"):
    return OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=topic, partitions=list(partitions))]
    )


def ask(kit, epoch, *, version=4, current=-1, topic="t", index=0):
    wanted = OffsetForLeaderPartition(
        partition=index, leader_epoch=epoch, current_leader_epoch=current
    )
    (answered,) = kit.ask(HANDLER, requested(wanted, topic=topic), version).topics
    assert answered.topic == topic
    (found,) = answered.partitions
    assert found.partition == index
    return found


def end_of(kit, epoch, **options):
    found = ask(kit, epoch, **options)
    assert found.error_code == ErrorCode.NONE
    return found.leader_epoch, found.end_offset


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        pytest.param(0, (0, 2), id="a past one"),
        pytest.param(1, (0, 2), id="one without records ended where the one before did"),
        pytest.param(2, (2, 5), id="the last with records"),
        pytest.param(3, (3, 5), id="the current one"),
        pytest.param(4, UNKNOWN, id="one that is to come"),
        pytest.param(-1, UNKNOWN, id="none"),
    ],
)
async def test_end_of_an_epoch(kit, version, epoch, end):
    """Rule 98."""
    assert end_of(kit, epoch, version=version) == end


async def test_current_epoch_ends_at_the_log_end_as_that_moves(kit):
    kit.append("f")
    assert end_of(kit, 3) == (3, 6)
    assert end_of(kit, 2) == (2, 5)


async def test_epoch_of_deleted_records_ended_where_the_rest_begins(kit):
    """Rule 98: below all known epochs."""
    kit.partition().delete_records_before(3)
    assert end_of(kit, 0) == (0, 3)
    assert end_of(kit, 2) == (2, 5)


async def test_epoch_of_an_empty_log_ends_at_its_start():
    kit = await DataKit().start()
    await kit.create("t")
    assert end_of(kit, 0) == (0, 0)
    assert end_of(kit, 1) == UNKNOWN


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("current", "code"),
    [
        (-1, ErrorCode.NONE),
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (3, ErrorCode.NONE),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_client_of_another_epoch_is_refused(kit, version, current, code):
    """Rule 76."""
    found = ask(kit, 0, current=current, version=version)
    assert found.error_code == code
    if code is not ErrorCode.NONE:
        assert (found.leader_epoch, found.end_offset) == UNKNOWN


async def test_unknown_and_offline_partitions_are_told(kit):
    for wanted in ({"topic": "u"}, {"index": 1}):
        assert ask(kit, 0, **wanted).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    kit.partition().log.failure = "gone"
    assert ask(kit, 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_refusal_of_a_request_is_told_for_every_partition(kit):
    request = requested(*(OffsetForLeaderPartition(partition=n) for n in (4, 5)))
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    (topic,) = HANDLER.refuse(request, error, kit.context(4)).topics
    assert [(p.partition, p.error_code, p.end_offset) for p in topic.partitions] == [
        (4, -1, -1),
        (5, -1, -1),
    ]


def test_every_version_is_tested():
    assert OFFSET_FOR_LEADER_EPOCH.versions == (VERSIONS.start, VERSIONS.stop - 1)
