"""Hashes of topics, by which a group knows that it must be assigned anew (KIP-1101).

Kafka's own: XXH3 of 64 bits over numbers in little endian and text as hash4j puts it (UTF-16 in
little endian, then the number of code units). So a group keeps its assignment when its log moves
between Apache Kafka and kafkalite.
"""

import struct
from collections.abc import Sequence
from uuid import UUID

_FORMAT_VERSION = b"\0"
_INT = struct.Struct("<i")
_LONG = struct.Struct("<q")
_TOPIC_ID = struct.Struct("<QQ")
_LOW_64 = 2**64 - 1


def topic_hash(topic_id: UUID, name: str, racks: Sequence[Sequence[str]]) -> int:
    """Return the hash of a topic, int64.

    Args:
        topic_id: of the topic.
        name: of the topic.
        racks: of the replicas of each partition, sorted.
    """
    parts = [
        _FORMAT_VERSION,
        _TOPIC_ID.pack(topic_id.int >> 64, topic_id.int & _LOW_64),
        _text(name),
        _INT.pack(len(racks)),
    ]
    for partition, names in enumerate(racks):
        parts.append(_INT.pack(partition))
        for rack in names:
            parts += (_length(rack), _text(rack))
    return _hash(b"".join(parts))


def combined_hash(hashes: Sequence[int]) -> int:
    """Return the hash of topics whose hashes are given in the order of their names; 0 of none."""
    return _hash(b"".join(map(_LONG.pack, hashes))) if hashes else 0


def _text(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass") + _length(text)


def _length(text: str) -> bytes:
    return _INT.pack(len(text.encode("utf-16-le", "surrogatepass")) // 2)


def _hash(data: bytes) -> int:
    # Nobody but consumer, share and streams groups needs the library.
    from xxhash import xxh3_64_intdigest

    digest = xxh3_64_intdigest(data)
    return digest - (1 << 64) if digest >> 63 else digest
