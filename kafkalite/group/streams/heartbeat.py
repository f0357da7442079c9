"""StreamsGroupHeartbeat: a member joins, says what it has, is told what to have, leaves.

After Kafka's GroupMetadataManager.streamsGroupHeartbeat. One heartbeat, in this order: the member's
record, the topology, its topics, the group epoch, the target, the member's way to its target.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kafkalite.group.kinds import EventOfKind, GroupKind
from kafkalite.group.streams import records
from kafkalite.group.streams.endpoints import partitions_by_endpoint
from kafkalite.group.streams.group import NOT_VALIDATED, StreamsGroup
from kafkalite.group.streams.internal_topics import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    InternalTopic,
    StatusCode,
    configure_topology,
)
from kafkalite.group.streams.member import Endpoint, MemberState, StreamsMember, reconcile
from kafkalite.group.streams.requests import JOIN_EPOCH, NO_TIMEOUT
from kafkalite.group.streams.target import NUM_STANDBY_REPLICAS, build_target, write_target
from kafkalite.group.streams.tasks import NO_TASKS, Tasks, by_subtopology, task_set
from kafkalite.group.streams.topology import Topology, stored_topology
from kafkalite.group.transition import TimerKind, Transition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkalite.group.shard_state import ShardState
    from kafkalite.group.streams.tasks import TaskId
    from kafkalite.meta.group_configs import GroupConfig


@dataclass(slots=True, kw_only=True)
class StreamsHeartbeat(EventOfKind[StreamsGroupHeartbeatResponse]):
    """A StreamsGroupHeartbeat request that makes sense, and who sent it."""

    kind = GroupKind.STREAMS

    request: StreamsGroupHeartbeatRequest
    client_id: str
    client_host: str


@dataclass(slots=True, kw_only=True)
class HeartbeatAnswer:
    """The response, and the internal topics that lack, to be created when it leaves."""

    response: StreamsGroupHeartbeatResponse
    missing_topics: Mapping[str, InternalTopic]


def heartbeat(
    shard: "ShardState", transition: Transition, event: StreamsHeartbeat
) -> HeartbeatAnswer:
    """Let a member join or go on.

    Raises:
        KafkaError: rules 463-470.
    """
    request = event.request
    group = _group(shard, transition, request)
    owned = _owned(request)
    before = _member(group, request, owned)
    return _Heartbeat(shard, transition, group, request).run(before, _updated(before, event), owned)


class _Heartbeat:
    """One accepted heartbeat of a member."""

    def __init__(
        self,
        shard: "ShardState",
        transition: Transition,
        group: StreamsGroup,
        request: StreamsGroupHeartbeatRequest,
    ) -> None:
        self._shard = shard
        self._transition = transition
        self._group = group
        self._request = request
        self._config: GroupConfig = shard.metadata.group_config(group.group_id)
        self._status: list[Status] = []

    def run(
        self, before: StreamsMember, member: StreamsMember, owned: Tasks | None
    ) -> HeartbeatAnswer:
        group, transition = self._group, self._transition
        is_changed = member != before
        if is_changed:
            transition.records.append(records.member_record(group.group_id, member))
        topology = self._topology()
        if group.topology is not None and member.topology_epoch < group.topology.epoch:
            self._say(
                StatusCode.STALE_TOPOLOGY,
                f"The member's topology epoch {member.topology_epoch} is behind the group's "
                f"topology epoch {group.topology.epoch}.",
            )
        metadata_hash, configured = self._configured(topology)
        if configured.is_ready:
            _check_tasks_exist(self._request, configured.subtopologies)
        group_epoch = self._group_epoch(metadata_hash, configured, is_changed=is_changed)
        self._start_initial_delay()
        target_epoch, target = self._target(member, group_epoch, configured)
        member = self._reconciled(member, owned, target_epoch, target)
        transition.schedule(
            (TimerKind.SESSION, group.group_id, member.member_id),
            self._config.streams_session_timeout_ms,
        )
        if self._request.shutdown_application and group.soft.shutdown_member_id is None:
            group.soft.shutdown_member_id = member.member_id
        response = self._response(before, member, configured)
        return HeartbeatAnswer(response=response, missing_topics=configured.missing_topics)

    # --- Topology -------------------------------------------------------------------------------

    def _topology(self) -> Topology:
        """Return the group's topology, which its first member brings (rule 466)."""
        known, sent = self._group.topology, self._request.topology
        if sent is None:
            if known is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"the topology of group {self._group.group_id} is not in the log any more",
                )
            return known
        value = stored_topology(sent)
        topology = Topology(value)
        if known is None:
            self._transition.records.append(records.topology_record(self._group.group_id, value))
            return topology
        if known.epoch <= topology.epoch and not known.is_same_as(topology):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        return known

    def _configured(self, topology: Topology) -> tuple[int, ConfiguredTopology]:
        """Return the hash of the topics, and the topology under them (rule 467)."""
        group = self._group
        configured, metadata_hash = group.soft.configured, group.metadata_hash
        if configured is None or group.is_topics_check_due:
            metadata = self._shard.metadata
            metadata_hash = metadata.hash_of(topology.required_topics)
            if configured is None or metadata_hash != group.metadata_hash:
                configured = configure_topology(topology, self._partition_count)
                group.configure(configured)
            if metadata_hash == group.metadata_hash:
                # Otherwise it is for the record of the next epoch to say that they were looked at.
                group.soft.checked_epoch = group.group_epoch
        return metadata_hash, configured

    def _partition_count(self, topic: str) -> int | None:
        found = self._shard.metadata.topic(topic)
        return None if found is None else len(found.partitions)

    def _group_epoch(
        self, metadata_hash: int, configured: ConfiguredTopology, *, is_changed: bool
    ) -> int:
        """Return the group's epoch, which grows if anything is other than before (rule 471)."""
        group = self._group
        validated = configured.epoch if configured.is_ready else NOT_VALIDATED
        assignment_configs = self._assignment_configs()
        if not (
            is_changed
            or metadata_hash != group.metadata_hash
            or validated != group.validated_topology_epoch
            or assignment_configs != group.assignment_configs
        ):
            return group.group_epoch
        epoch = group.group_epoch + 1
        self._transition.records.append(
            records.metadata_record(
                group.group_id,
                epoch=epoch,
                metadata_hash=metadata_hash,
                validated_topology_epoch=validated,
                assignment_configs=assignment_configs,
            )
        )
        # If the log refuses this, the group's epoch is smaller, and topics are looked at again.
        group.soft.checked_epoch = epoch
        return epoch

    def _assignment_configs(self) -> Mapping[str, str]:
        return {NUM_STANDBY_REPLICAS: str(self._config.streams_num_standby_replicas)}

    # --- Target ---------------------------------------------------------------------------------

    def _start_initial_delay(self) -> None:
        """Give others time to join with the first member (rule 473)."""
        delay_ms = self._config.streams_initial_rebalance_delay_ms
        key = (TimerKind.INITIAL_REBALANCE, self._group.group_id, "")
        if (
            self._group.is_empty
            and delay_ms > 0
            and self._transition.timers.deadline_ms(key) is None
        ):
            self._transition.schedule(key, delay_ms)

    def _target(
        self, member: StreamsMember, group_epoch: int, configured: ConfiguredTopology
    ) -> tuple[int, Tasks]:
        """Return the target's epoch, and the member's part of it (rules 473, 474)."""
        group, transition = self._group, self._transition
        delay = (TimerKind.INITIAL_REBALANCE, group.group_id, "")
        if transition.timers.deadline_ms(delay) is not None:
            self._say(
                StatusCode.ASSIGNMENT_DELAYED,
                "Assignment delayed due to the configured initial rebalance delay.",
            )
            return group.assignment_epoch, NO_TASKS
        if group.assignment_epoch >= group_epoch:
            return group.assignment_epoch, group.target(member.member_id)
        interval_ms = self._config.streams_assignment_interval_ms
        last_ms = group.assignment_timestamp_ms
        if last_ms and interval_ms and transition.now.wall_ms < last_ms + interval_ms:
            self._say(
                StatusCode.ASSIGNMENT_DELAYED,
                "Assignment delayed due to the configured assignment interval.",
            )
            return group.assignment_epoch, group.target(member.member_id)
        targets = None
        if group.group_id not in self._shard.new_targets:
            work = build_target(
                group.targets,
                {**group.members, member.member_id: member},
                configured,
                self._assignment_configs(),
            )
            targets = write_target(self._shard, transition, group, group_epoch, work)
        if targets is None:
            self._say(StatusCode.ASSIGNMENT_DELAYED, "Assignment delayed: it is being computed.")
            return group.assignment_epoch, group.target(member.member_id)
        return group_epoch, targets[member.member_id]

    def _reconciled(
        self, member: StreamsMember, owned: Tasks | None, target_epoch: int, target: Tasks
    ) -> StreamsMember:
        """Return the member nearer to its target, with a deadline to give up tasks (rule 475)."""
        group, transition = self._group, self._transition
        after = reconcile(
            member,
            target_epoch=target_epoch,
            target=target,
            owned=owned,
            holders=group.holders,
        )
        if after == member:
            return member
        transition.records.append(records.current_record(group.group_id, after))
        key = (TimerKind.REBALANCE, group.group_id, member.member_id)
        if after.state is MemberState.UNREVOKED_TASKS:
            group.soft.revoking_since[after.member_id] = after.member_epoch
            transition.schedule(key, after.rebalance_timeout_ms)
        else:
            group.soft.revoking_since.pop(after.member_id, None)
            transition.timers.cancel(key)
        return after

    # --- Answer ---------------------------------------------------------------------------------

    def _say(self, code: StatusCode, detail: str) -> None:
        self._status.append(Status(status_code=code, status_detail=detail))

    def _response(
        self, before: StreamsMember, member: StreamsMember, configured: ConfiguredTopology
    ) -> StreamsGroupHeartbeatResponse:
        """Return the answer (rules 476-478)."""
        group, soft, assigned = self._group, self._group.soft, member.assigned
        response = StreamsGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._config.streams_heartbeat_interval_ms,
        )
        if self._request.member_epoch == JOIN_EPOCH or assigned != before.assigned:
            response.active_tasks = _task_lists(assigned.active)
            response.standby_tasks = _task_lists(assigned.standby)
            response.warmup_tasks = _task_lists(assigned.warmup)
            soft.endpoints.pop(member.member_id, None)
            if member.user_endpoint is not None:
                soft.endpoint_epoch += 1
        if soft.endpoint_epoch != self._request.endpoint_information_epoch:
            response.partitions_by_user_endpoint = partitions_by_endpoint(
                group, member, self._partition_count
            )
        if group.group_id in self._shard.groups:
            # Of a group that is made with this very heartbeat nothing soft stays.
            response.endpoint_information_epoch = soft.endpoint_epoch
        if configured.problem is not None:
            self._say(configured.problem, configured.detail)
        if soft.shutdown_member_id is not None:
            self._say(
                StatusCode.SHUTDOWN_APPLICATION,
                f"Streams group member {soft.shutdown_member_id} encountered a fatal error and "
                "requested a shutdown for the entire application.",
            )
        response.status = self._status
        return response


