"""A broker that says what a test tells it to, over a real socket."""

import contextlib
import socket
import struct
import threading

from kafkalite.wire.api import ApiKey
from kafkalite.wire.header import decode_request_header, encode_response_header
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersion, ApiVersionsResponse
from kafkalite.wire.messages.metadata import (
    METADATA,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class HangUp(Exception):
    """Raised by an answer: the connection is closed instead."""


class FakeBroker:
    """`answers` maps an Api to a response, or to a function of the request; a list is used up one
    by one, its last element staying. A bytes answer is sent as the frame's body, None is silence.
    """

    def __init__(self, answers=None, *, versions=None, node_id=0, topics=None):
        self.answers = {METADATA: self._metadata, **(answers or {})}
        self.versions = versions or {}
        self.node_id = node_id
        self.topics = topics if topics is not None else {"orders": 1}
        self.leader_of = {}
        self.requests = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.others = []
        self._sockets = []
        self._stopping = False
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopping = True
        # A connection of our own wakes accept, which a close from another thread does not.
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._thread.join()
        self._listener.close()

    def seen(self, api):
        """The requests of one API, in their order."""
        return [request for seen_api, _, request in self.requests if seen_api is api]

    def _metadata(self, request):
        names = self.topics if request.topics is None else [t.name for t in request.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=b.node_id, host="127.0.0.1", port=b.port)
                for b in [self, *self.others]
            ],
            controller_id=self.node_id,
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name):
        if name not in self.topics:
            return MetadataResponseTopic(error_code=3, name=name)
        return MetadataResponseTopic(
            name=name,
            partitions=[
                MetadataResponsePartition(
                    partition_index=index, leader_id=self.leader_of.get(index, self.node_id)
                )
                for index in range(self.topics[name])
            ],
        )

    def _accept(self):
        threads = []
        while True:
            sock, _ = self._listener.accept()
            if self._stopping:
                sock.close()
                break
            self._sockets.append(sock)
            threads.append(threading.Thread(target=self._serve, args=[sock], daemon=True))
            threads[-1].start()
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()

    def _serve(self, sock):
        with contextlib.suppress(OSError, HangUp, EOFError), sock:
            while True:
                (size,) = struct.unpack(">i", _read(sock, 4))
                frame = memoryview(_read(sock, size))
                header, position = decode_request_header(frame)
                self._answer(sock, header, frame, position)

    def _answer(self, sock, header, frame, position):
        if header.api_key == ApiKey.API_VERSIONS:
            api, answer = API_VERSIONS, self.answers.get(API_VERSIONS, self._api_versions)
        else:
            api, answer = next((a, f) for a, f in self.answers.items() if a.key == header.api_key)
        request = api.decode_request(header.api_version, frame, position)
        self.requests.append((api, header, request))
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if callable(answer):
            answer = answer(request)
        if answer is None:
            return
        if isinstance(answer, bytes):
            sock.sendall(answer)
            return
        body = [
            encode_response_header(api, header.api_version, correlation_id=header.correlation_id),
            *api.encode_response(header.api_version, answer),
        ]
        sock.sendall(struct.pack(">i", sum(map(len, body))) + b"".join(map(bytes, body)))

    def _api_versions(self, request):
        spoken = {api.key: api.versions for api in self.answers} | self.versions
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in spoken.items()
            ]
        )


def hang_up(_request=None):
    raise HangUp


def _read(sock, size):
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data
