"""A Fetch of very many partitions, in steps between which others have turns (decision 0062)."""

from collections.abc import Generator, Iterable, Iterator
from functools import partial
from typing import Any

import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.fetch import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    DelayedFetch,
    Results,
    add_results,
    bytes_max,
    name_endpoints,
    note_progress,
    read,
)
from kafkalite.api.fetch_reader import FetchReader
from kafkalite.api.fetch_session import FetchPlan, Partitions, is_full, requested
from kafkalite.api.parts import by_partition
from kafkalite.api.wide_fetch import (
    MovesOnly,
    answer,
    finish,
    has_moves,
    names,
    plan_moves,
    select,
)
from kafkalite.deferred import Deferred, in_steps
from kafkalite.wire.messages.fetch import FetchRequest, FetchResponse

STEP_PARTITIONS = 250
"""Partitions of one step, which are some milliseconds of reading."""

Steps = Generator[None, None, Any]


def answer_of_many(
    plan: FetchPlan,
    request: FetchRequest,
    reader: FetchReader,
    context: RequestContext,
    *,
    part_max: int,
) -> "FetchResponse | Deferred[Any] | None":
    """Answer a request for many partitions; None if it is to be answered like any other.

    Args:
        plan: what the request means.
        request: that is asked.
        reader: that asks.
        context: of the request.
        part_max: of more partitions it is answered in steps.
    """
    is_of_moves = plan_moves(plan, names(request), reader, context)
    if len(plan.partitions) > part_max:
        return LargeFetch(request, reader, context, plan)
    return answer(plan, request, reader, context) if is_of_moves else None


class LargeFetch(Deferred[FetchResponse]):
    """The answer to a Fetch of very many partitions.

    What is said of `DelayedFetch` holds for it, but that a task waits for it. Partitions are looked
    at one step after another, so what one of them tells may be older than what the next one does.

    Args:
        request: what is asked.
        reader: that asks.
        context: of the request.
        plan: what it means, if that is known.
    """

    __slots__ = ("_context", "_reader", "_request")

    def __init__(
        self,
        request: FetchRequest,
        reader: FetchReader,
        context: RequestContext,
        plan: FetchPlan | None = None,
    ) -> None:
        super().__init__(partial(self._answer, plan))
        self._request = request
        self._reader = reader
        self._context = context

    async def _answer(self, known: FetchPlan | None) -> FetchResponse:
        request = self._request
        plan: FetchPlan = await in_steps(self._planned()) if known is None else known
        if self._reader.is_follower:
            for part in _parts(plan.partitions):
                note_progress(part, self._reader, self._context)
                await trio.lowlevel.checkpoint()
        results, enough = await in_steps(self._read(plan))
        if not enough and request.max_wait_ms > 0 and plan.partitions:
            kind = _WaitingForMoves if has_moves(plan) else _Waiting
            waiting = kind(plan, request, self._reader, self._context, results)
            results, has_all = await waiting.wait_in_steps()
            if not has_all:
                results, _ = await in_steps(self._read(plan))
        response: FetchResponse = await in_steps(self._response(plan, results))
        return response

    def _planned(self) -> Steps:
        """Give the plan."""
        request, sessions = self._request, self._context.services.fetch_sessions
        by_topic_id = self._context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        now_ms = self._context.now_ms
        parts = by_partition(request)
        if not is_full(request):
            session = sessions.resume(request, by_topic_id=by_topic_id, now_ms=now_ms)
            for part in parts:
                wanted = requested(part)
                session.ask_for(wanted)
                if session.moves is not None:
                    session.moves.on_named(wanted)
                yield
            plan = sessions.rest_of_plan(session, request)
            plan_moves(plan, (), self._reader, self._context)
            return plan
        all_wanted: Partitions = {}
        for part in parts:
            all_wanted.update(requested(part))
            yield
        return sessions.full_plan(request, all_wanted, by_topic_id=by_topic_id, now_ms=now_ms)

    def _read(self, plan: FetchPlan) -> Steps:
        """Give the results, and whether they may be sent now."""
        results: Results = []
        urgent, size = False, 0
        remaining = bytes_max(self._request, self._reader, self._context)
        for part in _parts(plan.partitions):
            found, is_urgent, size, remaining = read(
                part, self._reader, self._context, remaining, size
            )
            results += found
            urgent = urgent or is_urgent
            yield
        return results, urgent or size >= self._request.min_bytes

    def _response(self, plan: FetchPlan, results: Results) -> Steps:
        response = FetchResponse(session_id=plan.session_id)
        leaders = None
        for part in _parts(results):
            selected = select(plan, part, self._reader, self._context)
            leaders = add_results(response, selected, self._reader, self._context, leaders)
            yield
        finish(plan)
        if leaders is not None:
            name_endpoints(response, leaders)
        return response


class _Waiting(DelayedFetch):
    """The same as its base, with a turn for others between its steps."""

    __slots__ = ()

    async def wait_in_steps(self) -> tuple[Results, bool]:
        """Return what there is when it is enough, or too late for more.

        And whether that is all that is to be returned; else it has to be read again.
        """
        try:
            await self._each(self.watch, range(len(self._results)))
            while True:
                changed = trio.Event()
                self.on_change = changed.set
                moved, self._moved = self._moved, {}
                await self._each(self.read_again, moved)
                if self.is_enough:
                    return self._results, len(moved) == 1 and self.is_all_of(*moved)
                await self._each(self.watch, moved)
                with trio.CancelScope(deadline=self.deadline_s):
                    await changed.wait()
        finally:
            # Bounded by the number of partitions: nobody may watch for who is gone.
            with trio.CancelScope(shield=True):
                await self._each(self.unwatch, range(len(self._results)))

    async def _each(self, do: Any, indexes: Iterable[int]) -> None:
        for part in _parts(list(indexes)):
            do(part)
            await trio.lowlevel.checkpoint()


class _WaitingForMoves(MovesOnly, _Waiting):
    """The same where the session knows what moved."""

    __slots__ = ()

    async def wait_in_steps(self) -> tuple[Results, bool]:
        """As its base."""
        try:
            return await super().wait_in_steps()
        finally:
            self.close()


def _parts(items: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), STEP_PARTITIONS):
        yield items[start : start + STEP_PARTITIONS]
