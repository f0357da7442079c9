"""Rates over a sliding window and buckets of tokens, by numbers of Kafka's own (rules 560, 564)."""

import pytest

from kafkalite.quota.rates import INFINITE_MS, Rate, TokenBucket, Window, java_round

WINDOW = Window(11, 1_000)


def test_first_burst_counts_as_of_a_full_window():
    rate = Rate(WINDOW)
    rate.record(10_000, 5)
    assert rate.measure(5) == 1_000
    assert rate.throttle_ms(1_000, 5) == 0
    assert rate.throttle_ms(100, 5) == 90_000


def test_window_grows_by_a_part_of_a_sample_until_it_is_full():
    rate = Rate(WINDOW)
    for now_ms, window_ms in ((0, 10_000), (999, 10_999), (1_000, 10_000), (9_500, 10_500)):
        rate.record(1_000, now_ms)
        counted = rate.measure(now_ms) * window_ms / 1_000
        assert counted == pytest.approx(round(counted))


def test_samples_older_than_the_window_are_forgotten():
    rate = Rate(WINDOW)
    rate.record(50_000, 0)
    for second in range(1, 11):
        rate.record(0, second * 1_000)
        assert rate.measure(second * 1_000) > 0
    assert rate.measure(11_000) == 0


def test_a_long_silence_forgets_everything():
    rate = Rate(WINDOW)
    rate.record(50_000, 0)
    assert rate.measure(1_000_000) == 0
    rate.record(10_000, 1_000_000)
    assert rate.measure(1_000_000) == 1_000


def test_what_is_taken_back_is_as_if_it_had_not_been():
    rate = Rate(WINDOW)
    rate.record(5_000, 0)
    before = rate.measure(300)
    rate.record(9_999, 300)
    rate.record(-9_999, 300)
    assert rate.measure(300) == before


def test_keeping_to_the_limit_is_never_throttled():
    """Eleven samples are as of ten seconds at the moment when one begins."""
    rate = Rate(WINDOW)
    for second in range(100):
        rate.record(909, second * 1_000)
        assert rate.throttle_ms(1_000, second * 1_000) == 0


def test_who_waits_as_told_may_go_on():
    rate = Rate(WINDOW)
    now_ms = 0
    for _ in range(20):
        rate.record(30_000, now_ms)
        wait_ms = rate.throttle_ms(1_000, now_ms)
        assert wait_ms <= 40_000
        now_ms += max(wait_ms, 1_000)
        assert rate.throttle_ms(1_000, now_ms) == 0


def test_a_limit_of_nothing_waits_for_ever():
    rate = Rate(WINDOW)
    rate.record(1, 0)
    assert rate.throttle_ms(0, 0) == INFINITE_MS


def test_bucket_is_full_at_first_and_may_be_overdrawn_once():
    bucket = TokenBucket(WINDOW)
    assert bucket.measure(2, 0) == 22
    bucket.take(30, 2, 0)
    assert bucket.throttle_ms(2, 0) == 4_000
    assert bucket.throttle_ms(2, 3_999) == 1
    assert bucket.throttle_ms(2, 4_000) == 0
    assert bucket.measure(2, 1_000_000) == 22


@pytest.mark.parametrize(("value", "rounded"), [(0.5, 1), (1.5, 2), (2.49, 2), (-0.5, 0)])
def test_halves_are_rounded_up_as_in_java(value, rounded):
    assert java_round(value) == rounded
