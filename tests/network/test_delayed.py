"""Requests that wait for what others do, answered without a task of their own."""

import math

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.deferred import DelayedOperation, Promise
from kafkalite.network import poller as poller_module
from kafkalite.network.poller import HAS_EPOLL, Poller, ReadyQueue
from kafkalite.network.transport import PeerClosed
from tests.network.test_poller import Echo, looked_after

pytestmark = pytest.mark.skipif(not HAS_EPOLL, reason="epoll is Linux's")


class Bell:
    """Rings for all who listen; or is heard of, and has not rung."""

    def __init__(self):
        self.has_rung = False
        self.listeners = []

    def ring(self, *, really=True):
        self.has_rung = really
        for listener in list(self.listeners):
            listener.on_change()


class Delayed(DelayedOperation):
    def __init__(self, bell, timeout_ms=math.inf):
        super().__init__(timeout_ms)
        self.bell = bell
        bell.listeners.append(self)

    def complete(self):
        if self.bell.has_rung:
            return b"rung"
        return b"late" if self.is_late else None

    def close(self):
        if self in self.bell.listeners:
            self.bell.listeners.remove(self)


class PendingAck(Echo):
    """Waits for the bell where it gets `wait`, has had its turn with all else; `ring` rings it."""

    def __init__(self, bell, timeout_ms=math.inf):
        super().__init__()
        self.bell = bell
        self.timeout_ms = timeout_ms

    def received(self, count):
        words = bytes(self.data[:count]).split()
        for word in words:
            if word == b"wait":
                self.delayed = Delayed(self.bell, self.timeout_ms)
                return False
            if word in (b"ring", b"murmur"):
                self.bell.ring(really=word == b"ring")
            self.output.append(word)
        return bool(count)

    def on_ready(self):
        self.log.append("on_ready")
        response = self.delayed.complete()
        if response is None:
            return False
        self.delayed = None
        self.output.append(response)
        return True


@pytest.fixture
def bell():
    return Bell()


@pytest.fixture
async def served(nursery):
    """Makes (client, transport) pairs of two pollers in turn that do one broker's work."""
    woken = ReadyQueue()
    pollers = [Poller(woken), Poller(woken)]
    for poller in pollers:
        nursery.start_soon(poller.run)
    with looked_after(pollers[0]) as one, looked_after(pollers[1]) as other:
        made = iter([one, other] * 100)
        yield lambda: next(made)()
    nursery.cancel_scope.cancel()
    for poller in pollers:
        poller.close()


@pytest.fixture
def play(served, nursery, bell):
    """Attends to a client of its own; returns it, the transport and what serves it."""

    def serve(**options):
        client, transport = served()
        waiter = PendingAck(bell, **options)
        ended = trio.Event()

        async def run():
            await transport.serve(waiter)
            ended.set()

        nursery.start_soon(run)
        return client, transport, waiter, ended

    return serve


async def test_it_is_answered_when_whom_it_waits_for_had_its_turn(play, bell):
    """Its task stays asleep, whichever listener the other came by."""
    waiting = [play() for _ in range(3)]
    for client, *_ in waiting:
        await client.send(b"wait")
    await wait_all_tasks_blocked()
    ringing, *_ = play()
    await ringing.send(b"ring")
    for client, _, waiter, ended in waiting:
        assert await client.recv(10) == b"rung"
        assert waiter.log.count("on_ready") == 1
        assert not ended.is_set()
    assert await ringing.recv(10) == b"ring"


async def test_it_may_wait_again_and_be_served_as_ever(play):
    client, _, waiter, ended = play()
    ringing, *_ = play()
    for _ in range(3):
        await client.send(b"wait")
        await wait_all_tasks_blocked()
        await ringing.send(b"murmur")
        assert await ringing.recv(10) == b"murmur"
        assert waiter.delayed is not None
        await ringing.send(b"ring")
        assert await client.recv(10) == b"rung"
        assert await ringing.recv(10) == b"ring"
        await client.send(b"word")
        assert await client.recv(10) == b"word"
        waiter.bell.has_rung = False
    assert not ended.is_set()


