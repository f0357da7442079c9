"""Which segments go: rules 201, 202, 204."""

from dataclasses import dataclass

import pytest

from kafkalite.log.retention import count_deletable
from kafkalite.log_config import LogConfig

NOW_MS = 1_000_000


@dataclass
class Facts:
    base_offset: int
    size: int
    largest_timestamp: int


def segments(*largest_timestamps, size=100):
    """Segments of ten offsets; the last one is active."""
    return [
        Facts(10 * index, size, timestamp) for index, timestamp in enumerate(largest_timestamps)
    ]


def count(found, *, start=0, end=None, high_watermark=None, **settings):
    end = 10 * len(found) if end is None else end
    settings = {"retention_ms": -1, "retention_bytes": -1, **settings}
    return count_deletable(
        found,
        config=LogConfig(**settings),
        log_start_offset=start,
        log_end_offset=end,
        high_watermark=end if high_watermark is None else high_watermark,
        now_ms=NOW_MS,
    )


class TestByTime:
    """Rule 201."""

    def test_oldest_go_until_one_is_young_enough(self):
        found = segments(NOW_MS - 5001, NOW_MS - 6000, NOW_MS - 5000, NOW_MS - 9000)
        assert count(found, retention_ms=5000) == 2

    def test_no_limit(self):
        assert count(segments(0, 0), retention_ms=-1) == 0

    def test_active_segment_goes_too(self):
        """Rule 202: the log then rolls a new one at its end."""
        assert count(segments(0, 0, 0), retention_ms=5000) == 3

    def test_empty_active_segment_stays(self):
        found = segments(0, 0)
        found[1].size = 0
        assert count(found, end=10, retention_ms=5000) == 1

    def test_timestamps_in_the_future_keep_all_that_follows(self):
        """Rule 204."""
        assert count(segments(NOW_MS + 10**9, 0, 0), retention_ms=5000) == 0

    def test_zero_keeps_only_this_millisecond(self):
        assert count(segments(NOW_MS - 1, NOW_MS), retention_ms=0) == 1


class TestBySize:
    """Rule 201: a segment goes if the rest still has retention.bytes."""

    @pytest.mark.parametrize(
        ("limit", "expected"), [(-1, 0), (400, 0), (301, 0), (300, 1), (200, 2), (150, 2), (0, 4)]
    )
    def test_limit(self, limit, expected):
        assert count(segments(0, 0, 0, 0), retention_bytes=limit) == expected

    def test_what_goes_by_the_log_start_no_longer_counts(self):
        assert count(segments(0, 0, 0, 0), start=20, retention_bytes=200) == 2

    def test_both_limits(self):
        found = segments(0, 0, NOW_MS, NOW_MS)
        assert count(found, retention_bytes=300, retention_ms=5000) == 2


class TestBounds:
    def test_nothing_at_or_above_the_high_watermark(self):
        """Rule 202."""
        found = segments(0, 0, 0)
        assert count(found, high_watermark=19, retention_ms=1) == 1
        assert count(found, high_watermark=20, retention_ms=1) == 2
        assert count(found, high_watermark=9, start=20) == 0

    @pytest.mark.parametrize(("start", "expected"), [(0, 0), (9, 0), (10, 1), (19, 1), (30, 2)])
    def test_segments_below_the_log_start_go(self, start, expected):
        """The active one stays: there is none to follow it."""
        assert count(segments(0, 0, 0), start=start) == expected

    @pytest.mark.parametrize("policy", [{"compact"}, set()])
    def test_without_policy_delete_only_those(self, policy):
        found = segments(0, 0, 0)
        settings = {"retention_ms": 1, "retention_bytes": 1, "cleanup_policy": frozenset(policy)}
        assert count(found, **settings) == 0
        assert count(found, start=10, **settings) == 1

    def test_compact_and_delete(self):
        """Rule 209."""
        policy = frozenset({"compact", "delete"})
        assert count(segments(0, NOW_MS), retention_ms=5000, cleanup_policy=policy) == 1
