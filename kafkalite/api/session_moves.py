"""Partitions that moved in a fetch session of many, so that a Fetch looks at these alone.

Most partitions of a large session get nothing new for a long time. Each is watched from one Fetch
to the next: an append, a high watermark, a log start or a leader that moves notes the partition
here (decision 0048).
"""

from typing import TYPE_CHECKING, Final, Protocol

from kafkalite.api.fetch_session import CachedPartition, FetchPlan, FetchSession
from kafkalite.isr.partition_read import IsolationLevel
from kafkalite.isr.state import CommittedIsr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from kafkalite.api.fetch_reader import FetchReader
    from kafkalite.isr.partition import Partition
    from kafkalite.wire.messages.fetch import PartitionData

    Key = tuple[str, UUID, int]

END_MAX: Final = 1_000
"""Partitions of an ended session that are watched no more in one go."""


class Listener(Protocol):
    """A Fetch that waits for something to happen in its session."""

    def on_moved(self, cached: CachedPartition) -> None:
        """Look at a partition again."""

    def on_progress(self, cached: CachedPartition, partition: "Partition") -> None:
        """Note that a follower may be told another high watermark of a partition."""

    def on_end(self) -> None:
        """Note that there will be no more news."""


class Mark:
    """One partition of a session, and whether a Fetch may leave it out."""

    __slots__ = ("_moves", "cached", "is_quiet", "key", "partition")

    def __init__(
        self, moves: "SessionMoves", key: "Key", cached: CachedPartition, watched: "Partition"
    ) -> None:
        self._moves = moves
        self.key = key
        self.cached = cached
        self.partition = watched
        self.is_quiet = False
        watched.watch(self.on_move)
        if moves.replica_id >= 0:
            watched.watch_appends(self.on_append)

    def on_move(self) -> None:
        """Note that the high watermark, the log start or the leader is another one."""
        self._moves.on_move(self)

    def on_append(self) -> None:
        """Note that there is something for a follower."""
        self._moves.on_append(self)

    def be_loud(self) -> None:
        """Have the next Fetch look at it; a leader hears now when the last one was."""
        if self.is_quiet:
            self.is_quiet = False
            leader = self.partition.leader
            if leader is not None:
                leader.on_quiet_follower(
                    self._moves.replica_id,
                    offset=self.cached.fetch_offset,
                    now_ms=self._moves.fetched_ms,
                )

    def end(self) -> None:
        """Watch no more."""
        self.be_loud()
        self.partition.unwatch(self.on_move)
        self.partition.unwatch(self.on_append)


