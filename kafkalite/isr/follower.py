"""Decisions of a follower about its leader's answers: append, truncate, begin anew, or wait.

Pure. After Kafka's AbstractFetcherThread, with truncation on fetch (KIP-595): the leader tells in
the answer to a Fetch where the follower's log stops being like its own. Where that is known in an
epoch that the follower has not got, it takes more than one step (KIP-279).
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.fetch import PartitionData
from kafkalite.wire.records import BATCH_OVERHEAD

PASSING_ERRORS: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""What a leader answers whose metadata are a moment older or newer than ours."""

UNKNOWN: Final = -1

BACKOFF_MIN_MS: Final = 20
"""After the first failure in a row. A leader that has just been elected hears of it a moment later
than its followers; replica.fetch.backoff.ms, a second, would be long for that."""

_BATCH_LENGTH: Final = struct.Struct(">i")
_BATCH_LENGTH_POSITION: Final = 8
_LENGTH_EXTRA: Final = 12
"""Bytes of a batch that its length does not count."""


class Position(NamedTuple):
    """Position of a follower, as `Partition.fetch_position` gives it and a Fetch says it.

    Attributes:
        offset: end of its log, from which it fetches.
        last_fetched_epoch: of its last record, -1 if there is none known.
        leader_epoch: of the leader that it follows.
        log_start_offset: of its log.
    """

    offset: int
    last_fetched_epoch: int
    leader_epoch: int
    log_start_offset: int


@dataclass(slots=True)
class Append:
    """Write these batches, if any, then take over the leader's bounds."""

    records: memoryview
    high_watermark: int
    log_start_offset: int


@dataclass(slots=True)
class TruncateTo:
    """Cut off everything from `offset` on, then fetch from there."""

    offset: int


@dataclass(slots=True)
class RestartAt:
    """Remove everything and begin at the leader's log start (rule 172)."""

    offset: int


@dataclass(slots=True)
class ListLeaderOffsets:
    """Ask the leader for the start and the end of its log, for `on_bounds` (rule 172)."""


@dataclass(slots=True)
class Nothing:
    """Nothing is to be done: the answer came too late, or is an error, which `code` tells."""

    code: ErrorCode = ErrorCode.NONE


Action = Append | TruncateTo | RestartAt | ListLeaderOffsets | Nothing

EndOffsetFor = Callable[[int], tuple[int, int]]
"""The follower's own `Log.end_offset_for`."""


