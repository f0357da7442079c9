"""A broker's group coordinator behind its handlers, spoken to in encoded requests."""

import dataclasses
from types import SimpleNamespace
from uuid import UUID

import trio
from trio.testing import MockClock

from kafkalite.api import (
    consumer_groups,
    describe_groups,
    find_coordinator,
    join_group,
    offset_commit,
)
from kafkalite.api.context import RequestContext
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.deferred import Deferred
from kafkalite.group.settings import GroupSettings
from kafkalite.group.shards import GroupShards
from kafkalite.meta.image import BrokerImage, Image, PartitionImage, TopicImage
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.coordinator.fakes import FakePartition
from tests.coordinator.toy import TrioClock

OFFSETS = "__consumer_offsets"
PARTITIONS = 5
HANDLERS = {
    handler.api.key.name: handler
    for module in (join_group, describe_groups, consumer_groups, offset_commit, find_coordinator)
    for handler in module.HANDLERS
}


def topic_image(name, number, count, leader=1):
    state = PartitionImage((leader,), (leader,), leader)
    return TopicImage(name=name, topic_id=UUID(int=number), partitions=(state,) * count)


class FakeMetadata:
    def __init__(self, *topics):
        broker = BrokerImage(broker_id=1, endpoints={"PLAINTEXT": ("", 9092)})
        self.image = Image(brokers={1: broker})
        self.refusal = None
        for topic in topics:
            self.add(topic)

    def add(self, topic):
        topics = {**self.image.topics, topic.name: topic}
        names = {t.topic_id: t.name for t in topics.values()}
        self.image = dataclasses.replace(self.image, topics=topics, topic_names=names)

    async def ensure_topic(self, name):
        await trio.lowlevel.checkpoint()
        if self.refusal is not None:
            raise KafkaError(self.refusal, "told to")
        self.add(topic_image(name, 99, PARTITIONS))


class GroupBroker:
    """What the tests talk to; to be used inside of `run`."""

    def __init__(self, **settings):
        settings = {"group_initial_rebalance_delay_ms": 0, **settings}
        clock = TrioClock()
        self.runtime = CoordinatorRuntime([GroupShards(GroupSettings(**settings))], clock)
        self.partitions = {index: FakePartition(OFFSETS, index) for index in range(PARTITIONS)}
        self.runtime.set_leaderships(OFFSETS, PARTITIONS, self.partitions)
        self.metadata = FakeMetadata(
            topic_image(OFFSETS, 98, PARTITIONS),
            topic_image("topic", 7, 3),
            topic_image("other", 8, 1),
        )
        self.context = RequestContext(
            services=SimpleNamespace(
                authorizer=None,
                quotas=None,
                coordinators=self.runtime,
                metadata=self.metadata,
                topic_creation=self.metadata,
                clock=clock,
                config=SimpleNamespace(node_id=1),
            ),
            connection_id=1,
            listener="PLAINTEXT",
            local_address=("10.0.0.1", 9092),
            peer_address=("10.0.0.2", 5000),
            client_id="reader",
        )

    def handle(self, name, version, request):
        """Encode, decode and handle a request; return a function that waits for its answer."""
        handler = HANDLERS[name]
        data = b"".join(handler.api.encode_request(version, request))
        decoded = handler.api.decode_request(version, data)
        self.context.api_version = version
        try:
            answer = handler.handle(decoded, self.context)
        except KafkaError as error:
            answer = handler.refuse(decoded, error, self.context)

        async def finish():
            response = answer
            if isinstance(answer, Deferred):
                try:
                    response = await answer.wait()
                except KafkaError as error:
                    self.context.api_version = version
                    response = handler.refuse(decoded, error, self.context)
            encoded = b"".join(handler.api.encode_response(version, response))
            return handler.api.decode_response(version, encoded)

        finish.is_pending = isinstance(answer, Deferred)
        return finish

    async def call(self, name, version, request):
        return await self.handle(name, version, request)()

    async def replicate(self):
        for partition in self.partitions.values():
            partition.replicates = True
            partition.replicate()
        await trio.lowlevel.checkpoint()

    def stop_replication(self):
        for partition in self.partitions.values():
            partition.replicates = False

    def refuse_appends(self, code):
        for partition in self.partitions.values():
            partition.refusal = code


def run(main, **settings):
    """Run an async function with a GroupBroker and its runtime, on virtual time."""

    async def with_broker():
        broker = GroupBroker(**settings)
        async with trio.open_nursery() as nursery:
            await nursery.start(broker.runtime.run)
            await main(broker)
            nursery.cancel_scope.cancel()

    trio.run(with_broker, clock=MockClock(autojump_threshold=0))


def codes(topics):
    """{(topic, partition): error} of a response with topics and partitions."""
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in topics
        for partition in topic.partitions
    }
