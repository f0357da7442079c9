"""Compaction's choice of records, batch by batch (Kafka's Cleaner, rules 205-208).

Pure: two walks over the same batches. The first fills an `OffsetMap` from the log's dirty part,
with the latest offset of each key. The second gives every batch of the log to `BatchFilter`, which
says what is to be written in its place. Offsets never change; a batch's header keeps its offsets
and sequences whatever is taken out of it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from kafkalite.log.transaction_index import AbortedTransaction
from kafkalite.wire.compression import Codec, compress
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.record_codec import Scanned, scan_keys, scan_payload
from kafkalite.wire.records import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    Record,
    assemble_batch,
    build_batch,
    crc_matches,
    empty_batch,
    iterate_records,
    read_batch_header,
    read_end_marker,
    read_payload,
)

_EXACT_KEY_BYTES = 15
_DIGEST_BYTES = 16
"""Longer keys are held by a digest of a length that no exact key has. Kafka's map holds all keys
by MD5, of the same length."""

ENTRY_BYTES = 176
"""Memory for one entry of a full `OffsetMap`: bytes object 49, int 32, and the dict's share
(measured with a digest per key: 120-141, at most 171 while the dict grows)."""


class OffsetMap:
    """Latest offset of each key in the dirty part of a log, in bounded memory.

    Attributes:
        end_offset: all records from the first dirty offset up to this (exclusive) are in the map.
    """

    __slots__ = ("_capacity", "_offsets", "end_offset")

    def __init__(self, memory_bytes: int, first_dirty_offset: int) -> None:
        self._capacity = max(1, memory_bytes // ENTRY_BYTES)
        self._offsets: dict[bytes, int] = {}
        self.end_offset = first_dirty_offset

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        """Whether no further batch is to be added. One batch may go beyond the capacity."""
        return len(self._offsets) >= self._capacity

    def add_batch(self, batch: memoryview, header: BatchHeader) -> None:
        """Note the keys of a batch, skipping records below the first dirty offset.

        Raises:
            KafkaError: CORRUPT_MESSAGE or INVALID_RECORD if the batch is damaged: a wrong key in
                the map would remove good records.
        """
        _check_crc(batch, header)
        start_offset = self.end_offset
        base_offset = header.base_offset
        offsets = self._offsets
        payload = read_payload(batch, header)
        for offset_delta, key in scan_keys(payload, header.record_count):
            offset = base_offset + offset_delta
            if key is not None and offset >= start_offset:
                if len(key) > _EXACT_KEY_BYTES:
                    key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
                offsets[key] = offset

    def advance_to(self, end_offset: int) -> None:
        """Note that everything below `end_offset` has been added or needs no place in the map."""
        self.end_offset = max(self.end_offset, end_offset)

    def latest(self, key: bytes) -> int:
        """Return the latest known offset of a key, -1 if it is not in the dirty part."""
        if len(key) > _EXACT_KEY_BYTES:
            key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        return self._offsets.get(key, -1)


@dataclass(slots=True)
class _AbortedState:
    transaction: AbortedTransaction
    has_batches: bool = False


class CleanedTransactionMetadata:
    """Follows transactions through a log that is read from front to back.

    Knows which batches were aborted and which markers no batch needs any more. After Kafka's
    CleanedTransactionMetadata.
    """

    __slots__ = ("_aborted", "_committed", "_next", "_upcoming")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Begin before the first batch.

        Args:
            aborted: all transactions that overlap the part of the log that is read.
        """
        self._upcoming = sorted(aborted, key=_first_offset)
        self._next = 0
        self._aborted: dict[int, _AbortedState] = {}
        self._committed: set[int] = set()

    def on_batch(self, header: BatchHeader) -> bool:
        """Pass a batch of records; return whether its transaction was aborted."""
        self._enter(header.last_offset)
        if not header.attributes & TRANSACTIONAL:
            return False
        state = self._aborted.get(header.producer_id)
        if state is not None:
            state.has_batches = True
            return True
        self._committed.add(header.producer_id)
        return False

    def on_control_batch(
        self, batch: memoryview, header: BatchHeader
    ) -> tuple[bool, AbortedTransaction | None]:
        """Pass a marker.

        Returns:
            Whether nothing of its transaction is left in the log before it, so that the marker
            may go too (in time); and the index entry that is still needed, if it is an abort.
        """
        self._enter(header.last_offset)
        if header.record_count == 0:
            return True, None
        marker = read_end_marker(batch)
        if marker is None:
            return False, None
        if marker.is_commit:
            has_batches = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not has_batches, None
        state = self._aborted.pop(header.producer_id, None)
        if state is not None and state.has_batches:
            return False, state.transaction
        return True, None

    def _enter(self, last_offset: int) -> None:
        while (
            self._next < len(self._upcoming)
            and self._upcoming[self._next].first_offset <= last_offset
        ):
            transaction = self._upcoming[self._next]
            self._next += 1
            self._aborted.setdefault(transaction.producer_id, _AbortedState(transaction))


