"""The simulated network: delays, blocked links, cuts, hosts that crash."""

from random import Random

import pytest
import trio

from kafkalite.sim.network import Fabric
from kafkalite.sim.traces import Trace

DELAY_S = (0.1, 0.2)


@pytest.fixture
def fabric():
    return Fabric(Random(1), DELAY_S, Trace())


async def connected(fabric, nursery, *, serve=None):
    """Return a connection of a to b, and b's end of it."""
    a, b = fabric.host("a"), fabric.host("b")
    acceptor = await b.listen("", 9)
    send, receive = trio.open_memory_channel(1)

    async def keep(transport):
        await send.send(transport)
        await trio.sleep_forever()

    await nursery.start(acceptor.run, serve or keep)
    near = await a.connect("b", 9)
    return near, await receive.receive()


async def read(transport, count=100):
    buffer = bytearray(count)
    received = await transport.receive_into(memoryview(buffer))
    return bytes(buffer[:received])


async def test_bytes_arrive_in_order_and_late(fabric, autojump_clock):
    async with trio.open_nursery() as nursery:
        near, far = await connected(fabric, nursery)
        start = trio.current_time()
        await near.send([b"one", b"two"])
        await near.send([b"three"])
        assert await read(far, 4) == b"onet"
        assert trio.current_time() - start >= DELAY_S[0]
        assert await read(far) == b"wo"
        assert await read(far) == b"three"
        assert near.sent_bytes == 11
        nursery.cancel_scope.cancel()


async def test_end_of_stream_comes_behind_what_was_sent(fabric, autojump_clock):
    async with trio.open_nursery() as nursery:
        near, far = await connected(fabric, nursery)
        await near.send([b"last"])
        near.close()
        await far.wait_peer_closed()
        assert await read(far) == b"last"
        assert await read(far) == b""
        with pytest.raises(trio.ClosedResourceError):
            await near.send([b"more"])
        nursery.cancel_scope.cancel()


async def test_blocked_link_holds_back_one_direction(fabric, autojump_clock):
    async with trio.open_nursery() as nursery:
        near, far = await connected(fabric, nursery)
        fabric.link("a", "b").block()
        await near.send([b"there"])
        await far.send([b"back"])
        assert await read(near) == b"back"
        with trio.move_on_after(5) as waiting:
            await read(far)
        assert waiting.cancelled_caught
        fabric.link("a", "b").unblock()
        assert await read(far) == b"there"
        nursery.cancel_scope.cancel()


async def test_cut_connection_fails_at_both_ends(fabric, autojump_clock):
    async with trio.open_nursery() as nursery:
        near, far = await connected(fabric, nursery)
        await near.send([b"lost"])
        fabric.cut_all("a")
        with pytest.raises(ConnectionResetError):
            await read(far)
        with pytest.raises(BrokenPipeError):
            await near.send([b"more"])
        nursery.cancel_scope.cancel()


async def test_process_that_crashes_is_missed_at_once_and_a_machine_is_not(fabric, autojump_clock):
    for silently in (False, True):
        async with trio.open_nursery() as nursery:
            near, far = await connected(fabric, nursery)
            network = fabric.host("c")
            network.host = "b"
            fabric.crash(network, silently=silently)
            with trio.move_on_after(5) as waiting:
                with pytest.raises(ConnectionResetError):
                    await read(near)
            assert waiting.cancelled_caught is silently
            with pytest.raises(trio.ClosedResourceError):
                await far.send([b"from the dead"])
            with trio.move_on_after(5) as waiting:
                with pytest.raises(ConnectionRefusedError):
                    await fabric.host("a").connect("b", 9)
            assert waiting.cancelled_caught is silently
            fabric.host("b")
            nursery.cancel_scope.cancel()


async def test_ports_are_taken_once_and_given_back(fabric, autojump_clock):
    host = fabric.host("a")
    first = await host.listen("", 9)
    with pytest.raises(OSError, match="taken"):
        await host.listen("", 9)
    first.close()
    second = await host.listen("", 9)
    assert second.port == 9
    assert (await host.listen("", 0)).port not in (0, 9)


async def test_sender_waits_when_too_much_is_unread(fabric, autojump_clock):
    async with trio.open_nursery() as nursery:
        near, far = await connected(fabric, nursery)
        await near.send([bytes(300_000)])
        with trio.move_on_after(5) as waiting:
            await near.send([b"x"])
        assert waiting.cancelled_caught
        for _ in range(3):
            assert len(await read(far, 100_000)) == 100_000
        await near.send([b"x"])
        assert await read(far) == b"x"
        nursery.cancel_scope.cancel()
