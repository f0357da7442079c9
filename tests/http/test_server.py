"""The HTTP server, on a real socket: what it answers, and what hostile clients cost it."""

import json
import socket
import struct
from contextlib import AsyncExitStack

import pytest
import trio
import trio.lowlevel

from tests.http.http_kit import serving


def json_of(body):
    """The JSON in a body that may have come in chunks."""
    return json.loads(b"".join(line for line in body.split(b"\r\n")[1::2]) or body)


async def wait_until(condition):
    with trio.fail_after(10):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await trio.sleep(0.01)


async def test_answers_a_request():
    async with serving() as served:
        assert await served.ask() == (200, b"hello you")
        assert await served.ask(path="/hello?name=%C3%BC") == (200, "hello ü".encode())


async def test_answers_several_requests_on_one_connection():
    async with serving() as served:
        one = b"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"
        last = b"GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        assert (await served.send(one + one + last)).count(b"hello you") == 3


async def test_head_has_no_body():
    async with serving() as served:
        assert await served.ask("HEAD") == (200, b"")


async def test_reads_a_body_and_the_names_in_a_path():
    async with serving() as served:
        kind = "application/json; charset=utf-8"
        status, body = await served.ask(
            "POST", "/things/a%2Fb", body=b'{"n": 1}', Content_Type=kind
        )
        assert (status, json_of(body)) == (201, {"thing": "a/b", "got": {"n": 1}})


async def test_long_answers_come_whole():
    async with serving() as served:
        _, body = await served.ask(path="/many?n=20000")
        assert len(body) > 200_000
        chunks = body.split(b"\r\n")
        items = json.loads(b"".join(chunks[1::2]))["items"]
        assert [item["n"] for item in items] == list(range(20_000))


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "status"),
    [
        ("GET", "/nothing", b"", "", 404),
        ("PUT", "/hello", b"{}", "application/json", 405),
        ("GET", "/many?n=x", b"", "", 400),
        ("GET", "/many?n=-1", b"", "", 400),
        ("POST", "/things/a", b"[]", "application/json", 400),
        ("POST", "/things/a", b"{", "application/json", 400),
        ("POST", "/things/a", b"[" * 900, "application/json", 400),
        ("POST", "/things/a", b"n=1", "application/x-www-form-urlencoded", 415),
        ("POST", "/things/a", b"{}", "text/plain", 415),
        ("POST", "/things/a", b" " * 1001, "application/json", 413),
    ],
)
async def test_refuses_with_a_status_and_a_reason(method, path, body, kind, status):
    async with serving() as served:
        got, answer = await served.ask(method, path, body=body, Content_Type=kind)
        assert got == status
        assert json_of(answer)["error"]["message"]


async def test_a_body_in_chunks_has_the_same_bound():
    async with serving() as served:
        head = (
            b"POST /things/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        answer = await served.send(head + (b"400\r\n" + b" " * 1024 + b"\r\n") * 2)
        assert answer.startswith(b"HTTP/1.1 413")


async def test_a_bug_is_answered_and_logged(caplog):
    async with serving() as served:
        status, _ = await served.ask(path="/bug")
        assert status == 500
        assert await served.ask() == (200, b"hello you")
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x12\x00\x12\x00\x03\x00\x00\x00\x01\x00\x04test\r\n\r\n",
        b"GET /hello HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40_000 + b"\r\n\r\n",
        b"GET /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /hello HTTP/1.1\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"G" * 40_000,
    ],
    ids=["a Kafka client", "large header", "negative length", "no host", "nothing", "no end"],
)
async def test_what_is_no_request_is_refused_and_harms_nobody(data):
    async with serving() as served:
        async with await served.connect() as stream:
            await stream.send_all(data)
            await stream.send_eof()
            answer = b"".join([piece async for piece in stream])
            assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
        assert await served.ask() == (200, b"hello you")


class TestWhoMayAsk:
    @pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9080", "[::1]:80", "10.0.0.7"])
    async def test_this_machine_by_name_or_any_address(self, host):
        async with serving() as served:
            status, _ = await served.ask(Host=host)
            assert status == 200

    @pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:80", "evil:9080"])
    async def test_no_foreign_name(self, host):
        """DNS rebinding: a page of evil.example that has its name point here (rule 620)."""
        async with serving() as served:
            status, _ = await served.ask(Host=host)
            assert status == 421

    async def test_names_that_are_allowed(self):
        async with serving(hosts=["Broker.Example"]) as served:
            assert (await served.ask(Host="broker.example:9080"))[0] == 200

    async def test_no_page_of_another_origin(self):
        """Rule 621."""
        async with serving() as served:
            kind = {"Content_Type": "application/json", "body": b"{}"}
            for origin in ("http://evil.example", "null", f"http://127.0.0.1:{served.port + 1}"):
                status, _ = await served.ask("POST", "/things/a", Origin=origin, **kind)
                assert status == 403
            own = f"http://127.0.0.1:{served.port}"
            assert (await served.ask("POST", "/things/a", Origin=own, **kind))[0] == 201
            for site in ("cross-site", "same-site"):
                assert (await served.ask(Sec_Fetch_Site=site))[0] == 403
                status, _ = await served.ask("POST", "/things/a", Sec_Fetch_Site=site, **kind)
                assert status == 403
            link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
            assert (await served.ask(**link))[0] == 200

    async def test_only_with_the_token_where_there_is_one(self):
        async with serving(token="secret") as served:
            assert (await served.ask())[0] == 401
            assert (await served.ask(path="/hello?token=wrong"))[0] == 401
            assert (await served.ask(path="/hello?token=secret"))[0] == 200
            assert (await served.ask(Authorization="Bearer secret"))[0] == 200
            assert (await served.ask(Cookie="kafkalite-token=secret"))[0] == 200
            assert (await served.ask(Cookie="kafkalite-token=other"))[0] == 401
            assert (await served.ask(path="/open"))[0] == 200

    async def test_a_browser_gets_the_token_as_a_cookie(self):
        async with serving(token="secret") as served:
            answer = await served.send(
                b"GET /hello?name=x&token=secret HTTP/1.1\r\nHost: localhost\r\n"
                b"Accept: text/html\r\nConnection: close\r\n\r\n"
            )
            assert answer.startswith(b"HTTP/1.1 303")
            assert b"Location: /hello?name=x\r\n" in answer
            assert b"HttpOnly; SameSite=Strict" in answer


