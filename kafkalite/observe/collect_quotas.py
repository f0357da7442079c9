"""Metrics of quotas, by the names of jmx_exporter's rules (family A)."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from kafkalite.observe.exposition import COUNTER, GAUGE, Family

if TYPE_CHECKING:
    from kafkalite.observe.inside import BrokerParts
    from kafkalite.quota.limits import Sharers

CLIENTS_MAX: Final = 1_000
"""Of so many clients for each kind of quota there are series; more are counted, and not told."""


def quotas(parts: "BrokerParts") -> Iterator[Family]:
    """Yield what those who have quotas use, and how long they were told to wait for it."""
    found = parts.services.quotas
    if found is None:
        return
    now_ms = parts.services.clock.monotonic_ms()
    prefix = "kafka_server_quota"
    byte_rate = Family(f"{prefix}_byte_rate", GAUGE, "Bytes a second of those who have a quota")
    request_time = Family(
        f"{prefix}_request_time", GAUGE, "Processor time of those who have a quota, in percent"
    )
    throttle_time = Family(
        f"{prefix}_throttle_time", GAUGE, "Milliseconds that one had to wait, on average"
    )
    throttled = Family(
        "kafkalite_quota_throttle_seconds_total", COUNTER, "Time that clients were told to wait"
    )
    for resource, quota, used in (
        ("Produce", found.produce, byte_rate),
        ("Fetch", found.fetch, byte_rate),
        ("Request", found.request, request_time),
    ):
        for sharers, rate in islice(quota.rates(now_ms), CLIENTS_MAX):
            used.add(rate, **_labels(resource, sharers))
    for resource, waits in (
        ("Produce", found.produce),
        ("Fetch", found.fetch),
        ("Request", found.request),
        ("ControllerMutation", found.mutation),
    ):
        for sharers, wait_ms in islice(waits.waits(now_ms), CLIENTS_MAX):
            throttle_time.add(wait_ms, **_labels(resource, sharers))
        throttled.add(waits.throttled_ms / 1_000, resource=resource)
    yield from (byte_rate, request_time, throttle_time, throttled)


def _labels(resource: str, sharers: "Sharers") -> dict[str, object]:
    """Return the labels that jmx_exporter's rules make of an MBean; one without a user has none."""
    labels = {"resource": resource, "user": sharers.user, "clientId": sharers.client}
    return {name: value for name, value in labels.items() if value}
