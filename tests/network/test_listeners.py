"""Sockets that clients connect to: which ports, how many clients, and for how long."""

import socket
from dataclasses import replace
from types import SimpleNamespace

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.api import HANDLERS
from kafkalite.config.listeners import Listener
from kafkalite.network import sockets
from kafkalite.network.dispatch import Dispatcher
from kafkalite.network.listeners import BindError, ConnectionServer
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from tests.raw_client import encoded, framed

ASK = framed(encoded(API_VERSIONS, 0, ApiVersionsRequest()))
IDLE_MS = 600_000


class Config:
    """The settings that a ConnectionServer reads."""

    def __init__(self, **settings):
        self.values = {
            "socket.request.max.bytes": 1_000,
            "connections.max.idle.ms": IDLE_MS,
            "queued.max.request.bytes": -1,
            "max.connections": 100,
            "max.connections.per.ip": 100,
            "max.connections.per.ip.overrides": "",
            **settings,
        }

    def int(self, name):
        return self.values[name]

    def str(self, name):
        return self.values[name]


class TrioClock:
    """Shows trio's time, which tests wind on."""

    def monotonic_ms(self):
        return int(trio.current_time() * 1_000)

    wall_ms = real_monotonic_ms = monotonic_ms


@pytest.fixture(params=[True, False], ids=["epoll", "no epoll"])
async def make_server(request, monkeypatch):
    monkeypatch.setattr(sockets, "HAS_EPOLL", sockets.HAS_EPOLL and request.param)

    def make(**settings):
        disconnected = []
        services = SimpleNamespace(
            config=Config(**settings),
            clock=TrioClock(),
            coordinators=SimpleNamespace(
                on_disconnect=lambda connection, by_client: disconnected.append(connection)
            ),
        )
        server = ConnectionServer(services, Dispatcher(HANDLERS))
        server.disconnected = disconnected
        made.append(server)
        return server

    made = []
    yield make
    for server in made:
        server.close()


def listener(host="127.0.0.1", port=0, name="PLAINTEXT"):
    return Listener(name=name, host=host, port=port)


async def connect(port, host="127.0.0.1"):
    return await trio.open_tcp_stream(host, port)


async def is_served(stream):
    await stream.send_all(ASK)
    return len(await stream.receive_some(4)) == 4


class TestBinding:
    async def test_each_listener_gets_a_port_of_its_own(self, make_server):
        server = make_server()
        ports = await server.bind([listener(name="IN"), listener(name="OUT", host="localhost")])
        assert sorted(ports) == ["IN", "OUT"]
        assert ports["IN"] != ports["OUT"]

    async def test_any_free_port_is_the_same_on_all_interfaces(self, make_server):
        """IPv4 and IPv6 are two sockets, and clients are told one port."""
        server = make_server()
        port = (await server.bind([listener(host="")]))["PLAINTEXT"]
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            addresses = ["127.0.0.1", "::1"] if socket.has_dualstack_ipv6() else ["127.0.0.1"]
            for address in addresses:
                async with await connect(port, address) as stream:
                    assert await is_served(stream)
            nursery.cancel_scope.cancel()

    async def test_any_free_port_is_looked_for_again_where_one_interface_has_it_taken(
        self, make_server, monkeypatch
    ):
        real, refusals = trio.open_tcp_listeners, [OSError("taken")]

        async def open_tcp_listeners(port, **options):
            if port and refusals:
                raise refusals.pop()
            return await real(port, **options)

        monkeypatch.setattr(trio, "open_tcp_listeners", open_tcp_listeners)
        server = make_server()
        assert (await server.bind([listener(host="")]))["PLAINTEXT"] > 0

    async def test_taken_address_is_named_and_others_are_given_back(self, make_server):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            server = make_server()
            with pytest.raises(BindError, match=rf"^listeners: .*127\.0\.0\.1:{port}: .*in use"):
                await server.bind([listener(name="A"), listener(name="B", port=port)])
        assert server.acceptors == {}

    async def test_unknown_host_is_named(self, make_server):
        with pytest.raises(BindError, match=r"no\.such\.host\.invalid:0"):
            await make_server().bind([listener(host="no.such.host.invalid")])

    async def test_cancelled_it_gives_everything_back(self, make_server):
        server = make_server()
        with trio.CancelScope() as scope:
            scope.cancel()
            await server.bind([listener(), listener(name="B")])
        assert scope.cancelled_caught
        assert server.acceptors == {}


async def test_connection_is_served_and_forgotten(make_server):
    server = make_server()
    port = (await server.bind([listener()]))["PLAINTEXT"]
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with await connect(port) as stream:
            assert await is_served(stream)
            assert server.disconnected == []
        await wait_all_tasks_blocked()
        assert server.disconnected == [1]
        nursery.cancel_scope.cancel()


