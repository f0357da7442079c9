"""One member of a streams group, and how it moves towards its target (rule 484).

After Kafka's StreamsGroupMember and CurrentAssignmentBuilder.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

from kafkalite.group.streams.tasks import HOLDS_NOTHING, HeldTasks, TaskId, Tasks
from kafkalite.wire.errors import ErrorCode, KafkaError


class MemberState(IntEnum):
    """State of a member; the numbers are those of its record, other than a consumer's."""

    STABLE = 1
    """It has its target, or a newer target is there and its next heartbeat starts towards it."""
    UNREVOKED_TASKS = 2
    """It was told to give up tasks and has not said that it did."""
    UNRELEASED_TASKS = 3
    """It waits for tasks that others have not given up."""
    UNKNOWN = 127
    """What a later version of Kafka stored."""


class Endpoint(NamedTuple):
    """Address at which an application answers interactive queries (`application.server`)."""

    host: str
    port: int


@dataclass(slots=True, frozen=True, kw_only=True)
class StreamsMember:
    """One Streams thread.

    Attributes:
        member_epoch: the target epoch that it has reached.
        previous_member_epoch: the one before, which may still come if an answer was lost.
        process_id: of the instance; its members share a state directory.
        assigned: tasks that it has, or is told to take.
        pending_revocation: tasks that it is to give up, and may still work on.
    """

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: HeldTasks = HOLDS_NOTHING
    pending_revocation: HeldTasks = HOLDS_NOTHING

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether it has its target of this epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch


class TaskHolders:
    """Which processes hold a task: have it, or are still to give it up.

    As in Kafka, of two holders of one active task only the later is known, and a process that holds
    a task twice is forgotten with the first of the two. Reconciling brings forth neither.
    """

    __slots__ = ("_active", "_standby", "_warmup")

    def __init__(self) -> None:
        self._active: dict[TaskId, str] = {}
        self._standby: dict[TaskId, set[str]] = {}
        self._warmup: dict[TaskId, set[str]] = {}

    def add(self, member: StreamsMember) -> None:
        """Take note of what a member holds."""
        process_id = member.process_id
        for held in (member.assigned, member.pending_revocation):
            self._active.update(dict.fromkeys(held.active, process_id))
            for kind, tasks in ((self._standby, held.standby), (self._warmup, held.warmup)):
                for task in tasks:
                    kind.setdefault(task, set()).add(process_id)

    def remove(self, member: StreamsMember) -> None:
        """Forget what a member held, unless another process holds it by now."""
        process_id = member.process_id
        for held in (member.assigned, member.pending_revocation):
            for task in held.active:
                if self._active.get(task) == process_id:
                    del self._active[task]
            for kind, tasks in ((self._standby, held.standby), (self._warmup, held.warmup)):
                for task in tasks:
                    processes = kind.get(task, set())
                    processes.discard(process_id)
                    if not processes:
                        kind.pop(task, None)

    def is_unreleased_active(self, task: TaskId, process_id: str) -> bool:
        """Whether a task cannot become active in a process yet."""
        return (
            task in self._active
            or process_id in self._standby.get(task, ())
            or process_id in self._warmup.get(task, ())
        )

    def is_unreleased_copy(self, task: TaskId, process_id: str) -> bool:
        """Whether a task cannot become a standby or warm-up task of a process yet."""
        return (
            self._active.get(task) == process_id
            or process_id in self._standby.get(task, ())
            or process_id in self._warmup.get(task, ())
        )


def reconcile(
    member: StreamsMember,
    *,
    target_epoch: int,
    target: Tasks,
    owned: Tasks | None,
    holders: TaskHolders,
) -> StreamsMember:
    """Return a member as its heartbeat leaves it: nearer to its target, or as it was.

    It gives up first what the target lacks, then gets what others have given up.

    Args:
        member: before.
        target_epoch: of the group's newest target.
        target: the member's part of it.
        owned: what the client says that it has; None if it says nothing.
        holders: who holds what, this member among them as it was before.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH, the member's state is not known here.
    """
    state = member.state
    if state is MemberState.STABLE and member.member_epoch == target_epoch:
        return member
    epoch = member.member_epoch
    if state is MemberState.UNREVOKED_TASKS:
        if owned is None or owned.shares_any(member.pending_revocation):
            return member
        # As Kafka has it: so it is even where there is more to be given up at once.
        epoch += 1
    elif state is MemberState.UNKNOWN:
        if owned is None or owned:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The streams group member is in a unknown state. "
                "The member must abandon all its tasks and rejoin.",
            )
        epoch = target_epoch
    return _next(member, epoch, target_epoch, target, owned, holders)


def _next(
    member: StreamsMember,
    epoch: int,
    target_epoch: int,
    target: Tasks,
    owned: Tasks | None,
    holders: TaskHolders,
) -> StreamsMember:
    had = member.assigned
    kept_active = {task: since for task, since in had.active.items() if task in target.active}
    kept = HeldTasks(
        active=kept_active,
        standby=had.standby & target.standby,
        warmup=had.warmup & target.warmup,
    )
    revoked = HeldTasks(
        active={task: since for task, since in had.active.items() if task not in kept_active},
        standby=had.standby - kept.standby,
        warmup=had.warmup - kept.warmup,
    )
    if revoked and (owned is None or owned.shares_any(revoked)):
        return replace(
            member,
            state=MemberState.UNREVOKED_TASKS,
            member_epoch=epoch,
            previous_member_epoch=member.member_epoch,
            assigned=kept,
            pending_revocation=revoked,
        )
    process_id = member.process_id
    wanted = (
        target.active - kept_active.keys(),
        target.standby - kept.standby,
        target.warmup - kept.warmup,
    )
    active = _released(wanted[0], holders.is_unreleased_active, process_id)
    standby = _released(wanted[1], holders.is_unreleased_copy, process_id)
    warmup = _released(wanted[2], holders.is_unreleased_copy, process_id)
    has_unreleased = (active, standby, warmup) != wanted
    return replace(
        member,
        state=MemberState.UNRELEASED_TASKS if has_unreleased else MemberState.STABLE,
        member_epoch=target_epoch,
        previous_member_epoch=member.member_epoch,
        assigned=HeldTasks(
            active={**kept_active, **dict.fromkeys(active, target_epoch)},
            standby=kept.standby | standby,
            warmup=kept.warmup | warmup,
        ),
        pending_revocation=HOLDS_NOTHING,
    )


def _released(
    tasks: Iterable[TaskId], is_unreleased: Callable[[TaskId, str], bool], process_id: str
) -> frozenset[TaskId]:
    return frozenset(task for task in tasks if not is_unreleased(task, process_id))
