"""In which order Java's HashMap gives what it holds.

Kafka's assignors break ties by it: with another order their results would be as good, but could not
be compared with Kafka's one to one.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

HASH_MAP_CAPACITY = 16
"""Buckets of a HashMap that was made without a capacity."""

Key = TypeVar("Key")


def string_hash(text: str) -> int:
    """Return Java's String.hashCode, as an unsigned number of 32 bits."""
    code = 0
    units = text.encode("utf-16-le", "surrogatepass")
    for position in range(0, len(units), 2):
        code = (31 * code + units[position] + (units[position + 1] << 8)) & 0xFFFFFFFF
    return code


def hash_map_order(
    keys: Iterable[Key],
    hash_code: Callable[[Key], int],
    *,
    capacity: int = HASH_MAP_CAPACITY,
) -> list[Key]:
    """Return keys in the order of a HashMap into which they were put in the given order.

    Args:
        keys: each once.
        hash_code: gives a key's hashCode, as an unsigned number of 32 bits.
        capacity: what the map was made with; it grows to hold three keys for four buckets.
    """
    ordered = list(keys)
    bucket_count = 1
    while bucket_count < capacity or 4 * len(ordered) > 3 * bucket_count:
        bucket_count *= 2
    mask = bucket_count - 1

    def bucket(key: Key) -> int:
        code = hash_code(key)
        return (code ^ code >> 16) & mask

    ordered.sort(key=bucket)
    return ordered
