"""Many clients' sockets in one task: who has a turn when, and who waits for what."""

import contextlib
import os
import socket
import time

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.network import poller as poller_module
from kafkalite.network.poller import HAS_EPOLL, Poller, ReadyQueue
from kafkalite.network.transport import PeerClosed

pytestmark = pytest.mark.skipif(not HAS_EPOLL, reason="epoll is Linux's")

LARGE = 8 << 20
"""More than the buffers of two sockets hold."""


class Echo:
    """Sends back what it gets; a word of it may mean something else."""

    delayed = None
    can_accept_more = False

    def __init__(self, log=None, name=None):
        self.data = bytearray(4096)
        self.output = []
        self.log = [] if log is None else log
        self.name = name

    def buffer(self):
        return memoryview(self.data)

    def received(self, count):
        words = bytes(self.data[:count])
        self.log.append(("got", self.name, words))
        if words == b"fail":
            raise ValueError(words)
        if words == b"large":
            words = bytes(LARGE)
        self.output.append(words)
        return bool(count) and words != b"slow"

    def take_output(self):
        output, self.output = self.output, []
        self.log.append(("sent", self.name))
        return output


@contextlib.contextmanager
def looked_after(poller):
    """Makes (client, transport) pairs whose turns come from a poller."""
    made = []

    def make():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = socket.create_connection(listener.getsockname())
            server, peer = listener.accept()
            while peer != client.getsockname():  # somebody else, who had this port in mind
                server.close()
                server, peer = listener.accept()
        server.setblocking(False)
        client.setblocking(False)
        transport = poller.add(server)
        made.append((client, transport))
        return trio.socket.from_stdlib_socket(client), transport

    yield make
    for client, transport in made:
        client.close()
        transport.close()


@pytest.fixture
async def served(nursery):
    """Makes (client, transport) pairs whose turns come from one poller."""
    poller = Poller()
    nursery.start_soon(poller.run)
    with looked_after(poller) as make:
        yield make
    nursery.cancel_scope.cancel()
    poller.close()


async def test_client_is_served_again_and_again(served, nursery):
    client, transport = served()
    nursery.start_soon(transport.serve, Echo())
    for word in (b"one", b"two"):
        await client.send(word)
        assert await client.recv(10) == word
    assert transport.sent_bytes == 6


async def test_answers_leave_when_all_who_were_ready_had_their_turn(served, nursery, monkeypatch):
    monkeypatch.setattr(poller_module, "TURNS_MAX_S", 10.0)
    log, clients = [], []
    for name in "abc":
        client, transport = served()
        clients.append(client)
        nursery.start_soon(transport.serve, Echo(log, name))
    await wait_all_tasks_blocked()
    for client in clients:
        os.write(client.fileno(), b"hello")
    await wait_all_tasks_blocked()
    assert [what for what, *_ in log] == ["got"] * 3 + ["sent"] * 3


async def test_pauses_are_told_of_when_the_answers_have_left():
    log, woken = [], ReadyQueue()
    poller = Poller(woken)
    woken.on_pause = lambda: log.append(("pause",))
    with looked_after(poller) as make:
        client, transport = make()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.run)
            nursery.start_soon(transport.serve, Echo(log, "a"))
            await client.send(b"hello")
            assert await client.recv(10) == b"hello"
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    poller.close()
    kinds = [what for what, *_ in log]
    got = kinds.index("got")
    assert kinds[got : got + 3] == ["got", "sent", "pause"]


async def test_turn_that_is_not_complete_is_left_to_the_task(served):
    """Its output too: it is not all there yet."""
    client, transport = served()
    echo = Echo()
    await client.send(b"slow")
    await transport.serve(echo)
    assert echo.output == [b"slow"]
    await client.send(b"more")
    await wait_all_tasks_blocked()
    assert echo.output == [b"slow"]


async def test_end_of_the_stream_is_a_turn(served):
    client, transport = served()
    echo = Echo()
    client.close()
    await transport.serve(echo)
    assert echo.log == [("got", None, b"")]


async def test_failure_is_raised_in_the_task_of_its_connection(served, nursery):
    good, transport = served()
    nursery.start_soon(transport.serve, Echo())
    bad, transport = served()
    await bad.send(b"fail")
    with pytest.raises(ValueError, match="fail"):
        await transport.serve(Echo())
    await good.send(b"word")
    assert await good.recv(10) == b"word"


@pytest.mark.parametrize("when", ["before its turn", "before its answer"])
async def test_lost_connection_is_an_error_of_its_own(served, when):
    client, transport = served()
    echo = Echo()
    if when == "before its answer":
        echo.take_output = lambda: [transport._socket.shutdown(socket.SHUT_WR) or b"x"]
        await client.send(b"hello")
    else:
        reset(client)
    with pytest.raises(ConnectionError):
        await transport.serve(echo)


