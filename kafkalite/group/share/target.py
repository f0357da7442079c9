"""Targets of share groups: the input of the assignor, and what comes of it (rule 385)."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from kafkalite.group.assignors.assignment import partition_count
from kafkalite.group.java_order import hash_map_order, string_hash
from kafkalite.group.new_target import RECORD_UNITS, NewTarget, Targets
from kafkalite.group.share import records
from kafkalite.group.share.assignor import MemberSpec, assign
from kafkalite.group.share.group import Partitions, ShareGroup, ShareMember
from kafkalite.group.slices import Computation, Sliced

if TYPE_CHECKING:
    from kafkalite.group.shard_state import ShardState
    from kafkalite.meta.image import Image

HASH_SET_CAPACITY = 16


def build_target(
    group: ShareGroup,
    image: "Image",
    members: Mapping[str, ShareMember],
    *,
    is_homogeneous: bool,
) -> Sliced[Targets[Partitions]]:
    """Return every member's new target; what happens to the group meanwhile makes no difference.

    Args:
        group: as it is.
        image: the topics that there are.
        members: of the group, as they are to be.
        is_homogeneous: all members read the same topics.
    """
    before = dict(group.targets)
    initialized = {} if group.states is None else dict(group.states.initialized)
    specs = {}
    for member_id, member in members.items():
        names = hash_map_order(
            member.subscribed_topic_names,
            string_hash,
            capacity=max(int(len(member.subscribed_topic_names) / 0.75) + 1, HASH_SET_CAPACITY),
        )
        found = (image.topics.get(name) for name in names)
        specs[member_id] = MemberSpec(
            [topic.topic_id for topic in found if topic is not None], before.get(member_id, {})
        )
        yield 2 + len(names)
    assigned = yield from assign(
        specs,
        {topic_id: state.partitions for topic_id, state in initialized.items()},
        is_homogeneous=is_homogeneous,
    )
    targets = {}
    changed: dict[str, int] = {}
    for member_id, topics in assigned.items():
        target = targets[member_id] = {
            topic_id: tuple(sorted(partitions))
            for topic_id, partitions in topics.items()
            if partitions
        }
        count = partition_count(target)
        if before.get(member_id) != target:
            changed[member_id] = RECORD_UNITS + 2 * len(topics) + count // 8
            yield changed[member_id]
        yield 2 + len(topics) + count // 4
    return Targets(targets, changed)


def new_target(shard: "ShardState", group: ShareGroup) -> NewTarget | None:
    """Begin the target that a group lacks, None where it lacks none."""
    if group.target_epoch >= group.group_epoch:
        return None
    members = dict(group.members)
    work = build_target(
        group,
        shard.metadata.image,
        members,
        is_homogeneous=all(count == len(members) for count in group.topic_counts.values()),
    )
    epoch = group.group_epoch
    return NewTarget(
        group=group,
        epoch=epoch,
        work=Computation(work),
        heir=lambda member_id: member_id if member_id in group.members else None,
        record=partial(records.target_record, group.group_id),
        epoch_record=partial(records.target_epoch_record, group.group_id, epoch),
    )
