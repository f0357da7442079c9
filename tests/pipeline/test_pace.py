"""When records are due."""

import pytest

from kafkalite.pipeline.pace import Pace


def test_without_limit_everything_is_due_at_once():
    assert not Pace().is_limited
    assert Pace().due_seconds(1_000_000, 5) == 0


def test_rate_spaces_records_evenly():
    pace = Pace(records_per_second=200)
    assert pace.is_limited
    assert [pace.due_seconds(index, None) for index in (0, 1, 300)] == [0, 0.005, 1.5]


def test_speed_follows_the_records_times():
    pace = Pace(speed=60, first_timestamp_ms=1_000)
    assert pace.is_limited
    assert pace.due_seconds(0, 1_000) == 0
    assert pace.due_seconds(1, 121_000) == pytest.approx(2.0)


@pytest.mark.parametrize("timestamp", [None, 0])
def test_record_without_a_time_or_before_the_first_is_due_at_once(timestamp):
    assert Pace(speed=1, first_timestamp_ms=1_000).due_seconds(9, timestamp) == 0
