"""Opening a partition's directory, after a clean stop or after a crash; after Kafka's LogLoader.

After a clean stop the last batches' headers are read, and small files: epochs, a snapshot. After a
crash, every batch from the recovery point on is checked by its CRC, the log is cut at the first
that does not hold, and indexes, epochs and producers' states are built from what is left.
"""

import logging
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Final
from zlib import crc32

from kafkalite.log.checkpoint import LEADER_EPOCH_FILE, read_epochs, write_epochs
from kafkalite.log.index import MAX_RELATIVE_OFFSET
from kafkalite.log.leader_epochs import EpochStart, LeaderEpochFileCache
from kafkalite.log.producer_snapshots import Snapshots, replay, restore
from kafkalite.log.producer_state import ProducerStates
from kafkalite.log.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    Segment,
    file_name,
)
from kafkalite.log.segments import Segments
from kafkalite.log.state import LogState
from kafkalite.log.transaction_index import ENTRY_SIZE
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import (
    BATCH_OVERHEAD,
    CONTROL,
    LENGTH_OVERHEAD,
    MAGIC,
    BatchHeader,
    crc_matches,
    read_batch_header,
    read_end_marker,
)

if TYPE_CHECKING:
    from kafkalite.log.disk import Disk
    from kafkalite.log_config import LogConfig

logger = logging.getLogger(__name__)

MAX_OFFSET: Final = 2**63 - 1

CHUNK_BYTES: Final = 4 << 20
"""Read at once during recovery; larger batches are read whole."""

_OLD_BATCH: Final = Struct(">qiIb")
_OLD_OVERHEAD: Final = 26

_ENTRY_SIZES: Final = {INDEX_SUFFIX: 8, TIME_INDEX_SUFFIX: 12, TXN_INDEX_SUFFIX: ENTRY_SIZE}


@dataclass(slots=True)
class _Directory:
    """Files of a partition's directory, by base offset."""

    sizes: dict[int, dict[str, int]] = field(default_factory=dict)
    modified_ms: dict[int, int] = field(default_factory=dict)
    snapshots: list[int] = field(default_factory=list)


def open_log(
    disk: "Disk",
    directory: str,
    config: "LogConfig",
    *,
    clean: bool,
    log_start_offset: int,
    recovery_point: int,
    now_ms: int,
) -> LogState:
    """Return what a log consists of, repaired where it has to be.

    Args:
        disk: where it is.
        directory: of the partition.
        config: the topic's settings.
        clean: the last stop was orderly; nothing needs checking.
        log_start_offset: from the checkpoint; 0 if it has none.
        recovery_point: likewise; all below it is on stable storage.
        now_ms: for a segment that has to be made.

    Raises:
        OSError: the disk fails.
        KafkaError: CORRUPT_MESSAGE where a log is damaged that no crash explains, or is in a
            format that is not supported; nothing is cut off then.
    """
    deleted = _finish_swaps(disk, directory)
    found = _look(disk, directory, deleted, clean=clean)
    segments = [
        Segment(disk, directory, base_offset, sizes=sizes, now_ms=found.modified_ms[base_offset])
        for base_offset, sizes in found.sizes.items()
    ]
    snapshots = Snapshots(disk, directory, found.snapshots)
    epochs_path = f"{directory}/{LEADER_EPOCH_FILE}"
    epochs_before = _epochs_in(disk, epochs_path)
    epochs = LeaderEpochFileCache(epochs_before or ())
    if epochs_before is None or not (clean or epochs_before):
        # The file changes with each new leader, unsynced: a power failure may have torn it.
        _rebuild_epochs(epochs, segments, log_start_offset, recovery_point)
    recovery = _Recovery(disk, directory, config, Segments(segments), snapshots, epochs)
    state = recovery.run(
        {offset for offset, sizes in found.sizes.items() if _lacks_index(sizes)},
        clean=clean,
        log_start_offset=log_start_offset,
        recovery_point=recovery_point,
        now_ms=now_ms,
    )
    if epochs.entries != (epochs_before or []):
        write_epochs(disk, epochs_path, epochs.entries, sync=False)
    epochs.is_unwritten = False
    return state


def _epochs_in(disk: "Disk", path: str) -> list[EpochStart] | None:
    """Return the leader epochs of a checkpoint, None if it cannot be read."""
    try:
        return read_epochs(disk, path)
    except ValueError as error:
        logger.warning("%s: %s; the epochs are rebuilt", path, error)
        return None


