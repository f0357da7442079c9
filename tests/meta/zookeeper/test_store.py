"""Against a real ZooKeeper, which PySpark brings along."""

import random
from uuid import UUID

import pytest
import trio

from kafkalite.log.checkpoint import format_uuid
from kafkalite.meta.changes import PartitionChanged, TopicCreated, TopicDeleted
from kafkalite.meta.events import (
    AllocateProducerIds,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    IncrementalAlterConfigs,
    Operation,
    UpdateFeatures,
)
from kafkalite.meta.features import FeatureUpdate, UpgradeType
from kafkalite.meta.image import Image, PartitionImage
from kafkalite.meta.runner import MetadataRunner
from kafkalite.meta.store import (
    CommitEvent,
    OutcomeUnknown,
)
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.meta.meta_kit import topic_id
from tests.meta.zookeeper_kit import (
    Look,
    being_controller,
    broker,
    commit,
    comparable,
    create,
    nodes_on,
    opened,
    store_on,
    topic_change,
    until,
)

pytestmark = [pytest.mark.slow]


def test_nodes_are_those_that_kafka_3_9_writes(zookeeper):
    """Rules 186-191 and 194; names and types after ZkData.scala of 3.9."""

    async def main():
        async with nodes_on(zookeeper, 2, broker_rack="r1") as (one, two):
            controller = one.runner
            await controller.submit(create("t", 7, replication_factor=2))
            alter = IncrementalAlterConfigs(
                resource_type=2,
                resource_name="t",
                operations=[("retention.ms", Operation.SET, "5")],
            )
            await controller.submit(alter)
            for name in ("1", ""):
                await controller.submit(
                    IncrementalAlterConfigs(
                        resource_type=4,
                        resource_name=name,
                        operations=[("log.retention.ms", Operation.SET, "6")],
                    )
                )
            await controller.submit(AllocateProducerIds(broker_id=2))
            image = one.image
            epoch = two.runner.broker_epoch
            with Look(zookeeper) as look:
                check_nodes(look, image, epoch)

    trio.run(main)


def check_nodes(look, image, epoch):
    broker = look.json("/brokers/ids/2")
    assert broker.pop("timestamp").isdigit()
    assert broker == {
        "version": 5,
        "host": "localhost",
        "port": 9094,
        "endpoints": ["PLAINTEXT://localhost:9094"],
        "jmx_port": -1,
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "features": {},
        "rack": "r1",
    }
    assert look.stat("/brokers/ids/2").ephemeralOwner
    assert look.stat("/brokers/ids/2").czxid == epoch == image.brokers[2].broker_epoch
    controller = look.json("/controller")
    assert controller.pop("timestamp").isdigit()
    assert controller == {"version": 2, "brokerid": 1, "kraftControllerEpoch": -1}
    assert look.stat("/controller").ephemeralOwner
    assert look.client.get("/controller_epoch")[0] == b"1"
    assert look.json("/cluster/id") == {"version": "1", "id": "proposed-by-1"}
    states = image.topics["t"].partitions
    assert look.json("/brokers/topics/t") == {
        "version": 3,
        "partitions": {"0": list(states[0].replicas), "1": list(states[1].replicas)},
        "adding_replicas": {},
        "removing_replicas": {},
        "topic_id": format_uuid(topic_id(7)),
    }
    for index, state in enumerate(states):
        path = f"/brokers/topics/t/partitions/{index}/state"
        assert look.json(path) == {
            "version": 1,
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "controller_epoch": 1,
            "isr": list(state.isr),
        }
        assert look.stat(path).version == state.partition_epoch
    assert look.json("/config/topics/t") == {"version": 1, "config": {"retention.ms": "5"}}
    for name in ("1", "<default>"):
        assert look.json(f"/config/brokers/{name}") == {
            "version": 1,
            "config": {"log.retention.ms": "6"},
        }
    assert look.json("/latest_producer_id_block") == {
        "version": 1,
        "broker": 2,
        "block_start": "0",
        "block_end": "999",
    }
    for folder in ("/config/changes", "/config/users", "/config/clients", "/config/ips"):
        assert look.client.exists(folder)


def test_all_brokers_have_equal_images_and_so_has_one_that_starts_late(zookeeper):
    async def main():
        async with nodes_on(zookeeper, 3) as nodes:
            await random_work(nodes)
            newest = nodes[0].image.version
            await until(lambda: all(node.image.version == newest for node in nodes))
            late = store_on(zookeeper)
            await late.open()
            runner = MetadataRunner(nodes[0].config, late, cluster_id=nodes[0].image.cluster_id)
            await runner.load()
            late.close()
            first = comparable(nodes[0].image)
            for node in nodes[1:]:
                assert comparable(node.image) == first
            assert comparable(runner.image)[:7] == first[:7]

    trio.run(main)


