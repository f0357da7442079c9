"""A Fetch in a session of many partitions, which looks at those that moved (decision 0048).

Its answer is that of a Fetch which looks at all of them.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.fetch import (
    HIGH_WATERMARK_UPDATE_MS,
    DelayedFetch,
    Results,
    add_results,
    bytes_max,
    failed_partition,
    find,
    name_endpoints,
    note_progress,
    read,
)
from kafkalite.api.fetch_reader import FetchReader
from kafkalite.api.fetch_session import CachedPartition, FetchPlan, FetchSession
from kafkalite.api.preferred_read_replica import RACK_AWARE_SELECTOR
from kafkalite.api.session_moves import SessionMoves
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from kafkalite.api.session_moves import Key
    from kafkalite.isr.partition import Partition


def plan_moves(
    plan: FetchPlan, named: "Iterable[Key]", reader: FetchReader, context: RequestContext
) -> bool:
    """Make a plan one of what moved, if that may be known; else it is one of all partitions.

    Not of the Fetch that opens a session, which is answered with all of them.

    Args:
        plan: of a request.
        named: what the request names, as far as the session does not know that it did.
        reader: that fetches.
        context: of the request.
    """
    sessions, session = context.services.fetch_sessions, plan.session
    sessions.end_some()
    if session is None or not plan.incremental:
        return False
    moves = _moves_of(session)
    is_other = moves is not None and moves.replica_id != reader.replica_id
    if is_other or not _may_watch(reader, context):
        sessions.end_moves(session)
        plan.partitions = list(session.partitions.values())
        return False
    if moves is None:
        moves = session.moves = SessionMoves(session, reader.replica_id)
    else:
        moves.on_named(named)
    authorizer = context.services.authorizer
    basis = (
        reader.broker_epoch,
        reader.isolation,
        context.api_version,
        context.principal,
        context.peer_address[0],
        None if authorizer is None else authorizer.rules,
    )
    plan.partitions = moves.plan(basis, context.services.clock.real_monotonic_ms())
    return True


def names(request: FetchRequest) -> "Iterator[Key]":
    """Yield what a request names."""
    for topic in request.topics:
        for each in topic.partitions:
            yield topic.topic, topic.topic_id, each.partition


def _may_watch(reader: FetchReader, context: RequestContext) -> bool:
    """Tell whether answers depend on nothing but what is watched."""
    selector = context.services.config.optional_str("replica.selector.class")
    return not reader.rack or selector != RACK_AWARE_SELECTOR


def answer(
    plan: FetchPlan, request: FetchRequest, reader: FetchReader, context: RequestContext
) -> FetchResponse | DelayedFetch:
    """Answer at once if there is enough to send, else when there is (rule 70)."""
    if reader.is_follower:
        note_progress(plan.partitions, reader, context)
    results, is_urgent, size, _ = read(
        plan.partitions, reader, context, bytes_max(request, reader, context)
    )
    if is_urgent or size >= request.min_bytes or request.max_wait_ms <= 0:
        return _response(plan, results, reader, context)
    delayed = WideFetch(plan, request, reader, context, results)
    delayed.watch(range(len(results)))
    return delayed


def has_moves(plan: FetchPlan) -> bool:
    """Whether a plan is one of what moved."""
    return plan.incremental and plan.session is not None and plan.session.moves is not None


def select(
    plan: FetchPlan, results: Results, reader: FetchReader, context: RequestContext
) -> Results:
    """Return the results that belong in the answer, as `FetchPlan.select`."""
    moves = None if plan.session is None else _moves_of(plan.session)
    if moves is None or not plan.incremental:
        return plan.select(results)
    return moves.select(plan, results, reader, partial(find, reader=reader, context=context))


def finish(plan: FetchPlan) -> None:
    """Note that all of a plan was selected from."""
    moves = None if plan.session is None else _moves_of(plan.session)
    if moves is not None:
        moves.finish(plan.partitions)


def _moves_of(session: FetchSession) -> SessionMoves | None:
    moves = session.moves
    assert moves is None or isinstance(moves, SessionMoves)
    return moves


def _response(
    plan: FetchPlan, results: Results, reader: FetchReader, context: RequestContext
) -> FetchResponse:
    response = FetchResponse(session_id=plan.session_id)
    selected = select(plan, results, reader, context)
    finish(plan)
    leaders = add_results(response, selected, reader, context, None)
    if leaders is not None:
        name_endpoints(response, leaders)
    return response


class MovesOnly(DelayedFetch):
    """A fetch that waits for what moves in its session."""

    __slots__ = ("_indexes", "_moves")

    def __init__(
        self,
        plan: FetchPlan,
        request: FetchRequest,
        reader: FetchReader,
        context: RequestContext,
        results: Results,
    ) -> None:
        super().__init__(plan, request, reader, context, results)
        assert plan.session is not None
        moves = _moves_of(plan.session)
        assert moves is not None
        self._moves = moves
        self._moves.listeners.append(self)
        self._indexes = {cached.key: index for index, (cached, _) in enumerate(results)}

    def watch(self, indexes: Iterable[int]) -> None:
        """Watch some partitions of the plan, until the session ends."""
        for index in indexes:
            cached, _ = self._results[index]
            partition = find(cached, self._reader, self._context)
            if partition is not None:
                self._moves.watch(cached, partition)
                if self._reader.is_follower:
                    self.on_progress(cached, partition)

    def unwatch(self, indexes: Iterable[int]) -> None:
        """Go on watching for the next Fetch."""

    def close(self) -> None:
        """Hear of no more moves."""
        if self in self._moves.listeners:
            self._moves.listeners.remove(self)
            self._moves.sort(self._plan.partitions)

    def is_all_of(self, index: int) -> bool:
        """Have everything read again: what moved may be told along."""
        del index
        return False

    def on_moved(self, cached: CachedPartition) -> None:
        """Look at a partition again, or for the first time."""
        self._on_move(self._index_of(cached))

    def on_progress(self, cached: CachedPartition, partition: "Partition") -> None:
        """Tell it along, and sooner where a follower should know the high watermark."""
        self._index_of(cached)
        if min(partition.high_watermark, cached.fetch_offset) > cached.known_high_watermark:
            self.be_answered_by(trio.current_time() + HIGH_WATERMARK_UPDATE_MS / 1_000)

    def _index_of(self, cached: CachedPartition) -> int:
        index = self._indexes.get(cached.key)
        if index is None:
            index = self._indexes[cached.key] = len(self._results)
            self._plan.partitions.append(cached)
            self._results.append((cached, failed_partition(cached.partition, ErrorCode.NONE)))
        return index

    def on_end(self) -> None:
        """Be answered now: nothing is watched any more."""
        self.be_answered_by(trio.current_time())

    def be_answered_by(self, deadline_s: float) -> None:
        """Bring the deadline forward."""
        if deadline_s < self.deadline_s:
            self.deadline_s = deadline_s
            self.on_change()


class WideFetch(MovesOnly):
    """One of few partitions, or with few that moved."""

    __slots__ = ()

    def complete(self) -> FetchResponse | None:
        """Return the response if enough is there, something failed, or it is late."""
        moved, self._moved = self._moved, {}
        self.read_again(moved)
        if not self.is_enough:
            self.watch(moved)
            return None
        self.close()
        reader, context = self._reader, self._context
        remaining = bytes_max(self._request, reader, context)
        results, *_ = read(self._plan.partitions, reader, context, remaining)
        return _response(self._plan, results, reader, context)
