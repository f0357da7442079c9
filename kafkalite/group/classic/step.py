"""One event's way through a group shard: when it happens, what may be asked, what it leads to."""

from enum import IntEnum

from kafkalite.coordinator.shard import Now, Result, StoredRecord, Ticket, Timers
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.settings import GroupSettings
from kafkalite.wire.stored.group_metadata import GroupMetadataKey

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long a member that was never answered is kept; fixed in Kafka too (rule 136)."""


class TimerKind(IntEnum):
    """What a timer of a group shard is for; the first part of its key, then what it concerns."""

    SESSION = 0
    """(group id, member id): a member, or a handed-out id, has been silent too long."""
    JOIN = 1
    """(group id, ""): the join phase has lasted long enough."""
    SYNC = 2
    """(group id, ""): members that were told a generation must have synced by now."""
    EXPIRE_OFFSETS = 3
    """("", ""): time to look for offsets that nobody wants."""


TimerKey = tuple[TimerKind, str, str]


class Step:
    """Collects what one event leads to.

    `records` become hard state when the runtime replays them, after the event is decided: so an
    event may bring forth at most one record per group, and decides nothing about a group after it.
    """

    __slots__ = ("now", "records", "replies", "settings", "timers")

    def __init__(self, now: Now, settings: GroupSettings, timers: Timers[TimerKey]) -> None:
        self.now = now
        self.settings = settings
        self.timers = timers
        self.records: list[StoredRecord] = []
        self.replies: list[tuple[Ticket, object]] = []

    def reply(self, ticket: Ticket, message: object) -> None:
        """Answer a request."""
        self.replies.append((ticket, message))

    def store(self, group: ClassicGroup, *, assignments: dict[str, bytes] | None = None) -> None:
        """Write the group as it is to the log, with these assignments or the ones it has."""
        stored = group.to_stored(assignments=assignments, now_wall_ms=self.now.wall_ms)
        self.records.append(StoredRecord(GroupMetadataKey(group=group.group_id), stored))

    def store_empty(self, group: ClassicGroup) -> None:
        """Write to the log that the group's next generation has no members."""
        stored = group.to_stored(assignments=None, now_wall_ms=self.now.wall_ms)
        assert not stored.members
        stored.generation += 1
        stored.protocol = None
        self.records.append(StoredRecord(GroupMetadataKey(group=group.group_id), stored))

    def schedule(self, key: TimerKey, delay_ms: int) -> None:
        """Set a timer; any earlier one of the same key is gone."""
        self.timers.schedule(key, self.now.monotonic_ms + delay_ms)

    def result(self) -> Result:
        """Return everything collected."""
        return Result(self.records, self.replies)
