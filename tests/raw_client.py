"""A socket that speaks frames: any request in any version, and what no client should send."""

import socket
import struct

from kafkalite.wire.header import decode_response_header, encode_request_header

TIMEOUT_S = 10


class RawClient:
    """A connection to a broker of `kafkalite.testing`; it asks no versions and knows no leader."""

    def __init__(self, broker, *, client_id="raw", receive_buffer=None):
        self.client_id = client_id
        self.socket = socket.socket()
        self.socket.settimeout(TIMEOUT_S)
        if receive_buffer is not None:  # before connecting, or the window is larger already
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", broker.port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def send_frame(self, body):
        self.send(framed(body))

    def send_request(self, api, version, request, **header):
        self.send_frame(encoded(api, version, request, client_id=self.client_id, **header))

    def receive(self):
        """Return the next frame; None when the broker closed the connection."""
        head = self._exactly(4)
        return None if head is None else self._exactly(int.from_bytes(head, "big"))

    def receive_response(self, api, version, *, correlation_id=7):
        frame = self.receive()
        assert frame is not None, f"{api.key.name} v{version}: closed instead of answered"
        answered, position = decode_response_header(api, version, frame)
        assert answered == correlation_id
        return api.decode_response(version, frame, position)

    def ask(self, api, version, request):
        self.send_request(api, version, request)
        return self.receive_response(api, version)

    def is_closed(self):
        """Wait until the broker closes the connection; False if it says something first."""
        try:
            return self.receive() is None
        except ConnectionResetError:
            return True

    def _exactly(self, count):
        data = bytearray()
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                return None
            data += more
        return bytes(data)


def encoded(api, version, request, *, correlation_id=7, client_id="raw"):
    """Return a request with its header, without the size in front."""
    header = encode_request_header(api, version, correlation_id=correlation_id, client_id=client_id)
    return header + b"".join(map(bytes, api.encode_request(version, request)))


def framed(body):
    return struct.pack(">i", len(body)) + body
