"""Nodes of deleted topics, in a real ZooKeeper."""

import pytest
import trio

from kafkalite.meta.events import (
    CreatePartitions,
    DeleteTopic,
)
from kafkalite.meta.image import Image
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.meta.meta_kit import topic_id
from tests.meta.zookeeper_kit import (
    Look,
    being_controller,
    commit,
    create,
    nodes_on,
    topic_change,
)

pytestmark = [pytest.mark.slow]


def test_a_deleted_topic_leaves_nothing_but_its_id(zookeeper):
    async def main():
        async with nodes_on(zookeeper, 1) as (node,):
            await node.runner.submit(create("t", 7))
            await node.runner.submit(CreatePartitions(name="t", count=4))
            await node.runner.submit(DeleteTopic(name="t"))
            with Look(zookeeper) as look:
                assert look.client.get_children("/brokers/topics") == []
                assert look.client.get_children("/config/topics") == []
                assert look.client.get_children("/kafkalite/retired_topic_ids") == [
                    str(topic_id(7))
                ]

    trio.run(main)


def test_a_note_of_a_deleted_topic_does_not_harm_its_successor(zookeeper):
    """Its controller died before it removed the note, which was the last of the topic."""

    async def main():
        async with being_controller(zookeeper) as store:
            await commit(store, Image(), topic_change("t", 1, 3))
            with Look(zookeeper) as look:
                look.client.create("/kafkalite/deleted_topics/t", b"")
                await store.campaign()
                assert look.client.get_children("/kafkalite/deleted_topics") == []
                for index in range(3):
                    assert look.json(f"/brokers/topics/t/partitions/{index}/state")["isr"]

    trio.run(main)


def test_name_of_a_topic_that_is_half_gone_is_free_in_the_end(zookeeper):
    """ZooKeeper was not reached while the nodes of a long topic were removed."""

    async def main():
        async with being_controller(zookeeper) as store:
            with Look(zookeeper) as look:
                look.client.create("/brokers/topics/t/partitions/0/state", b"", makepath=True)
                look.client.create("/kafkalite/deleted_topics/t", b"")
                one = store._one

                async def unreachable(request):
                    raise KafkaError(ErrorCode.NOT_CONTROLLER, "not reached")

                store._deletions._one = unreachable
                await store._deletions.finish(store._own_epoch_version)
                assert look.client.exists("/brokers/topics/t")
                store._deletions._one = one
                await commit(store, Image(), topic_change("t", 1, 3))
                assert look.json("/brokers/topics/t/partitions/2/state")["isr"]
                assert look.client.get_children("/kafkalite/deleted_topics") == []

    trio.run(main)


def test_a_stale_controller_removes_nothing(zookeeper):
    """Rule 188: the name may be another topic's by now."""

    async def main():
        async with being_controller(zookeeper) as store:
            with Look(zookeeper) as look:
                look.client.set("/controller_epoch", b"7")
                look.client.create("/brokers/topics/t/partitions", b"", makepath=True)
                look.client.create("/kafkalite/deleted_topics/t", b"")
                await store._deletions.finish(store._own_epoch_version)
                assert store._deletions.is_due
                assert look.client.exists("/brokers/topics/t/partitions")

    trio.run(main)
