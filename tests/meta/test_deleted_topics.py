"""Decision 0073."""

from uuid import UUID

from kafkalite.meta.changes import TopicCreated, TopicDeleted
from kafkalite.meta.deleted_topics import NAMES_MAX, DeletedTopics
from kafkalite.meta.image import Image, PartitionImage


def deleted(name):
    return TopicDeleted(name=name, topic_id=UUID(int=1))


def created(name):
    partitions = (PartitionImage((1,), (1,), 1),)
    return TopicCreated(name=name, topic_id=UUID(int=2), partitions=partitions)


def test_a_name_is_kept_until_it_is_a_topics_again():
    topics = DeletedTopics()
    topics.on_changes([deleted("a"), deleted("b")], Image())
    assert "a" in topics.names
    topics.on_changes([created("a"), created("c")], Image())
    assert "a" not in topics.names
    assert "b" in topics.names


def test_the_oldest_names_are_forgotten():
    topics = DeletedTopics()
    topics.on_changes([deleted("again")], Image())
    topics.on_changes([deleted(f"t{number}") for number in range(NAMES_MAX - 1)], Image())
    topics.on_changes([deleted("again"), deleted("last")], Image())
    assert "t0" not in topics.names
    assert all(name in topics.names for name in ("again", "t1", "last"))
