"""Which partitions are here, kept in step with the metadata."""

from uuid import UUID

import pytest
import trio

from kafkalite.isr.replicas import LOGS_AT_ONCE_MAX, ReplicaManager
from kafkalite.log.checkpoint import write_partition_metadata
from kafkalite.meta.changes import (
    ConfigsChanged,
    ImageReplaced,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
)
from kafkalite.meta.events import AlterConfigs, RegisterBroker
from kafkalite.meta.image import Image, PartitionImage
from kafkalite.types import ZERO_UUID, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.api.data_kit import UNKNOWN_ID, DataKit
from tests.log.log_kit import NOW_MS, batch

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
ELSEWHERE = PartitionImage((2,), (2,), 2)


@pytest.fixture
async def kit():
    return await DataKit().start()


def refusal(find, *arguments):
    with pytest.raises(KafkaError) as refused:
        find(*arguments)
    return refused.value


async def alter(kit, resource_type, name, **configs):
    values = [(key.replace("_", "."), value) for key, value in configs.items()]
    (result,) = await kit.metadata.submit_all(
        [AlterConfigs(resource_type=resource_type, resource_name=name, configs=values)]
    )
    assert not isinstance(result, KafkaError), result


def reloaded(kit):
    """What another broker on the same disk and metadata finds."""
    replicas = ReplicaManager(1, kit.logs, kit.config)
    replicas.load(kit.metadata.image)
    return replicas


async def test_created_topic_is_there_by_name_and_by_id(kit):
    topic_id = await kit.create("t", 2)
    for index in range(2):
        partition = kit.replicas.partition("t", index)
        assert partition is kit.replicas.partition_by_id(topic_id, index)
        assert partition is kit.replicas.find(TopicPartition("t", index))
        assert partition.log.topic_id == topic_id
    assert sorted(kit.replicas.partitions_of("t")) == [0, 1]
    assert len(list(kit.replicas.partitions())) == 2


async def test_what_is_not_here_is_unknown(kit):
    topic_id = await kit.create("t")
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for name, index in [("t", 1), ("t", -1), ("u", 0)]:
        assert refusal(kit.replicas.partition, name, index).code is unknown
        assert kit.replicas.find(TopicPartition(name, index)) is None
    assert refusal(kit.replicas.partition_by_id, topic_id, 1).code is unknown
    for other in (UNKNOWN_ID, ZERO_UUID):
        refused = refusal(kit.replicas.partition_by_id, other, 0)
        assert refused.code is ErrorCode.UNKNOWN_TOPIC_ID
    assert kit.replicas.partitions_of("u") == {}


async def test_added_partitions_are_there_and_the_old_ones_stay(kit):
    await kit.create("t", 2)
    first = kit.partition()
    await kit.add_partitions("t", 4)
    assert sorted(kit.replicas.partitions_of("t")) == [0, 1, 2, 3]
    assert kit.partition() is first


async def test_deleted_topic_is_gone_with_its_logs_and_those_who_wait_are_told(kit):
    """Rule 25: its ID is never that of another."""
    topic_id = await kit.create("t", 2)
    told = []
    for index in range(2):
        kit.partition("t", index).watch(lambda index=index: told.append(index))
    await kit.delete("t")
    assert sorted(told) == [0, 1]
    assert list(kit.replicas.partitions()) == []
    assert kit.replicas.partitions_of("t") == {}
    assert kit.logs.logs() == []
    assert refusal(kit.replicas.partition_by_id, topic_id, 0).code is ErrorCode.UNKNOWN_TOPIC_ID
    assert await kit.create("t") != topic_id
    assert kit.partition().log_end_offset == 0


async def test_partition_of_another_broker_is_not_here(kit):
    replicas = kit.replicas
    changes = [
        TopicCreated(
            name="t",
            topic_id=UUID(int=5),
            partitions=(ELSEWHERE, PartitionImage((1,), (1,), 1)),
            configs={},
        )
    ]
    replicas.on_changes(changes, kit.metadata.image.apply(changes))
    assert sorted(replicas.partitions_of("t")) == [1]
    changes.append(PartitionsAdded(name="t", topic_id=UUID(int=5), partitions=(ELSEWHERE,)))
    replicas.on_changes(changes[1:], kit.metadata.image.apply(changes))
    assert sorted(replicas.partitions_of("t")) == [1]


async def test_new_leader_epoch_is_followed(kit):
    topic_id = await kit.create("t", 2)
    told = []
    kit.partition().watch(lambda: told.append(kit.partition().leader_epoch))
    await kit.metadata.submit(
        RegisterBroker(broker_id=1, endpoints={"PLAINTEXT": ("", 9092)}, restarted=True)
    )
    assert [kit.partition("t", index).leader_epoch for index in range(2)] == [1, 1]
    state = PartitionImage((1,), (1,), 1, 5, 5)
    changes = [PartitionChanged(name="t", topic_id=topic_id, index=0, state=state)]
    kit.replicas.on_changes(changes, kit.metadata.image.apply(changes))
    assert [kit.partition("t", index).leader_epoch for index in range(2)] == [5, 1]
    assert told == [1, 5]