class LastRecord(NamedTuple):
    """The end of what an active producer wrote: what compaction must keep a batch of.

    `offset` is that of its last record, -1 if only a marker of `epoch` is left.
    """

    offset: int
    epoch: int


@dataclass(slots=True)
class FilterResult:
    """Replacement of one batch; nothing is written if `data` is None."""

    data: bytes | bytearray | memoryview | None
    header: BatchHeader
    aborted: AbortedTransaction | None = None


@dataclass(slots=True)
class FilterStatistics:
    """Counts of one pass; keyless records do not belong into a compacted topic and are dropped."""

    records_read: int = 0
    records_kept: int = 0
    keyless_records: int = 0


class BatchFilter:
    """Decides what remains of each batch of a log; batches are given in the log's order."""

    __slots__ = (
        "_delete_horizon_ms",
        "_last_records",
        "_map",
        "_now_ms",
        "_upper_offset",
        "_walk",
        "statistics",
    )

    def __init__(
        self,
        offset_map: OffsetMap,
        *,
        aborted: Iterable[AbortedTransaction],
        last_records: Mapping[int, LastRecord],
        upper_offset: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        """Begin before the first batch of the log.

        Args:
            offset_map: filled from the dirty part.
            aborted: transactions that overlap the part of the log that will be read.
            last_records: of the producers that are still active.
            upper_offset: exclusive end of what this round may clean; its last batch is kept even
                if empty, so that the end of the cleaned part can be told from the log.
            now_ms: wall clock; decides which delete horizons have passed.
            delete_retention_ms: from now on, how long tombstones and markers stay.
        """
        self._map = offset_map
        self._walk = CleanedTransactionMetadata(aborted)
        self._last_records = last_records
        self._upper_offset = upper_offset
        self._now_ms = now_ms
        self._delete_horizon_ms = now_ms + delete_retention_ms
        self.statistics = FilterStatistics()

    def filter(self, batch: memoryview, header: BatchHeader) -> FilterResult:
        """Return what to write in place of a batch.

        Raises:
            KafkaError: CORRUPT_MESSAGE or INVALID_RECORD if the batch is damaged: a new CRC must
                not be put on damaged bytes.
        """
        _check_crc(batch, header)
        self.statistics.records_read += header.record_count
        if header.attributes & CONTROL:
            kept = self._filter_control(batch, header)
        else:
            kept = self._filter_records(batch, header)
        if kept.data is not None:
            self.statistics.records_kept += kept.header.record_count
        return kept

    def _filter_control(self, batch: memoryview, header: BatchHeader) -> FilterResult:
        is_unneeded, aborted = self._walk.on_control_batch(batch, header)
        if header.record_count == 0:
            return self._emptied(batch, header)
        if is_unneeded:
            if not header.attributes & DELETE_HORIZON:
                return self._with_delete_horizon(header, list(iterate_records(batch)))
            if header.base_timestamp <= self._now_ms:
                return self._emptied(batch, header)
        return FilterResult(batch, header, aborted)

    def _filter_records(self, batch: memoryview, header: BatchHeader) -> FilterResult:
        if self._walk.on_batch(header) or header.record_count == 0:
            return self._emptied(batch, header)
        payload = read_payload(batch, header)
        kept, has_tombstones = self._select(payload, header)
        if not kept:
            return self._emptied(batch, header)
        if has_tombstones and not header.attributes & DELETE_HORIZON:
            wanted = {header.base_offset + scanned[3] for scanned in kept}
            records = [record for record in iterate_records(batch) if record.offset in wanted]
            return self._with_delete_horizon(header, records)
        if len(kept) == header.record_count:
            return FilterResult(batch, header)
        return _spliced(payload, header, kept)

    def _select(self, payload: bytes, header: BatchHeader) -> tuple[list[Scanned], bool]:
        """Return the records that stay, and whether a tombstone is among them."""
        latest = self._map.latest
        end_offset = self._map.end_offset
        base_offset = header.base_offset
        tombstones_stay = (
            not header.attributes & DELETE_HORIZON or self._now_ms < header.base_timestamp
        )
        kept = []
        has_tombstones = False
        for scanned in scan_payload(payload, header.record_count):
            _, _, _, offset_delta, key, _, value_length, _ = scanned
            offset = base_offset + offset_delta
            if offset < end_offset:
                if key is None:
                    self.statistics.keyless_records += 1
                    continue
                if offset < latest(key) or (value_length < 0 and not tombstones_stay):
                    continue
            kept.append(scanned)
            has_tombstones = has_tombstones or value_length < 0
        return kept, has_tombstones

    def _emptied(self, batch: memoryview, header: BatchHeader) -> FilterResult:
        """Return the header alone where someone needs it, else nothing (rule 207)."""
        if header.next_offset != self._upper_offset and not self._is_last_of_producer(header):
            return FilterResult(None, header)
        if header.record_count == 0:
            return FilterResult(batch, header)
        data = empty_batch(header)
        return FilterResult(data, read_batch_header(data))

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._last_records.get(header.producer_id)
        if last is None or header.producer_id < 0:
            return False
        if last.offset >= 0:
            return header.last_offset == last.offset
        return bool(header.attributes & CONTROL) and header.producer_epoch == last.epoch

    def _with_delete_horizon(self, header: BatchHeader, records: list[Record]) -> FilterResult:
        """Return the batch with these records and the time from which tombstones may go.

        The horizon takes the place of the base timestamp (KIP-534), so all deltas change.
        """
        codec = Codec(header.attributes & CODEC_MASK)
        data = build_batch(
            records,
            base_offset=header.base_offset,
            leader_epoch=header.partition_leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            codec=codec,
            transactional=header.is_transactional,
            control=header.is_control,
            log_append_time_ms=header.max_timestamp if header.is_log_append_time else None,
            delete_horizon_ms=self._delete_horizon_ms,
            last_offset_delta=header.last_offset_delta,
        )
        return FilterResult(data, read_batch_header(data))


def _check_crc(batch: memoryview, header: BatchHeader) -> None:
    if not crc_matches(batch, 0, header):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"batch at offset {header.base_offset} does not match its CRC {header.crc:#010x}",
        )


def _spliced(payload: bytes, header: BatchHeader, kept: list[Scanned]) -> FilterResult:
    """Return the batch with only these records, whose bytes stay as they are.

    That needs the base timestamp to stay too. Kafka makes it the first record's; nobody relies on
    that.
    """
    codec = Codec(header.attributes & CODEC_MASK)
    data = b"".join([payload[scanned[0] : scanned[1]] for scanned in kept])
    max_timestamp = header.max_timestamp
    if not header.attributes & LOG_APPEND_TIME:
        max_timestamp = header.base_timestamp + max(scanned[2] for scanned in kept)
    shorter = BatchHeader(
        base_offset=header.base_offset,
        batch_length=0,
        partition_leader_epoch=header.partition_leader_epoch,
        magic=header.magic,
        crc=0,
        attributes=header.attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        record_count=len(kept),
    )
    return FilterResult(assemble_batch(shorter, compress(codec, data) if codec else data), shorter)


def _first_offset(transaction: AbortedTransaction) -> int:
    return transaction.first_offset
