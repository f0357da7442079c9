"""Rates over a sliding window, and buckets of tokens, as Kafka computes them (rules 560, 564)."""

from typing import Final

MS_PER_S: Final = 1_000

INFINITE_MS: Final = 2**31 - 1
"""The longest time that an answer can tell."""


def java_round(value: float) -> int:
    """Return the nearest whole number, the larger of two, as Java's `Math.round`."""
    return int((value + 0.5) // 1)


class Window:
    """Over how long something is counted.

    Attributes:
        samples: how many parts the window has (`quota.window.num`).
        sample_ms: length of each (`quota.window.size.seconds`).
    """

    __slots__ = ("sample_ms", "samples")

    def __init__(self, samples: int, sample_ms: int) -> None:
        self.samples = samples
        self.sample_ms = sample_ms


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.value = 0.0
        self.start_ms = self.last_ms = now_ms


class Rate:
    """Rate over the samples of a window, by second, and its excess over a bound.

    Kafka's `Rate` of a `SampledStat`. The first seconds count as if the window were full already,
    so that a client may send a burst before it is throttled.
    """

    __slots__ = ("_current", "_samples", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Count something; a negative value takes back what was counted."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.start_ms >= self._window.sample_ms:
            self._current = (self._current + 1) % (self._window.samples + 1)
            if self._current < len(samples):
                sample = samples[self._current]
                sample.reset(now_ms)
            else:
                sample = _Sample(now_ms)
                samples.append(sample)
        sample.value += value
        sample.last_ms = now_ms

    def measure(self, now_ms: int) -> float:
        """Return how much it is in a second."""
        self._purge(now_ms)
        total = sum(sample.value for sample in self._samples)
        return total * MS_PER_S / self._elapsed_ms(now_ms)

    def throttle_ms(self, bound: float, now_ms: int) -> int:
        """Return how long to wait until it is no more than `bound` in a second; 0 if it is not."""
        value = self.measure(now_ms)
        if value <= bound:
            return 0
        if not bound:
            return INFINITE_MS
        return min(java_round((value - bound) / bound * self._elapsed_ms(now_ms)), INFINITE_MS)

    def _elapsed_ms(self, now_ms: int) -> int:
        """Return what the samples are a count of, after `_purge`: at least all windows but one."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        window = self._window
        elapsed_ms = now_ms - min(sample.start_ms for sample in self._samples)
        missing = window.samples - 1 - elapsed_ms // window.sample_ms
        if missing > 0:
            elapsed_ms += missing * window.sample_ms
        return max(elapsed_ms, 1)

    def _purge(self, now_ms: int) -> None:
        expire_ms = self._window.samples * self._window.sample_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= expire_ms:
                sample.reset(now_ms)


class Average:
    """Average over the samples of a window: Kafka's `Avg` of a `SampledStat`."""

    __slots__ = ("_counts", "_sums")

    def __init__(self, window: Window) -> None:
        self._sums = Rate(window)
        self._counts = Rate(window)

    def record(self, value: float, now_ms: int) -> None:
        """Count a value."""
        self._sums.record(value, now_ms)
        self._counts.record(1, now_ms)

    def measure(self, now_ms: int) -> float:
        """Return the average; 0 if nothing was counted lately."""
        count = self._counts.measure(now_ms)
        return self._sums.measure(now_ms) / count if count else 0.0


class TokenBucket:
    """Token bucket: so much may be taken at once, and it fills again at a rate (KIP-599).

    It may be overdrawn once, by however much: then nothing may be taken until it is at 0 again.
    """

    __slots__ = ("_now_ms", "_tokens", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._tokens = 0.0
        self._now_ms: int | None = None

    def measure(self, rate: float, now_ms: int) -> float:
        """Return the tokens there are; negative while it is overdrawn."""
        burst = self._window.samples * self._window.sample_ms / MS_PER_S * rate
        if self._now_ms is None:
            self._tokens = burst
        else:
            elapsed_s = (now_ms - self._now_ms) / MS_PER_S
            self._tokens = min(burst, self._tokens + rate * elapsed_s)
        self._now_ms = now_ms
        return self._tokens

    def take(self, count: float, rate: float, now_ms: int) -> None:
        """Take tokens, also such as are not there."""
        self._tokens = self.measure(rate, now_ms) - count

    def throttle_ms(self, rate: float, now_ms: int) -> int:
        """Return how long it takes until nothing is missing; 0 if nothing is."""
        tokens = self.measure(rate, now_ms)
        return 0 if tokens >= 0 else min(java_round(-tokens / rate * MS_PER_S), INFINITE_MS)
