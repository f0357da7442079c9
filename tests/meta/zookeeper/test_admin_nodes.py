"""What tools ask for by nodes in /admin, and topics that are half made; on a real ZooKeeper."""

import json

import pytest
import trio

from kafkalite.meta.zookeeper import znodes
from kafkalite.meta.zookeeper.znodes import Asked, NotKafka, read_asked
from tests.meta.zookeeper_kit import Look, create, nodes_on, until

pytestmark = [pytest.mark.slow]


def asked(*partitions):
    return json.dumps({"version": 1, "partitions": [*partitions]}).encode()


def partition(image, name, index):
    return image.topics[name].partitions[index]


def test_topics_that_are_to_be_deleted_are(zookeeper):
    """Rule 192: as `kafka-topics --delete --zookeeper` asks for it."""

    async def main():
        async with nodes_on(zookeeper, 2) as (one, two):
            await one.runner.submit_all([create("t", 1), create("u", 2)])
            with Look(zookeeper) as tool:
                tool.client.create("/admin/delete_topics/t")
                tool.client.create("/admin/delete_topics/unknown")
                await until(lambda: "t" not in two.image.topics)
                await until(lambda: not tool.client.get_children("/admin/delete_topics"))
                assert not tool.client.exists("/brokers/topics/t")
                assert "u" in two.image.topics

    trio.run(main)


def test_partitions_are_moved_and_preferred_leaders_elected(zookeeper, caplog):
    """Rule 192: as `kafka-reassign-partitions --zookeeper` and CMAK ask for it."""

    async def main():
        async with nodes_on(zookeeper, 2) as (one, two):
            places = {"num_partitions": -1, "replication_factor": -1, "assignments": [(0, [1, 2])]}
            await one.runner.submit(create("t", 1, **places))
            await until(lambda: "t" in two.image.topics)
            with Look(zookeeper) as tool:
                moves = (
                    {"topic": "t", "partition": 0, "replicas": [2, 1]},
                    {"topic": "t", "partition": 9, "replicas": [1, 2]},
                )
                tool.client.create("/admin/reassign_partitions", asked(*moves))
                await until(lambda: partition(two.image, "t", 0).replicas == (2, 1))
                await until(lambda: not tool.client.exists("/admin/reassign_partitions"))
                assert "no partition t-9" in caplog.text
                assert partition(two.image, "t", 0).leader == 1
                tool.client.create("/admin/preferred_replica_election", b"not json")
                await until(lambda: not tool.client.exists("/admin/preferred_replica_election"))
                assert "/admin/preferred_replica_election" in caplog.text
                election = asked({"topic": "t", "partition": 0})
                tool.client.create("/admin/preferred_replica_election", election)
                await until(lambda: partition(two.image, "t", 0).leader == 2)
                await until(lambda: not tool.client.exists("/admin/preferred_replica_election"))
                assert one.runner.is_controller

    trio.run(main)


def test_what_was_asked_for_before_brokers_started_is_done(zookeeper):
    """What an Apache Kafka left undone in its ensemble."""

    async def main():
        async with nodes_on(zookeeper, 1) as (one,):
            await one.runner.submit_all([create("t", 1), create("u", 2)])
        with Look(zookeeper) as tool:
            tool.client.create("/admin/delete_topics/t")
        async with nodes_on(zookeeper, 1) as (one,):
            await until(lambda: one.image.topics.keys() == {"u"})

    trio.run(main)


def test_topics_and_partitions_without_state_are_made_whole(zookeeper):
    """Rule 256: the node is there, and nobody has elected leaders yet."""

    async def main():
        async with nodes_on(zookeeper, 2) as (one, _):
            await one.runner.submit(create("grown", 1, num_partitions=1))
            known = partition(one.image, "grown", 0)
        with Look(zookeeper) as tool:
            grown = tool.json("/brokers/topics/grown")
            grown["partitions"]["1"] = [2, 1]
            tool.client.set("/brokers/topics/grown", json.dumps(grown).encode())
            data = {
                "version": 3,
                "partitions": {"0": [1, 2], "1": [7]},
                "adding_replicas": {},
                "removing_replicas": {},
                "topic_id": grown["topic_id"][:-2] + "CQ",
            }
            tool.client.create("/brokers/topics/new", json.dumps(data).encode())
            tool.client.create("/brokers/topics/new/partitions/0", b"", makepath=True)
        async with nodes_on(zookeeper, 2) as (one, two):
            for node in (one, two):
                await until(lambda node=node: "new" in node.image.topics)
                await until(lambda node=node: len(node.image.topics["grown"].partitions) == 2)
            image = two.image
            assert partition(image, "grown", 0).leader_epoch >= known.leader_epoch
            assert partition(image, "grown", 1).replicas == (2, 1)
            assert partition(image, "grown", 1).leader in (1, 2)
            assert partition(image, "new", 0).leader in (1, 2)
            assert partition(image, "new", 1).leader == -1, "nobody who has it is there"
            with Look(zookeeper) as tool:
                state = tool.json("/brokers/topics/new/partitions/0/state")
                assert state["leader"] == partition(image, "new", 0).leader

    trio.run(main)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"partitions":[{"topic":"t"}]}', b'{"partitions":[1]}']
)
def test_nodes_of_another_form_are_refused(data):
    with pytest.raises(NotKafka, match="/admin/reassign_partitions"):
        read_asked(znodes.REASSIGN, data)


def test_an_election_names_no_replicas():
    data = asked({"topic": "t", "partition": 3})
    assert read_asked(znodes.ELECT, data) == [Asked("t", 3, ())]
