"""Answers that come later: one type for them, from a coordinator's shard to the connection."""

import math
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

import trio

from kafkalite.types import mypyc_attr

T = TypeVar("T")
U = TypeVar("U")


async def in_steps(steps: Generator[None, None, T]) -> T:
    """Return the value of a generator, with a turn for others at each of its steps."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            value: T = done.value
            return value
        await trio.lowlevel.checkpoint()


def drained(steps: Generator[None, None, T]) -> T:
    """Return the value of a generator, without a turn for anybody."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            value: T = done.value
            return value


@mypyc_attr(allow_interpreted_subclasses=True)
class Deferred(Generic[T]):
    """An answer that is not there yet.

    Args:
        wait: called once; it returns the answer, or raises KafkaError. It has a deadline of its own
            and leaves nothing behind when it is cancelled (the client went away).
    """

    __slots__ = ("_wait",)

    def __init__(self, wait: Callable[[], Awaitable[T]]) -> None:
        self._wait = wait

    async def wait(self) -> T:
        """Return the answer when there is one."""
        return await self._wait()

    def map(self, convert: Callable[[T], U]) -> "Deferred[U]":
        """Return what `convert` makes of the answer, once there is one."""

        async def converted() -> U:
            return convert(await self.wait())

        return Deferred(converted)


@mypyc_attr(allow_interpreted_subclasses=True)
class InSteps(Deferred[T]):
    """An answer of very many elements: made in steps, and encoded so (decision 0062)."""

    __slots__ = ()

    def map(self, convert: Callable[[T], U]) -> "InSteps[U]":
        """Return what `convert` makes of the answer, to be encoded in steps as well."""
        return InSteps(super().map(convert).wait)


def _nobody() -> None:
    """Nobody is told."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperation(Deferred[T]):
    """A response that waits for the log, and can be asked for without waiting in a task.

    After Kafka's class of this name. It watches from the beginning what it waits for, until it is
    complete or `close`d.

    Attributes:
        allows_pipelining: requests for the same API behind it on its connection may be handled
            before it is complete. They are answered after it all the same.
        deadline_s: trio's time at which it is answered with what there is.
        on_change: called, perhaps more than once and in the midst of what others do, when
            `complete` may have a response, or `deadline_s` came nearer.
    """

    __slots__ = ("allows_pipelining", "deadline_s", "on_change")

    def __init__(self, timeout_ms: float, *, allows_pipelining: bool = False) -> None:
        self.allows_pipelining = allows_pipelining
        self.deadline_s = trio.current_time() + timeout_ms / 1_000
        self.on_change: Callable[[], object] = _nobody

    def complete(self) -> T | None:
        """Return the response, or None while there is none; raises what a handler raises."""
        raise NotImplementedError

    def close(self) -> None:
        """Watch nothing any more; may be called again."""
        raise NotImplementedError

    @property
    def is_late(self) -> bool:
        """Whether it is to be answered now, whatever there is."""
        return trio.current_time() >= self.deadline_s

    async def wait(self) -> T:
        """Return the response when there is one, and watch nothing any more in any case."""
        try:
            while True:
                changed = trio.Event()
                self.on_change = changed.set
                response = self.complete()
                if response is not None:
                    return response
                with trio.CancelScope(deadline=self.deadline_s):
                    await changed.wait()
        finally:
            self.close()


@mypyc_attr(allow_interpreted_subclasses=True)
class Promise(DelayedOperation[T]):
    """An answer that somebody is going to give, by `set_result` or `set_error`.

    Whoever gives it sets the deadline, so there is none here.

    Args:
        on_forget: called when nobody waits any more, perhaps more than once.

    Attributes:
        is_set: whether it was given.
    """

    __slots__ = ("_error", "_on_forget", "_result", "is_set")

    def __init__(self, on_forget: Callable[[], object] | None = None) -> None:
        self.allows_pipelining = False
        self.deadline_s = math.inf
        self.on_change: Callable[[], object] = _nobody
        self._on_forget = on_forget
        self.is_set = False
        self._error: Exception | None = None
        self._result: Any = None

    def complete(self) -> T | None:
        """Return the answer, or None while there is none.

        Raises:
            KafkaError: the answer is a refusal.
        """
        if self._error is not None:
            raise self._error
        result: T | None = self._result
        return result

    def close(self) -> None:
        """Drop the answer when it comes: nobody waits for it."""
        if self._on_forget is not None:
            self._on_forget()

    async def wait(self) -> T:
        """Return the answer, which may be None; who is cancelled is forgotten.

        Raises:
            KafkaError: the answer is a refusal.
        """
        try:
            changed = trio.Event()
            self.on_change = changed.set
            if self.is_set:
                changed.set()
            await changed.wait()
        finally:
            self.close()
        result: Any = self.complete()
        answer: T = result
        return answer

    def map(self, convert: Callable[[T], U]) -> "DelayedOperation[U]":
        """Return what `convert` makes of the answer, once there is one."""
        return _Converted(self, convert)

    def set_result(self, result: T) -> None:
        """Answer."""
        self._result = result
        self.is_set = True
        self.on_change()

    def set_error(self, error: Exception) -> None:
        """Refuse, unless there is an answer already."""
        if not self.is_set:
            self._error = error
            self.is_set = True
            self.on_change()


class _Converted(DelayedOperation[U]):
    """A promised answer that a function converts when it is there."""

    __slots__ = ("_convert", "_promise")

    def __init__(self, promise: Promise[Any], convert: Callable[[Any], U]) -> None:
        self.allows_pipelining = False
        self.deadline_s = promise.deadline_s
        self.on_change: Callable[[], object] = _nobody
        self._promise = promise
        self._convert = convert
        promise.on_change = self._on_given

    def complete(self) -> U | None:
        """Return what becomes of the answer, or None while there is none; raises as `Promise`."""
        return self._convert(self._promise.complete()) if self._promise.is_set else None

    def close(self) -> None:
        """Drop the answer when it comes."""
        self._promise.close()

    async def wait(self) -> U:
        """Return what becomes of the answer when there is one."""
        return self._convert(await self._promise.wait())

    def _on_given(self) -> None:
        self.on_change()
