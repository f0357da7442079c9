"""Changes of ISRs and leaders, as they are counted for dashboards."""

from dataclasses import replace
from types import SimpleNamespace
from uuid import UUID

import pytest

from kafkalite.meta.changes import PartitionChanged
from kafkalite.meta.image import Image, PartitionImage, TopicImage
from kafkalite.observe.collect_storage import ChangeCounts

TOPIC_ID = UUID(int=7)
BROKER_ID = 1


def image_of(leader, isr):
    partition = PartitionImage(
        leader=leader, leader_epoch=1, partition_epoch=1, replicas=(1, 2, 3), isr=isr
    )
    topic = TopicImage(name="t", topic_id=TOPIC_ID, partitions=(partition,))
    return Image(topics={"t": topic})


class Metadata:
    """Metadata that are told to change."""

    is_controller = True

    def __init__(self, leader, isr):
        self.image = image_of(leader, isr)

    def subscribe(self, subscriber):
        self.tell = subscriber

    def change(self, leader, isr):
        after = image_of(leader, isr)
        state = after.partition("t", 0)
        change = PartitionChanged(name="t", topic_id=TOPIC_ID, index=0, state=state)
        self.image = replace(after, version=self.image.version + 1)
        self.tell([change], self.image)


@pytest.mark.parametrize(
    ("before", "after", "counted"),
    [
        ((1, (1, 2, 3)), (1, (1, 2)), (1, 0, 0, 0)),
        ((1, (1, 2)), (1, (1, 2, 3)), (0, 1, 0, 0)),
        ((2, (2, 3)), (2, (2,)), (0, 0, 0, 0)),  # another broker counts it
        ((2, (2, 1)), (1, (1,)), (1, 0, 1, 0)),
        ((2, (2,)), (3, (3,)), (0, 0, 1, 1)),
        ((2, (2,)), (-1, (2,)), (0, 0, 0, 0)),
    ],
)
def test_each_change_is_counted_where_it_belongs(before, after, counted):
    metadata = Metadata(*before)
    services = SimpleNamespace(metadata=metadata, config=SimpleNamespace(node_id=BROKER_ID))
    counts = ChangeCounts(SimpleNamespace(services=services))
    metadata.change(*after)
    found = (counts.shrinks, counts.expands, counts.elections, counts.unclean_elections)
    assert found == counted