def _rebuild_epochs(
    epochs: LeaderEpochFileCache, segments: list[Segment], log_start_offset: int, end_offset: int
) -> None:
    """Take the epochs from the headers of the batches between two offsets.

    Those behind are looked at by recovery in any case.
    """
    for segment in segments:
        if segment.base_offset >= end_offset:
            return
        for _, header in segment.headers():
            epoch = header.partition_leader_epoch
            if header.next_offset > log_start_offset and epoch > epochs.latest:
                epochs.assign(epoch, header.base_offset)
            if header.next_offset >= end_offset:
                return


def _lacks_index(sizes: dict[str, int]) -> bool:
    """Whether a segment with files of these sizes needs its indexes rebuilt."""
    if INDEX_SUFFIX not in sizes or TIME_INDEX_SUFFIX not in sizes:
        return True
    return any(sizes.get(kind, 0) % entry_size for kind, entry_size in _ENTRY_SIZES.items())


def _offset_of(name: str) -> int | None:
    """Return the offset that a segment file's name begins with, None for other names."""
    digits = name.partition(".")[0]
    return int(digits) if len(digits) == 20 and digits.isdigit() else None


def _finish_swaps(disk: "Disk", directory: str) -> set[int]:
    """Remove what was being deleted or compacted, and complete a swap that had begun.

    A `.swap` file next to a `.cleaned` one of the same or an earlier offset belongs to a
    replacement that had not got to its point of no return. Returns the offsets of segments whose
    deletion had begun.
    """
    deleted = set()
    cleaned: list[int] = []
    swaps: list[tuple[int, str]] = []
    for entry in disk.list(directory):
        name = entry.name
        offset = _offset_of(name)
        if offset is None:
            if name.endswith(".tmp"):
                disk.remove(f"{directory}/{name}")
        elif name.endswith(CLEANED_SUFFIX):
            cleaned.append(offset)
            disk.remove(f"{directory}/{name}")
        elif name.endswith((DELETED_SUFFIX, ".tmp")):
            deleted.add(offset)
            disk.remove(f"{directory}/{name}")
        elif name.endswith(SWAP_SUFFIX):
            swaps.append((offset, name))
    first_cleaned = min(cleaned, default=MAX_OFFSET)
    valid = []
    for offset, name in swaps:
        if offset >= first_cleaned:
            disk.remove(f"{directory}/{name}")
        else:
            valid.append((offset, name))
    if not valid:
        return deleted
    start, end = _swap_range(disk, directory, valid)
    for entry in disk.list(directory):
        offset = _offset_of(entry.name)
        if offset is not None and start <= offset < end and entry.name.endswith(SEGMENT_SUFFIXES):
            disk.remove(f"{directory}/{entry.name}")
    for _, name in valid:
        disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    return deleted


def _swap_range(disk: "Disk", directory: str, swaps: list[tuple[int, str]]) -> tuple[int, int]:
    """Return the offsets [start, end) that swapped segments replace."""
    start, end = MAX_OFFSET, -1
    for offset, name in swaps:
        if name == f"{offset:020d}{LOG_SUFFIX}{SWAP_SUFFIX}":
            size = disk.open(f"{directory}/{name}").size
            segment = Segment(
                disk, directory, offset, sizes={LOG_SUFFIX: size}, suffix=SWAP_SUFFIX, now_ms=0
            )
            start = min(start, offset)
            end = max(end, segment.next_offset())
    return start, end


def _look(disk: "Disk", directory: str, deleted: set[int], *, clean: bool) -> _Directory:
    """Return what a directory has.

    Raises:
        KafkaError: CORRUPT_MESSAGE, a segment is gone that was there at an orderly stop.
    """
    found = _Directory()
    orphans: list[tuple[int, str]] = []
    for entry in disk.list(directory):
        offset = _offset_of(entry.name)
        if offset is None:
            continue
        kind = entry.name[20:]
        if kind == SNAPSHOT_SUFFIX:
            found.snapshots.append(offset)
        elif kind == LOG_SUFFIX:
            found.sizes.setdefault(offset, {})[kind] = entry.size
            found.modified_ms[offset] = entry.modified_ms
        elif kind in SEGMENT_SUFFIXES:
            found.sizes.setdefault(offset, {})[kind] = entry.size
            orphans.append((offset, entry.name))
    for offset, name in orphans:
        if offset not in found.modified_ms:
            if clean and offset not in deleted:
                raise _damage(directory, offset, "is missing, while its indexes are there")
            disk.remove(f"{directory}/{name}")
            found.sizes.pop(offset, None)
    return found


