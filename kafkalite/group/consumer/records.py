"""The records of consumer groups: types 3 to 8 and 16 of `__consumer_offsets`."""

from typing import NamedTuple

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.consumer.member import ConsumerMember, Target
from kafkalite.wire.stored.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TargetTopicPartitions,
)


class Resolution(NamedTuple):
    """The topics that a pattern stands for, and when that was found out.

    Attributes:
        version: of the metadata that was looked at.
        timestamp_ms: wall time.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


def group_record(group_id: str, epoch: int, metadata_hash: int) -> StoredRecord:
    """Return the group's epoch (type 3)."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return StoredRecord(ConsumerGroupMetadataKey(group_id=group_id), value)


def group_tombstone(group_id: str) -> StoredRecord:
    """Return what removes the group (type 3)."""
    return StoredRecord(ConsumerGroupMetadataKey(group_id=group_id), None)


def partition_metadata_tombstone(group_id: str) -> StoredRecord:
    """Return what removes the topics that brokers before 4.1 kept (type 4)."""
    return StoredRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_record(group_id: str, member: ConsumerMember) -> StoredRecord:
    """Return a member's subscription (type 5)."""
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return StoredRecord(key, member.metadata_record())


def member_tombstone(group_id: str, member_id: str) -> StoredRecord:
    """Return what removes a member (type 5)."""
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    return StoredRecord(key, None)


def target_metadata_record(group_id: str, epoch: int, timestamp_ms: int) -> StoredRecord:
    """Return the epoch of all targets (type 6)."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return StoredRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_metadata_tombstone(group_id: str) -> StoredRecord:
    """Return what removes the epoch of the targets (type 6)."""
    return StoredRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def target_record(group_id: str, member_id: str, target: Target) -> StoredRecord:
    """Return a member's target (type 7)."""
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TargetTopicPartitions(topic_id=topic_id, partitions=[*partitions])
            for topic_id, partitions in target.items()
        ]
    )
    return StoredRecord(key, value)


def target_tombstone(group_id: str, member_id: str) -> StoredRecord:
    """Return what removes a member's target (type 7)."""
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return StoredRecord(key, None)


def current_record(group_id: str, member: ConsumerMember) -> StoredRecord:
    """Return a member's epoch and partitions (type 8)."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return StoredRecord(key, member.current_record())


def current_tombstone(group_id: str, member_id: str) -> StoredRecord:
    """Return what removes a member's epoch and partitions (type 8)."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    return StoredRecord(key, None)


def pattern_record(group_id: str, pattern: str, resolution: Resolution) -> StoredRecord:
    """Return the topics that a pattern stands for (type 16)."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolution.topics),
        version=resolution.version,
        timestamp=resolution.timestamp_ms,
    )
    return StoredRecord(key, value)


def pattern_tombstone(group_id: str, pattern: str) -> StoredRecord:
    """Return what forgets a pattern's topics (type 16)."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern)
    return StoredRecord(key, None)


def member_tombstones(group_id: str, member_id: str) -> list[StoredRecord]:
    """Return what removes all of a member, in the order that Kafka's replay wants."""
    return [
        current_tombstone(group_id, member_id),
        target_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    ]
