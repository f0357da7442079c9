"""Target assignments: the input of the assignor, and the records of its result."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.assignors.assignment import Assignor, GroupSpec, MemberSpec
from kafkalite.group.assignors.range_assignor import assign_ranges
from kafkalite.group.assignors.uniform import assign_uniformly
from kafkalite.group.consumer import records
from kafkalite.group.consumer.group import ConsumerGroup, NameCount
from kafkalite.group.consumer.member import ConsumerMember, Target
from kafkalite.group.java_order import (
    copied_numbers,
    copied_set_order,
    hash_map_order,
    string_hash,
    uuid_hash,
)
from kafkalite.group.metadata import GroupMetadata
from kafkalite.wire.stored.consumer_group import ConsumerGroupTargetAssignmentMemberValue

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}


def is_homogeneous(
    names: Mapping[str, NameCount], patterns: Mapping[str, int], member_count: int
) -> bool:
    """Whether all members read the same topics, as far as Kafka's assignor is told.

    Without patterns: every topic is named by all. With patterns: the first is everybody's, and each
    topic is in one pattern and named by nobody.
    """
    if not patterns:
        return all(count.by_name == member_count for count in names.values())
    if next(iter(patterns.values())) != member_count:
        return False
    return all(count.by_pattern == 1 and not count.by_name for count in names.values())


def read_target(stored: ConsumerGroupTargetAssignmentMemberValue) -> Target:
    """Return a stored target, with topics and partitions in the order of Kafka's hash maps."""
    found = {topic.topic_id: topic.partitions for topic in stored.topic_partitions}
    return {
        topic_id: copied_numbers(found[topic_id]) for topic_id in hash_map_order(found, uuid_hash)
    }


class TargetBuilder:
    """Makes the next target of a group in which one member is about to change.

    Args:
        group: as it is.
        metadata: the topics that there are.
        after: the member as it is about to be; it takes its instance's place, if it has one.
    """

    def __init__(
        self, group: ConsumerGroup, metadata: GroupMetadata, after: ConsumerMember
    ) -> None:
        self._group = group
        self._metadata = metadata
        self._after = after
        self._members = dict(group.members)
        self._members[after.member_id] = after
        owner = None if after.instance_id is None else group.static_members.get(after.instance_id)
        if owner is not None and owner != after.member_id:
            del self._members[owner]
        self._counts: dict[UUID, int] = {}
        self._ids: dict[str, UUID | None] = {}
        self._topics: dict[tuple[tuple[str, ...], str | None], list[UUID]] = {}

    def build(
        self, assignor: Assignor, *, homogeneous: bool, epoch: int, now_wall_ms: int
    ) -> tuple[list[StoredRecord], Target]:
        """Return the records of the new target, and what it gives to the changed member."""
        group_id = self._group.group_id
        specs = [self._spec(member) for member in self._members.values()]
        result = assignor(GroupSpec(specs, homogeneous, self._counts))
        found: list[StoredRecord] = []
        for member_id in hash_map_order(self._members, string_hash):
            target = {
                topic_id: tuple(sorted(result[member_id][topic_id]))
                for topic_id in hash_map_order(result[member_id], uuid_hash)
            }
            before = self._group.targets.get(member_id)
            if before is None or not _is_same(before, target):
                found.append(records.target_record(group_id, member_id, target))
            if member_id == self._after.member_id:
                own: Target = target
        found.append(records.target_metadata_record(group_id, epoch, now_wall_ms))
        return found, own

    def _spec(self, member: ConsumerMember) -> MemberSpec:
        target = self._group.targets.get(member.member_id, {})
        if member is self._after:
            target = self._group.target_of(member)
        return MemberSpec(
            member_id=member.member_id,
            instance_id=member.instance_id,
            topic_ids=self._topics_of(member),
            assigned={
                topic_id: kept
                for topic_id, partitions in target.items()
                if (kept := self._existing(topic_id, partitions))
            },
        )

    def _topics_of(self, member: ConsumerMember) -> list[UUID]:
        """Return the ids of the topics that a member reads, as far as there are such topics."""
        key = (member.subscribed_topic_names, member.pattern)
        ids = self._topics.get(key)
        if ids is None:
            ids = self._topics[key] = []
            for name in copied_set_order(self._group.topics_of(member), string_hash):
                if name not in self._ids:
                    self._ids[name] = self._look_up(name)
                topic_id = self._ids[name]
                if topic_id is not None:
                    ids.append(topic_id)
        return ids

    def _look_up(self, name: str) -> UUID | None:
        topic = self._metadata.topic(name)
        if topic is None:
            return None
        self._counts[topic.topic_id] = len(topic.partitions)
        return topic.topic_id

    def _existing(self, topic_id: UUID, partitions: Iterable[int]) -> tuple[int, ...]:
        """Leave out what this broker does not know yet: it may be behind who wrote the target."""
        topic = self._metadata.topic_by_id(topic_id)
        count = 0 if topic is None else len(topic.partitions)
        return tuple(partition for partition in partitions if partition < count)


def _is_same(before: Target, after: Target) -> bool:
    return before.keys() == after.keys() and all(
        sorted(partitions) == sorted(after[topic_id]) for topic_id, partitions in before.items()
    )
