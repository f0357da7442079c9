"""Clients' sockets, served together by one task: those that have something, in one pass.

A task that waits for its own socket costs an `epoll_ctl`, a task switch, and a wake-up of the
client for each request. Here the kernel is asked once which sockets have something; each connection
then takes its turn by a plain call, and all answers are sent when all have been served; so are
delayed requests for which something happened meanwhile. A connection's own task runs only for what
cannot be completed in a turn (decision 0031).
"""

import math
import os
import select
import socket
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from kafkalite.network.transport import PeerClosed, RequestSource, SocketTransport
from kafkalite.types import mypyc_attr

PASS_MAX_CONNECTIONS = 64
"""Turns in one pass; bounds what waits to be sent. The kernel goes round, so all get theirs."""

TURNS_MAX_S = 0.002
"""Ready sockets are served for at most this long; then other tasks run. Sockets that were not
served by then stay ready."""

SOON_S = 0.00015
AWAKE_S = 0.0001
"""Busy polling: if a request came within SOON_S of the last answer, the poller does not sleep for
AWAKE_S after each answer, because sleeping and being woken takes longer than such a client does.
Other tasks run meanwhile, and slower clients cost nothing more."""

HAS_CORES = hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1
"""Whether a client can work while it is waited for."""

HAS_EPOLL = hasattr(select, "epoll")

Answer = TypeVar("Answer")


class ReadyQueue:
    """Delayed requests that others' turns have woken, to be looked at when no one is ready.

    Pollers of one broker share it: what a follower asks on one listener is what a producer waits
    for on another.
    """

    def __init__(self) -> None:
        self.is_awaited = False
        """Turns are being given: somebody will look."""
        self.transports: dict[PolledTransport, None] = {}
        self.on_pause: Callable[[], object] | None = None
        """Called when all have been answered, before they are looked for again: what is done then
        makes nobody wait who has asked already."""


class Poller:
    """The sockets of one listener in an epoll object of their own, which trio waits for.

    Args:
        woken: shared with the other pollers of the same broker.
        stays_awake: for clients that ask again at once, if they have a processor meanwhile.
    """

    def __init__(self, woken: ReadyQueue | None = None, *, stays_awake: bool = True) -> None:
        self._woken = woken or ReadyQueue()
        self._awake_s = AWAKE_S if stays_awake and HAS_CORES else 0.0
        self._epoll = select.epoll()
        self._transports: dict[int, PolledTransport] = {}

    def add(
        self, sock: socket.socket, make: "Callable[..., PolledTransport] | None" = None
    ) -> "PolledTransport":
        """Look after a connected socket from now on until its transport is closed.

        Args:
            sock: connected.
            make: a class of transports that is none of TCP alone.

        Raises:
            OSError: it is not connected any more.
        """
        make = make or PolledTransport
        transport = make(sock, self._epoll, self._transports, self._woken)
        self._epoll.register(sock, RESTING)
        self._transports[sock.fileno()] = transport
        return transport

    async def run(self) -> None:
        """Give turns until cancelled."""
        answered_s = 0.0
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            now_s = time.monotonic()
            awake_s = self._awake_s if now_s - answered_s < SOON_S else 0.0
            while True:
                self._woken.is_awaited = True
                has_answered = False
                while self._serve_ready(now_s + TURNS_MAX_S):
                    has_answered = True
                if self._answer_woken():
                    has_answered = True
                self._woken.is_awaited = False
                if self._woken.on_pause is not None:
                    self._woken.on_pause()
                now_s = time.monotonic()
                if has_answered:
                    answered_s = now_s
                if now_s >= answered_s + awake_s:
                    break
                await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Give the kernel's part back, when all transports are closed."""
        self._epoll.close()

    def _serve_ready(self, end_s: float) -> bool:
        """Give a turn to each connection that has received something, then send the answers.

        Returns:
            Whether it is worth while to look again: where answers were sent, the next requests are
            soon there. Parts of a large frame that are fetched in a hurry are only smaller.
        """
        transports = self._transports
        answering = []
        is_over = False
        for fd, _ in self._epoll.poll(0, PASS_MAX_CONNECTIONS):
            transport = transports[fd]
            if is_over and transport.is_attended:
                continue  # the kernel tells of it again, but of a hang-up only once
            if transport.on_readable():
                answering.append(transport)
            is_over = is_over or time.monotonic() >= end_s
        has_answered = False
        for transport in answering:
            if transport.answer():
                has_answered = True
        return has_answered and not is_over

    def _answer_woken(self) -> bool:
        """Answer delayed requests that have been woken; those that take too long in their tasks.

        Returns:
            Whether there were any.
        """
        if not self._woken.transports:
            return False
        end_s = time.monotonic() + TURNS_MAX_S
        while self._woken.transports:
            transports, self._woken.transports = self._woken.transports, {}
            for transport in transports:
                if time.monotonic() >= end_s:
                    transport.stop()
                elif transport.resume():
                    transport.answer()
        return True


ATTENDED = getattr(select, "EPOLLIN", 0)

RESTING = getattr(select, "EPOLLRDHUP", 0) | getattr(select, "EPOLLONESHOT", 0)
"""While a connection's task is at work, only the end of its stream matters, and that once."""


