"""ReplicationContext throttles (KIP-73)."""

import pytest

from kafkalite.isr.throttle import UNLIMITED, RateWindow, throttled_brokers


@pytest.mark.parametrize(
    ("entries", "brokers"),
    [
        (["*"], None),
        (["0:1", "1:2", " 0:3"], {1, 3}),
        (["1:2"], set()),
        ([], set()),
    ],
)
def test_replicas_are_named_by_partition_and_broker(entries, brokers):
    assert throttled_brokers(entries, 0) == brokers


def test_over_the_rate_nothing_more_is_sent_until_time_has_passed():
    window = RateWindow(1_000)
    assert not window.is_exceeded(0)
    window.on_sent(1_500)
    assert window.is_exceeded(0)
    assert window.is_exceeded(500)
    assert not window.is_exceeded(501)


def test_unused_rate_is_kept_for_one_window_only():
    window = RateWindow(1_000, window_ms=2_000)
    assert not window.is_exceeded(60_000)
    window.on_sent(2_000)
    assert window.is_exceeded(60_000)


def test_rate_of_zero_lets_nothing_through():
    assert RateWindow(0).is_exceeded(99)


def test_without_limit_nothing_is_counted():
    window = RateWindow(UNLIMITED)
    window.on_sent(1 << 60)
    assert not window.is_exceeded(0)
    assert window.bytes_per_second == UNLIMITED
    window.set_rate(10)
    assert not window.is_exceeded(0)
    window.on_sent(10)
    window.set_rate(10)
    assert window.is_exceeded(0)