async def test_cancelled_server_closes_listeners_and_connections(make_server):
    server = make_server()
    port = (await server.bind([listener()]))["PLAINTEXT"]
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        stream = await connect(port)
        assert await is_served(stream)
        nursery.cancel_scope.cancel()
    assert server.disconnected == [1]
    with trio.fail_after(5):
        while await stream.receive_some():
            pass
    await stream.aclose()
    with pytest.raises(OSError, match=r"refused|all attempts"):
        await connect(port)


class TestLimits:
    @pytest.mark.parametrize("name", ["max.connections", "max.connections.per.ip"])
    async def test_one_client_too_many_is_turned_away(self, make_server, caplog, name):
        server = make_server(**{name: 2})
        port = (await server.bind([listener()]))["PLAINTEXT"]
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            first, second = await connect(port), await connect(port)
            assert await is_served(first)
            assert await is_served(second)
            third = await connect(port)
            assert await third.receive_some() == b""
            assert "too many connections" in caplog.text
            assert await is_served(first)
            await second.aclose()
            await wait_all_tasks_blocked()
            fourth = await connect(port)
            assert await is_served(fourth)
            for stream in (first, third, fourth):
                await stream.aclose()
            nursery.cancel_scope.cancel()

    async def test_brokers_with_a_listener_of_their_own_are_not_kept_out(self, make_server):
        """KIP-402."""
        server = make_server(**{"max.connections": 0})
        inside, outside = listener(name="IN"), replace(listener(), is_inter_broker=False)
        await server.bind([inside])
        assert not server._admits("10.0.0.1", inside)
        await server.bind([outside])
        assert server._admits("10.0.0.1", inside)
        assert not server._admits("10.0.0.1", outside)

    async def test_connections_from_elsewhere_do_not_count_for_an_address(self, make_server):
        server = make_server(**{"max.connections.per.ip": 1})
        server._open = dict.fromkeys(range(1_000, 1_005), (None, "10.0.0.1", None))
        assert server._admits("10.0.0.2", listener())
        assert not server._admits("10.0.0.1", listener())

    async def test_addresses_may_have_limits_of_their_own(self, make_server):
        overrides = "10.0.0.1:1, ::1:0"
        server = make_server(**{"max.connections.per.ip.overrides": overrides})
        server._open = {1: (None, "10.0.0.1", None)}
        assert not server._admits("10.0.0.1", listener())
        assert not server._admits("::1", listener())
        assert server._admits("10.0.0.2", listener())

    async def test_limits_may_change_while_it_runs(self, make_server):
        server = make_server(**{"max.connections": 0})
        assert not server._admits("10.0.0.1", listener())
        server._services.config.values["max.connections"] = 1
        assert server._admits("10.0.0.1", listener())


class TestIdleConnections:
    """Rule 15. Real sockets, and a clock that jumps when nothing else is left to do."""

    async def test_silent_connection_is_closed(self, make_server, autojump_clock):
        server = make_server()
        port = (await server.bind([listener()]))["PLAINTEXT"]
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with await connect(port) as stream:
                assert await is_served(stream)
                served = trio.current_time()
                while await stream.receive_some():
                    pass
                waited = trio.current_time() - served
            nursery.cancel_scope.cancel()
        assert IDLE_MS / 1_000 <= waited <= IDLE_MS / 1_000 * 1.5

    async def test_reader_that_takes_nothing_is_closed(self, make_server, autojump_clock):
        """What it was to get is held in memory no longer."""
        server = make_server()
        port = (await server.bind([listener()]))["PLAINTEXT"]
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            stream = await connect(port)
            with trio.move_on_after(1):
                while True:
                    await stream.send_all(ASK * 100)
            await trio.sleep(2 * IDLE_MS / 1_000)
            assert server.disconnected == [1]
            await stream.aclose()
            nursery.cancel_scope.cancel()

    async def test_connection_whose_request_waits_is_not_idle(self, make_server, autojump_clock):
        server = make_server()
        scope = trio.CancelScope()
        waiting = SimpleNamespace(active_ms=lambda now_ms: 0, is_busy=True)
        server._open[7] = (waiting, "10.0.0.1", scope)
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            await trio.sleep(3 * IDLE_MS / 1_000)
            assert not scope.cancel_called
            waiting.is_busy = False
            await trio.sleep(IDLE_MS / 1_000)
            assert scope.cancel_called
            nursery.cancel_scope.cancel()
        del server._open[7]

    async def test_no_limit_lets_connections_live(self, make_server, autojump_clock):
        server = make_server(**{"connections.max.idle.ms": -1})
        port = (await server.bind([listener()]))["PLAINTEXT"]
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with await connect(port) as stream:
                assert await is_served(stream)
                await trio.sleep(100 * IDLE_MS / 1_000)
                assert await is_served(stream)
            nursery.cancel_scope.cancel()