@mypyc_attr(allow_interpreted_subclasses=True)
class PolledTransport(SocketTransport):
    """A socket whose turns come from a `Poller`."""

    def __init__(
        self,
        sock: socket.socket,
        epoll: "select.epoll",
        others: "dict[int, PolledTransport]",
        woken: ReadyQueue,
    ) -> None:
        super().__init__(sock)
        self._epoll = epoll
        self._others = others
        self._woken = woken
        self._served: RequestSource | None = None
        self._is_delayed = False
        self._is_muted = False
        """More has come while a request was delayed: it is left where it is until then."""
        self._patience = trio.CancelScope()
        """Around the wait of the connection's task, until what is delayed is late."""
        self._stopped = trio.Event()
        self._failure: Exception | None = None
        self._is_hung_up = False
        self._waiting: trio.CancelScope | None = None

    async def serve(self, served: RequestSource) -> None:
        """Have `served` read and answer while its socket is ready, until it has to await something.

        Its exceptions are raised here.
        """
        while served.delayed is None:
            self._served = served
            self._stopped = trio.Event()
            self._epoll.modify(self._socket, ATTENDED)
            try:
                with trio.CancelScope() as self._patience:
                    self.attended()
                    await self._stopped.wait()
            finally:
                self.stop()
            if self._failure is not None:
                raise self._failure
            if self._sending is None:
                return
            await self._drain()

    async def while_connected(self, wait: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return what `wait` returns.

        Raises:
            PeerClosed: the peer went away first, perhaps behind unread bytes; `wait` was cancelled.
        """
        with trio.CancelScope() as self._waiting:
            if self._is_hung_up:
                self._waiting.cancel()
            return await wait()
        raise PeerClosed

    @property
    def is_attended(self) -> bool:
        """Whether it is ready for as long as there is something to receive."""
        return self._served is not None and not self._is_muted

    def attended(self) -> None:
        """Nothing is here that the kernel does not tell of."""

    @property
    def is_ready(self) -> bool:
        """Whether the connection would take more now."""
        served = self._served
        return served is not None and (not self._is_delayed or served.can_accept_more)

    def on_readable(self) -> bool:
        """Let the connection receive and work; True if it has answers that are to be sent."""
        served = self._served
        if served is None:
            self._hang_up()
            return False
        if self._is_delayed and not served.can_accept_more:
            if self._is_muted:
                self._hang_up()
            else:  # there is more, or the end
                self._mute(muted=True)
            return False
        try:
            count = self._socket.recv_into(served.buffer())
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self.stop(error)
            return False
        if self._is_delayed and not count:
            self._hang_up()
            return False
        try:
            is_done = served.received(count)
            if is_done and not self._is_delayed:
                return True
            return self._has_worked(served, is_done=is_done)
        except Exception as failure:
            self.stop(failure)
        return False

    def resume(self) -> bool:
        """Let the connection look at what is delayed; True if it has answers to send."""
        served = self._served
        if served is None or not self._is_delayed:
            return False
        try:
            return self._has_worked(served, is_done=served.on_ready())
        except Exception as error:
            self.stop(error)
        return False

    def answer(self) -> bool:
        """Send what the connection made in its turn; False if that was nothing.

        What the kernel does not take at once is sent by the connection's task.
        """
        assert self._served is not None
        output = self._served.take_output()
        if not output:
            return False
        try:
            if not self._send_now(output):
                self.stop()
        except Exception as error:
            self.stop(error)
        return True

    def close(self) -> None:
        """Close at once; waiting calls end with an error."""
        self._served = None
        if self._others.pop(self._socket.fileno(), None) is not None:
            self._epoll.unregister(self._socket)
        super().close()

    def stop(self, failure: Exception | None = None) -> None:
        """Give no more turns, and let the task go on."""
        if self._served is not None:
            self._failure = failure
            self._served = None
            self._is_delayed = self._is_muted = False
            self._epoll.modify(self._socket, RESTING)
            self._stopped.set()

    def _has_worked(self, served: RequestSource, *, is_done: bool) -> bool:
        """Give no turns until what the connection waits for happens, or its task has done it.

        Returns:
            Whether the connection may have answers to send.
        """
        delayed = None if is_done else served.delayed
        if delayed is not None:
            self._is_delayed = True
            delayed.on_change = self._wake
            self._patience.deadline = delayed.deadline_s
        elif not is_done:
            self.stop()
            return False
        elif self._is_delayed:
            self._is_delayed = False
            self._patience.deadline = math.inf
        if self._is_muted and (is_done or served.can_accept_more):
            self._mute(muted=False)
        return True

    def _mute(self, *, muted: bool) -> None:
        self._is_muted = muted
        self._epoll.modify(self._socket, RESTING if muted else ATTENDED)

    def _hang_up(self) -> None:
        """Note that the peer has gone: nobody waits for it any more."""
        self._is_hung_up = True
        if self._waiting is not None:
            self._waiting.cancel()
        self.stop()

    def _wake(self) -> None:
        if self._served is None:
            return  # the connection's task has taken over
        if self._woken.is_awaited:
            self._woken.transports[self] = None
        else:
            self.stop()
