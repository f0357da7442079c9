"""Logs of a deleted topic are deleted a few at a time; its name is free at once."""

from itertools import pairwise

import pytest

from kafkalite.isr.replicas import LOGS_AT_ONCE_MAX
from kafkalite.meta.log_import import is_stray
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.api.data_kit import DataKit

WIDE = 3 * LOGS_AT_ONCE_MAX + 2


@pytest.fixture
async def kit():
    kit = await DataKit().start()
    await kit.create("t", WIDE)
    while kit.replicas.open_some():
        pass
    for index in range(WIDE):
        kit.append("a", index=index)
    return kit


def logs(kit):
    return [index for index in range(WIDE) if kit.logs.get(TopicPartition("t", index)) is not None]


def refusal(kit, index):
    with pytest.raises(KafkaError) as refused:
        kit.replicas.partition("t", index)
    return refused.value.code


async def test_no_go_deletes_more_than_a_few(kit):
    told = []
    kit.replicas.on_unopened = lambda: told.append(1)
    await kit.delete("t")
    assert {refusal(kit, index) for index in range(WIDE)} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert told
    left = [WIDE, len(logs(kit))]
    while kit.replicas.open_some():
        left.append(len(logs(kit)))
    left.append(len(logs(kit)))
    assert left[-1] == 0
    assert max(before - after for before, after in pairwise(left)) == (LOGS_AT_ONCE_MAX)


async def test_the_next_topic_of_the_name_has_nothing_of_it(kit):
    await kit.delete("t")
    topic_id = await kit.create("t", WIDE)
    for index in (WIDE - 1, 0):
        partition = kit.partition("t", index)
        assert (partition.log_end_offset, partition.topic_id) == (0, topic_id)
    while kit.replicas.open_some():
        pass
    assert logs(kit) == list(range(WIDE))
    assert {kit.partition("t", index).log_end_offset for index in range(WIDE)} == {0}


async def test_what_waits_as_the_broker_ends_is_known_to_the_next_start_as_deleted(kit):
    """It is not kept as a stray one."""
    await kit.delete("t")
    left = logs(kit)
    assert left
    for index in left:
        name = TopicPartition("t", index)
        assert not is_stray(name, kit.logs.get(name).topic_id, kit.metadata.image)
