"""Links: who talks to whom, and what a cut, a delay and a healing do to it."""

import socket
import struct
import threading
import time

import pytest

from kafkalite.testing.processes import wait_until_true
from kafkalite.testing.proxy import UNKNOWN, Links

SILENCE_S = 0.05


class Node:
    """Sends everything back, with the number of the connection in front of each piece."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.accepted = []
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.accepted.append(connection)
            threading.Thread(target=self._echo, args=[connection], daemon=True).start()

    def _echo(self, connection):
        with connection:
            while True:
                try:
                    data = connection.recv(65_536)
                except OSError:
                    return
                if not data:
                    return
                connection.sendall(data)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        for connection in self.accepted:
            connection.close()


@pytest.fixture
def node():
    node = Node()
    yield node
    node.close()


@pytest.fixture
def links():
    with Links() as links:
        yield links


@pytest.fixture
def connect():
    opened = []

    def connect(port):
        connection = socket.create_connection(("127.0.0.1", port), timeout=10)
        opened.append(connection)
        return connection

    yield connect
    for connection in opened:
        connection.close()


def request(client_id):
    name = client_id.encode()
    body = struct.pack(">hhih", 18, 3, 1, len(name)) + name + b"rest"
    return struct.pack(">i", len(body)) + body


def exchange(connection, data):
    connection.sendall(data)
    return receive(connection, len(data))


def receive(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(65_536)
        assert more
        data += more
    return data


def is_silent(connection):
    connection.settimeout(SILENCE_S)
    try:
        data = connection.recv(1)
    except TimeoutError:
        return True
    else:
        return not data and None
    finally:
        connection.settimeout(10)


def test_bytes_pass_both_ways_in_any_amount(links, node, connect):
    connection = connect(links.listen("2", "127.0.0.1", node.port, source="1"))
    data = bytes(range(256)) * 4096
    sender = threading.Thread(target=connection.sendall, args=[data])
    sender.start()
    assert receive(connection, len(data)) == data
    sender.join()
    assert links.connections() == [("1", "2")]


def test_source_is_told_by_the_first_request_also_in_pieces(links, node, connect):
    port = links.listen("2", "127.0.0.1", node.port)
    whole = request("broker-13-fetcher-0")
    connection = connect(port)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in (whole[:5], whole[5:16], whole[16:]):
        connection.sendall(piece)
        time.sleep(0.005)  # what is sent in one piece may arrive in several, not the reverse
    assert receive(connection, len(whole)) == whole
    other = connect(port)
    assert exchange(other, request("someone")) == request("someone")
    assert links.connections() == [("13", "2"), (UNKNOWN, "2")]


@pytest.mark.slow
def test_cut_holds_back_what_is_delivered_after_the_healing(links, node, connect):
    connection = connect(links.listen("2", "127.0.0.1", node.port, source="1"))
    assert exchange(connection, b"before") == b"before"
    links.cut("1", "2")
    connection.sendall(b"during")
    assert is_silent(connection)
    links.heal()
    assert receive(connection, 6) == b"during"


@pytest.mark.slow
def test_connection_made_during_a_cut_is_served_after_the_healing(links, node, connect):
    port = links.listen("2", "127.0.0.1", node.port)
    links.cut("1", "2")
    connection = connect(port)
    connection.sendall(request("broker-1"))
    assert is_silent(connection)
    assert not node.accepted
    links.heal("1")
    assert receive(connection, 5)


@pytest.mark.slow
def test_cut_one_way_lets_the_other_pass(links, node, connect):
    connection = connect(links.listen("2", "127.0.0.1", node.port, source="1"))
    assert exchange(connection, b"before") == b"before"
    links.cut("2", "1", both_ways=False)
    connection.sendall(b"x")
    (server,) = node.accepted
    assert is_silent(connection)  # the request was served, and its answer is held back
    links.cut("1", "2", both_ways=False)
    server.sendall(b"y")
    links.heal("3")  # another's cuts
    assert is_silent(connection)
    links.heal("2")
    assert receive(connection, 2) == b"xy"


def test_others_are_not_touched_by_a_cut(links, node, connect):
    port = links.listen("2", "127.0.0.1", node.port)
    links.cut("1", "2")
    assert exchange(connect(port), request("broker-3")) == request("broker-3")


@pytest.mark.slow
def test_delay_makes_a_link_slow(links, node, connect):
    connection = connect(links.listen("2", "127.0.0.1", node.port, source="1"))
    assert exchange(connection, b"fast") == b"fast"
    links.delay("1", "2", 0.03)
    start = time.monotonic()
    assert exchange(connection, b"slow") == b"slow"
    assert time.monotonic() - start >= 0.06
    links.delay("1", "2", 0)
    assert exchange(connection, b"fast") == b"fast"


def test_disconnect_closes_and_lets_connect_anew(links, node, connect):
    port = links.listen("2", "127.0.0.1", node.port, source="1")
    connection = connect(port)
    assert exchange(connection, b"x") == b"x"
    assert links.disconnect("2", "3") == 0
    assert links.disconnect("2", "1") == 1
    assert connection.recv(1) == b""
    assert exchange(connect(port), b"x") == b"x"


def test_end_of_one_side_reaches_the_other_after_its_last_bytes(links, node, connect):
    connection = connect(links.listen("2", "127.0.0.1", node.port, source="1"))
    connection.sendall(b"last words")
    assert receive(connection, 10) == b"last words"
    (server,) = node.accepted
    server.sendall(b"goodbye")
    server.shutdown(socket.SHUT_RDWR)
    assert receive(connection, 7) == b"goodbye"
    assert connection.recv(1) == b""


def test_connection_to_a_dead_node_is_closed(links, node, connect):
    port = links.listen("2", "127.0.0.1", node.port, source="1")
    node.close()
    node.close = lambda: None
    assert connect(port).recv(1) == b""
    assert wait_until_true(lambda: links.connections() == [], 10)


def test_silent_connection_may_leave_without_a_word(links, node, connect):
    port = links.listen("2", "127.0.0.1", node.port)
    connect(port).close()
    assert exchange(connect(port), request("broker-1")) == request("broker-1")


def test_stopped_links_serve_nobody(connect):
    links = Links().start()
    port = links.listen("2", "127.0.0.1", 1, source="1")
    links.stop()
    links.stop()
    with pytest.raises(OSError, match="refused"):
        connect(port)
    with pytest.raises(RuntimeError, match="not running"):
        links.cut("1", "2")