class SessionMoves:
    """The partitions of a session that the next Fetch has to look at.

    A partition is *quiet* if a look at it found nothing that the client lacks, and nothing but a
    move, which is noted, or the client itself can change that.

    Args:
        session: with many partitions.
        replica_id: of the follower that fetches, negative for a consumer.

    Attributes:
        replica_id: the same.
        fetched_ms: monotonic time of the last Fetch, which counts for all that are quiet.
        listeners: Fetches that wait; there is one, unless a client goes on beside its own request.
    """

    __slots__ = (
        "_basis",
        "_marks",
        "_moved",
        "_next_turn",
        "_session",
        "_turns",
        "_under_way",
        "fetched_ms",
        "listeners",
        "replica_id",
    )

    def __init__(self, session: FetchSession, replica_id: int) -> None:
        self.replica_id = replica_id
        self.fetched_ms = 0
        self.listeners: list[Listener] = []
        self._session = session
        self._basis: object = None
        self._marks: dict[Key, Mark] = {}
        self._turns: dict[Key, int] = dict(zip(session.partitions, range(2**31), strict=False))
        """Where a partition stands in the session's order."""
        self._next_turn = len(self._turns)
        self._moved: dict[Key, None] = {}
        self._under_way: list[CachedPartition] = []
        """Of the last Fetch that was planned; what it did not come to look at has moved still."""

    def __len__(self) -> int:
        return len(self._marks)

    # --- A Fetch ---------------------------------------------------------------------------------

    def plan(self, basis: object, now_ms: int) -> list[CachedPartition]:
        """Return the partitions that a Fetch looks at, in the session's order.

        Args:
            basis: what an answer depends on beside partitions. If it is another one than that of
                the Fetch before nothing is left out.
            now_ms: monotonic.

        Returns:
            A list that the Fetch may add to; it is to be given to `finish`.
        """
        partitions, turns, moved = self._session.partitions, self._turns, self._moved
        if basis != self._basis:
            self._basis = basis
            keys = list(partitions)
        else:
            for cached in self._under_way:
                moved[cached.key] = None
            if 2 * len(moved) > len(partitions):
                keys = [key for key in partitions if key in moved]
            else:
                keys = sorted((key for key in moved if key in partitions), key=turns.__getitem__)
        self._moved = {}
        self.fetched_ms = now_ms
        self._under_way = [partitions[key] for key in keys]
        return self._under_way

    def sort(self, partitions: list[CachedPartition]) -> None:
        """Bring partitions into the session's order."""
        turns = self._turns
        partitions.sort(key=lambda cached: turns.get(cached.key, -1))

    def on_named(self, keys: "Iterable[Key]") -> None:
        """Have partitions looked at that the client names, or that it was not told of."""
        moved, turns = self._moved, self._turns
        for key in keys:
            moved[key] = None
            if key not in turns:
                turns[key] = self._next_turn
                self._next_turn += 1

    def on_forgotten(self, key: "Key") -> None:
        """Watch no more what left the session."""
        self._turns.pop(key, None)
        mark = self._marks.pop(key, None)
        if mark is not None:
            mark.end()

    def select(
        self,
        plan: FetchPlan,
        results: "list[tuple[CachedPartition, PartitionData]]",
        reader: "FetchReader",
        find: "Callable[[CachedPartition], Partition | None]",
    ) -> "list[tuple[CachedPartition, PartitionData]]":
        """Return what belongs in the answer; what need not be looked at again is quiet from now on.

        Args:
            plan: of the Fetch.
            results: of its partitions, or a part of them.
            reader: that fetches.
            find: gives the partition that is meant, None if it cannot be read.
        """
        order, turns, marks = self._session.partitions, self._turns, self._marks
        for cached, data in results:
            key = cached.key
            if order.get(key) is not cached:
                continue
            watched = find(cached)
            if watched is not None and _is_quiet(cached, data, watched, reader):
                self.watch(cached, watched)
                marks[key].is_quiet = True
                self._moved.pop(key, None)
                continue
            self._moved[key] = None
            if data.records:
                turns[key] = self._next_turn
                self._next_turn += 1
        return plan.select(results)

    def finish(self, partitions: list[CachedPartition]) -> None:
        """Note that all that a Fetch looked at was told of."""
        if self._under_way is partitions:
            self._under_way = []

    # --- Watching --------------------------------------------------------------------------------

    def watch(self, cached: CachedPartition, partition: "Partition") -> None:
        """Watch the partition that is meant now: its topic may have been made anew."""
        key = cached.key
        mark = self._marks.get(key)
        if mark is not None:
            if mark.partition is partition and mark.cached is cached:
                return
            mark.end()
        self._marks[key] = Mark(self, key, cached, partition)

    def on_move(self, mark: Mark) -> None:
        """Note it; a follower waits for appends, and is only told sooner of a high watermark."""
        self._note(mark)
        for listener in self.listeners:
            if self.replica_id < 0:
                listener.on_moved(mark.cached)
            else:
                listener.on_progress(mark.cached, mark.partition)

    def on_append(self, mark: Mark) -> None:
        """Note it."""
        self._note(mark)
        for listener in self.listeners:
            listener.on_moved(mark.cached)

    def _note(self, mark: Mark) -> None:
        self._moved[mark.key] = None
        mark.be_loud()

    def end_some(self) -> bool:
        """Watch some partitions no more, as the session ended; return whether any are left."""
        for listener in self.listeners:
            listener.on_end()
        marks = self._marks
        for _ in range(min(len(marks), END_MAX)):
            marks.popitem()[1].end()
        return bool(marks)


def _is_quiet(
    cached: CachedPartition, data: "PartitionData", partition: "Partition", reader: "FetchReader"
) -> bool:
    """Tell whether only a move of the partition can be news, after an answer with `data`."""
    if (
        data.error_code
        or data.records
        or data.diverging_epoch.epoch != -1
        or data.preferred_read_replica != -1
        or data.high_watermark != partition.high_watermark
        or data.log_start_offset != partition.log_start_offset
        or cached.current_leader_epoch not in (-1, partition.leader_epoch)
    ):
        return False
    offset = cached.fetch_offset
    if not reader.is_follower:
        is_committed = reader.isolation is IsolationLevel.READ_COMMITTED
        return offset >= (
            partition.last_stable_offset if is_committed else partition.high_watermark
        )
    leader = partition.leader
    follower = None if leader is None else leader.followers.get(reader.replica_id)
    return (
        leader is not None
        and follower is not None
        and offset == partition.log_end_offset == partition.high_watermark
        and offset == follower.log_end_offset
        and offset <= cached.known_high_watermark
        and isinstance(leader.state, CommittedIsr)
        and reader.replica_id in leader.state.isr
    )
