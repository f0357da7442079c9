"""The loops that no broker can beat here: `python -m benchmarks.compare.bare KIND FILE`.

`append` receives frames, checks a CRC of each and writes it to a file; `send` answers each request
with a piece of a file by sendfile, `copy` by reading and sending it. No protocol, one connection,
blocking calls. Prints its port, and its processor time when the client has gone.
"""

import os
import resource
import socket
import struct
import sys
from functools import partial

import crc32c

SIZE = struct.Struct(">i")
HEAD_BYTES = 64
"""Of an answer of `send`, before the records."""


def append(connection: socket.socket, path: str) -> None:
    """Receive, check, write, answer."""
    prefix, frame = bytearray(4), bytearray(1 << 20)
    answer = SIZE.pack(60) + bytes(60)
    with open(path, "wb", buffering=0) as file:
        while connection.recv_into(prefix, 4, socket.MSG_WAITALL) == 4:
            (size,) = SIZE.unpack(prefix)
            if size > len(frame):
                frame = bytearray(size)
            view = memoryview(frame)[:size]
            filled = 0
            while filled < size:
                filled += connection.recv_into(view[filled:])
            crc32c.crc32c(view)
            os.write(file.fileno(), view)
            connection.sendall(answer)


SEND_BUFFER_BYTES = 102_400
"""As both brokers have it; the kernel's own, of megabytes, are half as fast."""


def send(connection: socket.socket, path: str, *, copy: bool = False) -> None:
    """Answer with the file's next piece, of so many bytes as the request's first four name."""
    prefix, request = bytearray(4), bytearray(4096)
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        position = 0
        while connection.recv_into(prefix, 4, socket.MSG_WAITALL) == 4:
            (length,) = SIZE.unpack(prefix)
            connection.recv_into(request, length, socket.MSG_WAITALL)
            (wanted,) = SIZE.unpack_from(request)
            if position + wanted > size:
                position = 0
            head = SIZE.pack(HEAD_BYTES - 4 + wanted) + bytes(HEAD_BYTES - 8) + SIZE.pack(wanted)
            connection.sendall(head, socket.MSG_MORE)
            end = position + wanted
            if copy:
                connection.sendall(os.pread(file.fileno(), wanted, position))
                position = end
            while position < end:
                position += os.sendfile(
                    connection.fileno(), file.fileno(), position, end - position
                )


def main(kind: str, path: str) -> None:
    """Serve one connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        {"append": append, "send": send, "copy": partial(send, copy=True)}[kind](connection, path)
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
