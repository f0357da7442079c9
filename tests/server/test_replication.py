"""Brokers that copy from each other and hand requests on, over real sockets and files."""

from contextlib import asynccontextmanager

import trio

from kafkalite.config import load_config
from kafkalite.meta.ensemble import Ensemble
from kafkalite.meta.events import CreateTopic, DeleteTopic
from kafkalite.server.broker import Broker
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from tests.log.log_kit import NOW_MS, batch
from tests.peers.asking_kit import ask, commit_offset, committed_offset

DEADLINE_S = 10


@asynccontextmanager
async def cluster(path, count=2, *, with_stores=False):
    ensemble = Ensemble()
    async with trio.open_nursery() as nursery:
        brokers = []
        stores = [ensemble.store() for _ in range(count)]
        for broker_id in range(1, count + 1):
            config = load_config(
                overrides={
                    "node.id": str(broker_id),
                    "log.dirs": str(path / str(broker_id)),
                    "listeners": "PLAINTEXT://127.0.0.1:0",
                    "kafkalite.metadata.flush": "false",
                    "zookeeper.connect": "unused",
                    "controlled.shutdown.enable": "false",
                }
            )
            brokers.append(await nursery.start(Broker(config, store=stores[broker_id - 1]).run))
        images = [one.services.metadata for one in brokers]
        await until(lambda: all(len(each.image.brokers) == count for each in images))
        await until(lambda: all(each.image.controller_id > 0 for each in images))
        yield brokers if not with_stores else (brokers, stores)
        nursery.cancel_scope.cancel()


async def until(predicate):
    with trio.fail_after(DEADLINE_S):
        while not predicate():  # noqa: ASYNC110 - brokers do not tell
            await trio.sleep(0.002)


async def create_topic(broker, name, *, replicas):
    """Ask this broker for a topic, as any client does; return the error code."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=replicas)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=5_000)
    return (await ask(broker, CREATE_TOPICS, 7, request)).topics[0].error_code


def contents(replica):
    return [bytes(one) for one in replica.log.read_batches(0)]


async def test_topic_is_made_through_any_broker_and_copied_to_all(tmp_path):
    async with cluster(tmp_path) as brokers:
        for number, broker in enumerate(brokers):
            assert await create_topic(broker, f"t{number}", replicas=2) == 0
            again = await create_topic(broker, f"t{number}", replicas=2)
            assert again == ErrorCode.TOPIC_ALREADY_EXISTS
            await is_copied(brokers, f"t{number}")


async def is_copied(brokers, name):
    """Append to a topic, and see that all have it in the end."""
    await until(lambda: all(one.services.metadata.image.partition(name, 0) for one in brokers))
    replicas = [one.services.replicas.replica(name, 0) for one in brokers]
    (leader,) = [one for one in replicas if one.is_leader]
    for size in (10, 100_000, 1_000_000):
        leader.append(batch(b"x" * size), now_ms=NOW_MS, all_acks=True)
    await until(lambda: leader.high_watermark == 3)
    assert contents(replicas[0]) == contents(replicas[1])
    assert len(contents(leader)) == 3


async def test_offsets_of_a_deleted_topic_do_not_pass_to_its_successor(tmp_path):
    """Also where the coordinator hears of both at once, after it did not reach the store."""
    async with cluster(tmp_path, 3, with_stores=True) as (brokers, stores):
        controller = next(each for each in brokers if each.services.metadata.is_controller)
        metadata = controller.services.metadata
        first, second = (metadata.new_topic_id() for _ in range(2))
        await controller.services.topic_creation.ensure_topic("__consumer_offsets")
        await metadata.submit(create_event("t", first))
        known = [each.services.metadata for each in brokers]
        await until(lambda: all("t" in each.image.topics for each in known))
        place = next(i for i, each in enumerate(brokers) if each is not controller)
        coordinator, store = brokers[place], stores[place]
        for group in (f"g{n}" for n in range(100)):  # one that has its coordinator there
            if await commit_offset(coordinator, group, "t", 5) == ErrorCode.NONE:
                break
        assert await committed_offset(coordinator, group, "t") == 5
        store.cut_off()
        await metadata.submit(DeleteTopic(name="t"))
        await metadata.submit(create_event("t", second))
        store.reconnect()
        image_of = coordinator.services.metadata
        await until(lambda: image_of.image.topics["t"].topic_id == second)
        assert await committed_offset(coordinator, group, "t") == -1


def create_event(name, topic_id):
    return CreateTopic(name=name, topic_id=topic_id, num_partitions=1, replication_factor=1)


async def test_broker_that_stops_leaves_no_connection_open(tmp_path, recwarn):
    async with cluster(tmp_path) as brokers:
        assert await create_topic(brokers[1], "t", replicas=2) == 0
    assert [w for w in recwarn if issubclass(w.category, ResourceWarning)] == []


def overrides_of(path, broker_id):
    return {
        "node.id": str(broker_id),
        "log.dirs": str(path / str(broker_id)),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "kafkalite.metadata.flush": "false",
        "kafkalite.cluster.id": "always-the-same-one-22",
        "zookeeper.connect": "unused",
        "controlled.shutdown.enable": "false",
    }


@asynccontextmanager
async def broker_of(ensemble, path, broker_id):
    config = load_config(overrides=overrides_of(path, broker_id))
    async with trio.open_nursery() as nursery:
        broker = await nursery.start(Broker(config, store=ensemble.store()).run)
        await until(lambda: broker.services.metadata.image.controller_id > 0)
        yield broker
        nursery.cancel_scope.cancel()


async def test_logs_are_kept_when_the_metadata_of_the_cluster_are_lost(tmp_path):
    """Whoever empties ZooKeeper must not have the brokers empty their disks."""
    async with broker_of(Ensemble(), tmp_path, 1) as broker:
        for name in ("mine", "both"):
            assert await create_topic(broker, name, replicas=1) == 0
            broker.services.replicas.partition(name, 0).append(batch(b"x"), now_ms=NOW_MS)
    wiped = Ensemble()
    async with broker_of(wiped, tmp_path, 2) as other:
        assert await create_topic(other, "both", replicas=1) == 0
        async with broker_of(wiped, tmp_path, 1) as broker:
            assert list(broker.services.replicas.partitions()) == []
    kept = sorted((tmp_path / "1").glob("*-stray"))
    assert [each.name.split(".")[0] for each in kept] == ["both-0", "mine-0"]
    for each in kept:
        assert (each / f"{0:020}.log").stat().st_size > 60