def _group(
    shard: "ShardState", transition: Transition, request: StreamsGroupHeartbeatRequest
) -> StreamsGroup:
    """Return the group; one that is made is known to the shard when its records are (rule 463)."""
    group_id = request.group_id
    found = shard.groups.get(group_id)
    if request.member_epoch != JOIN_EPOCH:
        if found is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        return as_streams_group(found)
    if found is None:
        group = StreamsGroup(group_id)
    elif found.kind is GroupKind.CLASSIC and found.is_empty:
        transition.records += found.tombstones()
        group = StreamsGroup(group_id)
    else:
        group = as_streams_group(found)
    size_max = shard.settings.streams_group_max_size
    if len(group.members) >= size_max:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The streams group has reached its maximum capacity of {size_max} members.",
        )
    return group


def as_streams_group(group: object) -> StreamsGroup:
    """Return a group as what it is.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, it is of another kind.
    """
    if not isinstance(group, StreamsGroup):
        group_id = getattr(group, "group_id", "")
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    return group


def _member(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, owned: Tasks | None
) -> StreamsMember:
    """Return the member as it is, a new one if it joins (rule 464)."""
    epoch = request.member_epoch
    if epoch == JOIN_EPOCH:
        return group.members.get(request.member_id) or StreamsMember(member_id=request.member_id)
    member = group.member(request.member_id)
    if epoch == member.member_epoch:
        return member
    # The answer that told the member of its new epoch may have been lost.
    is_repeated = epoch < member.member_epoch and epoch == member.previous_member_epoch
    if is_repeated and owned is not None and member.assigned.has_all(owned):
        return member
    word = "greater" if epoch > member.member_epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {word} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({member.member_epoch}). The member must abandon all its partitions "
        "and rejoin.",
    )


