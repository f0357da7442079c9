"""In which order Java's HashMap gives what it holds.

Kafka's assignors break ties by it: with another order their results would be as good, but could not
be compared with Kafka's one to one.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar
from uuid import UUID

HASH_MAP_CAPACITY = 16
"""Buckets of a HashMap that was made without a capacity."""

Key = TypeVar("Key")


@lru_cache(maxsize=16_384)
def string_hash(text: str) -> int:
    """Return Java's String.hashCode, as an unsigned number of 32 bits."""
    code = 0
    if text.isascii():
        # Ids nearly always are, and a target wants those of all members: 2 instead of 5 us each.
        for unit in text.encode():
            code = (31 * code + unit) & 0xFFFFFFFF
        return code
    units = text.encode("utf-16-le", "surrogatepass")
    for position in range(0, len(units), 2):
        code = (31 * code + units[position] + (units[position + 1] << 8)) & 0xFFFFFFFF
    return code


def uuid_hash(topic_id: UUID) -> int:
    """Return the hashCode of Kafka's Uuid, as an unsigned number of 32 bits."""
    mixed = (topic_id.int >> 64) ^ (topic_id.int & 0xFFFF_FFFF_FFFF_FFFF)
    return (mixed >> 32) ^ (mixed & 0xFFFFFFFF)


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
    if len(ordered) < 2:
        return ordered
    mask = bucket_count_of(len(ordered), capacity) - 1
    ordered.sort(key=lambda key: bucket_of(hash_code(key), mask))
    return ordered


def bucket_count_of(size: int, capacity: int) -> int:
    """Return how many buckets a HashMap of so many keys has that was made with a capacity."""
    count = 1
    while count < capacity or 4 * size > 3 * count:
        count *= 2
    return count


def bucket_of(code: int, mask: int) -> int:
    """Return the bucket of a hashCode."""
    return (code ^ code >> 16) & mask


def copied_set_order(keys: Iterable[Key], hash_code: Callable[[Key], int]) -> list[Key]:
    """Return keys in the order of `new HashSet<>(collection)`, which is made large enough."""
    found = list(keys)
    return hash_map_order(found, hash_code, capacity=copied_set_capacity(len(found)))


def copied_set_capacity(size: int) -> int:
    """Return what `new HashSet<>(collection)` makes its map with."""
    return max(int(size / 0.75) + 1, HASH_MAP_CAPACITY)


def copied_numbers(numbers: Iterable[int]) -> tuple[int, ...]:
    """Return numbers that are not negative in the order of `new HashSet<>(collection)`."""
    found = sorted(numbers)
    if not found or found[-1] < HASH_MAP_CAPACITY:
        return tuple(found)  # each in the bucket of its own number
    return tuple(copied_set_order(found, _int_hash))


def _int_hash(number: int) -> int:
    return number
