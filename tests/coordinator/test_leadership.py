"""From metadata to shards."""

from uuid import UUID

import pytest

from kafkalite.coordinator.leadership import CoordinatorLeadership
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.meta.changes import TopicDeleted
from kafkalite.meta.image import Image, PartitionImage, TopicImage
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.coordinator.fakes import FakeClock, FakePartition
from tests.coordinator.toy import TOPIC, ToyKind

HERE, ELSEWHERE = 1, 2


class Setup:
    def __init__(self):
        self.runtime = CoordinatorRuntime([ToyKind()], FakeClock())
        self.partitions = {(TOPIC, index): FakePartition(TOPIC, index) for index in range(3)}
        self.leadership = CoordinatorLeadership(self.runtime, HERE, self.partitions.get)
        self.image = Image()

    def metadata(self, *leaders, changes=()):
        """A new image in which the internal topic has these leaders; none: it is not there."""
        topics = {}
        if leaders:
            topics[TOPIC] = TopicImage(
                name=TOPIC,
                topic_id=UUID(int=1),
                partitions=tuple(
                    PartitionImage((leader,), (leader,), leader) for leader in leaders
                ),
            )
        self.image = Image(topics=topics)
        self.leadership.on_changes(changes, self.image)

    def shards(self):
        return self.runtime._slots[TOPIC]


@pytest.fixture
def setup():
    return Setup()


def test_partitions_led_here_get_shards(setup):
    setup.metadata(HERE, ELSEWHERE, HERE)
    assert set(setup.shards()) == {0, 2}


def test_leadership_comes_and_goes(setup):
    setup.metadata(HERE, HERE, HERE)
    kept = setup.shards()[2].core
    setup.metadata(HERE, ELSEWHERE, HERE)
    assert set(setup.shards()) == {0, 2}
    assert setup.shards()[2].core is kept


def test_deleted_internal_topic_closes_its_shards(setup):
    setup.metadata(HERE)
    setup.metadata()
    assert setup.shards() == {}
    with pytest.raises(KafkaError) as raised:
        setup.runtime.handle(TOPIC, "a", ("get", "x"))
    assert raised.value.code is ErrorCode.NOT_COORDINATOR


def test_same_topic_in_a_new_image_is_not_looked_at_again(setup):
    setup.metadata(HERE)
    setup.partitions.clear()
    setup.leadership.on_changes([], setup.image)
    assert set(setup.shards()) == {0}


def test_partition_that_could_not_be_opened_has_no_shard(setup):
    del setup.partitions[TOPIC, 1]
    setup.metadata(HERE, HERE)
    assert set(setup.shards()) == {0}


def test_deleted_topics_are_told(setup):
    setup.metadata(HERE, changes=[TopicDeleted(name="gone", topic_id=UUID(int=2)), object()])
    assert setup.shards()[0].core.told == ["gone"]