def _owned(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return Tasks(active=task_set(active), standby=task_set(standby), warmup=task_set(warmup))


def _updated(member: StreamsMember, event: StreamsHeartbeat) -> StreamsMember:
    """Return the member with what it says of itself; null is what it said before (rule 465)."""
    request = event.request
    endpoint, tags = request.user_endpoint, request.client_tags
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        client_id=event.client_id,
        client_host=event.client_host,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        process_id=member.process_id if request.process_id is None else request.process_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms
        ),
        topology_epoch=(
            member.topology_epoch if request.topology is None else request.topology.epoch
        ),
        user_endpoint=(
            member.user_endpoint if endpoint is None else Endpoint(endpoint.host, endpoint.port)
        ),
        client_tags=member.client_tags if tags is None else {tag.key: tag.value for tag in tags},
    )


def _check_tasks_exist(
    request: StreamsGroupHeartbeatRequest, subtopologies: Mapping[str, ConfiguredSubtopology]
) -> None:
    """Refuse tasks that the topology lacks (rule 470)."""
    for tasks in (*(request.active_tasks or ()), *(request.standby_tasks or ())):
        name = tasks.subtopology_id
        subtopology = subtopologies.get(name)
        if subtopology is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Subtopology {name} does not exist in the topology."
            )
        count = subtopology.task_count
        for partition in tasks.partitions:
            if not 0 <= partition < count:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Task {partition} for subtopology {name} is invalid. Number of tasks for "
                    f"this subtopology: {count}",
                )


def _task_lists(tasks: "Iterable[TaskId]") -> list[TaskIds]:
    return [
        TaskIds(subtopology_id=name, partitions=partitions)
        for name, partitions in by_subtopology(tasks).items()
    ]
