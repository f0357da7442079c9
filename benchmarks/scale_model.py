"""What the controller's decisions cost in a cluster of very many partitions, without any broker.

Run: python benchmarks/scale_model.py [BROKERS [PARTITIONS [PARTITIONS_OF_A_TOPIC]]]

The real cores on an image of that size: creating topics, losing and getting back a broker, loading
all metadata as a new controller does, and a Metadata answer of everything. One process, no network.
"""

import sys
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from kafkalite.config import load_config
from kafkalite.meta.batch_decide import batch_decide, slices
from kafkalite.meta.changes import PartitionChanged, from_json, snapshot, to_json, to_text
from kafkalite.meta.events import CreateTopic, Event, RegisterBroker, UnregisterBroker
from kafkalite.meta.image import Image, ImageBuilder
from kafkalite.meta.zookeeper.multi_operations import operations, split_commit
from kafkalite.meta.zookeeper.notices import FOLLOWED
from kafkalite.wire.messages.metadata import (
    METADATA,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ENDPOINTS = {"PLAINTEXT": ("10.0.0.1", 9092)}
CONFIG = load_config(overrides={"kafkalite.profile": "kafka"})


def timed(what: str, function: Callable[[], Any]) -> Any:
    """Print how long a call took; return what it returned."""
    began = time.perf_counter()
    result = function()
    print(f"{what:60s} {1000 * (time.perf_counter() - began):10.1f} ms", flush=True)
    return result


def decided(events: list[Event], image: Image) -> tuple[list[Any], Image]:
    decision = batch_decide(events, image, CONFIG, and_then=lambda changes, image: [])
    return decision.changes, decision.image


def with_brokers(count: int) -> Image:
    image = Image(version=1)
    for broker_id in range(count):
        event = RegisterBroker(broker_id=broker_id, endpoints=ENDPOINTS, broker_epoch=broker_id)
        _, image = decided([event], image)
    return image


def creations(first: int, count: int, partitions: int) -> list[Event]:
    return [
        CreateTopic(
            name=f"topic-{index}",
            topic_id=UUID(int=index + 1),
            num_partitions=partitions,
            replication_factor=3,
        )
        for index in range(first, first + count)
    ]


def created(image: Image, events: list[Event]) -> tuple[Image, float]:
    """Return the image after all slices, and the longest slice in ms."""
    longest = 0.0
    for part in slices(events, image):
        began = time.perf_counter()
        _, image = decided(part, image)
        longest = max(longest, time.perf_counter() - began)
    return image, 1000 * longest


def metadata_answer(image: Image) -> MetadataResponse:
    return MetadataResponse(
        cluster_id="model",
        topics=[
            MetadataResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=index,
                        leader_id=state.leader,
                        replica_nodes=list(state.replicas),
                        isr_nodes=list(state.isr),
                    )
                    for index, state in enumerate(topic.partitions)
                ],
            )
            for topic in image.topics.values()
        ],
    )


def loaded(values: list[dict[str, Any]]) -> Image:
    builder = ImageBuilder(Image())
    for each in values:
        from_json(each).apply_to(builder)
    return builder.build(1)


def main(brokers: int, partitions: int, per_topic: int) -> None:
    """Print what each step costs."""
    topics = partitions // per_topic
    print(f"{brokers} brokers, {topics:,} topics, {partitions:,} partitions x 3")
    image = timed("brokers register", lambda: with_brokers(brokers))
    events = creations(0, topics, per_topic)
    image, longest = timed("all topics are created", lambda: created(image, events))
    print(f"{'  of that the longest slice':60s} {longest:10.1f} ms")
    more = creations(topics, 1, per_topic)
    changes, after = timed("one topic more: decided", lambda: decided(more, image))
    timed("one topic more: as text", lambda: list(map(to_text, changes)))
    nodes = timed(
        "one topic more: as ZooKeeper's nodes",
        lambda: operations(image, after, changes, controller_epoch=1),
    )
    print(f"{'  nodes':60s} {len(nodes):10,d}")
    lost: list[Event] = [UnregisterBroker(broker_id=brokers // 2)]
    changes, after = timed("a broker is lost: decided", lambda: decided(lost, image))
    print(f"{'  partitions that change':60s} {len(changes) - 1:10,d}")
    parts = timed("a broker is lost: cut into transactions", lambda: split_commit(changes, image))
    print(f"{'  transactions':60s} {len(parts):10,d}")
    hosted = sum(1 in state.replicas for each in image.topics.values() for state in each.partitions)
    affected = sum(
        1 in each.state.replicas for each in changes if isinstance(each, PartitionChanged)
    )
    told = f"{hosted:10,d} {affected:,d}"
    print(f"{'  replicas of another broker, and how many are told of':60s} {told}")
    first = parts[0]
    timed(
        "  the first of them, made whole",
        lambda: (
            list(map(to_text, first)),
            operations(image, image.apply(first), first, controller_epoch=1),
        ),
    )
    timed("a broker is lost: as text", lambda: list(map(to_text, changes)))
    timed(
        "a broker is lost: as ZooKeeper's nodes",
        lambda: operations(image, after, changes, controller_epoch=1),
    )
    timed("any other broker applies that", lambda: image.apply(changes))
    watches = 2 * brokers + 1 + brokers + len(FOLLOWED) + 1
    print(f"{'watches at ZooKeeper, whatever partitions there are':60s} {watches:10,d}")
    values = timed("everything, as a snapshot", lambda: [to_json(c) for c in snapshot(image)])
    timed("everything, loaded by a new controller", lambda: loaded(values))
    answer = timed("Metadata of everything: made", lambda: metadata_answer(image))
    chunks = timed("Metadata of everything: encoded", lambda: METADATA.encode_response(12, answer))
    print(f"{'  bytes':60s} {sum(map(len, chunks)):10,d}")


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:]]
    main(*[*numbers, *(100, 200_000, 20)[len(numbers) :]])
