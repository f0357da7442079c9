"""Work that takes longer than a turn may, as generators that hand the turn back (decision 0082)."""

import sys
from collections.abc import Callable, Generator, Iterable
from typing import Generic, TypeVar

from kafkalite.group.java_order import HASH_MAP_CAPACITY, bucket_count_of, bucket_of

Key = TypeVar("Key")
Outcome = TypeVar("Outcome")

Sliced = Generator[int, None, Outcome]
"""Work in small steps. Each yields what it took, in units of about a microsecond; the end returns
the outcome."""

KEYS_PER_STEP = 64


class Computation(Generic[Outcome]):
    """Sliced work, and how far it is."""

    __slots__ = ("_outcome", "_work", "is_done")

    def __init__(self, work: Sliced[Outcome]) -> None:
        self._work = work
        self._outcome: list[Outcome] = []
        self.is_done = False

    def advance(self, units: int) -> bool:
        """Go on for about so many units; return whether it is done."""
        try:
            while units > 0:
                units -= next(self._work)
        except StopIteration as end:
            self._outcome.append(end.value)
            self.is_done = True
        return self.is_done

    @property
    def outcome(self) -> Outcome:
        """Return the outcome of what is done."""
        return self._outcome[0]


def complete(work: Sliced[Outcome]) -> Outcome:
    """Return the outcome, without a pause."""
    computation = Computation(work)
    computation.advance(sys.maxsize)
    return computation.outcome


def sliced_hash_map_order(
    keys: Iterable[Key], hash_code: Callable[[Key], int], *, capacity: int = HASH_MAP_CAPACITY
) -> Sliced[list[Key]]:
    """Return what `hash_map_order` does."""
    ordered = list(keys)
    buckets = {}
    mask = bucket_count_of(len(ordered), capacity) - 1
    for position, key in enumerate(ordered, 1):
        buckets[key] = bucket_of(hash_code(key), mask)
        if not position % KEYS_PER_STEP:
            yield 2 * KEYS_PER_STEP
    ordered.sort(key=buckets.__getitem__)
    yield len(ordered) // 4
    return ordered