class TestEventStreams:
    ASK = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"

    async def test_events_come_as_they_happen(self):
        async with serving() as served, await served.connect() as stream:
            await stream.send_all(self.ASK)
            await wait_until(lambda: served.site.subscribers)
            served.site.subscribers[0].put("tick", {"n": 1}, event_id=7)
            received = b""
            with trio.fail_after(10):
                while b"tick" not in received:
                    received += await stream.receive_some()
            assert b'id: 7\nevent: tick\ndata: {"n": 1}\n\n' in received
            assert b"text/event-stream" in received

    async def test_the_end_of_a_reader_is_noticed_without_any_event(self):
        async with serving() as served:
            async with await served.connect() as stream:
                await stream.send_all(self.ASK)
                await wait_until(lambda: served.site.subscribers)
            await wait_until(lambda: not served.site.subscribers)
            await wait_until(lambda: served.server.connection_count == 0)

    async def test_a_reader_that_breaks_off_is_no_error(self, caplog):
        async with serving() as served:
            stream = await served.connect()
            await stream.send_all(self.ASK)
            await wait_until(lambda: served.site.subscribers)
            linger = struct.pack("ii", 1, 0)  # closed by a reset
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            subscriber = served.site.subscribers[0]
            await stream.aclose()
            for _ in range(50):
                subscriber.put("tick", "x" * 10_000)
                await trio.lowlevel.checkpoint()
            await wait_until(lambda: served.server.connection_count == 0)
        assert caplog.text == ""

    async def test_who_reads_slowly_is_told_what_it_missed(self):
        async with serving() as served, await served.connect() as stream:
            await stream.send_all(self.ASK)
            await wait_until(lambda: served.site.subscribers)
            for number in range(1_500):
                served.site.subscribers[0].put("tick", number)
            received = b""
            with trio.fail_after(10):
                while b"data: 1499\n" not in received:
                    received += await stream.receive_some()
            assert b'event: dropped\ndata: {"dropped": 500}' in received

    async def test_so_many_and_no_more(self):
        async with serving(streams=3) as served, AsyncExitStack() as stack:
            for _ in range(3):
                stream = await stack.enter_async_context(await served.connect())
                await stream.send_all(self.ASK)
            await wait_until(lambda: served.server.stream_count == 3)
            status, _ = await served.ask(path="/events")
            assert status == 503
            assert len(served.site.subscribers) == 3
            assert await served.ask() == (200, b"hello you")


class TestSlowClients:
    async def test_half_a_request_is_not_waited_for_for_ever(self):
        async with serving(headers_timeout_s=0.1) as served:
            assert await served.send(b"GET /hello HTTP/1.1\r\nHost: loc") == b""

    async def test_half_a_body_neither(self):
        async with serving(body_timeout_s=0.1) as served:
            head = (
                b"POST /things/a HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
            )
            assert await served.send(head) == b""

    async def test_who_reads_nothing_is_dropped(self):
        async with serving(send_timeout_s=0.1) as served, await served.connect() as stream:
            await stream.send_all(b"GET /many?n=1000000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await wait_until(lambda: served.server.connection_count == 1)
            await wait_until(lambda: served.server.connection_count == 0)

    async def test_the_idle_make_room_for_those_who_ask(self):
        async with serving(connections=5) as served, AsyncExitStack() as stack:
            for _ in range(20):
                await stack.enter_async_context(await served.connect())
            await wait_until(lambda: served.server.connection_count == 5)
            assert await served.ask() == (200, b"hello you")

    async def test_beyond_the_bound_others_are_turned_away(self):
        async with serving(connections=2) as served, AsyncExitStack() as stack:
            for _ in range(2):
                stream = await stack.enter_async_context(await served.connect())
                await stream.send_all(TestEventStreams.ASK)
            await wait_until(lambda: served.server.stream_count == 2)
            assert (await served.ask())[0] == 503