class Follower:
    """One partition that follows: whether it may fetch now, and what its leader's answers mean.

    Attributes:
        leader_epoch: that it fetches in; answers to fetches of another one mean nothing.
        is_paused: it waits for word of a new leader epoch (rule 173).
        due_ms: before this time (monotonic) it does not fetch, having failed.
        lag: records that the leader has committed and this replica has not; None if unknown.
    """

    __slots__ = ("_backoff_max_ms", "_failures", "due_ms", "is_paused", "lag", "leader_epoch")

    def __init__(self, *, backoff_max_ms: int) -> None:
        self._backoff_max_ms = backoff_max_ms
        self._failures = 0
        self.leader_epoch = UNKNOWN
        self.is_paused = False
        self.due_ms = 0
        self.lag: int | None = None

    @property
    def is_in_sync(self) -> bool:
        """Whether it had everything committed when it last heard; such ones are not throttled."""
        return self.lag == 0

    @property
    def is_failing(self) -> bool:
        """Whether the last thing it tried failed."""
        return self._failures > 0

    def may_fetch(self, now_ms: int) -> bool:
        """Tell whether it takes part in the next fetch."""
        return not self.is_paused and now_ms >= self.due_ms

    def begin(self, position: Position, *, high_watermark: int) -> TruncateTo | None:
        """Follow in the leader epoch of `position`; return what is to be done before fetching.

        A log that knows no epochs cannot be compared with the leader's: what is not known to be
        committed goes (rule 171).
        """
        self.leader_epoch = position.leader_epoch
        self.is_paused = False
        self.due_ms = 0
        self.lag = None
        self._failures = 0
        if position.last_fetched_epoch < 0 and high_watermark < position.offset:
            return TruncateTo(high_watermark)
        return None

    def on_answer(
        self,
        fetched: Position,
        current: Position,
        answer: PartitionData,
        *,
        end_offset_for: EndOffsetFor,
        now_ms: int,
    ) -> Action:
        """Return what to do with the leader's answer.

        Args:
            fetched: what the fetch said.
            current: where the partition stands now.
            answer: the leader's, for this partition.
            end_offset_for: of the follower's log.
            now_ms: monotonic.
        """
        # The log's start may have moved meanwhile: retention works here as well.
        if fetched[:3] != current[:3] or current.leader_epoch != self.leader_epoch:
            return Nothing()
        code = answer.error_code
        if code == ErrorCode.NONE:
            diverging = answer.diverging_epoch
            if diverging.end_offset >= 0:
                # Not below the start of the log: nothing is there to be cut off.
                offset = truncation_offset(
                    diverging.epoch, diverging.end_offset, current.offset, end_offset_for
                )
                return TruncateTo(max(offset, current.log_start_offset))
            records = answer.records or b""
            assert isinstance(records, bytes | bytearray | memoryview)
            return Append(memoryview(records), answer.high_watermark, answer.log_start_offset)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return ListLeaderOffsets()
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            # There is a later leader, of which the metadata will tell.
            self.is_paused = True
            return Nothing(ErrorCode.FENCED_LEADER_EPOCH)
        # Everything else passes: a leader that does not know yet that it is, above all.
        self.on_failure(now_ms)
        return Nothing(ErrorCode(code))

    def on_bounds(
        self, current: Position, *, leader_start_offset: int, leader_end_offset: int, now_ms: int
    ) -> Action:
        """Return what to do about an offset that the leader has not got (rule 172).

        A leader that ends earlier was elected uncleanly; one that begins later has deleted what
        this replica missed. If neither is so any more, the next fetch may succeed.
        """
        if leader_end_offset < current.offset:
            if leader_end_offset <= current.log_start_offset:
                return RestartAt(leader_end_offset)
            return TruncateTo(leader_end_offset)
        if leader_start_offset > current.offset:
            return RestartAt(leader_start_offset)
        self.on_failure(now_ms)
        return Nothing()

    def on_appended(self, position: Position, *, leader_high_watermark: int) -> None:
        """Note that an answer was taken up, and the log ends at `position` now."""
        self._failures = 0
        self.lag = max(0, leader_high_watermark - position.offset)

    def on_failure(self, now_ms: int) -> None:
        """Wait for a while, longer after each failure in a row."""
        self._failures += 1
        backoff_ms = min(BACKOFF_MIN_MS << min(self._failures - 1, 20), self._backoff_max_ms)
        self.due_ms = now_ms + backoff_ms

    def pause(self) -> None:
        """Wait for another leader epoch: nothing else will make it work."""
        self.is_paused = True


def truncation_offset(
    leader_epoch: int, leader_end_offset: int, log_end_offset: int, end_offset_for: EndOffsetFor
) -> int:
    """Return where a follower's log must be cut for the next comparison with the leader's.

    Args:
        leader_epoch: the largest that the leader has and that is no later than the follower's
            last one, -1 if it does not know.
        leader_end_offset: where that epoch ends in the leader's log (exclusive).
        log_end_offset: of the follower.
        end_offset_for: of the follower's log.
    """
    if leader_epoch < 0:
        return min(leader_end_offset, log_end_offset)
    epoch, end_offset = end_offset_for(leader_epoch)
    if end_offset < 0:
        return min(leader_end_offset, log_end_offset)
    if epoch == leader_epoch:
        return min(end_offset, leader_end_offset, log_end_offset)
    # The follower has not got that epoch. What it wrote in later ones goes, and the next fetch
    # tells the epoch before, so that the leader can say where that one ends (KIP-279).
    return min(end_offset, log_end_offset)


def slices(records: memoryview, max_bytes: int) -> Iterator[memoryview]:
    """Yield `records` in pieces of whole batches, each at most `max_bytes` unless it is one batch.

    A batch that is cut off at the end comes with the last piece.
    """
    size = len(records)
    if size <= max_bytes:
        yield records
        return
    start = position = 0
    while size - position >= BATCH_OVERHEAD:
        (length,) = _BATCH_LENGTH.unpack_from(records, position + _BATCH_LENGTH_POSITION)
        end = position + _LENGTH_EXTRA + length
        if length < BATCH_OVERHEAD - _LENGTH_EXTRA or end > size:
            break  # the log will say what is wrong with it
        if end - start > max_bytes and position > start:
            yield records[start:position]
            start = position
        position = end
    yield records[start:]