async def test_answers_before_it_are_not_kept_back(play):
    client, *_ = play()
    await client.send(b"one two wait")
    assert await client.recv(10) == b"onetwo"


@pytest.mark.parametrize("unread", [b"", b"more"])
async def test_its_client_may_go(play, unread):
    client, transport, waiter, ended = play()
    await client.send(b"wait")
    await wait_all_tasks_blocked()
    if unread:
        await client.send(unread)
    client.close()
    with trio.fail_after(1):
        await ended.wait()
    with pytest.raises(PeerClosed), trio.fail_after(1):
        await transport.while_connected(waiter.delayed.wait)
    assert not waiter.bell.listeners


async def test_what_comes_meanwhile_is_served_after_it(play, bell):
    client, _, waiter, ended = play()
    ringing, *_ = play()
    for _ in range(3):
        bell.has_rung = False
        await client.send(b"wait")
        await wait_all_tasks_blocked()
        await client.send(b"more")
        await wait_all_tasks_blocked()
        assert waiter.delayed is not None
        await ringing.send(b"ring")
        assert await client.recv(4) == b"rung"
        assert await client.recv(10) == b"more"
        await ringing.recv(10)
    assert not ended.is_set()


@pytest.mark.parametrize("event", ["it rings elsewhere", "it is late"])
async def test_all_else_is_left_to_its_task(play, bell, event, autojump_clock):
    client, transport, waiter, ended = play(timeout_ms=10_000)
    await client.send(b"wait")
    await wait_all_tasks_blocked()
    assert not ended.is_set()
    if event == "it rings elsewhere":
        bell.ring()
    with trio.fail_after(11):
        await ended.wait()
        answer = await transport.while_connected(waiter.delayed.wait)
    assert answer == (b"rung" if event == "it rings elsewhere" else b"late")


async def test_deadline_may_come_nearer(play, bell, autojump_clock):
    client, transport, waiter, ended = play(timeout_ms=100_000)
    await client.send(b"wait")
    await wait_all_tasks_blocked()
    waiter.delayed.deadline_s = trio.current_time() + 1
    bell.ring(really=False)
    with trio.fail_after(2):
        await ended.wait()
        assert await transport.while_connected(waiter.delayed.wait) == b"late"


async def test_those_that_there_is_no_time_for_are_left_to_their_tasks(play, monkeypatch):
    monkeypatch.setattr(poller_module, "TURNS_MAX_S", 0.0)
    client, transport, waiter, ended = play()
    await client.send(b"wait")
    await wait_all_tasks_blocked()
    ringing, *_ = play()
    await ringing.send(b"ring")
    await ended.wait()
    assert await transport.while_connected(waiter.delayed.wait) == b"rung"


async def test_failure_is_raised_in_the_task_of_its_connection(served, nursery, bell):
    client, transport = served()
    waiter = PendingAck(bell)
    waiter.on_ready = lambda: 1 / 0
    ringing, ringer = served()
    nursery.start_soon(ringer.serve, PendingAck(bell))
    await client.send(b"wait")

    async def ring():
        await wait_all_tasks_blocked()
        await ringing.send(b"ring")

    nursery.start_soon(ring)
    with pytest.raises(ZeroDivisionError):
        await transport.serve(waiter)


async def test_the_answer_of_a_coordinator_takes_no_task_either(play, bell, monkeypatch):
    """What a shard has promised, as to a JoinGroup, is sent when the promise is kept."""
    promise = Promise()
    monkeypatch.setattr(bell, "ring", lambda **_: promise.set_result(21))
    client, _, waiter, ended = play()
    answer = promise.map(lambda number: b"%d" % number)
    monkeypatch.setattr(f"{__name__}.Delayed", lambda *_: answer)
    await client.send(b"wait")
    await wait_all_tasks_blocked()
    other, *_ = play()
    await other.send(b"ring")
    assert await client.recv(10) == b"21"
    assert waiter.log.count("on_ready") == 1
    assert not ended.is_set()
