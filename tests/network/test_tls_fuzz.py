"""Records of TLS that are changed, cut, repeated and endless: nobody gets in, nobody is harmed."""

import random
import socket
import ssl
import struct
import time

import pytest

from kafkalite.testing.broker import Broker
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from kafkalite.wire.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from kafkalite.wire.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from tests.raw_client import RawClient, encoded

pytestmark = pytest.mark.slow

TIMEOUT_S = 10
FRAME_MAX_BYTES = 524_288
"""`sasl.server.max.receive.size`: the largest frame before a login."""

OVERHEAD_BYTES = 200_000
"""A buffer for what comes, and one for ciphertext; what OpenSSL has is not seen from here."""


@pytest.fixture(scope="module")
def broker():
    config = {"connection.failed.authentication.delay.ms": 0}
    with Broker(tls=True, users={"alice": "secret"}, config=config) as running:
        yield running


@pytest.fixture(scope="module")
def context(broker):
    return ssl.create_default_context(cafile=broker.ca_file)


def connect(broker):
    port = int(broker.bootstrap_for("SASL_SSL").rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), TIMEOUT_S)


class Client:
    """The client's end of TLS in memory, so that its records can be changed on their way."""

    def __init__(self, context):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def step(self):
        try:
            self.session.do_handshake()
        except ssl.SSLError:
            return False
        return True


def changed(rng, data):
    data = bytearray(data)
    how = rng.randrange(5)
    place = rng.randrange(len(data))
    if how == 0:
        data[place] ^= 1 << rng.randrange(8)
    elif how == 1:
        del data[place:]
    elif how == 2:
        data[place:place] = data[: rng.randrange(200)]
    elif how == 3:
        data[3:5] = rng.randbytes(2)  # the record's length
    else:
        data *= 2
    return bytes(data)


def is_served(broker):
    with RawClient(broker) as client:
        return bool(client.ask(METADATA, 12, MetadataRequest(topics=[])).cluster_id)


@pytest.mark.parametrize("at", [0, 1, 2], ids=["hello", "finish", "first request"])
def test_changed_records_let_nobody_in(broker, context, at, caplog):
    """Method: one step of a good handshake, or what follows it, is changed at random."""
    rng = random.Random(at)
    request = struct.pack(">i", 20) + bytes(20)
    for _ in range(25):
        client = Client(context)
        with connect(broker) as sock:
            try:
                for step in range(3):
                    if step == 2:
                        client.session.write(request)
                    else:
                        client.step()
                    said = client.outgoing.read()
                    sock.sendall(changed(rng, said) if said and step == at else said)
                    if step == 0 and at:
                        client.incoming.write(sock.recv(65_536))
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65_536):
                    pass
            except OSError:
                pass
            except ssl.SSLError:
                pass
    assert is_served(broker)
    assert "unexpected" not in caplog.text
    assert "Traceback" not in caplog.text


def test_endless_hello_is_ended_soon(broker):
    """OpenSSL takes no message of a handshake that is larger than any it knows."""
    record = b"\x16\x03\x01\x40\x00"
    first, next_one = b"\x01\xff\xff\xff" + bytes(0x4000 - 4), bytes(0x4000)
    endless = record + first + (record + next_one) * 2_000
    with connect(broker) as sock, pytest.raises(OSError):
        sock.sendall(endless)
    assert is_served(broker)
    assert not broker.server.connections.logins()


def test_who_has_not_logged_in_holds_one_small_frame_at_most(broker, context):
    """Announced is twice what may be sent; sent is all that is taken."""
    login = encoded(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
    outsiders = []
    for _ in range(10):
        outsider = context.wrap_socket(connect(broker), server_hostname="localhost")
        outsider.sendall(struct.pack(">i", len(login)) + login)
        outsider.recv(4_096)
        frame = encoded(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=bytes(400_000)))
        outsider.sendall(struct.pack(">i", FRAME_MAX_BYTES) + frame)
        outsiders.append(outsider)
    for _ in range(200):
        held = [
            connection._framer.held_bytes + len(connection._framer._shared)
            for connection in broker.server.connections.open_connections()
        ]
        if sum(one > 300_000 for one in held) == len(outsiders):
            break
        time.sleep(0.02)
    assert sum(one > 300_000 for one in held) == len(outsiders), "the frames did not arrive"
    assert max(held) <= FRAME_MAX_BYTES + OVERHEAD_BYTES
    assert is_served(broker)
    for outsider in outsiders:
        outsider.close()


def test_frame_that_is_larger_closes_the_connection_before_it_is_there(broker, context):
    with context.wrap_socket(connect(broker), server_hostname="localhost") as outsider:
        outsider.sendall(struct.pack(">i", FRAME_MAX_BYTES + 1))
        outsider.settimeout(TIMEOUT_S)
        assert outsider.recv(1) == b""
