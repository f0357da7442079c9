"""Sets of tasks."""

from kafkalite.group.streams.tasks import (
    HOLDS_NOTHING,
    NO_TASKS,
    HeldTasks,
    TaskId,
    Tasks,
    by_subtopology,
    task_set,
)
from kafkalite.wire.messages.streams_group_heartbeat import TaskIds

A, B = TaskId("0", 0), TaskId("0", 1)


def test_lists_of_messages_become_sets_and_back():
    lists = [TaskIds(subtopology_id="1", partitions=[2, 0]), TaskIds(subtopology_id="0")]
    tasks = task_set(lists)
    assert tasks == {TaskId("1", 0), TaskId("1", 2)}
    assert by_subtopology(tasks) == {"1": [0, 2]}


def test_tasks_are_true_if_there_is_one_of_any_kind():
    assert not NO_TASKS
    assert not HOLDS_NOTHING
    for kind in ("active", "standby", "warmup"):
        assert Tasks(**{kind: frozenset({A})})
    assert HeldTasks(active={A: 1})
    assert HeldTasks(standby=frozenset({A}))
    assert HeldTasks(warmup=frozenset({A}))


def test_a_task_is_shared_only_as_the_same_kind():
    held = HeldTasks(active={A: 3}, standby=frozenset({B}))
    assert Tasks(active=frozenset({A})).shares_any(held)
    assert Tasks(standby=frozenset({B})).shares_any(held)
    assert not Tasks(active=frozenset({B}), standby=frozenset({A})).shares_any(held)
    assert Tasks(warmup=frozenset({A})).shares_any(HeldTasks(warmup=frozenset({A})))


def test_all_owned_tasks_are_held_only_as_the_same_kind():
    held = HeldTasks(active={A: 3}, standby=frozenset({B}))
    assert held.has_all(NO_TASKS)
    assert held.has_all(Tasks(active=frozenset({A}), standby=frozenset({B})))
    assert not held.has_all(Tasks(standby=frozenset({A})))
    assert not held.has_all(Tasks(active=frozenset({B})))
    assert not held.has_all(Tasks(warmup=frozenset({A})))
