"""States of runs of offsets, as a share coordinator stores them, and how two lists become one."""

import heapq
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from kafkalite.log.checkpoint import format_uuid

NO_OFFSET = -1
"""A share partition without a start offset yet; in an update: it stays as it is."""


class RecordState(IntEnum):
    """State of one record in a share group; the numbers are those of the wire."""

    AVAILABLE = 0
    """May be acquired; also what was acquired before, and came back."""
    ACQUIRED = 1
    """Locked for a member. Never stored: a new leader has it delivered again."""
    ACKNOWLEDGED = 2
    """Processed; final."""
    ARCHIVED = 4
    """Rejected, given up after too many deliveries, or nothing that can be delivered; final."""

    @property
    def is_terminal(self) -> bool:
        """Whether the record is finished with."""
        return self >= RecordState.ACKNOWLEDGED


class StateBatch(NamedTuple):
    """The state of offsets `first_offset` to `last_offset`, both inclusive.

    The order of the fields is Kafka's order of batches: of two with the same offsets the one with
    more deliveries, then the one with the higher state, comes later.
    """

    first_offset: int
    last_offset: int
    delivery_count: int
    delivery_state: int


class SharePartitionKey(NamedTuple):
    """A partition as a share group has it."""

    group_id: str
    topic_id: UUID
    partition: int

    @property
    def coordinator_key(self) -> str:
        """Key by which its share coordinator is found (FindCoordinator type 2)."""
        return f"{self.group_id}:{format_uuid(self.topic_id)}:{self.partition}"


def combine(
    so_far: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int
) -> list[StateBatch]:
    """Return one list for two, in order and without overlaps (rule 419).

    Where two say something about the same offset, the one with more deliveries counts, then the
    one with the higher state. Neighbours that say the same become one. As Kafka's
    PersisterStateBatchCombiner.

    Args:
        so_far: what was known.
        new: what is added.
        start_offset: what lies below it is dropped; NO_OFFSET keeps everything.
    """
    batches = [*so_far, *new]
    if start_offset != NO_OFFSET:
        batches = [
            batch
            if batch.first_offset >= start_offset
            else batch._replace(first_offset=start_offset)
            for batch in batches
            if batch.last_offset >= start_offset
        ]
    if len(batches) < 2:
        return batches
    heapq.heapify(batches)
    combined = []
    last = heapq.heappop(batches)
    while batches:
        following = heapq.heappop(batches)
        says_the_same = last[2:] == following[2:]
        if following.first_offset > last.last_offset + says_the_same:
            combined.append(last)
            last = following
            continue
        for part in _resolve(last, following):
            heapq.heappush(batches, part)
        last = heapq.heappop(batches)
    combined.append(last)
    return combined


def _resolve(first: StateBatch, second: StateBatch) -> list[StateBatch]:
    """Return what two batches say together that overlap, or touch and say the same."""
    if first[2:] == second[2:]:
        return [first._replace(last_offset=max(first.last_offset, second.last_offset))]
    if second[2:] < first[2:]:
        if second.last_offset <= first.last_offset:
            return [first]
        return [first, second._replace(first_offset=first.last_offset + 1)]
    parts = [second]
    if second.first_offset > first.first_offset:
        parts.append(first._replace(last_offset=second.first_offset - 1))
    if second.last_offset < first.last_offset:
        parts.append(first._replace(first_offset=second.last_offset + 1))
    return parts
