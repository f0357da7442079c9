"""What a heartbeat must say, in Kafka's order and words (rules 461, 462)."""

import pytest

from kafkalite.group.streams.requests import check_heartbeat
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    Topology,
)
from tests.group.streams.topologies import COUNTING, message, subtopology

TASKS = [TaskIds(subtopology_id="0", partitions=[0])]
BY_PATTERN = Topology(
    subtopologies=[Subtopology(subtopology_id="0", source_topic_regex=["in.*"])],
)


def request(**fields):
    made = StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=3)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def join(**fields):
    return request(
        **{
            "member_epoch": 0,
            "rebalance_timeout_ms": 1,
            "topology": message(*COUNTING),
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
        }
        | fields
    )


@pytest.mark.parametrize(
    "sensible",
    [
        join(),
        request(),
        request(member_epoch=-1),
        request(active_tasks=TASKS, standby_tasks=[], warmup_tasks=[]),
        request(rack_id="r"),
    ],
)
def test_sensible_requests_are_accepted(sensible):
    check_heartbeat(sensible)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (request(instance_id="i"), "Static membership is not yet supported."),
        (request(instance_id=""), "Static membership is not yet supported."),
        (request(task_offsets=[]), "TaskOffsets are not supported yet."),
        (request(task_end_offsets=[TaskOffset()]), "TaskEndOffsets are not supported yet."),
        (request(warmup_tasks=TASKS), "WarmupTasks are not supported yet."),
        (join(topology=BY_PATTERN), "Regular expressions for source topics are not supported yet."),
        (request(member_id=" "), "MemberId can't be empty."),
        (request(group_id=""), "GroupId can't be empty."),
        (request(rack_id=" "), "RackId can't be empty."),
        (join(rebalance_timeout_ms=-1), "RebalanceTimeoutMs must be provided in first request."),
        (join(active_tasks=None), "ActiveTasks must be empty when (re-)joining."),
        (join(active_tasks=TASKS), "ActiveTasks must be empty when (re-)joining."),
        (join(standby_tasks=None), "StandbyTasks must be empty when (re-)joining."),
        (join(warmup_tasks=None), "WarmupTasks must be empty when (re-)joining."),
        (join(topology=None), "Topology must be non-null when (re-)joining."),
        (request(member_epoch=-2), "InstanceId can't be null."),
        (request(member_epoch=-3), "MemberEpoch is -3, but must be greater than or equal to -2."),
        (request(active_tasks=[]), "If one task-type is non-null, all must be non-null."),
        (
            request(active_tasks=[], standby_tasks=[]),
            "If one task-type is non-null, all must be non-null.",
        ),
        (request(topology=message()), "Topology can only be provided when (re-)joining."),
    ],
)
def test_others_are_refused(sent, words):
    with pytest.raises(KafkaError) as refusal:
        check_heartbeat(sent)
    assert refusal.value.code is ErrorCode.INVALID_REQUEST
    assert refusal.value.message == words


def test_a_topology_that_makes_no_sense_is_refused_as_such():
    with pytest.raises(KafkaError) as refusal:
        check_heartbeat(join(topology=message(subtopology("0", "a", changelogs="c:2"))))
    assert refusal.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_what_is_not_supported_comes_before_what_makes_no_sense():
    with pytest.raises(KafkaError, match="Static membership"):
        check_heartbeat(join(instance_id="i", member_id=""))


JOIN_FAULTS = [
    ({"instance_id": ""}, "Static membership is not yet supported."),
    ({"task_offsets": []}, "TaskOffsets are not supported yet."),
    ({"task_end_offsets": []}, "TaskEndOffsets are not supported yet."),
    ({"warmup_tasks": TASKS}, "WarmupTasks are not supported yet."),
    ({"topology": BY_PATTERN}, "Regular expressions for source topics are not supported yet."),
    ({"member_id": ""}, "MemberId can't be empty."),
    ({"group_id": " "}, "GroupId can't be empty."),
    ({"rack_id": ""}, "RackId can't be empty."),
    ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
    ({"active_tasks": TASKS}, "ActiveTasks must be empty when (re-)joining."),
    ({"standby_tasks": TASKS}, "StandbyTasks must be empty when (re-)joining."),
    ({"warmup_tasks": None}, "WarmupTasks must be empty when (re-)joining."),
    ({"topology": None}, "Topology must be non-null when (re-)joining."),
]
"""What may be wrong with a join, in Kafka's order; a field of two of them has the earlier one."""

LATER_FAULTS = [
    *JOIN_FAULTS[:8],
    ({"member_epoch": -3}, "MemberEpoch is -3, but must be greater than or equal to -2."),
    ({"active_tasks": []}, "If one task-type is non-null, all must be non-null."),
    ({"topology": message()}, "Topology can only be provided when (re-)joining."),
]
"""The same with other heartbeats."""


@pytest.mark.parametrize(
    ("make", "faults"),
    [
        *((join, JOIN_FAULTS[position:]) for position in range(len(JOIN_FAULTS))),
        *((request, LATER_FAULTS[position:]) for position in range(len(LATER_FAULTS))),
    ],
)
def test_of_several_faults_the_first_in_kafkas_order_is_told(make, faults):
    fields = {}
    for fault, _ in reversed(faults):
        fields |= fault
    with pytest.raises(KafkaError) as refusal:
        check_heartbeat(make(**fields))
    assert refusal.value.message == faults[0][1]
