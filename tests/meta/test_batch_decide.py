"""How many events are one commit."""

from kafkalite.meta.batch_decide import EVENTS_AT_ONCE_MAX, PARTITIONS_AT_ONCE_MAX, slices
from kafkalite.meta.changes import TopicCreated
from kafkalite.meta.events import CreateTopic, DeleteTopic
from kafkalite.meta.image import Image, PartitionImage
from tests.meta.meta_kit import topic_id

STATE = PartitionImage((1,), (1,), 1)


def names(events, image):
    return [[event.name for event in part] for part in slices(events, image)]


def of_topics(*sizes):
    """Return an image with topics of so many partitions, named by their place."""
    return Image().apply(
        TopicCreated(name=f"t{index}", topic_id=topic_id(index + 1), partitions=(STATE,) * size)
        for index, size in enumerate(sizes)
    )


def test_a_commit_deletes_a_bounded_number_of_partitions():
    """Each of which every broker forgets in the same turn; a topic is never deleted in parts."""
    half = PARTITIONS_AT_ONCE_MAX // 2
    image = of_topics(half, half, 1, PARTITIONS_AT_ONCE_MAX + 5, 2)
    events = [DeleteTopic(name=f"t{index}") for index in (0, 1, 2, 9, 3, 4)]
    assert names(events, image) == [["t0", "t1"], ["t2", "t9"], ["t3"], ["t4"]]


def test_a_commit_makes_a_bounded_number_of_partitions_and_of_topics():
    def create(name, count):
        return CreateTopic(
            name=name, topic_id=topic_id(1), num_partitions=count, replication_factor=1
        )

    large = [create(name, PARTITIONS_AT_ONCE_MAX - 1) for name in "ab"]
    assert names([*large, create("c", 1)], Image()) == [["a"], ["b", "c"]]
    many = [DeleteTopic(name=str(index)) for index in range(EVENTS_AT_ONCE_MAX + 1)]
    assert [len(part) for part in slices(many, Image())] == [EVENTS_AT_ONCE_MAX, 1]
