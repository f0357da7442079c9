"""Where Kafka's Java producer puts a key: positive murmur2 of it, modulo the partitions."""

from __future__ import annotations

_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit murmur2 hash with the seed that Kafka uses, unsigned."""
    digest = (0x9747B28C ^ len(data)) & _MASK
    whole = len(data) // 4 * 4
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little")
        word = word * _MULTIPLIER & _MASK
        word ^= word >> 24
        word = word * _MULTIPLIER & _MASK
        digest = (digest * _MULTIPLIER & _MASK) ^ word
    rest = data[whole:]
    if rest:
        digest ^= int.from_bytes(rest, "little")
        digest = digest * _MULTIPLIER & _MASK
    digest ^= digest >> 13
    digest = digest * _MULTIPLIER & _MASK
    return digest ^ (digest >> 15)


def java_partition(key: bytes, partitions: int) -> int:
    """Return the partition of a key among so many partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
