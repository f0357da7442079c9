"""Targets of streams groups: the input of the assignor, and what comes of it (rule 474)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkalite.group.java_order import string_hash
from kafkalite.group.new_target import RECORD_UNITS, NewTarget, Targets, at_once
from kafkalite.group.slices import Computation, Sliced, sliced_hash_map_order
from kafkalite.group.streams import records
from kafkalite.group.streams.assignor import (
    AssignableSubtopology,
    AssignmentMember,
    assign_tasks,
)
from kafkalite.group.streams.tasks import NO_TASKS, Tasks

if TYPE_CHECKING:
    from kafkalite.group.shard_state import ShardState
    from kafkalite.group.streams.group import StreamsGroup
    from kafkalite.group.streams.internal_topics import ConfiguredTopology
    from kafkalite.group.streams.member import StreamsMember
    from kafkalite.group.transition import Transition

NUM_STANDBY_REPLICAS = "num.standby.replicas"


def build_target(
    before: Mapping[str, Tasks],
    members: "Mapping[str, StreamsMember]",
    configured: "ConfiguredTopology",
    assignment_configs: Mapping[str, str],
) -> Sliced[Targets[Tasks]]:
    """Return every member's new target: nothing while topics are not ready.

    Args:
        before: the last target.
        members: of the group, as they are to be.
        configured: the topology with its tasks.
        assignment_configs: what else decides.
    """
    targets: Mapping[str, Tasks] = dict.fromkeys(members, NO_TASKS)
    if configured.is_ready:
        targets = yield from assign_tasks(
            [
                AssignmentMember(
                    member_id=member.member_id,
                    process_id=member.process_id,
                    active=before.get(member.member_id, NO_TASKS).active,
                    standby=before.get(member.member_id, NO_TASKS).standby,
                )
                for member in members.values()
            ],
            {
                name: AssignableSubtopology(
                    task_count=subtopology.task_count,
                    is_stateful=bool(subtopology.state_changelog_topics),
                )
                for name, subtopology in configured.subtopologies.items()
            },
            standby_replicas=int(assignment_configs.get(NUM_STANDBY_REPLICAS, "0")),
        )
    changed: dict[str, int] = {}
    order = yield from sliced_hash_map_order(members, string_hash)
    for member_id in order:
        target = targets[member_id]
        if before.get(member_id) != target:
            changed[member_id] = RECORD_UNITS + len(target.active) + len(target.standby)
            yield changed[member_id]
        yield 1
    return Targets(targets, changed)


def write_target(
    shard: "ShardState",
    transition: "Transition",
    group: "StreamsGroup",
    group_epoch: int,
    work: Sliced[Targets[Tasks]],
) -> Mapping[str, Tasks] | None:
    """Write the target of an epoch; None where that takes longer than a turn, and is done later."""
    targets = at_once(work)
    if targets is None:
        shard.compute_later(transition, group.group_id)
        return None
    for member_id in targets.changed:
        target = targets.by_member[member_id]
        transition.records.append(records.target_record(group.group_id, member_id, target))
    wall_ms = transition.now.wall_ms
    transition.records.append(
        records.target_metadata_record(group.group_id, epoch=group_epoch, timestamp_ms=wall_ms)
    )
    return targets.by_member


def new_target(shard: "ShardState", group: "StreamsGroup") -> NewTarget | None:
    """Begin the target that a group lacks, None where it lacks none.

    Where the topology is not configured, or topics may be others, the next heartbeat does it.
    """
    del shard
    configured = group.soft.configured
    if group.group_epoch <= group.assignment_epoch or group.is_empty or configured is None:
        return None
    epoch = group.group_epoch
    work = build_target(
        dict(group.targets), dict(group.members), configured, group.assignment_configs
    )
    return NewTarget(
        group=group,
        epoch=epoch,
        work=Computation(work),
        heir=lambda member_id: member_id if member_id in group.members else None,
        record=lambda member_id, tasks: records.target_record(group.group_id, member_id, tasks),
        epoch_record=lambda wall_ms: records.target_metadata_record(
            group.group_id, epoch=epoch, timestamp_ms=wall_ms
        ),
    )
