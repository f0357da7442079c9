"""The sticky task assignor against Kafka's own, and what it keeps whatever the input."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.group.slices import complete
from kafkalite.group.streams import assignor
from kafkalite.group.streams.assignor import AssignableSubtopology, AssignmentMember
from kafkalite.group.streams.tasks import NO_TASKS, TaskId, Tasks, by_subtopology
from tests.group.work import calls_of

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "testdata/sticky_tasks.jsonl").read_text().splitlines()
]
"""Rounds of groups whose members come and go, with what Kafka 4.3.1's StickyTaskAssignor gave."""


def assign_tasks(members, subtopologies, *, standby_replicas):
    work = assignor.assign_tasks(members, subtopologies, standby_replicas=standby_replicas)
    return complete(work)


def tasks_of(lists):
    return frozenset(TaskId(name, number) for name, numbers in lists.items() for number in numbers)


def member(name, process=None, *, active=(), standby=()):
    return AssignmentMember(
        member_id=name,
        process_id=process or f"process of {name}",
        active=frozenset(TaskId(*task) for task in active),
        standby=frozenset(TaskId(*task) for task in standby),
    )


def subtopologies(**counts):
    """Subtopologies by name; those with an upper case name are stateful."""
    return {
        name: AssignableSubtopology(task_count=count, is_stateful=name.isupper())
        for name, count in counts.items()
    }


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['seed']}-{v['step']}")
def test_results_are_kafkas(vector):
    targets = assign_tasks(
        [
            AssignmentMember(
                member_id=each["id"],
                process_id=each["process"],
                active=tasks_of(each["active"]),
                standby=tasks_of(each["standby"]),
            )
            for each in vector["members"]
        ],
        {
            name: AssignableSubtopology(task_count=count, is_stateful=name in vector["stateful"])
            for name, count in vector["subtopologies"].items()
        },
        standby_replicas=vector["standby"],
    )
    assert {
        member_id: {
            "active": by_subtopology(target.active),
            "standby": by_subtopology(target.standby),
        }
        for member_id, target in targets.items()
    } == vector["result"]


def test_two_processes_share_two_subtopologies_as_seen_at_a_broker():
    targets = assign_tasks(
        [
            member("44a9367c-21a0-46ef-943d-ec0d5f5e339b", "p1"),
            member("68787717-1311-4cc4-962a-67ef90da7891", "p2"),
        ],
        {
            "0": AssignableSubtopology(task_count=3, is_stateful=False),
            "1": AssignableSubtopology(task_count=3, is_stateful=True),
        },
        standby_replicas=0,
    )
    assert [by_subtopology(target.active) for target in targets.values()] == [
        {"0": [0, 2], "1": [1]},
        {"0": [1], "1": [0, 2]},
    ]


def test_nobody_gets_nothing():
    assert assign_tasks([], subtopologies(a=3), standby_replicas=1) == {}


def test_members_without_tasks_have_an_empty_target():
    targets = assign_tasks(
        [member("a", active=[("x", 0)]), member("b")], subtopologies(x=1), standby_replicas=0
    )
    assert targets == {"a": Tasks(active=frozenset({TaskId("x", 0)})), "b": NO_TASKS}


def test_a_standby_is_never_where_its_active_task_is():
    """One process has no place for standbys, however many are wanted."""
    targets = assign_tasks(
        [member("a", "p"), member("b", "p")], subtopologies(X=4), standby_replicas=2
    )
    assert not any(target.standby for target in targets.values())


def test_who_had_the_standby_becomes_active_when_the_active_one_is_gone():
    targets = assign_tasks(
        [
            member("a", active=[("X", 0)], standby=[("X", 1)]),
            member("c", active=[("X", 2)]),
        ],
        subtopologies(X=3),
        standby_replicas=1,
    )
    assert TaskId("X", 1) in targets["a"].active
    assert TaskId("X", 1) in targets["c"].standby


def test_of_two_standbys_the_less_loaded_becomes_active():
    targets = assign_tasks(
        [
            member("a", active=[("X", 0), ("X", 1)], standby=[("X", 3)]),
            member("b", active=[("X", 2)], standby=[("X", 3)]),
        ],
        subtopologies(X=4),
        standby_replicas=1,
    )
    assert TaskId("X", 3) in targets["b"].active


def test_who_was_active_before_keeps_the_task_as_standby():
    """Where it may no longer be active: another member joined and took the task over."""
    targets = assign_tasks(
        [member("a", active=[("X", n) for n in range(4)]), member("b")],
        subtopologies(X=4),
        standby_replicas=1,
    )
    moved = targets["b"].active
    assert len(moved) == 2
    assert moved <= targets["a"].standby


names = st.sampled_from("abcdefgh")
task_ids = st.tuples(st.sampled_from("xYZ"), st.integers(0, 9))


@given(
    st.dictionaries(
        names,
        st.tuples(st.sampled_from("pqr"), st.frozensets(task_ids), st.frozensets(task_ids)),
        min_size=1,
    ),
    st.dictionaries(st.sampled_from("xYZ"), st.integers(1, 10)),
    st.integers(0, 2),
)
def test_every_task_is_active_once_and_in_as_many_processes_as_there_are(
    members, task_counts, standby_replicas
):
    """Also where the last target lies: several owners of a task, tasks that are no more."""
    topology = subtopologies(**task_counts)
    targets = assign_tasks(
        [member(name, process, active=a, standby=s) for name, (process, a, s) in members.items()],
        topology,
        standby_replicas=standby_replicas,
    )
    assert targets.keys() == members.keys()
    expected = {TaskId(name, n) for name, count in task_counts.items() for n in range(count)}
    active = [task for target in targets.values() for task in target.active]
    assert sorted(active) == sorted(expected)
    processes = {process for process, _, _ in members.values()}
    for task in expected:
        holders = [
            members[name][0]
            for name, target in targets.items()
            if task in target.active | target.standby
        ]
        assert len(holders) == len(set(holders))
        wanted = 1 + standby_replicas * topology[task.subtopology_id].is_stateful
        assert len(holders) == min(wanted, len(processes))


@pytest.mark.parametrize("standby_replicas", [0, 1, 2])
def test_work_grows_with_the_group_and_not_with_its_square(standby_replicas):
    """Decision 0082: slices are bounded, and so is how many there are."""

    def work(size):
        members = [member(f"member {number}") for number in range(size)]
        topology = subtopologies(X=5 * size, y=5 * size)
        first = {}

        def assign(found):
            found |= assign_tasks(members, topology, standby_replicas=standby_replicas)

        def assign_again():
            kept = [
                member(name, active=target.active, standby=target.standby)
                for name, target in first.items()
            ]
            assign_tasks([*kept[1:], member("new")], topology, standby_replicas=standby_replicas)

        return calls_of(lambda: assign(first)), calls_of(assign_again)

    assert all(large < 5 * small for small, large in zip(work(20), work(80), strict=True))
