"""The sticky task assignor (rule 487), with Kafka's results for the same input.

After Kafka's StickyTaskAssignor: tasks stay where they were as long as nobody gets too many; what
is left goes to the process with the least load. Ties are broken as Java's collections do.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kafkalite.group.java_order import hash_map_order, string_hash
from kafkalite.group.slices import Sliced
from kafkalite.group.streams.tasks import TaskId, Tasks

Item = TypeVar("Item")


@dataclass(slots=True, frozen=True, kw_only=True)
class AssignmentMember:
    """A member, as the assignor knows it: its process, and its tasks of the last target."""

    member_id: str
    process_id: str
    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()


@dataclass(slots=True, frozen=True, kw_only=True)
class AssignableSubtopology:
    """A subtopology, as the assignor knows it; tasks are numbered from 0."""

    task_count: int
    is_stateful: bool
    """Whether it has state stores, so that standby tasks make sense."""


def assign_tasks(
    members: Iterable[AssignmentMember],
    subtopologies: Mapping[str, AssignableSubtopology],
    *,
    standby_replicas: int,
) -> Sliced[dict[str, Tasks]]:
    """Return a target of active and standby tasks for every member.

    Args:
        members: by any order.
        subtopologies: by their ids.
        standby_replicas: how many standby tasks each stateful task is to have, if there are
            enough processes.
    """
    assignment = _Assignment(standby_replicas)
    yield from assignment.read(members, subtopologies)
    if assignment.is_without_members:
        return {}
    yield from assignment.assign_active()
    if standby_replicas > 0:
        yield from assignment.assign_standby()
    return (yield from assignment.targets())


class _Heap(Generic[Item]):
    """java.util.PriorityQueue: a binary heap whose ties fall as Java's sifting has them.

    An item's key is what it was when the item was added: it must not change before it is polled.
    """

    __slots__ = ("_items", "_keys")

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._keys: list[float] = []

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, item: Item, key: float) -> None:
        items, keys = self._items, self._keys
        position = len(items)
        items.append(item)
        keys.append(key)
        while position > 0:
            parent = (position - 1) >> 1
            if key >= keys[parent]:
                break
            items[position], keys[position] = items[parent], keys[parent]
            position = parent
        items[position], keys[position] = item, key

    def poll(self) -> Item:
        """Remove and return the least item; there must be one."""
        items, keys = self._items, self._keys
        least = items[0]
        item, key = items.pop(), keys.pop()
        size = len(items)
        if size == 0:
            return least
        position = 0
        inner_end = size >> 1
        while position < inner_end:
            child = 2 * position + 1
            child_key = keys[child]
            right = child + 1
            if right < size and child_key > keys[right]:
                child, child_key = right, keys[right]
            if key <= child_key:
                break
            items[position], keys[position] = items[child], child_key
            position = child
        items[position], keys[position] = item, key
        return least


class _Quota:
    """How many tasks a member may have: what is left, shared by those who may have more."""

    __slots__ = ("_members", "_tasks", "limit")

    def __init__(self, task_count: int, member_count: int) -> None:
        self._tasks = task_count
        self._members = member_count
        self.limit = 0
        self._share()

    def on_assigned(self, task_count: int) -> None:
        """Take note that a member has so many tasks now; who has the limit is out."""
        if task_count == self.limit:
            self._members -= 1
            self._tasks -= task_count
            self._share()

    def _share(self) -> None:
        self.limit = -(-self._tasks // self._members) if self._members else 0


class _Process:
    """The members of one process, which share a state directory, and their tasks."""

    __slots__ = ("_heap", "counts", "task_count", "tasks")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.task_count = 0
        self.tasks: set[TaskId] = set()
        self._heap: _Heap[str] | None = None

    @property
    def load(self) -> float:
        return self.task_count / len(self.counts)

    def add(self, member_id: str, task: TaskId) -> int:
        """Give a task to a member; return how many it has."""
        self._heap = None
        return self._put(member_id, task)

    def least_loaded(self) -> str:
        """Return a member with the least tasks; to be followed by `add_to`."""
        if len(self.counts) == 1:
            return next(iter(self.counts))
        if self._heap is None:
            self._heap = _Heap()
            for member_id in hash_map_order(self.counts, string_hash):
                self._heap.add(member_id, self.counts[member_id])
        return self._heap.poll()

    def add_to(self, member_id: str, task: TaskId) -> int:
        """Give a task to the member that `least_loaded` said; return how many it has."""
        count = self._put(member_id, task)
        if self._heap is not None:
            self._heap.add(member_id, count)
        return count

    def _put(self, member_id: str, task: TaskId) -> int:
        self.tasks.add(task)
        self.task_count += 1
        count = self.counts[member_id] = self.counts[member_id] + 1
        return count


class _Assignment:
    """One run of the assignor."""

    def __init__(self, standby_replicas: int) -> None:
        self._standby_replicas = standby_replicas
        self._processes: dict[str, _Process] = {}
        self._process_of: dict[str, _Process] = {}
        self._active: dict[str, set[TaskId]] = {}
        self._standby: dict[str, set[TaskId]] = {}
        self._previous_active: dict[TaskId, str] = {}
        self._previous_standby: dict[TaskId, list[str]] = {}

    def read(
        self,
        members: Iterable[AssignmentMember],
        subtopologies: Mapping[str, AssignableSubtopology],
    ) -> Sliced[None]:
        """Take up who had what, and what there is to give."""
        by_id = {member.member_id: member for member in members}
        member_ids = hash_map_order(by_id, string_hash)
        for member_id in member_ids:
            member = by_id[member_id]
            process = self._processes.setdefault(member.process_id, _Process())
            process.counts[member_id] = 0
            self._process_of[member_id] = process
            self._active[member_id] = set()
            self._standby[member_id] = set()
            self._previous_active.update(dict.fromkeys(member.active, member_id))
            for task in member.standby:
                self._previous_standby.setdefault(task, []).append(member_id)
            yield 2 + (len(member.active) + len(member.standby)) // 4
        self._process_order = hash_map_order(self._processes, string_hash, capacity=len(member_ids))
        self._tasks = yield from _tasks_of(subtopologies)
        self._stateful_tasks = [
            task for task in self._tasks if subtopologies[task.subtopology_id].is_stateful
        ]
        yield len(self._tasks) // 8
        active_count = len(self._tasks)
        self._active_quota = _Quota(active_count, len(member_ids))
        self._total_quota = _Quota(
            active_count + self._standby_replicas * len(self._stateful_tasks), len(member_ids)
        )

    @property
    def is_without_members(self) -> bool:
        return not self._processes

    def targets(self) -> Sliced[dict[str, Tasks]]:
        targets = {}
        for member_id, active in self._active.items():
            standby = self._standby[member_id]
            targets[member_id] = Tasks(active=frozenset(active), standby=frozenset(standby))
            yield 1 + (len(active) + len(standby)) // 8
        return targets

    # --- Active tasks ---------------------------------------------------------------------------

    def assign_active(self) -> Sliced[None]:
        """Give tasks to who had them, then to who had their standby, then where load is least."""
        remaining = []
        for task in self._tasks:
            owner = self._previous_active.get(task)
            if owner is None or not self._takes_active(owner, task):
                remaining.append(task)
            yield 1
        left = []
        for task in remaining:
            owner = self._standby_owner(task, may_share_process=True)
            if owner is None or not self._takes_active(owner, task):
                left.append(task)
            yield 1
        processes = yield from self._process_heap()
        for task in sorted(left):
            process = processes.poll()
            member_id = process.least_loaded()
            self._active[member_id].add(task)
            self._count_active(process.add_to(member_id, task))
            processes.add(process, process.load)
            yield 4

    def _takes_active(self, member_id: str, task: TaskId) -> bool:
        process = self._process_of[member_id]
        if process.counts[member_id] >= self._active_quota.limit:
            return False
        self._active[member_id].add(task)
        self._count_active(process.add(member_id, task))
        return True

    def _count_active(self, count: int) -> None:
        self._active_quota.on_assigned(count)
        self._total_quota.on_assigned(count)

    # --- Standby tasks --------------------------------------------------------------------------

    def assign_standby(self) -> Sliced[None]:
        """Give each stateful task its standbys, each in a process that lacks the task."""
        remaining: list[tuple[TaskId, int]] = []
        for task in reversed(self._stateful_tasks):
            for given in range(self._standby_replicas):
                yield 1
                if not self._stays_with_previous(task):
                    remaining.append((task, self._standby_replicas - given))
                    break
        processes = yield from self._process_heap()
        for task, count in sorted(remaining, key=_task_first, reverse=True):
            for _ in range(count):
                is_given = yield from self._gives_to_least_loaded(processes, task)
                if not is_given:
                    break

    def _stays_with_previous(self, task: TaskId) -> bool:
        active_owner = self._previous_active.get(task)
        if (
            active_owner is not None
            and task not in self._process_of[active_owner].tasks
            and self._takes_standby(active_owner, task)
        ):
            return True
        standby_owner = self._standby_owner(task, may_share_process=False)
        return standby_owner is not None and self._takes_standby(standby_owner, task)

    def _takes_standby(self, member_id: str, task: TaskId) -> bool:
        process = self._process_of[member_id]
        if process.counts[member_id] >= self._total_quota.limit:
            return False
        self._standby[member_id].add(task)
        self._total_quota.on_assigned(process.add(member_id, task))
        return True

    def _gives_to_least_loaded(self, processes: _Heap[_Process], task: TaskId) -> Sliced[bool]:
        """Give a standby to the least loaded process that lacks the task, if there is one."""
        passed_over = []
        is_given = False
        while processes and not is_given:
            process = processes.poll()
            passed_over.append(process)
            yield 4
            if task not in process.tasks:
                member_id = process.least_loaded()
                self._standby[member_id].add(task)
                self._total_quota.on_assigned(process.add_to(member_id, task))
                is_given = True
        for process in reversed(passed_over):
            processes.add(process, process.load)
        return is_given

    # --- What both need -------------------------------------------------------------------------

    def _standby_owner(self, task: TaskId, *, may_share_process: bool) -> str | None:
        """Return who of those that had the task as standby is to have it.

        A later one is taken only if both its process has less load and it has fewer tasks.
        """
        owners = self._previous_standby.get(task)
        if not owners:
            return None
        best = owners[0]
        first = self._process_of[best]
        load, count = first.load, first.counts[best]
        for owner in owners[1:]:
            process = self._process_of[owner]
            may_have = may_share_process or task not in process.tasks
            if process.load < load and may_have and process.counts[owner] < count:
                best, load, count = owner, process.load, process.counts[owner]
        return best if may_share_process or task not in first.tasks else None

    def _process_heap(self) -> Sliced[_Heap[_Process]]:
        heap: _Heap[_Process] = _Heap()
        for process_id in self._process_order:
            process = self._processes[process_id]
            heap.add(process, process.load)
            yield 1
        return heap


def _tasks_of(subtopologies: Mapping[str, AssignableSubtopology]) -> Sliced[Sequence[TaskId]]:
    """Return all tasks, by partition and then by subtopology."""
    tasks: list[TaskId] = []
    for name, subtopology in subtopologies.items():
        tasks += [TaskId(name, partition) for partition in range(subtopology.task_count)]
        yield subtopology.task_count // 4
    tasks.sort(key=_by_partition)
    yield len(tasks) // 2
    return tasks


def _by_partition(task: TaskId) -> tuple[int, str]:
    return task.partition, task.subtopology_id


def _task_first(wanted: tuple[TaskId, int]) -> TaskId:
    return wanted[0]
