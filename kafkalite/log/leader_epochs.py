"""Leader epochs of one log: at which offset each leader began to write (KIP-101, KIP-279).

Pure; what is kept in `leader-epoch-checkpoint` is `entries`. After Kafka's LeaderEpochFileCache.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

UNKNOWN_EPOCH = -1
UNKNOWN_OFFSET = -1


class EpochStart(NamedTuple):
    """A leader epoch and the first offset that was (or will be) written in it."""

    epoch: int
    start_offset: int


class LeaderEpochFileCache:
    """Ascending epochs with ascending start offsets.

    Invariant: both `epoch` and `start_offset` of `entries` are strictly ascending.

    Attributes:
        is_unwritten: the entries changed since this was last False; the owner writes them.
    """

    __slots__ = ("_entries", "is_unwritten")

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        """Take entries as stored; ones that contradict later ones are dropped."""
        self._entries: list[EpochStart] = []
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)
        self.is_unwritten = False

    @property
    def entries(self) -> list[EpochStart]:
        """All epochs, oldest first; a copy."""
        return list(self._entries)

    @property
    def latest(self) -> int:
        """Latest epoch, -1 if there is none."""
        return self._entries[-1].epoch if self._entries else UNKNOWN_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`.

        Later entries that contradict it (an equal or later epoch, or start offset) are removed: the
        log was truncated under them. Negative epochs, of batches from before epochs were written,
        are ignored.
        """
        entries = self._entries
        if epoch < 0:
            return
        if entries:
            latest = entries[-1]
            if epoch == latest.epoch and start_offset >= latest.start_offset:
                return
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(EpochStart(epoch, start_offset))
        self.is_unwritten = True

    def end_offset_for(self, leader_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return (epoch, end offset) of the largest epoch <= leader_epoch; (-1, -1) if unknown.

        End offset is exclusive. Answers OffsetForLeaderEpoch (rule 98): the latest epoch ends at
        `log_end_offset`; one below all known ends, under its own name, where the first known
        begins; one above all is unknown.
        """
        if leader_epoch < 0 or leader_epoch > self.latest:
            return UNKNOWN_EPOCH, UNKNOWN_OFFSET
        if leader_epoch == self.latest:
            return leader_epoch, log_end_offset
        index = bisect_right(self._entries, leader_epoch, key=_epoch_of)
        epoch = self._entries[index - 1].epoch if index else leader_epoch
        return epoch, self._entries[index].start_offset

    def epoch_at(self, offset: int) -> int:
        """Return the epoch that the record at `offset` was written in, -1 if it is not known."""
        index = bisect_right(self._entries, offset, key=_start_of)
        return self._entries[index - 1].epoch if index else UNKNOWN_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or after `end_offset`."""
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
            self.is_unwritten = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that end at or before `start_offset`.

        The epoch that `start_offset` lies in now begins there.
        """
        index = bisect_right(self._entries, start_offset, key=_start_of)
        if index == 0:
            return
        first = EpochStart(self._entries[index - 1].epoch, start_offset)
        if index > 1 or self._entries[0] != first:
            self._entries[:index] = [first]
            self.is_unwritten = True

    def clear(self) -> None:
        """Forget all epochs."""
        self._entries.clear()
        self.is_unwritten = True


def _epoch_of(entry: EpochStart) -> int:
    return entry.epoch


def _start_of(entry: EpochStart) -> int:
    return entry.start_offset
