"""Distributions: which bucket, and how far a quantile may be from the truth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.observe.buckets import BUCKETS, Buckets, bucket_of, merged, quantile, upper_bound


@given(st.integers(0, 2**39))
def test_a_duration_is_below_its_buckets_end_and_not_below_the_one_before(micros):
    bucket = bucket_of(micros)
    assert micros < upper_bound(bucket)
    assert bucket == 0 or micros >= upper_bound(bucket - 1)
    assert upper_bound(bucket) <= max(1, micros) * 1.5 + 1


def test_absurd_durations_are_counted_in_the_last():
    assert bucket_of(-5) == 0
    assert bucket_of(2**60) == BUCKETS - 1


def test_quantiles_of_the_recent_past_only():
    buckets = Buckets()
    buckets.add(1_000_000)
    buckets.rotate()
    buckets.rotate()
    for _ in range(99):
        buckets.add(1_000)
    buckets.add(100_000)
    assert quantile(buckets.recent(), 0.5) == pytest.approx(1, rel=0.3)
    assert quantile(buckets.recent(), 0.99) == pytest.approx(1, rel=0.3)
    assert quantile(buckets.recent(), 0.999) == pytest.approx(100, rel=0.3)
    assert buckets.count == 101
    assert buckets.sum_us == 1_000_000 + 99_000 + 100_000


def test_without_durations_a_quantile_is_nothing():
    assert quantile(Buckets().recent(), 0.5) == 0


def test_merged_is_the_sum():
    one, other = Buckets(), Buckets()
    one.add(10)
    one.rotate()
    one.rotate()
    other.add(10)
    both = merged([one, other])
    assert (both.count, both.sum_us, sum(both.recent())) == (2, 20, 1)