def test_images_are_equal_after_sessions_were_lost_at_any_moment(zookeeper):
    async def main():
        async with nodes_on(zookeeper, 3) as nodes:
            chance = random.Random(3)
            for number in range(12):
                with trio.fail_after(30):
                    while not await some_work(nodes, number + 1):  # noqa: ASYNC110
                        await trio.sleep(0.02)
                owning = f"{zookeeper.chroot}/brokers/ids/{chance.randint(1, 3)}"
                await trio.to_thread.run_sync(zookeeper.expire_sessions, owning)
            await until(
                lambda: (
                    [node.runner.is_controller for node in nodes].count(True) == 1
                    and all(set(node.image.brokers) == {1, 2, 3} for node in nodes)
                    and all(
                        node.image.brokers[node.id].broker_epoch == node.runner.broker_epoch
                        for node in nodes
                    )
                    and len({(n.image.version, n.image.controller_epoch) for n in nodes}) == 1
                )
            )
            for node in nodes[1:]:
                assert comparable(node.image) == comparable(nodes[0].image)
            stored = await nodes[0].store.load()
            assert Image().apply(stored.changes).topics == nodes[0].image.topics
            assert stored.version == nodes[0].image.version

    trio.run(main)


async def some_work(nodes, seed):
    if not any(node.runner.is_controller for node in nodes):
        return False
    try:
        await random_work(nodes, steps=20, seed=seed)
    except KafkaError:
        return False
    return True


async def random_work(nodes, steps=150, seed=1):
    chance = random.Random(seed)
    controller = next(node.runner for node in nodes if node.runner.is_controller)
    for step in range(steps):
        name = chance.choice("abcdef")
        way = chance.choice([UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE])
        setting = (chance.choice(["retention.ms", "segment.ms"]), chance.choice([0, 1]), "77")
        event = chance.choice(
            [
                CreateTopic(
                    name=name,
                    topic_id=UUID(int=1000 * seed + step),
                    num_partitions=chance.randint(1, 4),
                    replication_factor=chance.randint(1, 3),
                    configs={"retention.ms": "9"} if chance.random() < 0.5 else {},
                ),
                DeleteTopic(name=name),
                CreatePartitions(name=name, count=chance.randint(2, 8)),
                IncrementalAlterConfigs(resource_type=2, resource_name=name, operations=[setting]),
                IncrementalAlterConfigs(
                    resource_type=4,
                    resource_name=chance.choice(["", "1", "2"]),
                    operations=[("log.retention.ms", chance.choice([0, 1]), "77")],
                ),
                IncrementalAlterConfigs(
                    resource_type=32,
                    resource_name="group/\u00e4 b",
                    operations=[("consumer.session.timeout.ms", chance.choice([0, 1]), "50000")],
                ),
                AllocateProducerIds(broker_id=chance.randint(1, 3)),
                UpdateFeatures(
                    updates=[FeatureUpdate("transaction.version", chance.randint(0, 2), way)]
                ),
            ]
        )
        try:
            await controller.submit(event)
        except KafkaError as error:
            if error.code is ErrorCode.NOT_CONTROLLER:
                raise


def test_a_stale_controller_changes_nothing(zookeeper):
    """Rule 188."""

    async def main():
        async with opened(zookeeper, 2) as (old, new):
            await old.register(broker(1))
            await new.register(broker(2))
            assert await old.campaign() == 1
            assert await new.campaign() is None
            image = await commit(old, Image(), topic_change("a", 1))
            with Look(zookeeper) as look:
                look.client.delete("/controller")
            assert await new.campaign() == 2
            with pytest.raises(KafkaError) as caught:
                await commit(old, image, topic_change("b", 2))
            assert caught.value.code is ErrorCode.NOT_CONTROLLER
            assert not isinstance(caught.value, OutcomeUnknown)
            stored = await new.load()
            assert [change.name for change in stored.changes] == ["a"]
            await commit(new, image, topic_change("b", 2))

    trio.run(main)


def test_who_decides_upon_an_old_image_changes_nothing(zookeeper):
    async def main():
        async with being_controller(zookeeper) as store:
            old = await commit(store, Image(), topic_change("a", 1))
            await commit(store, old, topic_change("b", 2))
            with pytest.raises(OutcomeUnknown):
                await commit(store, old, topic_change("c", 3))
            stored = await store.load()
            assert [change.name for change in stored.changes] == ["a", "b"]

    trio.run(main)


def test_a_campaign_whose_answer_was_lost_is_found_won(zookeeper):
    async def main():
        async with opened(zookeeper) as store:
            await store.register(broker(1))
            assert await store.campaign() == 1
            assert await store.campaign() == 1

    trio.run(main)


