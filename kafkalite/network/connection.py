"""One client's connection: its requests are served one after another (rule 9).

What can be done without waiting is `received` and `on_ready`, which the transport calls; what must
be waited for (another broker, memory, a client that reads slowly) is waited for in the connection's
task.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import Any

import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import CloseConnection, ClosedOnPurpose, PlayedAnswer
from kafkalite.deferred import Deferred, DelayedOperation, InSteps
from kafkalite.network.budget import MemoryBudget
from kafkalite.network.dispatch import Dispatcher, Farewell
from kafkalite.network.in_flight import InFlightRequest
from kafkalite.network.large import encoded
from kafkalite.network.transport import Chunk, PeerClosed, Transport
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.framing import Framer

logger = logging.getLogger("kafkalite.server")

OUTPUT_MAX_BYTES = 256 * 1024
"""Answers to pipelined requests are gathered up to here before they are sent together."""

DELAYED_MAX = 16
"""Requests of a connection that are admitted and not yet answered."""

TURN_MAX_MS = 10
"""A connection whose requests came together lets others have their turn after so long."""


class Connection:
    """Reads frames, has them answered, sends the answers in order.

    Kafka takes a connection's next request when the answer to the one before has left; so does
    this, which makes order a matter of course. Only where a Produce waits for its replicas those
    behind it are admitted meanwhile, and wait behind it (decision 0001). Requests that arrived
    together are answered together in one send.
    """

    def __init__(
        self,
        transport: Transport,
        dispatcher: Dispatcher,
        context: RequestContext,
        *,
        framer: Framer,
        budget: MemoryBudget,
    ) -> None:
        self._transport = transport
        self._dispatcher = dispatcher
        self._context = context
        self._framer = framer
        self._budget = budget
        self._output: list[Chunk] = []
        self._output_bytes = 0
        self._reserved_bytes = 0
        self._active_ms = context.services.clock.real_monotonic_ms()
        self._turn_end_ms = 0
        self._sent_bytes = 0
        self._waiting: deque[InFlightRequest] = deque()
        """Requests that were admitted and are to be answered in this order. The first of them waits
        for something, those behind it perhaps only for the first; all others are in the framer."""
        self._failure: MalformedMessage | CloseConnection | None = None
        """Of a request behind them."""
        self._muted_until_s = 0.0
        """Until then (trio's time) nothing is read: the client has used more than its quota."""
        self._is_done = False
        self.can_accept_more = False
        """It may be given more although it is `delayed`: all that came has been admitted."""
        self.buffer = framer.buffer

    async def run(self) -> None:
        """Serve until the client goes, or says what cannot be answered.

        Only an assertion, which means that the broker's own state is wrong, gets out of here.
        """
        is_clients_end = True
        try:
            try:
                await self._serve()
            except Farewell as farewell:  # the operator was told
                await self._flush()
                await self._say(farewell)
            except ClosedOnPurpose as fault:
                logger.debug("closing connection from %s: %s", self._peer, fault)
                is_clients_end = False
            except (MalformedMessage, CloseConnection) as error:
                self._dispatcher.complaints.warning(
                    "closing connection from %s: %s", self._peer, error
                )
                await self._flush()  # what was asked before is answered (rule 9)
        except PeerClosed:
            logger.debug("%s went away while it waited", self._peer)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as reset:
            logger.debug("connection from %s: %s", self._peer, reset)
        except AssertionError:
            raise
        except Exception as failure:
            self._dispatcher.complaints.error("connection from %s", self._peer, error=failure)
        finally:
            self._transport.close()
            for exchange in self._waiting:
                if isinstance(exchange.result, DelayedOperation):
                    exchange.result.close()
            self._budget.release(self._reserved_bytes)
            self._context.services.coordinators.on_disconnect(
                self._context.connection_id,
                by_client=is_clients_end and not self._context.is_held_up,
            )

    @property
    def context(self) -> RequestContext:
        """Context of the connection: its client and its listener."""
        return self._context

    @property
    def waiting(self) -> list[InFlightRequest]:
        """Requests that wait for their answers, in the order in which they came."""
        return list(self._waiting)

    def active_ms(self, now_ms: int) -> int:
        """Return when (monotonic) bytes came, or the client last took some of what is sent.

        The latter is noticed here: `now_ms` is returned where it happened since the last call.
        """
        if self._transport.sent_bytes != self._sent_bytes:
            self._sent_bytes = self._transport.sent_bytes
            self._active_ms = now_ms
        return self._active_ms

    @property
    def is_busy(self) -> bool:
        """Whether a request is waiting for its answer, or the client is made to wait."""
        is_waited_for = bool(self._waiting) or self._muted_until_s > 0
        return is_waited_for and not self._transport.is_sending

    @property
    def delayed(self) -> DelayedOperation[Any] | None:
        """Operation that the first waiting request waits for, if that needs no task."""
        if self._waiting and isinstance(self._waiting[0].result, DelayedOperation):
            return self._waiting[0].result
        return None

    @property
    def _peer(self) -> str:
        host, port = self._context.peer_address
        return f"{host}:{port} (client id {self._context.client_id!r})"

    def received(self, count: int) -> bool:
        """Answer the requests that are complete with `count` more bytes; 0 is the end of them.

        Returns:
            True if every complete request was answered; `take_output` has the answers, and reading
            may go on. False if something has to be awaited: the connection's task does the rest.
        """
        self._framer.received(count)
        if not count:
            self._is_done = True
            return False
        self._begin_turn()
        return self._go_on()

    def on_ready(self) -> bool:
        """Answer requests that wait, as far as what they wait for is there, and those behind them.

        Returns:
            As `received`; not so either while there is still something to wait for.
        """
        self._begin_turn()
        self._collect()
        return self._go_on()

    def take_output(self) -> list[Chunk]:
        """Return the answers gathered so far, and forget them."""
        output, self._output, self._output_bytes = self._output, [], 0
        return output

    def _begin_turn(self) -> None:
        context, clock = self._context, self._context.services.clock
        context.now_ms = clock.wall_ms()
        self._active_ms = clock.real_monotonic_ms()
        self._turn_end_ms = self._active_ms + TURN_MAX_MS

    async def _serve(self) -> None:
        """Wait for what `received` could not: then the transport may go on giving turns."""
        while not self._is_done:
            await self._transport.serve(self)
            is_answered = False
            while not (is_answered or self._is_done):
                await self._flush()
                if self._waiting:
                    await self._finish(self._waiting[0])
                elif self._muted_until_s:
                    await self._stay_muted()
                else:
                    await trio.lowlevel.checkpoint()  # others have their turn
                if not self._waiting and not self._reserve_now():
                    await self._flush()
                    await self._budget.reserve(self._framer.large_frame_bytes)
                    self._reserved_bytes = self._framer.large_frame_bytes
                self._begin_turn()
                is_answered = self._answer()
            await self._flush()

    def _go_on(self) -> bool:
        """Answer requests; whether all are, and more may be received."""
        while not self._answer():
            # One that is admitted may complete those before it, which nobody would be told of.
            if len(self._waiting) > 1 and self._collect():
                continue
            self.can_accept_more = self.can_accept_more and self._reserve_now()
            return False
        return self._reserve_now()

    def _collect(self) -> bool:
        """Answer those that wait as far as they are complete, in their order; whether any is."""
        count = len(self._waiting)
        while self._waiting and self._is_complete(self._waiting[0]):
            self._put(self._waiting.popleft())
        return len(self._waiting) < count

    def _answer(self) -> bool:
        """Answer requests in their order; False if more must be done than one turn allows."""
        framer, dispatcher, context = self._framer, self._dispatcher, self._context
        waiting = self._waiting
        self.can_accept_more = False
        if self._failure is not None and not waiting:
            raise self._failure
        if self._muted_until_s:
            return False
        while not waiting or self._allows_pipelining(waiting[-1]):
            try:
                frame = framer.next_frame()
                if frame is None:
                    self.can_accept_more = bool(waiting)
                    return not waiting
                exchange = dispatcher.handle(frame, context)
            except (MalformedMessage, CloseConnection) as error:
                if not waiting:
                    raise
                self._failure = error  # what was asked before is answered (rule 9)
                return False
            if waiting or isinstance(exchange.result, Deferred):
                if dispatcher.is_watched:
                    exchange.handled_s = perf_counter()
                waiting.append(exchange)
                continue
            self._put(exchange)
            if self._muted_until_s:
                return False
            if framer.is_empty:
                return True
            if self._output_bytes >= OUTPUT_MAX_BYTES:
                return False
            if context.services.clock.real_monotonic_ms() >= self._turn_end_ms:
                return False
        return False

    def _allows_pipelining(self, last: InFlightRequest) -> bool:
        """Whether the next request may be admitted although `last` has not been answered."""
        result = last.result
        if not isinstance(result, DelayedOperation) or not result.allows_pipelining:
            return False
        if len(self._waiting) >= DELAYED_MAX or self._failure is not None:
            return False
        key = self._framer.next_api_key()
        return key is None or key == last.handler.api.key

    def _is_complete(self, exchange: InFlightRequest) -> bool:
        """Take over the response to a request that waits, if there is one by now."""
        delayed = exchange.result
        if not isinstance(delayed, DelayedOperation):
            return not isinstance(delayed, Deferred)
        try:
            response = delayed.complete()
        except (AssertionError, CloseConnection):
            raise
        except Exception as error:
            delayed.close()
            response = self._dispatcher.refuse(exchange, error, self._context)
        if response is None:
            return False
        exchange.result = response
        return True

    def _put(self, exchange: InFlightRequest) -> None:
        dispatcher = self._dispatcher
        if not dispatcher.is_watched:
            chunks = dispatcher.encode(exchange)
        elif dispatcher.notes is not None and exchange.handler.is_plain:
            exchange.chunks = chunks = dispatcher.encode(exchange)
            exchange.end_s = perf_counter()
            exchange.context = context = self._context
            exchange.at_ms = context.now_ms
            dispatcher.notes.append(exchange)
        else:
            chunks = self._encode_watched(exchange)
        self._output += chunks
        for chunk in chunks:
            self._output_bytes += len(chunk)

    def _encode_watched(self, exchange: InFlightRequest) -> list[Chunk]:
        dispatcher = self._dispatcher
        throttle = dispatcher.throttle
        if throttle is None:
            chunks = dispatcher.encode(exchange)
        else:
            chunks, throttle_ms = throttle.encode(exchange, self._context, dispatcher.encode)
            if throttle_ms:
                until_s = trio.current_time() + throttle_ms / 1_000
                self._muted_until_s = max(self._muted_until_s, until_s)
        on_answered = dispatcher.on_answered  # mypyc does not call what a property returns
        if on_answered is not None:
            exchange.chunks, exchange.end_s = chunks, perf_counter()
            exchange.context, exchange.at_ms = self._context, self._context.now_ms
            on_answered(exchange)
        return chunks

    async def _stay_muted(self) -> None:
        """Read nothing of a client that used more than its quota (rule 563), unless it goes away.

        Raises:
            PeerClosed: it did.
        """
        await self._transport.while_connected(partial(trio.sleep_until, self._muted_until_s))
        self._muted_until_s = 0.0

    async def _say(self, farewell: Farewell) -> None:
        """Send the last answer, after the time that a refused login is to take (rule 524)."""
        config = self._context.services.config
        await trio.sleep(config.int("connection.failed.authentication.delay.ms") / 1000)
        if farewell.exchange is not None:
            self._put(farewell.exchange)
        await self._flush()

    async def _flush(self) -> None:
        """Send the answers gathered so far."""
        if self._output:
            await self._transport.send(self.take_output())

    def _reserve_now(self) -> bool:
        """Count the frame in progress against the budget; False if that must be waited for.

        A frame with a buffer of its own counts from when its size is known until it is answered.
        It counts whole from the beginning: frames that wait for memory with half of them here could
        all wait for each other.
        """
        wanted_bytes = self._framer.large_frame_bytes
        if wanted_bytes == self._reserved_bytes:
            return True
        self._budget.release(self._reserved_bytes)
        self._reserved_bytes = 0
        if not self._budget.reserve_now(wanted_bytes):
            return False
        self._reserved_bytes = wanted_bytes
        return True

    async def _finish(self, exchange: InFlightRequest) -> None:
        """Wait for the first request's response, unless the client goes away first.

        Raises:
            PeerClosed: there is nobody to answer any more; the wait was cancelled.
        """
        if isinstance(exchange.result, Deferred):
            try:
                wait = exchange.result.wait
                if isinstance(exchange.result, InSteps):
                    wait = partial(_encoded, exchange, wait)
                exchange.result = await self._transport.while_connected(wait)
            except (AssertionError, CloseConnection, PeerClosed):
                raise
            except Exception as error:
                exchange.result = self._dispatcher.refuse(exchange, error, self._context)
        self._waiting.popleft()
        self._begin_turn()
        if isinstance(exchange.result, PlayedAnswer):
            await self._play(exchange.result)
        else:
            self._put(exchange)
            self._dispatcher.bound_notes()

    async def _play(self, answer: PlayedAnswer) -> None:
        """Send what a fault rule makes of an answer.

        Raises:
            ClosedOnPurpose: the connection is to end with it.
        """
        await self._flush()
        for number, piece in enumerate(answer.pieces):
            if number:
                await trio.sleep(answer.pause_s)
            await self._transport.send([piece])
        if answer.closes:
            if answer.resets:
                self._transport.reset_on_close()
            raise ClosedOnPurpose("a fault rule wants it")


async def _encoded(exchange: InFlightRequest, wait: Callable[[], Awaitable[object]]) -> object:
    return await encoded(exchange, await wait())
