"""The consumer protocol that classic members carry inside theirs: subscriptions and assignments."""

import struct
from collections.abc import Iterable, Mapping
from uuid import UUID

from kafkalite.group.consumer.member import Epochs, Target
from kafkalite.group.metadata import GroupMetadata
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.messages.consumer_group_heartbeat import TopicPartitions
from kafkalite.wire.stored.consumer_protocol import (
    ASSIGNMENT,
    SUBSCRIPTION,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)

_VERSION = struct.Struct(">h")


def read_version(data: bytes) -> int:
    """Return the version of a subscription or assignment, at most the latest that is known.

    Raises:
        MalformedMessage: it is neither.
    """
    if len(data) < _VERSION.size:
        raise MalformedMessage("a consumer's metadata has no version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise MalformedMessage(f"a consumer's metadata has version {version}")
    return min(version, SUBSCRIPTION.versions[1])


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Return what a consumer says to its leader.

    Raises:
        MalformedMessage: the bytes say nothing.
    """
    return SUBSCRIPTION.decode(read_version(data), data, _VERSION.size)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Return what a leader says to a consumer.

    Raises:
        MalformedMessage: the bytes say nothing.
    """
    return ASSIGNMENT.decode(read_version(data), data, _VERSION.size)


def write_assignment(
    partitions: Epochs | Target, metadata: GroupMetadata, *, version: int
) -> bytes:
    """Return an assignment in the form that classic consumers read; unknown topics are left out."""
    assigned = []
    for topic_id, indexes in partitions.items():
        topic = metadata.topic_by_id(topic_id)
        if topic is not None:
            assigned.append(TopicPartition(topic=topic.name, partitions=sorted(indexes)))
    message = ConsumerProtocolAssignment(assigned_partitions=assigned)
    return ASSIGNMENT.encode_versioned(version, message)


def by_topic_id(
    said: Iterable[TopicPartition], metadata: GroupMetadata
) -> Mapping[UUID, tuple[int, ...]]:
    """Return partitions by topic id; unknown topics are left out."""
    found: dict[UUID, tuple[int, ...]] = {}
    for each in said:
        topic = metadata.topic(each.topic)
        if topic is not None and each.partitions:
            found[topic.topic_id] = (*found.get(topic.topic_id, ()), *each.partitions)
    return found


def owned_by(
    subscription: ConsumerProtocolSubscription, metadata: GroupMetadata
) -> list[TopicPartitions]:
    """Return what a classic consumer says that it has, as a heartbeat says it."""
    found = by_topic_id(subscription.owned_partitions, metadata)
    return [
        TopicPartitions(topic_id=topic_id, partitions=[*partitions])
        for topic_id, partitions in found.items()
    ]
