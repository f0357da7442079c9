"""Checks of a StreamsGroupHeartbeat that hold for any group (rules 461, 462).

In Kafka's order: what it does not support yet comes first.
"""

from kafkalite.group.streams.topology import check_topology
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
NO_TIMEOUT = -1


def check_heartbeat(request: StreamsGroupHeartbeatRequest) -> None:
    """Refuse a request that cannot be.

    Raises:
        KafkaError: INVALID_REQUEST or STREAMS_INVALID_TOPOLOGY.
    """
    _check_is_supported(request)
    _refuse_if(not request.member_id.strip(), "MemberId can't be empty.")
    _refuse_if(not request.group_id.strip(), "GroupId can't be empty.")
    _refuse_if(
        request.rack_id is not None and not request.rack_id.strip(), "RackId can't be empty."
    )
    epoch = request.member_epoch
    if epoch == JOIN_EPOCH:
        _check_join(request)
    _refuse_if(epoch == LEAVE_STATIC_EPOCH, "InstanceId can't be null.")
    _refuse_if(
        epoch < LEAVE_STATIC_EPOCH,
        f"MemberEpoch is {epoch}, but must be greater than or equal to -2.",
    )
    owned = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    _refuse_if(
        any(tasks is None for tasks in owned) and any(tasks is not None for tasks in owned),
        "If one task-type is non-null, all must be non-null.",
    )
    _refuse_if(
        epoch != JOIN_EPOCH and request.topology is not None,
        "Topology can only be provided when (re-)joining.",
    )


def _check_is_supported(request: StreamsGroupHeartbeatRequest) -> None:
    _refuse_if(request.instance_id is not None, "Static membership is not yet supported.")
    _refuse_if(request.task_offsets is not None, "TaskOffsets are not supported yet.")
    _refuse_if(request.task_end_offsets is not None, "TaskEndOffsets are not supported yet.")
    _refuse_if(bool(request.warmup_tasks), "WarmupTasks are not supported yet.")
    topology = request.topology
    _refuse_if(
        topology is not None and any(each.source_topic_regex for each in topology.subtopologies),
        "Regular expressions for source topics are not supported yet.",
    )


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    _refuse_if(
        request.rebalance_timeout_ms == NO_TIMEOUT,
        "RebalanceTimeoutMs must be provided in first request.",
    )
    for kind, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        _refuse_if(tasks is None or bool(tasks), f"{kind} must be empty when (re-)joining.")
    _refuse_if(request.topology is None, "Topology must be non-null when (re-)joining.")
    assert request.topology is not None
    check_topology(request.topology)


def _refuse_if(is_so: bool, message: str) -> None:
    if is_so:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
