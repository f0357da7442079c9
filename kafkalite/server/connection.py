"""One client's connection: its requests are served strictly one after another (rule 9)."""

import logging

import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import CloseConnection, Pending
from kafkalite.server.budget import MemoryBudget
from kafkalite.server.dispatch import Dispatcher, Exchange
from kafkalite.server.transport import Chunk, Transport
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.framing import Framer

logger = logging.getLogger("kafkalite.server")

OUTPUT_MAX_BYTES = 256 * 1024
"""Answers to pipelined requests are gathered up to here before they are sent together."""

TURN_MAX_MS = 10
"""A connection whose requests came together lets others have their turn after so long."""


class PeerClosed(Exception):
    """The client closed while its request was waiting."""


class Connection:
    """Reads frames, has them answered, sends the answers in order.

    Kafka takes a connection's next request when the answer to the one before has left; so does
    this, which makes order a matter of course. Requests that arrived together are answered
    together in one send.
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
        self._active_ms = context.services.clock.monotonic_ms()
        self._sent_bytes = 0
        self.is_busy = False
        """A request is waiting for its answer."""

    async def run(self) -> None:
        """Serve until the client goes, or says what cannot be answered.

        Only an assertion, which means that the broker's own state is wrong, gets out of here.
        """
        try:
            try:
                await self._serve()
            except (MalformedMessage, CloseConnection) as error:
                logger.warning("closing connection from %s: %s", self._peer, error)
                await self._flush()  # what was asked before is answered (rule 9)
        except PeerClosed:
            logger.debug("%s went away while it waited", self._peer)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            logger.debug("connection from %s: %s", self._peer, error)
        except AssertionError:
            raise
        except Exception:
            logger.exception("connection from %s", self._peer)
        finally:
            self._transport.close()
            self._budget.release(self._reserved_bytes)
            self._context.services.groups.on_disconnect(self._context.connection_id)

    def active_ms(self, now_ms: int) -> int:
        """Return when (monotonic) bytes came, or the client last took some of what is sent.

        The latter is noticed here: `now_ms` is returned where it happened since the last call.
        """
        if self._transport.sent_bytes != self._sent_bytes:
            self._sent_bytes = self._transport.sent_bytes
            self._active_ms = now_ms
        return self._active_ms

    @property
    def _peer(self) -> str:
        host, port = self._context.peer_address
        return f"{host}:{port} (client id {self._context.client_id!r})"

    async def _serve(self) -> None:
        context, clock = self._context, self._context.services.clock
        next_frame, admit = self._framer.next_frame, self._dispatcher.admit
        turn_end_ms = 0
        while True:
            frame = next_frame()
            if frame is None:
                await self._flush()
                if not await self._receive():
                    return
                context.now_ms = clock.wall_ms()
                self._active_ms = clock.monotonic_ms()
                turn_end_ms = self._active_ms + TURN_MAX_MS
                continue
            if clock.monotonic_ms() >= turn_end_ms:
                await self._flush()
                await trio.lowlevel.checkpoint()
                turn_end_ms = clock.monotonic_ms() + TURN_MAX_MS
            exchange = admit(frame, context)
            if isinstance(exchange.result, Pending):
                await self._flush()
                await self._finish(exchange, exchange.result)
                context.now_ms = clock.wall_ms()
                self._active_ms = clock.monotonic_ms()
            chunks = self._dispatcher.encode(exchange)
            self._output += chunks
            self._output_bytes += sum(map(len, chunks))
            if self._output_bytes >= OUTPUT_MAX_BYTES:
                await self._flush()

    async def _flush(self) -> None:
        """Send the answers gathered so far."""
        if self._output:
            output, self._output, self._output_bytes = self._output, [], 0
            await self._transport.send(output)

    async def _receive(self) -> bool:
        """Read more bytes into the framer; False when the client is done.

        A frame with a buffer of its own counts against the budget from when its size is known
        until the next is read, which is after its answer left. It counts whole from the beginning:
        frames that wait for memory with half of them here could all wait for each other.
        """
        framer = self._framer
        wanted_bytes = framer.large_frame_bytes
        if wanted_bytes != self._reserved_bytes:
            self._budget.release(self._reserved_bytes)
            self._reserved_bytes = 0
            await self._budget.reserve(wanted_bytes)
            self._reserved_bytes = wanted_bytes
        count = await self._transport.receive_into(framer.buffer())
        framer.received(count)
        return count > 0

    async def _finish(self, exchange: Exchange, pending: Pending) -> None:
        """Wait for a response, unless the client goes away first.

        Raises:
            PeerClosed: there is nobody to answer any more; the wait was cancelled.
        """
        failure: Exception | None = None
        self.is_busy = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch_peer, nursery.cancel_scope)
            try:
                exchange.result = await pending.wait()
            except Exception as error:
                failure = error
            nursery.cancel_scope.cancel()
        self.is_busy = False
        if isinstance(failure, AssertionError | CloseConnection):
            raise failure
        if failure is not None:
            exchange.result = self._dispatcher.refuse(exchange, failure, self._context)
        elif exchange.result is pending:
            raise PeerClosed

    async def _watch_peer(self, waiting: trio.CancelScope) -> None:
        await self._transport.wait_peer_closed()
        waiting.cancel()
