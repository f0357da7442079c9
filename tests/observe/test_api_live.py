"""Requests as they come, for a reader that is slower than they are."""

from types import SimpleNamespace

import pytest
import trio

from kafkalite.api.handler import Handler
from kafkalite.http.streams import QUEUE_MAX
from kafkalite.network.in_flight import InFlightRequest
from kafkalite.observe import api_live
from kafkalite.observe.api_live import TAIL_MAX_BYTES, LiveRoutes, Tail
from kafkalite.observe.entries import ENTRY_BYTES, Entry, SizeOnly
from kafkalite.wire.header import RequestHeader
from kafkalite.wire.messages.metadata import METADATA, MetadataResponse

CONTEXT = SimpleNamespace(
    connection_id=1,
    peer_address=("127.0.0.1", 9),
    principal="User:ANONYMOUS",
    listener="PLAINTEXT",
)


def entry(size=100, raw=None):
    exchange = InFlightRequest(
        Handler(api=METADATA, handle=None, refuse=None),
        RequestHeader(METADATA.key, METADATA.versions[1], 1, "client"),
        None,
        MetadataResponse(),
    )
    exchange.frame, exchange.chunks = bytes(size), [SizeOnly(0, raw)]
    exchange.context, exchange.at_ms = CONTEXT, 5
    return Entry(exchange)


@pytest.mark.parametrize("raw", [None, bytes(1_000_000)])
def test_what_is_not_sent_yet_is_bounded_in_bytes(raw):
    tail = Tail()
    for number in range(1, 201):
        tail.put(number, entry(1_000_000, raw))
    kept = TAIL_MAX_BYTES // (ENTRY_BYTES + 1_000_000 + (1_000_000 if raw else 0))
    assert kept - 1 <= len(tail) <= kept
    assert [tail.take()[0] for _ in range(len(tail))][-1] == 200


def test_one_that_is_larger_than_that_is_kept_alone():
    tail = Tail()
    for number in (1, 2):
        tail.put(number, entry(2 * TAIL_MAX_BYTES))
    assert [tail.take()[0] for _ in range(len(tail))] == [2]


def test_what_is_not_sent_yet_is_bounded_in_number():
    tail = Tail()
    for number in range(2 * QUEUE_MAX):
        tail.put(number, entry())
    assert len(tail) == QUEUE_MAX


async def test_events_are_sent_though_requests_come_faster_than_they_are_made(autojump_clock):
    tail = Tail()

    class Busy:
        """While one request is looked at, two more come."""

        number = 1

        def matches(self, seen):
            for _ in range(2 if self.number < 5 * QUEUE_MAX else 0):
                self.number += 1
                tail.put(self.number, seen)
            return True

    tail.put(1, entry())
    busy = Busy()
    events = LiveRoutes._events(None, tail, busy, whole=False, raw=False)
    with trio.fail_after(10):
        assert await anext(events) == b"retry: 1000\n\n"
        assert b"event: request" in await anext(events)
        assert busy.number == 3
        assert b"event: request" in await anext(events)
    await events.aclose()


async def test_a_request_is_made_text_of_once_for_all_who_follow(autojump_clock, monkeypatch):
    made = []
    monkeypatch.setattr(
        api_live, "entry_json", lambda number, *_, **__: made.append(number) or {"id": number}
    )
    seen, tails = entry(), [Tail() for _ in range(100)]
    everything = SimpleNamespace(matches=lambda _: True)
    told = []
    for tail in tails:
        tail.put(1, seen)
        events = LiveRoutes._events(None, tail, everything, whole=False, raw=False)
        await anext(events)
        told.append(await anext(events))
        await events.aclose()
    assert made == [1]
    assert set(told) == {b'id: 1\nevent: request\ndata: {"id": 1}\n\n'}
