"""ConsumerGroupDescribe: a consumer group with its members, their targets and what they have."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from kafkalite.group.consumer.group import ConsumerGroup
from kafkalite.group.consumer.member import ConsumerMember
from kafkalite.group.metadata import GroupMetadata
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def describe_consumer_group(
    group: ConsumerGroup, metadata: GroupMetadata, *, default_assignor: str
) -> DescribedGroup:
    """Return the group; what it has of topics that are gone is left out."""
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor() or default_assignor,
        members=[_member(group, member, metadata) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, metadata: GroupMetadata) -> Member:
    target = group.targets.get(member.member_id, {})
    # What it is about to give up it is still responsible for.
    has = {
        topic_id: {
            *member.assigned.get(topic_id, ()),
            *member.revoking.get(topic_id, ()),
        }
        for topic_id in {**member.assigned, **member.revoking}
    }
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=[*member.subscribed_topic_names],
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(has, metadata),
        target_assignment=_assignment(target, metadata),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[UUID, Iterable[int]], metadata: GroupMetadata) -> Assignment:
    found = []
    for topic_id, indexes in partitions.items():
        topic = metadata.topic_by_id(topic_id)
        if topic is not None:
            found.append(
                TopicPartitions(
                    topic_id=topic_id, topic_name=topic.name, partitions=sorted(indexes)
                )
            )
    return Assignment(topic_partitions=found)
