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
        self.last_active_ms = context.now_ms
        """Wall clock of the last byte or answer; who closes idle connections reads it."""
        self.is_busy = False
        """A request is waiting for its answer."""

    async def run(self) -> None:
        """Serve until the client goes, or says what cannot be answered.

        Only an assertion, which means that the broker's own state is wrong, gets out of here.
        """
        try:
            await self._serve()
        except (MalformedMessage, CloseConnection) as error:
            logger.warning("closing connection from %s: %s", self._peer, error)
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

    @property
    def _peer(self) -> str:
        host, port = self._context.peer_address
        return f"{host}:{port} (client id {self._context.client_id!r})"

    async def _serve(self) -> None:
        context, clock = self._context, self._context.services.clock
        next_frame, admit = self._framer.next_frame, self._dispatcher.admit
        while True:
            frame = next_frame()
            if frame is None:
                await self._flush()
                if not await self._receive():
                    return
                context.now_ms = self.last_active_ms = clock.wall_ms()
                continue
            exchange = admit(frame, context)
            if isinstance(exchange.result, Pending):
                await self._flush()
                await self._finish(exchange, exchange.result)
                context.now_ms = self.last_active_ms = clock.wall_ms()
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

        A frame of its own buffer counts against the budget from when it begins to fill until the
        next is read, which is after its answer left.
        """
        framer = self._framer
        if framer.held_bytes != self._reserved_bytes:
            self._budget.release(self._reserved_bytes)
            self._reserved_bytes = 0
            await self._budget.reserve(framer.held_bytes)
            self._reserved_bytes = framer.held_bytes
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
        if await self._transport.wait_peer_closed():
            waiting.cancel()
