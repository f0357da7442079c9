"""Distributions of durations in whole microseconds: fixed buckets, counted by plain integers.

Four buckets for each power of two, so a quantile is within a quarter of the truth; as HdrHistogram
with two bits. Pure.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

BUCKETS: Final = 160
"""The last one holds everything from 2^40 us (twelve days) on."""

QUANTILES: Final = (("0.50", 0.5), ("0.75", 0.75), ("0.95", 0.95), ("0.98", 0.98), ("0.99", 0.99), ("0.999", 0.999))  # fmt: skip  # noqa: E501
"""As jmx_exporter's rules write those of Kafka's histograms."""


def bucket_of(micros: int) -> int:
    """Return the bucket of a duration."""
    if micros < 4:
        return max(micros, 0)
    length = micros.bit_length()
    return min((length << 2) - 8 + ((micros >> (length - 3)) & 3), BUCKETS - 1)


def upper_bound(bucket: int) -> int:
    """Return the end (exclusive) of a bucket in microseconds."""
    if bucket < 4:
        return bucket + 1
    length, part = (bucket + 8) >> 2, bucket & 3
    return (5 + part) << (length - 3)


_ENDS_S: Final = [upper_bound(each) / 1e6 for each in range(BUCKETS - 1)]


class Buckets:
    """A distribution since the start, and of the last minute or so.

    Attributes:
        sum_us: of all of them.
        counts: by bucket.
    """

    __slots__ = ("_before", "_earlier", "counts", "sum_us")

    def __init__(self) -> None:
        self.sum_us = 0
        self.counts = [0] * BUCKETS
        self._before = [0] * BUCKETS
        self._earlier = [0] * BUCKETS

    def add(self, micros: int) -> None:
        """Count a duration."""
        self.sum_us += micros
        self.counts[bucket_of(micros)] += 1

    def add_seconds(self, seconds: Iterable[float], also: "Buckets | None" = None) -> None:
        """Count durations, also in another distribution; `add` of each would be dearer."""
        ordered = sorted(seconds)
        sum_us, also = int(sum(ordered) * 1e6), also or Buckets()
        self.sum_us += sum_us
        also.sum_us += sum_us
        begin = 0
        while begin < len(ordered):
            bucket = bisect_right(_ENDS_S, ordered[begin])
            end = len(ordered)
            if bucket < len(_ENDS_S):
                end = bisect_left(ordered, _ENDS_S[bucket], begin)
            self.counts[bucket] += end - begin
            also.counts[bucket] += end - begin
            begin = end

    @property
    def count(self) -> int:
        """Durations counted."""
        return sum(self.counts)

    def rotate(self) -> None:
        """Let `recent` begin where the last call of this was; to be called twice a minute."""
        self._earlier, self._before = self._before, self.counts.copy()

    def recent(self) -> list[int]:
        """Return the counts since the call of `rotate` before the last one."""
        return [now - then for now, then in zip(self.counts, self._earlier, strict=True)]


def merged(distributions: Iterable[Buckets]) -> Buckets:
    """Return one distribution of all that was counted in several."""
    whole = Buckets()
    for each in distributions:
        whole.sum_us += each.sum_us
        whole.counts = [a + b for a, b in zip(whole.counts, each.counts, strict=True)]
        whole._earlier = [  # noqa: SLF001 - its own kind
            a + b
            for a, b in zip(whole._earlier, each._earlier, strict=True)  # noqa: SLF001
        ]
    return whole


def quantile(counts: Sequence[int], share: float) -> float:
    """Return a quantile in milliseconds; 0 where nothing was counted."""
    total = sum(counts)
    if not total:
        return 0.0
    wanted = share * total
    seen = 0
    for bucket, count in enumerate(counts):
        seen += count
        if seen >= wanted:
            return upper_bound(bucket) / 1_000
    return upper_bound(BUCKETS - 1) / 1_000
