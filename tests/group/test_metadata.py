"""What group shards see of the cluster's metadata."""

from uuid import UUID

from kafkalite.config import BrokerConfig
from kafkalite.group.metadata import GroupMetadata
from kafkalite.meta.changes import (
    GROUP_RESOURCE,
    BrokerRegistered,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from kafkalite.meta.image import ConfigResource, Image, PartitionImage

GROUP = ConfigResource(GROUP_RESOURCE, "g")


def partitions(*replicas):
    return tuple(PartitionImage(replicas=each, isr=each, leader=each[0]) for each in replicas)


def created(name, *replicas, number=1):
    return TopicCreated(name=name, topic_id=UUID(int=number), partitions=partitions(*replicas))


def image_of(*changes, before=None):
    return (before or Image()).apply(changes)


TWO = image_of(
    BrokerRegistered(broker_id=1, endpoints={}, rack="x"),
    BrokerRegistered(broker_id=2, endpoints={}, rack="w"),
    BrokerRegistered(broker_id=3, endpoints={}),
    created("a", (1, 2), (3, 9)),
    created("b", (3,), number=2),
)


def test_created_changed_and_deleted_topics_are_told():
    metadata = GroupMetadata()
    assert metadata.update(TWO) == {"a", "b"}
    more = image_of(
        PartitionsAdded(name="b", topic_id=UUID(int=2), first_index=1, partitions=partitions((1,))),
        before=TWO,
    )
    assert metadata.update(more, ["a", "b"]) == {"b"}
    gone = image_of(TopicDeleted(name="a", topic_id=UUID(int=1)), before=more)
    assert metadata.update(gone) == {"a"}
    assert metadata.version == gone.version


def test_a_topic_that_only_has_another_leader_is_the_same():
    moved = PartitionImage(replicas=(3,), isr=(3,), leader=-1, leader_epoch=7)
    other = image_of(
        TopicCreated(name="b", topic_id=UUID(int=2), partitions=(moved,)),
    )
    metadata = GroupMetadata(image_of(created("b", (3,), number=2)))
    assert metadata.update(other) == set()


def test_version_of_the_newest_topic_moves_with_new_topics_alone():
    metadata = GroupMetadata(TWO)
    assert metadata.newest_topic_version == TWO.version
    gone = image_of(TopicDeleted(name="a", topic_id=UUID(int=1)), before=TWO)
    metadata.update(gone)
    assert metadata.newest_topic_version == TWO.version
    back = image_of(created("a", (1,), number=5), before=gone)
    metadata.update(back)
    assert metadata.newest_topic_version == back.version


def test_racks_are_those_of_the_replicas_in_order():
    metadata = GroupMetadata(TWO)
    assert metadata.racks(metadata.topic("a"), 0) == ["w", "x"]
    assert metadata.racks(metadata.topic("a"), 1) == []


def test_hash_changes_with_the_topic_and_ignores_unknown_ones():
    metadata = GroupMetadata(TWO)
    before = metadata.hash_of(["a", "b", "unknown"])
    assert before == metadata.hash_of(["b", "a"]) == GroupMetadata(TWO).hash_of(["a", "b"])
    again = image_of(
        TopicDeleted(name="a", topic_id=UUID(int=1)), created("a", (1, 2), (3, 9), number=3),
        before=TWO,
    )  # fmt: skip
    metadata.update(again, ["a"])
    assert metadata.hash_of(["a", "b"]) != before
    assert metadata.hash_of(["unknown"]) == 0


def test_topics_are_found_by_name_and_id():
    metadata = GroupMetadata(TWO)
    assert metadata.topic("b") is metadata.topic_by_id(UUID(int=2))
    assert metadata.topic("c") is None
    assert metadata.topic_by_id(UUID(int=3)) is None


def test_settings_of_a_group_are_seen():
    image = Image(configs={GROUP: {"consumer.session.timeout.ms": "50000"}})
    config = BrokerConfig({"group.consumer.session.timeout.ms": "46000"})
    metadata = GroupMetadata(image, config)
    assert metadata.group_config("g").consumer_session_timeout_ms == 50_000
    assert metadata.group_config("h").consumer_session_timeout_ms == 46_000
