"""Rule 1: frames come out whole, whatever the pieces they arrived in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.framing import BUFFER_SIZE, GROWTH_SIZE, SMALL_BUFFER_SIZE, Framer

MAX = 10 * GROWTH_SIZE


def framed(*bodies):
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def receive(framer, data, sizes=()):
    """Feed a stream in pieces of the given sizes, then in as large ones as fit; return frames."""
    frames, position, sizes = [], 0, list(sizes)
    while position < len(data):
        space = framer.buffer()
        count = min(sizes.pop(0) if sizes else len(space), len(space), len(data) - position)
        space[:count] = data[position : position + count]
        framer.received(count)
        position += count
        while (frame := framer.next_frame()) is not None:
            frames.append(frame)
    return frames


def body(size, fill=7):
    return bytes([fill]) * size


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(
        st.one_of(
            st.integers(0, 50),
            st.integers(SMALL_BUFFER_SIZE - 9, SMALL_BUFFER_SIZE + 9),
            st.integers(BUFFER_SIZE - 9, BUFFER_SIZE + 9),
        ),
        max_size=8,
    ),
    pieces=st.lists(st.one_of(st.integers(1, 9), st.integers(1, 70_000)), max_size=40),
)
def test_frames_are_the_same_wherever_the_stream_is_split(sizes, pieces):
    bodies = [body(size, number + 1) for number, size in enumerate(sizes)]
    frames = receive(Framer(MAX), framed(*bodies), pieces)
    assert [bytes(frame) for frame in frames] == bodies


@pytest.mark.parametrize("size", [GROWTH_SIZE - 1, GROWTH_SIZE, GROWTH_SIZE + 1, 5 * GROWTH_SIZE])
def test_frames_of_megabytes_grow_into_their_own_buffer(size):
    bodies = [body(3, 1), body(size, 2), body(5, 3)]
    assert [bytes(f) for f in receive(Framer(MAX), framed(*bodies))] == bodies


def test_several_small_frames_come_from_one_receive():
    framer = Framer(MAX)
    data = framed(b"one", b"two", b"three")
    framer.buffer()[: len(data)] = data
    framer.received(len(data))
    assert [bytes(framer.next_frame()) for _ in range(3)] == [b"one", b"two", b"three"]
    assert framer.next_frame() is None


def test_a_large_frame_is_received_straight_into_its_own_buffer():
    """Nothing behind it is received with it, so that it need not be copied."""
    framer = Framer(MAX)
    head = framed(body(BUFFER_SIZE))[:100]
    framer.buffer()[:100] = head
    framer.received(100)
    assert framer.next_frame() is None
    assert framer.held_bytes == BUFFER_SIZE
    assert len(framer.buffer()) == BUFFER_SIZE - 96


def test_an_announced_size_costs_no_memory_before_the_bytes_come():
    framer = Framer(2**31 - 1)
    framer.buffer()[:4] = (2**31 - 1).to_bytes(4, "big")
    framer.received(4)
    assert framer.next_frame() is None
    assert framer.held_bytes == GROWTH_SIZE


@pytest.mark.parametrize("size", [0, 3, 5000, BUFFER_SIZE])
def test_a_frame_is_writable_and_unchanged_by_what_comes_later(size):
    framer = Framer(MAX)
    (first,) = receive(framer, framed(body(size, 1)))
    assert not first.readonly
    first[:] = body(size, 9)
    receive(framer, framed(body(BUFFER_SIZE - 4, 2), body(size, 3)))
    assert bytes(first) == body(size, 9)


def test_an_empty_frame_is_a_frame():
    (frame,) = receive(Framer(MAX), framed(b""))
    assert bytes(frame) == b""


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_negative_and_too_large_sizes_are_refused(size):
    framer = Framer(100)
    framer.buffer()[:4] = size.to_bytes(4, "big", signed=True)
    framer.received(4)
    with pytest.raises(MalformedMessage, match=r"socket.request.max.bytes=100"):
        framer.next_frame()


def test_the_largest_size_allowed_is_accepted():
    (frame,) = receive(Framer(100), framed(body(100)))
    assert len(frame) == 100


def test_an_idle_connection_holds_a_small_buffer_and_a_busy_one_a_large_one():
    framer = Framer(MAX)
    assert len(framer.buffer()) == SMALL_BUFFER_SIZE
    receive(framer, framed(body(10)))
    assert len(framer.buffer()) == SMALL_BUFFER_SIZE
    receive(framer, framed(body(SMALL_BUFFER_SIZE), body(1)))
    assert len(framer.buffer()) == BUFFER_SIZE


def test_receiving_nothing_changes_nothing():
    framer = Framer(MAX)
    framer.buffer()
    framer.received(0)
    assert framer.next_frame() is None
    assert framer.held_bytes == 0


def test_misuse_is_a_bug():
    framer = Framer(MAX)
    with pytest.raises(AssertionError, match="nothing was lent"):
        framer.received(1)
    with pytest.raises(AssertionError, match="more received than was lent"):
        framer.received(len(framer.buffer()) + 1)
    for _ in range(2):
        space = framer.buffer()
        space[:] = bytes(len(space))
        framer.received(len(space))
    with pytest.raises(AssertionError, match="frames must be taken"):
        framer.buffer()


def test_it_is_empty_when_nothing_is_left_of_a_frame_to_come():
    framer = Framer(1_000_000)
    assert framer.is_empty
    for data, empty in (((3).to_bytes(4, "big") + b"abc", True), (b"\0", False)):
        framer.buffer()[: len(data)] = data
        framer.received(len(data))
        framer.next_frame()
        assert framer.is_empty == empty
    framer = Framer(1_000_000)
    framer.buffer()[:4] = (900_000).to_bytes(4, "big")
    framer.received(4)
    assert framer.next_frame() is None
    assert not framer.is_empty