def reset(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()


async def test_reader_that_is_slow_keeps_nobody_waiting(served, nursery):
    slow, transport = served()
    nursery.start_soon(transport.serve, Echo())
    await slow.send(b"large")
    quick, transport = served()
    nursery.start_soon(transport.serve, Echo())
    await wait_all_tasks_blocked()
    await quick.send(b"word")
    assert await quick.recv(10) == b"word"
    left = LARGE
    while left:
        left -= len(await slow.recv(left))
    await slow.send(b"next")
    assert await slow.recv(10) == b"next"


async def test_more_clients_than_fit_a_pass_all_have_their_turn(served, nursery, monkeypatch):
    monkeypatch.setattr(poller_module, "PASS_MAX_CONNECTIONS", 2)
    clients = []
    for _ in range(5):
        client, transport = served()
        nursery.start_soon(transport.serve, Echo())
        clients.append(client)
        await client.send(b"word")
    for client in clients:
        assert await client.recv(10) == b"word"


async def test_other_tasks_have_their_turn_too(served, nursery, monkeypatch):
    """Also while a client answers each answer at once."""
    client, transport = served()
    others_turn = []

    class Endless(Echo):
        def take_output(self):
            time.sleep(0.001)
            client_socket.send(b"again")
            return super().take_output()

        def received(self, count):
            self.log.append(len(others_turn))
            self.output = []
            return len(self.log) < 20

    client_socket = socket.socket(fileno=client.fileno())
    monkeypatch.setattr(poller_module, "TURNS_MAX_S", 0.002)

    async def other():
        while True:
            others_turn.append(None)
            await trio.lowlevel.checkpoint()

    nursery.start_soon(other)
    endless = Endless()
    await client.send(b"word")
    await transport.serve(endless)
    client_socket.detach()
    assert len(set(endless.log)) > 3


class TestStayingAwake:
    """Clients that ask again at once are not slept for, all others are."""

    ROUNDS = 20

    @pytest.fixture
    def sleeps(self, monkeypatch):
        """Plays some rounds with a client; returns how often the poller went to sleep."""

        async def play(*, soon_s=10.0, awake_s=10.0, has_cores=True, stays_awake=True):
            monkeypatch.setattr(poller_module, "SOON_S", soon_s)
            monkeypatch.setattr(poller_module, "AWAKE_S", awake_s)
            monkeypatch.setattr(poller_module, "HAS_CORES", has_cores)
            count = 0
            wait = trio.lowlevel.wait_readable

            async def counted(what):
                nonlocal count
                count += isinstance(what, int)  # clients wait with sockets
                await wait(what)

            monkeypatch.setattr(trio.lowlevel, "wait_readable", counted)
            poller = Poller(stays_awake=stays_awake)
            with looked_after(poller) as make:
                client, transport = make()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(poller.run)
                    nursery.start_soon(transport.serve, Echo())
                    for _ in range(self.ROUNDS):
                        await client.send(b"ping")
                        assert await client.recv(10) == b"ping"
                    nursery.cancel_scope.cancel()
            poller.close()
            return count

        return play

    async def test_quick_client_is_waited_for_awake(self, sleeps):
        assert await sleeps() < 4

    @pytest.mark.parametrize(
        "limits",
        [{"soon_s": 0.0}, {"awake_s": 0.0}, {"has_cores": False}, {"stays_awake": False}],
        ids=str,
    )
    async def test_others_are_slept_for(self, sleeps, limits):
        """Who takes longer, as it did before or as it does now, and who needs the processor."""
        assert await sleeps(**limits) > self.ROUNDS / 2


class TestWhileARequestWaits:
    async def test_its_answer_is_returned(self, served):
        _, transport = served()

        async def wait():
            await trio.lowlevel.checkpoint()
            return "answer"

        assert await transport.while_connected(wait) == "answer"

    @pytest.mark.parametrize("unread", [b"", b"asked since"])
    async def test_it_ends_when_the_client_goes(self, served, nursery, unread):
        """Behind bytes that nobody reads, too, and at once."""
        client, transport = served()
        nursery.start_soon(close_soon, client, unread)
        with pytest.raises(PeerClosed), trio.fail_after(1):
            await transport.while_connected(trio.sleep_forever)

    async def test_it_ends_also_when_there_is_no_time_for_more(self, served, nursery, monkeypatch):
        """The kernel tells of it only once."""
        ready, other = served()
        nursery.start_soon(other.serve, Echo())
        client, transport = served()
        monkeypatch.setattr(poller_module, "TURNS_MAX_S", 0.0)

        async def both():
            await wait_all_tasks_blocked()
            os.write(ready.fileno(), b"word")
            client.close()

        nursery.start_soon(both)
        with pytest.raises(PeerClosed), trio.fail_after(1):
            await transport.while_connected(trio.sleep_forever)

    async def test_it_does_not_begin_when_the_client_has_gone(self, served):
        client, transport = served()
        client.close()
        await wait_all_tasks_blocked()
        with pytest.raises(PeerClosed):
            await transport.while_connected(trio.sleep_forever)

    async def test_client_that_goes_on_sending_is_there(self, served, nursery):
        client, transport = served()
        await client.send(b"word")
        echo = Echo()
        with trio.move_on_after(0.01):
            await transport.while_connected(trio.sleep_forever)
        nursery.start_soon(transport.serve, echo)
        assert await client.recv(10) == b"word"


async def close_soon(client, unread):
    await wait_all_tasks_blocked()
    if unread:
        await client.send(unread)
    client.close()


async def test_cancelled_it_has_no_turns_any_more(served):
    client, transport = served()
    echo = Echo()
    with trio.CancelScope() as scope:
        scope.cancel()
        await transport.serve(echo)
    await client.send(b"word")
    await wait_all_tasks_blocked()
    assert echo.log == []
    transport.close()
    transport.close()  # once more does no harm