async def test_epochs_of_partitions_that_are_not_here_are_nobodys_business(kit):
    topic_id = await kit.create("t")
    kit.replicas._partitions[TopicPartition("stray", 0)] = stray = object()
    await kit.metadata.submit(
        RegisterBroker(broker_id=1, endpoints={"PLAINTEXT": ("", 9092)}, restarted=True)
    )
    state = PartitionImage((1,), (1,), 1, 5, 5)
    changes = [PartitionChanged(name="t", topic_id=topic_id, index=7, state=state)]
    kit.replicas.on_changes(changes, kit.metadata.image)
    assert kit.replicas.find(TopicPartition("stray", 0)) is stray


async def test_settings_of_a_topic_take_effect_in_its_logs(kit):
    await kit.create("t", 2)
    await kit.create("u")
    await alter(kit, TOPIC_RESOURCE, "t", max_message_bytes="77")
    assert [kit.partition("t", index).max_batch_bytes for index in range(2)] == [77, 77]
    assert kit.partition("u").max_batch_bytes == 1_048_588


async def test_defaults_of_the_broker_take_effect_in_all_logs_without_their_own(kit):
    await kit.create("t", max_message_bytes=77)
    await kit.create("u")
    await alter(kit, BROKER_RESOURCE, "", message_max_bytes="99")
    assert [kit.partition(name).max_batch_bytes for name in "tu"] == [77, 99]


async def test_settings_of_other_things_are_nobodys_business(kit):
    await kit.create("t")
    before = kit.partition().log.config
    changes = [ConfigsChanged(resource_type=32, resource_name="group", values={})]
    kit.replicas.on_changes(changes, kit.metadata.image)
    assert kit.partition().log.config is before


class TestStarting:
    async def test_logs_on_disk_are_taken_up(self, kit):
        await kit.create("t", 2)
        kit.append("a")
        again = reloaded(kit)
        assert again.partition("t", 0).log_end_offset == 1

    async def test_missing_log_is_made_anew(self, kit):
        await kit.create("t", 2)
        kit.logs.delete(TopicPartition("t", 1))
        assert reloaded(kit).partition("t", 1).log_end_offset == 0

    async def test_log_of_an_earlier_topic_of_that_name_is_removed(self, kit, caplog):
        await kit.create("t")
        kit.append("old")
        kit.partition().log.topic_id = UNKNOWN_ID
        assert reloaded(kit).partition("t", 0).log_end_offset == 0
        assert "which is gone" in caplog.text

    async def test_log_without_an_id_gets_that_of_its_topic(self, kit):
        """A power failure can tear the file that holds it."""
        topic_id = await kit.create("t")
        kit.append("a")
        kit.partition().log.topic_id = ZERO_UUID
        write_partition_metadata(kit.disk, "/data/t-0/partition.metadata", ZERO_UUID, sync=False)
        partition = reloaded(kit).partition("t", 0)
        assert (partition.log.topic_id, partition.log_end_offset) == (topic_id, 1)

    async def test_id_that_cannot_be_written_is_no_reason_not_to_serve(self, kit, caplog):
        await kit.create("t", 2)
        kit.partition().log.topic_id = ZERO_UUID

        def set_topic_id(topic_partition, topic_id):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "disk full")

        kit.logs.set_topic_id = set_topic_id
        assert sorted(reloaded(kit).partitions_of("t")) == [0, 1]
        assert "t-0 goes without its topic ID" in caplog.text


class TestOfflineLogs:
    """A log that cannot be opened: its clients hear of it, the others go on."""

    @pytest.fixture
    async def offline(self, kit):
        kit.logs.offline[TopicPartition("t", 1)] = "the disk is broken"
        kit.topic_id = await kit.create("t", 3)
        return kit

    async def test_its_clients_are_told(self, offline):
        find = offline.replicas
        for refused in (
            refusal(find.partition, "t", 1),
            refusal(find.partition_by_id, offline.topic_id, 1),
        ):
            assert refused.code is ErrorCode.KAFKA_STORAGE_ERROR
            assert "the disk is broken" in refused.message
        assert find.partition("t", 0) is not find.partition("t", 2)

    async def test_each_is_told_anew(self, offline):
        """An exception raised again and again would hold the frames of all who raised it."""
        first = refusal(offline.replicas.partition, "t", 1)
        assert refusal(offline.replicas.partition, "t", 1) is not first

    async def test_log_that_fails_later_is_offline_for_all(self, kit):
        await kit.create("t", 2)
        kit.partition().log.failure = "torn"
        refused = refusal(kit.replicas.partition, "t", 0)
        assert (refused.code, refused.message) == (
            ErrorCode.KAFKA_STORAGE_ERROR,
            "t-0 is offline: torn",
        )
        kit.replicas.partition("t", 1)

    async def test_its_topic_can_be_deleted_and_made_anew(self, offline):
        await offline.delete("t")
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert refusal(offline.replicas.partition, "t", 1).code is unknown
        offline.logs.offline.clear()
        await offline.create("t", 2)
        assert offline.partition("t", 1).log_end_offset == 0

    async def test_directory_that_cannot_be_removed_does_not_keep_its_topic(self, kit, caplog):
        await kit.create("t", 2)

        def delete(topic_partition):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition} stays")

        kit.logs.delete, real = delete, kit.logs.delete
        await kit.delete("t")
        kit.logs.delete = real
        assert "t-0 stays" in caplog.text
        assert kit.replicas.partitions_of("t") == {}


