"""Answers that come later: one type for them, from a coordinator's shard to the connection."""

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


@mypyc_attr(allow_interpreted_subclasses=True)
class Promise(Deferred[T]):
    """An answer that somebody is going to give, by `set_result` or `set_error`.

    Whoever gives it sets the deadline, so there is none here.

    Args:
        on_forget: called when nobody waits any more, perhaps more than once.
    """

    __slots__ = ("_error", "_event", "_on_forget", "_result")

    def __init__(self, on_forget: Callable[[], object] | None = None) -> None:
        self._on_forget = on_forget
        self._event = trio.Event()
        self._error: Exception | None = None
        self._result: Any = None

    async def wait(self) -> T:
        """Return the answer; who is cancelled is forgotten, and its answer dropped.

        Raises:
            KafkaError: the answer is a refusal.
        """
        try:
            await self._event.wait()
        finally:
            self.forget()
        if self._error is not None:
            raise self._error
        result: T = self._result
        return result

    def forget(self) -> None:
        """Drop the answer when it comes: nobody waits for it."""
        if self._on_forget is not None:
            self._on_forget()

    def set_result(self, result: T) -> None:
        """Answer."""
        self._result = result
        self._event.set()

    def set_error(self, error: Exception) -> None:
        """Refuse, unless there is an answer already."""
        if not self._event.is_set():
            self._error = error
            self._event.set()
