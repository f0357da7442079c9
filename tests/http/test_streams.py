"""What waits for a reader of events."""

from kafkalite.http import streams
from kafkalite.http.streams import Subscriber, stream_response


async def test_a_silent_stream_has_a_heartbeat(autojump_clock):
    assert await Subscriber().take() == b": still here\n\n"


async def test_events_that_wait_come_together():
    subscriber = Subscriber()
    subscriber.put("a", 1)
    subscriber.put("b", 2)
    assert await subscriber.take() == b"event: a\ndata: 1\n\nevent: b\ndata: 2\n\n"


async def test_the_oldest_go_first(monkeypatch):
    monkeypatch.setattr(streams, "QUEUE_MAX", 2)
    subscriber = Subscriber()
    for number in range(5):
        subscriber.put("n", number)
    taken = await subscriber.take()
    assert taken.startswith(b'event: dropped\ndata: {"dropped": 3}')
    assert b"data: 3" in taken
    assert b"data: 2" not in taken


async def test_an_answer_begins_with_how_soon_to_come_again():
    closed = []
    response = stream_response(Subscriber(), lambda: closed.append(True))
    assert await anext(response.body) == b"retry: 1000\n\n"
    await response.body.aclose()
    response.on_closed()
    assert closed
