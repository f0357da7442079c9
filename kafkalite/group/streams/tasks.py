"""Tasks, the unit of work of Kafka Streams: one partition of one subtopology."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class TaskId(NamedTuple):
    """One task; what Streams prints as `0_2`."""

    subtopology_id: str
    partition: int


class TaskIdsLike(Protocol):
    """Tasks of one subtopology, as messages and records have them."""

    @property
    def subtopology_id(self) -> str: ...  # noqa: D102
    @property
    def partitions(self) -> list[int]: ...  # noqa: D102


@dataclass(slots=True, frozen=True, kw_only=True)
class Tasks:
    """Tasks of three kinds, as a target has them and as a client owns them."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    warmup: frozenset[TaskId] = frozenset()

    def shares_any(self, other: "HeldTasks") -> bool:
        """Whether one task is in both, as the same kind."""
        return not (
            self.active.isdisjoint(other.active)
            and self.standby.isdisjoint(other.standby)
            and self.warmup.isdisjoint(other.warmup)
        )

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)


@dataclass(slots=True, frozen=True, kw_only=True)
class HeldTasks:
    """Tasks that a member holds: active ones with the epoch in which they were given to it."""

    active: Mapping[TaskId, int] = field(default_factory=dict)
    standby: frozenset[TaskId] = frozenset()
    warmup: frozenset[TaskId] = frozenset()

    def has_all(self, owned: Tasks) -> bool:
        """Whether every task of `owned` is here, as the same kind."""
        return (
            self.active.keys() >= owned.active
            and self.standby >= owned.standby
            and self.warmup >= owned.warmup
        )

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)


NO_TASKS = Tasks()
HOLDS_NOTHING = HeldTasks()


def task_set(lists: Iterable[TaskIdsLike]) -> frozenset[TaskId]:
    """Return the tasks of a message's or record's list."""
    return frozenset(
        TaskId(tasks.subtopology_id, partition) for tasks in lists for partition in tasks.partitions
    )


def by_subtopology(tasks: Iterable[TaskId]) -> dict[str, list[int]]:
    """Return the partitions by subtopology, both ascending."""
    found: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(tasks):
        found.setdefault(subtopology_id, []).append(partition)
    return found
