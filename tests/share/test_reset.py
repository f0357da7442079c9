"""`share.auto.offset.reset` as text: the durations that Java's `Duration.parse` reads."""

import pytest

from kafkalite.share.reset import BY_DURATION, EARLIEST, LATEST, ResetStrategy, parse_reset


@pytest.mark.parametrize("name", [EARLIEST, LATEST])
def test_a_name_is_all_there_is_to_it(name):
    assert parse_reset(name) == ResetStrategy(name)


@pytest.mark.parametrize(
    ("duration", "duration_ms"),
    [
        ("PT0S", 0),
        ("PT15M", 900_000),
        ("PT20.345S", 20_345),
        ("PT10H", 36_000_000),
        ("P2D", 172_800_000),
        ("P2DT3H4M", 183_840_000),
        ("pt1h30m", 5_400_000),
        ("PT-6H+3M", -21_420_000),
        ("-PT6H3M", -21_780_000),
        ("-PT-6H+3M", 21_420_000),
        ("PT0.0019S", 1),
    ],
)
def test_a_duration_is_milliseconds_back(duration, duration_ms):
    assert parse_reset(f"by_duration:{duration}") == ResetStrategy(BY_DURATION, duration_ms)
