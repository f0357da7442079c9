"""Offsets of partitions: where they begin and end, and what was written at some time."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kafkalite.client.cluster import Client
from kafkalite.client.errors import RETRIABLE, error_of
from kafkalite.types import TopicPartition
from kafkalite.wire.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

LATEST: Final = -1
EARLIEST: Final = -2
"""Timestamps that stand for the ends of a partition."""

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


class FoundOffset(NamedTuple):
    """Answer for a timestamp; offset and timestamp are -1 if nothing is that young."""

    offset: int
    timestamp: int


def list_offsets(
    client: Client,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation: int = READ_UNCOMMITTED,
) -> dict[TopicPartition, FoundOffset]:
    """Return the first offset at or after a timestamp (ms), or an end, for each partition.

    Args:
        client: the cluster.
        timestamps: for each partition a time in ms, `EARLIEST` or `LATEST`.
        isolation: with READ_COMMITTED, `LATEST` is the last stable offset.

    Raises:
        KafkaError: any partition failed.
    """

    def ask() -> dict[TopicPartition, FoundOffset]:
        found: dict[TopicPartition, FoundOffset] = {}
        for leader, partitions in client.by_leader(timestamps).items():
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation,
                topics=[_topic(name, part, timestamps) for name, part in by_topic(partitions)],
                timeout_ms=client.timeout_ms,
            )
            answer = client.broker(leader).request(LIST_OFFSETS, request)
            for topic in answer.topics:
                for result in topic.partitions:
                    place = TopicPartition(topic.name, result.partition_index)
                    error = error_of(result.error_code, f"offset of {place}")
                    if error is not None:
                        if error.code in RETRIABLE:
                            client.forget_leaders([topic.name])
                        raise error
                    found[place] = FoundOffset(result.offset, result.timestamp)
        return {place: found[place] for place in timestamps}

    return client.retry(ask)


def beginnings(client: Client, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the first offset kept of each partition."""
    found = list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    return {place: at.offset for place, at in found.items()}


def ends(
    client: Client, partitions: Iterable[TopicPartition], *, isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, int]:
    """Return the next offset of each partition that a reader of this isolation would wait for."""
    found = list_offsets(client, dict.fromkeys(partitions, LATEST), isolation=isolation)
    return {place: at.offset for place, at in found.items()}


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[TopicPartition]]]:
    """Sort partitions into topics, as requests want them."""
    topics: dict[str, list[TopicPartition]] = {}
    for place in partitions:
        topics.setdefault(place.topic, []).append(place)
    return list(topics.items())


def _topic(
    name: str, partitions: Iterable[TopicPartition], timestamps: Mapping[TopicPartition, int]
) -> ListOffsetsTopic:
    return ListOffsetsTopic(
        name=name,
        partitions=[
            ListOffsetsPartition(partition_index=place.partition, timestamp=timestamps[place])
            for place in partitions
        ],
    )
