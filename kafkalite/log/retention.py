"""Which segments of a log have had their time (rules 201, 202 and 204). Pure."""

from collections.abc import Callable, Sequence
from typing import Protocol

from kafkalite.log_config import LogConfig


class SegmentFacts(Protocol):
    """Facts about a segment that retention looks at."""

    @property
    def base_offset(self) -> int:
        """Least offset that the segment may hold."""
        ...

    @property
    def size(self) -> int:
        """Bytes of the log file."""
        ...

    @property
    def largest_timestamp(self) -> int:
        """Largest timestamp in ms, or the file's last modification where no record has one."""
        ...


def count_deletable(
    segments: Sequence[SegmentFacts],
    *,
    config: LogConfig,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> int:
    """Return how many of the oldest segments are to be deleted now; all of them is possible.

    Kafka's order: those below the log start go whatever the policy, then by retention.bytes, then
    of what is left by retention.ms. Nothing at or above the high watermark goes, nor the active
    segment while it is empty.

    Args:
        segments: all, in order; the last one is active.
        config: the topic's settings.
        log_start_offset: first offset that can be read.
        log_end_offset: exclusive.
        high_watermark: exclusive; the log end where there are no followers.
        now_ms: wall clock, compared with timestamps of records.
    """
    ends = [segment.base_offset for segment in segments[1:]] + [log_end_offset]

    def count_while(count: int, is_deletable: Callable[[int], bool]) -> int:
        last = len(segments) - 1
        while (
            count <= last
            and ends[count] <= high_watermark
            and not (count == last and segments[count].size == 0)
            and is_deletable(count)
        ):
            count += 1
        return count

    count = count_while(
        0, lambda index: index + 1 < len(segments) and ends[index] <= log_start_offset
    )
    if "delete" not in config.cleanup_policy:
        return count
    if config.retention_bytes >= 0:
        excess = sum(segment.size for segment in segments[count:]) - config.retention_bytes

        def exceeds(index: int) -> bool:
            nonlocal excess
            if excess < segments[index].size:
                return False
            excess -= segments[index].size
            return True

        count = count_while(count, exceeds)
    if config.retention_ms >= 0:
        earliest_ms = now_ms - config.retention_ms
        count = count_while(count, lambda index: segments[index].largest_timestamp < earliest_ms)
    return count
