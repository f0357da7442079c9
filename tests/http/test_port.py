"""Which address is listened on."""

import pytest
import trio

from kafkalite.http.port import HttpAddress, HttpPort, HttpPortError, parse_http_address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("localhost:1", "localhost", 1), ("[::1]:80", "::1", 80), (":0", "0.0.0.0", 0)],
)
def test_addresses_are_read(text, host, port):
    address = parse_http_address(text, is_ephemeral=False)
    assert address == HttpAddress(host=host, port=port)


@pytest.mark.parametrize("text", ["9080", "a:b", "::1:80", "a:99999", "host"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match="no address"):
        parse_http_address(text, is_ephemeral=False)


def test_auto_is_loopback_and_as_ephemeral_as_the_broker():
    assert parse_http_address("", is_ephemeral=False) is None
    fixed = parse_http_address("auto", is_ephemeral=False)
    assert (fixed.port, fixed.may_move, fixed.is_loopback) == (9080, True, True)
    assert parse_http_address("auto", is_ephemeral=True).port == 0


def port_at(number, *, may_move):
    address = HttpAddress(host="127.0.0.1", port=number, may_move=may_move)
    return HttpPort(address, module="json", make_server=lambda: None)


async def test_a_port_that_is_taken_is_refused_or_passed_by():
    (taken,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    number = taken.socket.getsockname()[1]
    with pytest.raises(HttpPortError, match=str(number)):
        await port_at(number, may_move=False).bind()
    other = port_at(number, may_move=True)
    await other.bind()
    assert other.port != number
    assert other.url == f"http://127.0.0.1:{other.port}"
    other.close()
    await taken.aclose()
