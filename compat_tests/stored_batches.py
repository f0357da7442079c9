"""Reads the batches that a partition stores, as bytes: a Fetch v4 written by hand.

The scenarios look at batch headers with it (codec, producer id, sequence), so that neither a client
nor the broker's own code is what tells whether a batch was stored as the client sent it.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from dataclasses import dataclass

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_NOT_LEADER_OR_FOLLOWER = 6


@dataclass(frozen=True, kw_only=True)
class StoredBatch:
    """What the header of a record batch of magic 2 says."""

    base_offset: int
    last_offset: int
    codec: str
    log_append_time: bool
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    size: int


def stored_batches(bootstrap: str, topic: str, partition: int = 0) -> list[StoredBatch]:
    """Return the headers of all batches of a partition, from its first offset on."""
    for address in bootstrap.split(","):
        with contextlib.suppress(NotLeaderError):
            return _stored_batches(address, topic, partition)
    raise AssertionError(f"no broker of {bootstrap} leads {topic}-{partition}")


class NotLeaderError(Exception):
    """Another broker leads the partition."""


def _stored_batches(address: str, topic: str, partition: int) -> list[StoredBatch]:
    host, _, port = address.rpartition(":")
    batches: list[StoredBatch] = []
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        offset = 0
        while True:
            high_watermark, records = _fetch(connection, topic, partition, offset)
            found = _headers(records)
            batches += [batch for batch in found if batch.last_offset >= offset]
            if not found or found[-1].last_offset + 1 >= high_watermark:
                return batches
            offset = found[-1].last_offset + 1


def _fetch(connection: socket.socket, topic: str, partition: int, offset: int) -> tuple[int, bytes]:
    client, name = b"compat-helper", topic.encode()
    header = struct.pack(">hhih", 1, 4, 7, len(client)) + client
    body = struct.pack(">iiiibi", -1, 0, 1, 50_000_000, 0, 1)
    body += struct.pack(">h", len(name)) + name
    body += struct.pack(">iiqi", 1, partition, offset, 50_000_000)
    frame = header + body
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    (size,) = struct.unpack(">i", _receive(connection, 4))
    answer = _receive(connection, size)
    # Correlation id, throttle time, one topic, its name, one partition, its index.
    position = 4 + 4 + 4 + 2 + len(name) + 4 + 4
    error, high_watermark, _, aborted = struct.unpack_from(">hqqi", answer, position)
    if error == _NOT_LEADER_OR_FOLLOWER:
        raise NotLeaderError
    assert error == 0, f"Fetch answered error {error} at offset {offset}"
    position += 22 + 16 * max(aborted, 0)
    (length,) = struct.unpack_from(">i", answer, position)
    return high_watermark, answer[position + 4 : position + 4 + max(length, 0)]


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        assert chunk, "the broker closed the connection"
        received += chunk
    return bytes(received)


def _headers(records: bytes) -> list[StoredBatch]:
    batches = []
    position = 0
    while position + 61 <= len(records):
        base_offset, length = struct.unpack_from(">qi", records, position)
        if position + 12 + length > len(records):
            break
        magic = records[position + 16]
        assert magic == 2, f"batch of magic {magic}"
        attributes, last_delta = struct.unpack_from(">hi", records, position + 21)
        producer_id, epoch, sequence, count = struct.unpack_from(">qhii", records, position + 43)
        batch = StoredBatch(
            base_offset=base_offset,
            last_offset=base_offset + last_delta,
            codec=_CODECS[attributes & 7],
            log_append_time=bool(attributes & 8),
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            record_count=count,
            size=length + 12,
        )
        batches.append(batch)
        position += 12 + length
    return batches