def test_a_commit_that_is_too_long_is_made_in_parts(zookeeper):
    async def main():
        async with opened(zookeeper, 2) as (store, other):
            await store.register(broker(1))
            await store.campaign()
            await other.load()
            changes = [topic_change(f"many-{'x' * 200}", 1, 4_000)]
            changes += [topic_change(f"t{n}", n + 10, 5) for n in range(500)]
            after = Image().apply(changes)
            version = await store.commit(Image(), after, changes)
            assert version > 1
            image = Image()
            with trio.fail_after(20):
                while image.version < version:
                    event = await other.next_event()
                    if isinstance(event, CommitEvent):
                        assert event.version == image.version + 1
                        image = image.apply(event.changes)
            assert image.topics == after.topics
            stored = await other.load()
            assert stored.version == version
            assert Image().apply(stored.changes).topics == after.topics
            gone = [
                TopicDeleted(name=topic.name, topic_id=topic.topic_id)
                for topic in image.topics.values()
            ]
            await commit(store, image, *gone)
            assert Image().apply((await other.load()).changes).topics == {}
            with Look(zookeeper) as look:
                assert look.client.get_children("/brokers/topics") == []
                assert look.client.get_children("/kafkalite/deleted_topics") == []

    trio.run(main)


def test_a_setting_that_zookeeper_cannot_take_is_refused(zookeeper):
    """It would close the connection, and the controller could decide nothing for a while."""

    replicas = ",".join(f"{index}:1" for index in range(100_000))
    throttle = ("follower.replication.throttled.replicas", Operation.SET, replicas)
    alter = IncrementalAlterConfigs(resource_type=2, resource_name="a", operations=[throttle])

    async def main():
        async with nodes_on(zookeeper, 1) as (node,):
            await node.runner.submit(create("a", 1))
            with pytest.raises(KafkaError, match="bytes at once are too much for Zoo") as caught:
                await node.runner.submit(alter)
            assert caught.value.code is ErrorCode.INVALID_REQUEST
            # The connection is still there, and nothing is unclear.
            await node.runner.submit(create("b", 2))

    trio.run(main)


def test_one_bad_node_does_not_keep_other_topics_from_a_new_leader(zookeeper, caplog):
    async def main():
        async with nodes_on(zookeeper, 3) as nodes:
            controller = next(node for node in nodes if node.runner.is_controller)
            victim = next(node for node in nodes if node is not controller)
            for number in range(7):
                topic = create(f"t{number}", number + 1, num_partitions=3, replication_factor=3)
                await controller.runner.submit(topic)
            bad = next(
                f"/brokers/topics/t3/partitions/{index}/state"
                for index, state in enumerate(controller.image.topics["t3"].partitions)
                if state.leader == victim.id
            )
            with Look(zookeeper) as look:
                look.client.delete(bad)
            victim.stop()
            await until(lambda: victim.id not in controller.image.brokers)
            for name, topic in controller.image.topics.items():
                leaders = {state.leader for state in topic.partitions}
                assert (victim.id in leaders) == (name == "t3")
            await controller.runner.submit(create("more", 99))
            other = next(node for node in nodes if node not in (controller, victim))
            await until(lambda: other.image.version == controller.image.version)
            assert comparable(other.image) == comparable(controller.image)
        (error,) = [each.message for each in caplog.records if each.levelname == "ERROR"]
        assert bad in error

    trio.run(main)


def test_leftover_settings_of_a_topic_are_overwritten(zookeeper):
    """As Apache Kafka does; its tools leave them behind."""

    async def main():
        async with being_controller(zookeeper) as store:
            with Look(zookeeper) as look:
                look.client.create("/config/topics/t", b"{}")
                configs = {"retention.ms": "5"}
                state = PartitionImage((1,), (1,), 1)
                created = TopicCreated(
                    name="t", topic_id=topic_id(1), partitions=(state,), configs=configs
                )
                await commit(store, Image(), created)
                assert look.json("/config/topics/t")["config"] == configs

    trio.run(main)


def test_partition_states_are_written_once_for_each_step(zookeeper):
    async def main():
        async with being_controller(zookeeper) as store:
            state = PartitionImage((1, 2), (1, 2), 1)
            created = TopicCreated(name="t", topic_id=topic_id(1), partitions=(state,))
            image = await commit(store, Image(), created)
            steps = [
                PartitionChanged(
                    name="t",
                    topic_id=topic_id(1),
                    index=0,
                    state=PartitionImage((1, 2), (1,), 1, epoch, epoch),
                )
                for epoch in (1, 2, 3)
            ]
            await commit(store, image, *steps)
            with Look(zookeeper) as look:
                path = "/brokers/topics/t/partitions/0/state"
                assert look.stat(path).version == 3
                assert look.json(path)["leader_epoch"] == 3

    trio.run(main)