def _damage(directory: str, offset: int, what: str) -> KafkaError:
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"{directory}/{file_name(offset, LOG_SUFFIX)} {what}: records are lost; restore the file, "
        "or move the directory away, to have it copied from another replica or begun anew",
    )


@dataclass(slots=True)
class _Recovery:
    disk: "Disk"
    directory: str
    config: "LogConfig"
    segments: Segments
    snapshots: Snapshots
    epochs: LeaderEpochFileCache
    producers: ProducerStates = field(default_factory=ProducerStates)

    def run(
        self,
        damaged: set[int],
        *,
        clean: bool,
        log_start_offset: int,
        recovery_point: int,
        now_ms: int,
    ) -> LogState:
        """Return the log's state; see `open_log`."""
        unsafe = [] if clean or not self.segments else self.segments.from_offset(recovery_point)
        for segment in self.segments.closed:
            if segment.size or segment in unsafe:
                continue
            # Compaction or a loss of power may have left nothing of it; its indexes are empty then.
            if len(segment.time_index) or len(segment.offset_index):
                raise _damage(self.directory, segment.base_offset, "is empty, and the log goes on")
        for segment in self.segments:
            if segment.base_offset in damaged and segment not in unsafe:
                self._rebuild_indexes(segment)
        if unsafe:
            self._recover(unsafe)
        if self.segments and self.segments.active.next_offset() < log_start_offset:
            logger.warning(
                "%s ends before its log start offset %d, all of it is removed",
                self.directory,
                log_start_offset,
            )
            self._drop(list(self.segments))
            self.epochs.clear()
        if not self.segments:
            segment = Segment(self.disk, self.directory, log_start_offset, now_ms=now_ms)
            segment.create()
            self.segments.add(segment)
        end_offset = self.segments.active.next_offset()
        stopped_at = max(self.snapshots.offsets, default=0)
        if clean and stopped_at > end_offset and self.snapshots.is_whole(stopped_at):
            what = f"ends at offset {end_offset} and not at {stopped_at}, where the log was closed"
            raise _damage(self.directory, self.segments.active.base_offset, what)
        start_offset = max(log_start_offset, self.segments.first.base_offset)
        self.epochs.truncate_from_end(end_offset)
        self.epochs.truncate_from_start(start_offset)
        self.snapshots.remove_after(end_offset)
        if not unsafe:
            self._load_producers(end_offset, clean=clean)
        self.producers.has_whole_history = end_offset == 0
        self.snapshots.remove_stray({segment.base_offset for segment in self.segments})
        for segment in self.segments:
            segment.close()  # opened again when needed: idle partitions keep no descriptor
        return LogState(
            segments=self.segments,
            snapshots=self.snapshots,
            epochs=self.epochs,
            producers=self.producers,
            log_start_offset=start_offset,
            log_end_offset=end_offset,
            recovery_point=end_offset if clean else min(recovery_point, end_offset),
        )

    def _load_producers(self, end_offset: int, *, clean: bool) -> None:
        if clean and not self.snapshots.offsets:
            return  # as Kafka: a log that never had a snapshot has no producers to tell of
        restore(self.snapshots, self.producers, self.segments, end_offset)

    def _drop(self, segments: list[Segment]) -> None:
        self.segments.remove(segments)
        for segment in reversed(segments):
            segment.remove()
        self.snapshots.remove(segment.base_offset for segment in segments)

    def _rebuild_indexes(self, segment: Segment) -> None:
        """Rebuild what a foreign hand, not a crash, has taken from a segment known to be safe."""
        logger.warning("%r has no usable index, it is rebuilt", segment)
        producers = ProducerStates()
        before = Segments(self.segments)
        restore(self.snapshots, producers, before, segment.base_offset)
        scan = _Scan(segment, self.config, producers, self.epochs)
        if scan.run() < segment.size:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{segment.path(LOG_SUFFIX)} is damaged at byte {scan.position}: {scan.problem}",
            )
        segment.finish()

    def _recover(self, unsafe: list[Segment]) -> None:
        """Check all batches of these segments, the log's last ones, and cut at the first bad one.

        The producers' states are complete afterwards.
        """
        first = unsafe[0]
        start_offset = self.snapshots.load(self.producers, first.base_offset)
        for segment in self.segments:
            if segment.base_offset < first.base_offset:
                from_offset = -1 if start_offset is None else start_offset
                replay(segment, self.producers, from_offset, first.base_offset)
        for index, segment in enumerate(unsafe):
            scan = _Scan(segment, self.config, self.producers, self.epochs)
            valid_bytes = scan.run()
            cut = segment.size - valid_bytes
            if cut:
                logger.warning(
                    "%s: %d bytes cut off at byte %d: %s",
                    segment.path(LOG_SUFFIX),
                    cut,
                    valid_bytes,
                    scan.problem,
                )
                # The segments behind go first, so that a crash never leaves a hole.
                self._drop(unsafe[index + 1 :])
                segment.truncate_at(valid_bytes)
            if segment is self.segments.active:
                segment.write_indexes()
                return
            segment.finish()


