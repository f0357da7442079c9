"""Aborted transactions: the entries of a segment's `.txnindex`, after Kafka's TransactionIndex.

An entry is written to the segment that holds the abort marker, which may be a later one than the
segment of the transaction's first record. Entries stand in the order of their markers.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.log.disk import Disk

_VERSION = 0
_ENTRY = Struct(">hqqqq")
ENTRY_SIZE = _ENTRY.size


class AbortedTransaction(NamedTuple):
    """An aborted transaction, for a read_committed consumer to skip its records.

    `first_offset` and `last_offset` are inclusive; the latter is the marker's.
    `last_stable_offset` was the first offset still undecided once this transaction was (exclusive
    end of what was decided): no transaction that overlaps offsets below it is listed later.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_aborted(transactions: Iterable[AbortedTransaction]) -> bytes:
    """Return the bytes of a `.txnindex` with these entries."""
    return b"".join(_ENTRY.pack(_VERSION, *transaction) for transaction in transactions)


def decode_aborted(data: bytes) -> list[AbortedTransaction]:
    """Return the entries of a `.txnindex`; bytes of an incomplete last one are ignored.

    Raises:
        KafkaError: CORRUPT_MESSAGE for a version that is not known.
    """
    transactions = []
    whole = len(data) - len(data) % ENTRY_SIZE
    for version, *fields in _ENTRY.iter_unpack(memoryview(data)[:whole]):
        if version != _VERSION:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"transaction index entry of version {version}"
            )
        transactions.append(AbortedTransaction(*fields))
    return transactions


def overlapping(
    transactions: Iterable[AbortedTransaction], first_offset: int, upper_offset: int
) -> tuple[list[AbortedTransaction], bool]:
    """Return the transactions with records in a range, and whether that is known to be all.

    Args:
        transactions: entries of one segment, in order.
        first_offset: of the range, inclusive.
        upper_offset: its end, exclusive.

    Returns:
        The entries, and False if later segments may hold more of them (rule 116).
    """
    found = []
    for transaction in transactions:
        if transaction.last_offset >= first_offset and transaction.first_offset < upper_offset:
            found.append(transaction)
        if transaction.last_stable_offset >= upper_offset:
            return found, True
    return found, False


class TransactionIndex:
    """The `.txnindex` of one segment; the file is made with its first entry.

    Entries are kept in memory once read: aborts are rare, and each fetch of a read_committed
    consumer asks for them. Invariant: the file holds the first `_written` entries.
    """

    __slots__ = ("_disk", "_entries", "_written", "path")

    def __init__(self, disk: "Disk", path: str, *, size: int) -> None:
        """Describe the file at `path` that has `size` bytes (0: there is none); read nothing."""
        self._disk = disk
        self.path = path
        self._written = size // ENTRY_SIZE
        self._entries: list[AbortedTransaction] | None = None if self._written else []

    def __len__(self) -> int:
        return len(self._loaded())

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return iter(self._loaded())

    def _loaded(self) -> list[AbortedTransaction]:
        entries = self._entries
        if entries is None:
            entries = self._entries = decode_aborted(self._disk.read(self.path))[: self._written]
            self._written = len(entries)
        return entries

    def append(self, transaction: AbortedTransaction) -> None:
        """Add the transaction whose marker was just appended to the segment.

        Raises:
            OSError: the entry could not be written; it is kept and `write_pending` tries again.
        """
        entries = self._loaded()
        assert not entries or entries[-1].last_offset < transaction.last_offset
        entries.append(transaction)
        self.write_pending()

    def write_pending(self) -> None:
        """Bring the file up to date. Raises OSError; nothing is lost, the next call tries again."""
        entries = self._entries
        if entries is None or len(entries) == self._written:
            return
        file = self._disk.open(self.path, create=True)
        try:
            if file.size != self._written * ENTRY_SIZE:  # left longer by a writer that crashed
                file.truncate(self._written * ENTRY_SIZE)
            file.append(encode_aborted(entries[self._written :]))
            self._written = len(entries)
        finally:
            file.close()

    def collect(
        self, first_offset: int, upper_offset: int
    ) -> tuple[list[AbortedTransaction], bool]:
        """Return this segment's part of what `overlapping` finds in [first_offset, upper_offset).

        The flag says whether later segments need not be asked.
        """
        if not self._entries and not self._written:
            return [], False
        return overlapping(self._loaded(), first_offset, upper_offset)

    def truncate_to(self, offset: int) -> None:
        """Forget transactions whose marker is at or after `offset`."""
        entries = self._loaded()
        keep = next(
            (at for at, entry in enumerate(entries) if entry.last_offset >= offset), len(entries)
        )
        self._cut(keep)

    def clear(self) -> None:
        """Forget all entries, to be written again by recovery; nothing of the file is read."""
        if self._entries is None:
            self._entries = []
        self._cut(0)

    def _cut(self, count: int) -> None:
        assert self._entries is not None
        del self._entries[count:]
        if self._written > count:
            file = self._disk.open(self.path, create=True)
            try:
                file.truncate(count * ENTRY_SIZE)
            finally:
                file.close()
            self._written = count
