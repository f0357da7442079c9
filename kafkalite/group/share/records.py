"""Records of share groups (types 10 to 15), made of what they say and turned back into it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.share.group import Partitions, ShareMember, StatePartitions, TopicState
from kafkalite.wire.stored import share_group as stored

STATE_STABLE = 0


def member_record(group_id: str, member: ShareMember) -> StoredRecord:
    """Return record 10: who a member is."""
    key = stored.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    value = stored.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=[*member.subscribed_topic_names],
    )
    return StoredRecord(key, value)


def group_record(group_id: str, epoch: int, metadata_hash: int) -> StoredRecord:
    """Return record 11: the group's epoch."""
    return StoredRecord(
        stored.ShareGroupMetadataKey(group_id=group_id),
        stored.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> StoredRecord:
    """Return record 12: the epoch of the targets."""
    return StoredRecord(
        stored.ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        stored.ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=timestamp_ms
        ),
    )


def target_record(group_id: str, member_id: str, target: Partitions) -> StoredRecord:
    """Return record 13: what a member is to have."""
    return StoredRecord(
        stored.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        stored.ShareGroupTargetAssignmentMemberValue(
            topic_partitions=[
                stored.TopicPartition(topic_id=topic_id, partitions=[*partitions])
                for topic_id, partitions in target.items()
            ]
        ),
    )


def current_record(group_id: str, member: ShareMember) -> StoredRecord:
    """Return record 14: what a member has."""
    return StoredRecord(
        stored.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        stored.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=STATE_STABLE,
            assigned_partitions=[
                stored.TopicPartitions(topic_id=topic_id, partitions=[*partitions])
                for topic_id, partitions in member.assigned.items()
            ],
        ),
    )


def states_record(group_id: str, states: StatePartitions) -> StoredRecord:
    """Return record 15: which share partitions there are."""
    return StoredRecord(
        stored.ShareGroupStatePartitionMetadataKey(group_id=group_id),
        stored.ShareGroupStatePartitionMetadataValue(
            initializing_topics=_infos(states.initializing),
            initialized_topics=_infos(states.initialized),
            deleting_topics=[
                stored.TopicInfo(topic_id=topic_id, topic_name=name)
                for topic_id, name in states.deleting.items()
            ],
        ),
    )


def _infos(topics: Mapping[UUID, TopicState]) -> list[stored.TopicPartitionsInfo]:
    return [
        stored.TopicPartitionsInfo(
            topic_id=topic_id, topic_name=state.name, partitions=[*state.partitions]
        )
        for topic_id, state in topics.items()
    ]


def with_metadata(member: ShareMember, value: stored.ShareGroupMemberMetadataValue) -> ShareMember:
    """Return a member as record 10 says."""
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=tuple(sorted(set(value.subscribed_topic_names))),
    )


def with_assignment(
    member: ShareMember, value: stored.ShareGroupCurrentMemberAssignmentValue
) -> ShareMember:
    """Return a member as record 14 says."""
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        assigned=partitions_of(value.assigned_partitions),
    )


def partitions_of(
    entries: Iterable[stored.TopicPartitions] | Iterable[stored.TopicPartition],
) -> Partitions:
    """Return the partitions that a record names."""
    return {entry.topic_id: tuple(sorted(entry.partitions)) for entry in entries}


def states_of(value: stored.ShareGroupStatePartitionMetadataValue) -> StatePartitions:
    """Return what record 15 says."""

    def topics(entries: Iterable[stored.TopicPartitionsInfo]) -> dict[UUID, TopicState]:
        return {
            entry.topic_id: TopicState(entry.topic_name, tuple(sorted(entry.partitions)))
            for entry in entries
        }

    return StatePartitions(
        topics(value.initializing_topics),
        topics(value.initialized_topics),
        {entry.topic_id: entry.topic_name for entry in value.deleting_topics},
    )
