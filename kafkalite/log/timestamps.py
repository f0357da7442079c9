"""Offsets by timestamp in the segments of one log (ListOffsets, rules 92-94)."""

from typing import TYPE_CHECKING

from kafkalite.wire.records import BATCH_OVERHEAD, iterate_records, read_batch_header

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkalite.log.segment import BatchSpan, Segment

Found = tuple[int, int, int]
"""Offset, timestamp in ms, and leader epoch of a record."""


def first_at_or_after(
    segments: "Iterable[Segment]", timestamp: int, *, start_offset: int, end_offset: int
) -> Found | None:
    """Return the first record with a timestamp >= `timestamp`, None if there is none.

    By record, not by batch (rule 93); one batch is opened, all others are passed by their headers.

    Args:
        segments: of the log, in order.
        timestamp: ms.
        start_offset: records below it do not count.
        end_offset: nor do records from it on.
    """
    for segment in segments:
        if segment.base_offset >= end_offset:
            return None
        if segment.largest.timestamp < timestamp:
            continue
        for span in segment.spans_from_timestamp(timestamp, start_offset):
            if span.max_timestamp < timestamp or span.last_offset < start_offset:
                continue
            if span.base_offset >= end_offset:
                return None
            found = _first_in(segment, span, timestamp, start_offset)
            if found is not None:
                return found if found[0] < end_offset else None
    return None


def _first_in(
    segment: "Segment", span: "BatchSpan", timestamp: int, start_offset: int
) -> Found | None:
    batch = segment.read(span)
    header = read_batch_header(batch)
    for record in iterate_records(batch):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return record.offset, record.timestamp, header.partition_leader_epoch
    return None


def largest(segments: "Iterable[Segment]") -> Found | None:
    """Return the first record that has the log's largest timestamp; None if none has one (-3)."""
    candidates = [segment for segment in segments if segment.largest.timestamp >= 0]
    if not candidates:
        return None
    segment = max(candidates, key=_largest_timestamp)
    timestamp, last_offset = segment.largest
    span = segment.locate(last_offset)
    if span is None:
        return None
    batch = segment.read(span)
    header = read_batch_header(batch)
    for record in iterate_records(batch) if len(batch) > BATCH_OVERHEAD else ():
        if record.timestamp >= timestamp:
            return record.offset, timestamp, header.partition_leader_epoch
    return last_offset, timestamp, header.partition_leader_epoch


def _largest_timestamp(segment: "Segment") -> int:
    return segment.largest.timestamp
