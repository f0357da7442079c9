"""Target assignments: the input of the assignor, and the records of its result."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from kafkalite.group.assignors.assignment import Assignor, GroupSpec, MemberSpec, partition_count
from kafkalite.group.assignors.range_assignor import assign_ranges
from kafkalite.group.assignors.uniform import assign_uniformly
from kafkalite.group.consumer import records
from kafkalite.group.consumer.group import ConsumerGroup, NameCount, topics_of
from kafkalite.group.consumer.member import ConsumerMember, Target
from kafkalite.group.java_order import (
    bucket_count_of,
    copied_numbers,
    copied_set_capacity,
    hash_map_order,
    string_hash,
    uuid_hash,
)
from kafkalite.group.new_target import RECORD_UNITS, NewTarget, Targets
from kafkalite.group.settings import GroupSettings
from kafkalite.group.slices import Computation, Sliced, sliced_hash_map_order
from kafkalite.meta.image import Image
from kafkalite.wire.stored.consumer_group import ConsumerGroupTargetAssignmentMemberValue

if TYPE_CHECKING:
    from kafkalite.group.shard_state import ShardState

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


def assignor_for(preferred: str | None, settings: GroupSettings) -> Assignor:
    """Return the assignor that members prefer, if it may be used, else the broker's first."""
    configured = settings.consumer_group_assignors
    is_usable = preferred in configured and preferred in ASSIGNORS
    return ASSIGNORS[preferred if preferred is not None and is_usable else configured[0]]


def new_target(shard: "ShardState", group: ConsumerGroup) -> NewTarget | None:
    """Begin the target that a group lacks, None where it lacks none."""
    if group.target_epoch >= group.group_epoch:
        return None
    builder = TargetBuilder(group, shard.metadata.image)
    work = builder.build(
        assignor_for(group.preferred_assignor(), shard.settings),
        homogeneous=is_homogeneous(group.names, group.patterns, len(group.members)),
    )
    epoch = group.group_epoch
    return NewTarget(
        group=group,
        epoch=epoch,
        work=Computation(work),
        heir=builder.heir,
        record=partial(records.target_record, group.group_id),
        epoch_record=partial(records.target_metadata_record, group.group_id, epoch),
    )


class TargetBuilder:
    """Makes the next target of a group.

    Args:
        group: as it is.
        image: the topics that there are.
        after: a member as it is about to be; it takes its instance's place, if it has one.
    """

    def __init__(
        self, group: ConsumerGroup, image: Image, after: ConsumerMember | None = None
    ) -> None:
        self._group = group
        self._image = image
        self._after = after
        self._members = dict(group.members)
        self._before = self._targets = dict(group.targets)
        self._resolutions = dict(group.resolutions)
        if after is not None:
            self._targets = {**self._before, after.member_id: group.target_of(after)}
            self._members[after.member_id] = after
            place = after.instance_id
            owner = None if place is None else group.static_members.get(place)
            if owner is not None and owner != after.member_id:
                del self._members[owner]
        self._counts: dict[UUID, int] = {}
        self._topics: dict[tuple[tuple[str, ...], str | None], list[UUID]] = {}

    def build(self, assignor: Assignor, *, homogeneous: bool) -> Sliced[Targets[Target]]:
        """Return every member's new target.

        What happens to the group meanwhile makes no difference.
        """
        specs = []
        for member in self._members.values():
            spec = self._spec(member, (yield from self._topics_of(member)))
            specs.append(spec)
            yield 4 + len(spec.assigned) + partition_count(spec.assigned) // 8
        result = yield from assignor(GroupSpec(specs, homogeneous, self._counts))
        order = yield from sliced_hash_map_order(self._members, string_hash)
        targets: dict[str, Target] = {}
        changed: dict[str, int] = {}
        for member_id in order:
            assigned = result[member_id]
            target = targets[member_id] = {
                topic_id: tuple(sorted(assigned[topic_id]))
                for topic_id in hash_map_order(assigned, uuid_hash)
            }
            count = partition_count(assigned)
            if not _is_same(self._before.get(member_id), target):
                changed[member_id] = RECORD_UNITS + 2 * len(assigned) + count // 8
                yield changed[member_id]
            yield 3 + len(assigned) + count // 4
        return Targets(targets, changed)

    def heir(self, member_id: str) -> str | None:
        """Return who has a member's place now: himself, or who took it over."""
        if member_id in self._group.members:
            return member_id
        place = self._members[member_id].instance_id
        return None if place is None else self._group.static_members.get(place)

    def _spec(self, member: ConsumerMember, topic_ids: list[UUID]) -> MemberSpec:
        target = self._targets.get(member.member_id, {})
        return MemberSpec(
            member_id=member.member_id,
            instance_id=member.instance_id,
            topic_ids=topic_ids,
            assigned={
                topic_id: kept
                for topic_id, partitions in target.items()
                if (kept := self._existing(topic_id, partitions))
            },
        )

    def _topics_of(self, member: ConsumerMember) -> Sliced[list[UUID]]:
        """Return the ids of the topics that a member reads, as far as there are such topics."""
        key = (member.subscribed_topic_names, member.pattern)
        ids = self._topics.get(key)
        if ids is None:
            ids = self._topics[key] = []
            names, topics = topics_of(member, self._resolutions), self._image.topics
            yield len(names) // 4
            order = yield from sliced_hash_map_order(
                [name for name in names if name in topics],
                string_hash,
                # All of them are in Kafka's set, also those that are no topics.
                capacity=bucket_count_of(len(names), copied_set_capacity(len(names))),
            )
            for name in order:
                topic = topics[name]
                self._counts[topic.topic_id] = len(topic.partitions)
                ids.append(topic.topic_id)
            yield len(order) // 2
        return ids

    def _existing(self, topic_id: UUID, partitions: Iterable[int]) -> tuple[int, ...]:
        """Leave out what this broker does not know yet: it may be behind who wrote the target."""
        topic = self._image.topic_by_id(topic_id)
        count = 0 if topic is None else len(topic.partitions)
        return tuple(partition for partition in partitions if partition < count)


def _is_same(before: Target | None, after: Target) -> bool:
    """Whether a member is to have what it was to have."""
    return (
        before is not None
        and before.keys() == after.keys()
        and all(
            sorted(partitions) == sorted(after[topic_id]) for topic_id, partitions in before.items()
        )
    )