@dataclass(slots=True)
class _Scan:
    """Walks one segment's batches, checks each, and builds what describes them."""

    segment: Segment
    config: "LogConfig"
    producers: ProducerStates
    epochs: LeaderEpochFileCache
    position: int = 0
    next_offset: int = 0
    problem: str = ""

    def run(self) -> int:
        """Return how many bytes of the segment are good; `problem` says why not more.

        Raises:
            KafkaError: CORRUPT_MESSAGE for a batch of an old format, which may not be cut off.
        """
        segment = self.segment
        segment.forget_indexes()
        self.next_offset = segment.base_offset
        length = CHUNK_BYTES
        while self.position < segment.size and not self.problem:
            chunk = segment.file.pread(length, self.position)
            needed = self._check(chunk)
            length = max(CHUNK_BYTES, needed)
            if needed > segment.size - self.position:
                self.problem = "the last batch is not whole"
        if self.problem:
            self._refuse_old_format()
        return self.position

    def _check(self, chunk: bytes) -> int:
        """Take in the whole batches of a chunk; return the size of the one that is not whole."""
        at = 0
        end = len(chunk)
        segment = self.segment
        interval = self.config.index_interval_bytes
        start = self.position
        while at + BATCH_OVERHEAD <= end:
            header = read_batch_header(chunk, at)
            size = header.batch_length + LENGTH_OVERHEAD
            if header.magic != MAGIC or size < BATCH_OVERHEAD:
                self.problem = "no record batch"
                return 0
            if at + size > end:
                return size
            if not crc_matches(chunk, at, header):
                self.problem = "the CRC does not match"
                return 0
            if not self._offsets_ascend(header):
                self.problem = f"offset {header.base_offset} after {self.next_offset - 1}"
                return 0
            segment.index_batch(header, self.position, interval)
            if header.partition_leader_epoch > self.epochs.latest:
                self.epochs.assign(header.partition_leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self._tell_producers(chunk, at, header)
            self.next_offset = header.next_offset
            at += size
            self.position = start + at
        return BATCH_OVERHEAD if at < end else 0

    def _offsets_ascend(self, header: BatchHeader) -> bool:
        return (
            header.base_offset >= self.next_offset
            and header.last_offset_delta >= 0
            and header.last_offset - self.segment.base_offset <= MAX_RELATIVE_OFFSET
        )

    def _tell_producers(self, chunk: bytes, at: int, header: BatchHeader) -> None:
        marker = None
        if header.attributes & CONTROL:
            marker = read_end_marker(memoryview(chunk)[at : at + header.size])
        aborted = self.producers.update(header, base_offset=header.base_offset, marker=marker)
        if aborted is not None:
            self.segment.aborted.append(aborted)

    def _refuse_old_format(self) -> None:
        """Raise if there is a batch of magic 0 or 1, which Kafka 4 still reads and we do not."""
        file = self.segment.file
        start = file.pread(_OLD_OVERHEAD, self.position)
        if len(start) < _OLD_OVERHEAD:
            return
        _, length, crc, magic = _OLD_BATCH.unpack_from(start)
        if magic > 1 or not 0 < length <= self.segment.size - self.position - LENGTH_OVERHEAD:
            return
        covered = file.pread(length - 4, self.position + 16)
        if crc32(covered) == crc:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{self.segment.path(LOG_SUFFIX)} holds records of message format v{magic}; "
                "only v2 (Kafka 0.11 and later) is supported",
            )
