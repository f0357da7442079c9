"""The transition of a group shard upon one event: when it happens, and what it leads to."""

from enum import IntEnum

from kafkalite.coordinator.shard import Now, Result, StoredRecord, Ticket, Timers
from kafkalite.group.settings import GroupSettings


class TimerKind(IntEnum):
    """Purpose of a group shard's timer; the first part of its key, then what it concerns."""

    SESSION = 0
    """(group id, member id): a member, or a handed-out id, has been silent too long."""
    JOIN = 1
    """(group id, ""): the join phase of a classic group has lasted long enough; (group id, member
    id): a classic member of a consumer group must have joined again by now."""
    SYNC = 2
    """(group id, ""): members that were told a generation must have synced by now; (group id,
    member id): a classic member of a consumer group must."""
    EXPIRE_OFFSETS = 3
    """("", ""): time to look for offsets that nobody wants."""
    REBALANCE = 4
    """(group id, member id): the member must have given up what it was told to by now."""
    INITIAL_REBALANCE = 5
    """(group id, ""): others have had their time to join a streams group with its first member."""

    BECAME_CLASSIC = 6
    """(group id, ""): a consumer group has become classic, and its members want sessions."""
    BECAME_CLASSIC_STALE = 7
    """(group id, ""): as above, and its assignments are not up to date."""
    TARGET = 8
    """(group id, ""): the next slice of a target that takes longer than a turn."""


TimerKey = tuple[TimerKind, str, str]


class Transition:
    """Collects what one event leads to.

    `records` become hard state when the runtime replays them, after the event is decided: so an
    event decides nothing about a group by what it has brought forth itself.
    """

    __slots__ = ("effects", "now", "records", "replies", "settings", "timers")

    def __init__(self, now: Now, settings: GroupSettings, timers: Timers[TimerKey]) -> None:
        self.now = now
        self.settings = settings
        self.timers = timers
        self.records: list[StoredRecord] = []
        self.replies: list[tuple[Ticket, object]] = []
        self.effects: list[object] = []

    def reply(self, ticket: Ticket, message: object) -> None:
        """Answer a request."""
        self.replies.append((ticket, message))

    def schedule(self, key: TimerKey, delay_ms: int) -> None:
        """Set a timer; any earlier one of the same key is gone."""
        self.timers.schedule(key, self.now.monotonic_ms + delay_ms)

    def result(self) -> Result:
        """Return everything collected."""
        return Result(self.records, self.replies, effects=self.effects)
