"""A shard's work for groups of one kind, as functions by event and record."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafkalite.coordinator.shard import Now, Result, StoredRecord, Ticket
    from kafkalite.group.kinds import GroupKind
    from kafkalite.group.new_target import NewTarget
    from kafkalite.group.shard_state import ShardState
    from kafkalite.group.transition import TimerKey, Transition


def _no_rebalance(transition: "Transition", group: Any) -> None:
    """Begin nothing."""
    del transition, group


def _no_target(shard: "ShardState", group: Any) -> "NewTarget | None":
    """Compute nothing: such groups have no targets."""
    del shard, group
    return None


def _no_records(shard: "ShardState") -> "list[StoredRecord]":
    """Return nothing: such groups take note of deleted topics otherwise."""
    del shard
    return []


@dataclass(slots=True, frozen=True, kw_only=True)
class Part:
    """A shard's work for groups of one kind.

    Attributes:
        handlers: by type of event; each decides as `Shard.handle` does.
        replays: by type of record key; each makes a record part of the hard state.
        on_timer: fires a timer of such a group.
        on_loaded: starts the timers of a group whose log was replayed.
        classic_protocol: what JoinGroup, SyncGroup, Heartbeat and LeaveGroup do to such a group, by
            type of event; without an entry they are refused as INCONSISTENT_GROUP_PROTOCOL or
            UNKNOWN_MEMBER_ID.
        rebalance: begins a rebalance of such a group, if it has a use for one.
        new_target: begins the target that such a group lacks, None where it lacks none.
        topics_deleted: returns the records that take what is deleted out of such groups.
    """

    kind: "GroupKind"
    handlers: "Mapping[type, Callable[[ShardState, Any, Ticket, Now], Result]]"
    replays: "Mapping[type, Callable[[ShardState, Any, Any], None]]"
    on_timer: "Callable[[ShardState, TimerKey, Now], Result]"
    on_loaded: "Callable[[ShardState, Transition, Any], None]"
    classic_protocol: "Mapping[type, Callable[[ShardState, Any, Ticket, Now], Result]]" = field(
        default_factory=dict
    )
    rebalance: "Callable[[Transition, Any], None]" = _no_rebalance
    new_target: "Callable[[ShardState, Any], NewTarget | None]" = _no_target
    topics_deleted: "Callable[[ShardState], list[StoredRecord]]" = _no_records
