"""Stores and brokers on a real ZooKeeper, and what an operator sees of it."""

import json
from contextlib import asynccontextmanager

import trio
from kazoo.client import KazooClient

from kafkalite.clock import SystemClock
from kafkalite.config import load_config
from kafkalite.meta.changes import TopicCreated
from kafkalite.meta.events import (
    CreateTopic,
)
from kafkalite.meta.image import BrokerImage, PartitionImage
from kafkalite.meta.runner import MetadataRunner
from kafkalite.meta.zookeeper.store import ZookeeperStore
from tests.meta.meta_kit import topic_id

SESSION_MS = 4_000


def address(server):
    return server.connect + server.chroot


def store_on(server, **options):
    options = {"session_timeout_ms": SESSION_MS, "connection_timeout_ms": 10_000, **options}
    return ZookeeperStore(address(server), clock=SystemClock(), **options)


@asynccontextmanager
async def opened(server, count=1, **options):
    """Stores that are connected; the first one alone, or a list."""
    stores = [store_on(server, **options) for _ in range(count)]
    try:
        for store in stores:
            await store.open()
        yield stores[0] if count == 1 else stores
    finally:
        for store in stores:
            store.close()


@asynccontextmanager
async def being_controller(server):
    """A store whose broker, the only one, is registered and controller."""
    async with opened(server) as store:
        await store.register(broker(1))
        await store.campaign()
        yield store


class Node:
    """A broker as far as metadata go."""

    def __init__(self, server, broker_id, **settings):
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.config = load_config(
            overrides={
                "kafkalite.profile": "kafka",
                "node.id": str(broker_id),
                "advertised.listeners": f"PLAINTEXT://localhost:{9092 + broker_id}",
                **named,
            }
        )
        self.id = broker_id
        self.store = store_on(server)
        self.runner = None
        self.scope = None

    async def start(self, nursery):
        await self.store.open()
        cluster_id = await self.store.cluster_id("proposed-by-" + str(self.id))
        self.runner = MetadataRunner(self.config, self.store, cluster_id=cluster_id)
        await self.runner.load()
        self.scope = await nursery.start(self._run)
        await self.runner.register({"PLAINTEXT": 9092})

    async def _run(self, task_status):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.runner.run)
                task_status.started(scope)

    def stop(self):
        if self.scope is not None:
            self.scope.cancel()
        self.store.close()

    @property
    def image(self):
        return self.runner.image


@asynccontextmanager
async def nodes_on(server, count, **settings):
    nodes = [Node(server, number + 1, **settings) for number in range(count)]
    async with trio.open_nursery() as nursery:
        try:
            with trio.fail_after(30):
                for node in nodes:
                    await node.start(nursery)
            yield nodes
        finally:
            for node in nodes:
                node.stop()
            nursery.cancel_scope.cancel()


async def until(predicate, timeout_s=30):
    with trio.fail_after(timeout_s):
        while not predicate():  # noqa: ASYNC110
            await trio.sleep(0.01)


def comparable(image):
    return (
        image.version,
        image.brokers,
        image.topics,
        image.topic_names,
        {key: dict(value) for key, value in image.configs.items()},
        image.next_producer_id,
        image.retired_topic_ids,
        image.controller_id,
        image.controller_epoch,
    )


def create(name, number, **attributes):
    attributes = {"num_partitions": 2, "replication_factor": 1, **attributes}
    return CreateTopic(name=name, topic_id=topic_id(number), **attributes)


class Look:
    """What an operator sees with zkCli."""

    def __init__(self, server):
        self.client = KazooClient(hosts=address(server))
        self.client.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.stop()
        self.client.close()

    def json(self, path):
        return json.loads(self.client.get(path)[0])

    def stat(self, path):
        return self.client.get(path)[1]


def broker(number):
    return BrokerImage(broker_id=number, endpoints={"PLAINTEXT": ("localhost", 9092 + number)})


def topic_change(name, number, count=1):
    states = tuple(PartitionImage((1,), (1,), 1) for _ in range(count))
    return TopicCreated(name=name, topic_id=topic_id(number), partitions=states)


async def commit(store, image, *changes):
    after = image.apply(changes)
    version = await store.commit(image, after, changes)
    assert version >= after.version
    return after
