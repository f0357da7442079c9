"""How often somebody may connect: from an address, by a listener, and to a broker (KIP-612)."""

from typing import TYPE_CHECKING, Final

from kafkalite.quota.limits import normal_address
from kafkalite.quota.rates import Rate, Window

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDRESSES_MAX: Final = 10_000
"""Of so many addresses it is known how often they connected."""


class ConnectionRates:
    """Counts connections, and says how long one has to wait (rules 567, 568)."""

    def __init__(self, window: Window) -> None:
        self.by_address: Mapping[str | None, float] = {}
        self._window = window
        self._of_broker = Rate(window)
        self._of_listeners: dict[str, Rate] = {}
        self._of_addresses: dict[str, Rate] = {}

    def record(
        self,
        listener: str,
        now_ms: int,
        *,
        broker_limit: float | None,
        listener_limit: float | None,
    ) -> int:
        """Count a connection that comes; return how long it waits before it is taken.

        Args:
            listener: name of it.
            now_ms: monotonic.
            broker_limit: of all listeners, in a second; None for none, or a listener of brokers.
            listener_limit: of this one.
        """
        throttle_ms = 0
        if broker_limit is not None:
            throttle_ms = self._count(self._of_broker, broker_limit, now_ms)
        if listener_limit is not None:
            rate = self._of_listeners.setdefault(listener, Rate(self._window))
            throttle_ms = max(throttle_ms, self._count(rate, listener_limit, now_ms))
        return throttle_ms

    def record_address(self, listener: str, host: str, now_ms: int) -> int:
        """Count a connection of an address; return how long to leave it alone, and then close it.

        0 lets it in. One that is not let in counts nowhere.
        """
        address = normal_address(host)
        limit = self.by_address.get(address, self.by_address.get(None))
        if limit is None:
            return 0
        rate = self._of_addresses.pop(address, None)
        if rate is None:
            rate = Rate(self._window)
            if len(self._of_addresses) >= ADDRESSES_MAX:
                del self._of_addresses[next(iter(self._of_addresses))]
        self._of_addresses[address] = rate
        throttle_ms = self._count(rate, limit, now_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
            self._of_broker.record(-1, now_ms)
            if listener in self._of_listeners:
                self._of_listeners[listener].record(-1, now_ms)
        return throttle_ms

    def _count(self, rate: Rate, limit: float, now_ms: int) -> int:
        rate.record(1, now_ms)
        return min(rate.throttle_ms(limit, now_ms), self._window.sample_ms)
