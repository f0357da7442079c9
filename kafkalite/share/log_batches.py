"""The bounds of the batches in a piece of the log, read from their headers alone."""

from dataclasses import dataclass

from kafkalite.log.region import FileRegion
from kafkalite.share.acquisition import LogBatch
from kafkalite.wire.records import (
    BATCH_OVERHEAD,
    NO_PRODUCER_ID,
    BatchHeader,
    read_batch_header,
    read_end_marker,
)

SMALL_REGION_BYTES = 64 * 1024
"""Up to here a region is read whole: one read costs less than one for each of its headers."""


@dataclass(slots=True)
class PlacedBatch:
    """A batch and where it lies in the region: bytes `start` to `end`, the latter exclusive."""

    batch: LogBatch
    start: int
    end: int


def read_log_batches(region: FileRegion, *, until_offset: int) -> list[PlacedBatch]:
    """Return the batches of a region in their order, up to the first that ends behind an offset.

    Raises:
        OSError: the disk fails, or the file has become shorter.
    """
    placed: list[PlacedBatch] = []
    size = len(region)
    whole = memoryview(region.read()) if size <= SMALL_REGION_BYTES else None
    position = 0
    while position + BATCH_OVERHEAD <= size:
        if whole is None:
            header = read_batch_header(_part(region, position, BATCH_OVERHEAD))
        else:
            header = read_batch_header(whole, position)
        end = position + header.size
        if end > size:
            break
        is_abort = False
        if header.is_control:
            batch = _part(region, position, header.size) if whole is None else whole[position:end]
            is_abort = _is_abort(memoryview(batch), header)
        placed.append(
            PlacedBatch(
                LogBatch(
                    header.base_offset,
                    header.last_offset,
                    header.producer_id if header.producer_id != NO_PRODUCER_ID else -1,
                    header.is_transactional,
                    is_abort,
                ),
                position,
                end,
            )
        )
        if header.last_offset >= until_offset:
            break
        position = end
    return placed


def _part(region: FileRegion, position: int, length: int) -> bytes:
    return FileRegion(
        region.file, region.position + position, length, on_error=region.on_error
    ).read()


def _is_abort(batch: memoryview, header: BatchHeader) -> bool:
    marker = read_end_marker(batch)
    return marker is not None and header.is_transactional and not marker.is_commit
