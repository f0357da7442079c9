"""A broker in a process of its own, and what the kernel says of that process."""

import contextlib
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kafkalite.wire.header import encode_request_header
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest

METADATA_VERSION = 9


class BrokerProcess:
    """A running `kafkalite serve` with its address."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith("kafkalite ready: "), line
        self.bootstrap = line.split("bootstrap=")[1].split()[0]
        host, _, port = self.bootstrap.rpartition(":")
        self.address = (host, int(port))

    def resident_bytes(self) -> int:
        return self._status("VmRSS") * 1024

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
        raise KeyError(name)


@contextlib.contextmanager
def running(*options: str) -> Iterator[BrokerProcess]:
    """Start `kafkalite serve` on a free port with data in a temporary directory; stop it after."""
    with tempfile.TemporaryDirectory(prefix="kafkalite-benchmark-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "kafkalite", "serve", "--listen", "127.0.0.1:0", *options],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
            stdout=subprocess.PIPE,
        )
        try:
            yield BrokerProcess(process)
        finally:
            process.terminate()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


class RawClient:
    """A socket that sends a frame made beforehand: it costs the client next to nothing."""

    def __init__(self, address: tuple[str, int], frame: bytes | None = None) -> None:
        self._socket = socket.create_connection(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frame = metadata_frame() if frame is None else frame

    def ask(self, frame: bytes | None = None) -> bytes:
        """Send a frame, by default its own, and return the answer."""
        self._socket.sendall(self._frame if frame is None else frame)
        answer = self._receive(4)
        (size,) = struct.unpack(">i", answer)
        return self._receive(size)

    def close(self) -> None:
        self._socket.close()

    def _receive(self, size: int) -> bytes:
        data = self._socket.recv(size)
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            assert more, "the broker closed the connection"
            data += more
        return data


def frame_of(api, version, message) -> bytes:
    """A request as it goes over the wire."""
    header = encode_request_header(api, version, correlation_id=1, client_id="benchmark")
    body = header + b"".join(map(bytes, api.encode_request(version, message)))
    return struct.pack(">i", len(body)) + body


def metadata_frame() -> bytes:
    """A request for the brokers, and no topics."""
    return frame_of(METADATA, METADATA_VERSION, MetadataRequest(topics=[]))


def timed(count: int, function) -> list[float]:
    """Seconds that each of so many calls took, ascending."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return sorted(times)