async def test_logs_stay_where_the_metadata_are_lost(kit):
    """Whoever wipes the store of a cluster shall not find its brokers' disks wiped, too."""
    await kit.create("t")
    kit.partition().append(batch("precious"), now_ms=NOW_MS)
    kit.replicas.on_changes([ImageReplaced()], Image())
    assert list(kit.replicas.partitions()) == []
    assert kit.logs.logs() == []
    (home,) = kit.logs.paths
    names = [each.name for each in kit.disk.list(home)]
    assert [name for name in names if name.startswith("t-0.") and name.endswith("-stray")]


class TestManyNewPartitions:
    """Rule 251: their logs are made a few at a time."""

    COUNT = 5 * LOGS_AT_ONCE_MAX

    def test_one_commit_makes_a_few(self, kit_of):
        kit = kit_of(self.COUNT)
        assert len(kit.logs.logs()) == LOGS_AT_ONCE_MAX
        for turn in range(2, 6):
            assert kit.replicas.open_some() == (turn < 5)
            assert len(kit.logs.logs()) == turn * LOGS_AT_ONCE_MAX
        assert not kit.replicas.open_some()
        assert sorted(kit.replicas.partitions_of("t")) == list(range(self.COUNT))

    def test_one_that_is_asked_for_is_there(self, kit_of):
        kit = kit_of(self.COUNT)
        last = self.COUNT - 1
        partition = kit.replicas.partition("t", last)
        assert partition.is_leader
        assert kit.append("a", index=last) == 0
        assert kit.replicas.find(TopicPartition("t", last)) is partition
        assert kit.replicas.find(TopicPartition("t", last - 1)).is_leader
        assert kit.replicas.hosted(TopicPartition("t", last - 2)) is not None
        assert kit.replicas.replica("t", last - 3).is_leader
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert refusal(kit.replicas.partition, "t", self.COUNT).code is unknown
        while kit.replicas.open_some():
            pass
        assert len(kit.logs.logs()) == self.COUNT
        assert kit.replicas.partition("t", last) is partition

    def test_all_of_a_topic_are_there_when_it_is_asked_for(self, kit_of):
        kit = kit_of(self.COUNT)
        assert len(kit.replicas.partitions_of("t")) == self.COUNT
        assert not kit.replicas.open_some()

    async def test_a_topic_deleted_meanwhile_leaves_nothing(self, kit):
        await kit.create("t", self.COUNT)
        await kit.create("u", self.COUNT)
        await kit.delete("t")
        while kit.replicas.open_some():
            pass
        assert {log.topic_partition.topic for log in kit.logs.logs()} == {"u"}
        await kit.create("t", 1)
        assert kit.append("a") == 0

    async def test_somebody_is_told_that_there_is_work(self, kit):
        told = []
        kit.replicas.on_unopened = lambda: told.append(1)
        await kit.create("t", LOGS_AT_ONCE_MAX)
        assert told == []
        await kit.create("u", self.COUNT)
        assert told == [1]

    async def test_internal_topics_are_made_at_once(self, kit):
        await kit.create("__consumer_offsets", 50)
        assert len(kit.logs.logs()) == 50

    async def test_a_partition_that_moves_away_before_is_not_made(self, kit):
        topic_id = await kit.create("t", self.COUNT)
        last = self.COUNT - 1
        moved = PartitionChanged(name="t", topic_id=topic_id, index=last, state=ELSEWHERE)
        kit.replicas.on_changes([moved], kit.metadata.image.apply([moved]))
        while kit.replicas.open_some():
            pass
        assert len(kit.logs.logs()) == self.COUNT - 1


@pytest.fixture
def kit_of():
    """A kit with a topic of so many partitions, none of which was asked for."""

    def make(count):
        async def start():
            kit = await DataKit().start()
            await kit.create("t", count)
            return kit

        return trio.run(start)

    return make
