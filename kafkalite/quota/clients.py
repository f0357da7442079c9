"""Quotas of clients: what each is counted for, and its waits (KIP-13, KIP-124, KIP-599)."""

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from kafkalite.quota.limits import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    Configs,
    Limits,
    Sharers,
    limits_of,
)
from kafkalite.quota.rates import Average, Rate, TokenBucket, Window
from kafkalite.wire.errors import ErrorCode, KafkaError

COUNTED_MAX: Final = 10_000
"""Of so many clients it is known what they used; of more, who used something longest ago is
forgotten. Kafka forgets after an hour, and bounds nothing."""

PERCENT: Final = 100.0

Counter = TypeVar("Counter", Rate, Average, TokenBucket)


class Counters(Generic[Counter]):
    """Rates or buckets of those who share a quota, made when they are first needed."""

    def __init__(self, make: Callable[[Window], Counter], window: Window) -> None:
        self._make: Callable[[Window], Counter] = make
        self._window = window
        self._counters: dict[Sharers, Counter] = {}

    def __len__(self) -> int:
        return len(self._counters)

    def of(self, sharers: Sharers) -> Counter:
        """Return the one of these."""
        counter = self._counters.pop(sharers, None)
        if counter is None:
            counter = self._make(self._window)
            if len(self._counters) >= COUNTED_MAX:
                del self._counters[next(iter(self._counters))]
        self._counters[sharers] = counter
        return counter

    def measured(self, measure: Callable[[Counter], float]) -> Iterator[tuple[Sharers, float]]:
        """Yield what is measured of each."""
        for sharers, counter in self._counters.items():
            yield sharers, measure(counter)


class Waits:
    """How long clients were told to wait for a quota (Kafka's `throttle-time`).

    Attributes:
        limits: the quotas there are.
        throttled_ms: all the time that clients were told to wait for it.
    """

    def __init__(self, window: Window) -> None:
        self.limits = Limits({}, {}, {})
        self.throttled_ms = 0
        self._waits = Counters(Average, window)

    def throttled(self, user: str, client: str, throttle_ms: int, now_ms: int) -> None:
        """Note that a client was told to wait, if it was."""
        if not throttle_ms:
            return
        self.throttled_ms += throttle_ms
        found = self.limits.find(user, client)
        if found is not None:
            self._waits.of(found[0]).record(throttle_ms, now_ms)

    def waits(self, now_ms: int) -> Iterator[tuple[Sharers, float]]:
        """Yield the average wait in ms of all who ever had to wait, over the window."""
        return self._waits.measured(lambda average: average.measure(now_ms))


class ClientQuota(Waits):
    """One kind of quota of users and clients: bytes produced or fetched, or time of requests."""

    def __init__(self, window: Window, *, throttle_max_ms: int | None = None) -> None:
        super().__init__(window)
        self._window = window
        self._throttle_max_ms = throttle_max_ms
        self._rates = Counters(Rate, window)

    def record(self, user: str, client: str, value: float, now_ms: int) -> int:
        """Count something of a client; return how many milliseconds it has to wait (rule 560)."""
        found = self.limits.find(user, client)
        if found is None:
            return 0
        sharers, limit = found
        rate = self._rates.of(sharers)
        rate.record(value, now_ms)
        throttle_ms = rate.throttle_ms(limit, now_ms)
        if self._throttle_max_ms is not None:
            return min(throttle_ms, self._throttle_max_ms)
        return throttle_ms

    def take_back(self, user: str, client: str, value: float, now_ms: int) -> None:
        """Count something no more: it was not sent."""
        found = self.limits.find(user, client)
        if found is not None:
            self._rates.of(found[0]).record(-value, now_ms)

    def rates(self, now_ms: int) -> Iterator[tuple[Sharers, float]]:
        """Yield what those who have quotas used in a second: bytes, or percent of a processor."""
        return self._rates.measured(lambda rate: rate.measure(now_ms))

    def most_in_window(self, user: str, client: str) -> float | None:
        """Return the most that may be sent at once without a wait; None if that has no bound."""
        found = self.limits.find(user, client)
        if found is None:
            return None
        return found[1] * (self._window.samples - 1) * self._window.sample_ms / 1_000


class MutationQuota(Waits):
    """How many partitions clients may have made and deleted (rules 564, 565)."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._buckets = Counters(TokenBucket, window)

    def of(self, user: str, client: str, *, is_strict: bool) -> "Mutations | None":
        """Return what counts the changes that one request makes; None if nobody counts them."""
        found = self.limits.find(user, client)
        if found is None:
            return None
        sharers, rate = found
        return Mutations(self._buckets.of(sharers), rate, is_strict=is_strict)


class Mutations:
    """The changes of one request.

    Args:
        bucket: of its client.
        rate: partitions in a second.
        is_strict: what is too much is refused; else only the client is made to wait.
    """

    def __init__(self, bucket: TokenBucket, rate: float, *, is_strict: bool) -> None:
        self._bucket = bucket
        self._rate = rate
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._throttled_at_ms = 0

    def record(self, partitions: int, now_ms: int) -> None:
        """Count what is about to be changed.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED, it is not to be changed now.
        """
        if not self._is_strict:
            self._bucket.take(partitions, self._rate, now_ms)
        throttle_ms = self._bucket.throttle_ms(self._rate, now_ms)
        if throttle_ms:
            self._throttle_ms, self._throttled_at_ms = throttle_ms, now_ms
        if not self._is_strict:
            return
        if throttle_ms:
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded."
            )
        self._bucket.take(partitions, self._rate, now_ms)

    def throttle_ms(self, now_ms: int) -> int:
        """Return how many milliseconds the client still has to wait."""
        if not self._throttle_ms:
            return 0
        return max(0, self._throttle_ms - (now_ms - self._throttled_at_ms))


class ClientQuotas:
    """All quotas of users and clients on one broker.

    Args:
        window: of bytes and requests.
        controller_window: of changes of metadata.

    Attributes:
        throttled_ms_by_api: all the time that answers told clients to wait, by the API's key.
    """

    def __init__(self, window: Window, controller_window: Window) -> None:
        self.produce = ClientQuota(window)
        self.fetch = ClientQuota(window)
        self.request = ClientQuota(window, throttle_max_ms=window.sample_ms)
        self.mutation = MutationQuota(controller_window)
        self.throttled_ms_by_api: dict[int, int] = {}

    def update(self, configs: Configs) -> None:
        """Follow the settings of users and clients; what was counted goes on counting."""
        self.produce.limits = limits_of(configs, PRODUCER_BYTE_RATE)
        self.fetch.limits = limits_of(configs, CONSUMER_BYTE_RATE)
        self.request.limits = limits_of(configs, REQUEST_PERCENTAGE)
        self.mutation.limits = limits_of(configs, CONTROLLER_MUTATION_RATE)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        kinds = (self.produce, self.fetch, self.request, self.mutation)
        return any(kind.limits for kind in kinds)


def user_of_principal(principal: str) -> str:
    """Return the name in a principal such as User:alice."""
    return principal.partition(":")[2]
