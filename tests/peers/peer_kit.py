"""Brokers to be asked over loopback: one that behaves, and one that does what a test says."""

from contextlib import asynccontextmanager
from itertools import count
from types import SimpleNamespace

import trio

from kafkalite.api import api_versions
from kafkalite.api.handler import Handler
from kafkalite.api.table import Entry
from kafkalite.config.listeners import Listener
from kafkalite.meta.image import BrokerImage, Image
from kafkalite.network.dispatch import Dispatcher
from kafkalite.network.listeners import ConnectionServer
from kafkalite.network.sockets import TcpNetwork
from kafkalite.peers.clients import PeerClients, PeerSettings
from kafkalite.wire.framing import Framer
from kafkalite.wire.header import decode_request_header
from kafkalite.wire.messages.heartbeat import HEARTBEAT, HeartbeatResponse

SETTINGS = {
    "socket.request.max.bytes": 1_000_000,
    "connections.max.idle.ms": 600_000,
    "queued.max.request.bytes": -1,
    "max.connections": 100,
    "max.connections.per.ip": 100,
    "max.connections.per.ip.overrides": "",
}


class TrioClock:
    """Shows trio's time, which tests wind on."""

    def monotonic_ms(self):
        return int(trio.current_time() * 1_000)

    wall_ms = real_monotonic_ms = monotonic_ms


class Cluster:
    """What the metadata say, for `PeerClients` and `ControllerClient`."""

    def __init__(self):
        self.image = Image()
        self.subscribers = []

    def set(self, *, controller_id=None, **brokers):
        """Place brokers: b1=port; a port of None takes the broker away."""
        known = dict(self.image.brokers)
        for name, port in brokers.items():
            broker_id = int(name[1:])
            known.pop(broker_id, None)
            if port is not None:
                known[broker_id] = BrokerImage(
                    broker_id=broker_id, endpoints={"PLAINTEXT": ("", port)}
                )
        if controller_id is None:
            controller_id = self.image.controller_id
        self.image = Image(brokers=known, controller_id=controller_id)
        for subscriber in self.subscribers:
            subscriber([], self.image)

    @asynccontextmanager
    async def peers(self, network=None, **settings):
        settings = PeerSettings(listener="PLAINTEXT", client_id="broker-9", **settings)
        peers = PeerClients(network or TcpNetwork(), lambda: self.image, settings=settings)
        self.subscribers.append(peers.on_changes)
        try:
            yield peers
        finally:
            peers.close()


def with_versions(handlers):
    """Return the handlers and one of ApiVersions that tells of them."""
    return [*handlers, api_versions.advertising(map(Entry.of, handlers))]


def heartbeat(handle):
    """Return handlers of ApiVersions and of a Heartbeat that `handle` answers."""

    def refuse(request, error, context):
        return HeartbeatResponse(error_code=error.code)

    return with_versions([Handler(HEARTBEAT, handle, refuse)])


@asynccontextmanager
async def broker(handlers, *, forward=None, **services):
    """Run a connection server for these handlers; gives its port."""
    services = SimpleNamespace(
        authorizer=None,
        quotas=None,
        config=SimpleNamespace(int=SETTINGS.__getitem__, str=SETTINGS.__getitem__),
        clock=TrioClock(),
        coordinators=SimpleNamespace(on_disconnect=lambda connection_id, by_client: None),
        **services,
    )
    server = ConnectionServer(services, Dispatcher(handlers, forward=forward))
    listener = Listener(name="PLAINTEXT", host="127.0.0.1", port=0)
    port = (await server.bind([listener]))["PLAINTEXT"]
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        yield port
        nursery.cancel_scope.cancel()


CLOSE = None
"""What a strange broker sends when it closes."""


@asynccontextmanager
async def strange_broker(behave):
    """Run a server that sends what `behave(header, number of the connection)` lists."""
    acceptor = await TcpNetwork().listen("127.0.0.1", 0)
    numbers = count(1)

    async def serve(transport):
        framer, number = Framer(1_000_000), next(numbers)
        try:
            while size := await transport.receive_into(framer.buffer()):
                framer.received(size)
                while (frame := framer.next_frame()) is not None:
                    for chunk in behave(decode_request_header(frame)[0], number):
                        if chunk is CLOSE:
                            return
                        await transport.send([chunk])
        except OSError:
            pass
        finally:
            transport.close()

    async with trio.open_nursery() as nursery:
        await nursery.start(acceptor.run, serve)
        yield acceptor.port
        nursery.cancel_scope.cancel()
