"""The scenarios, written once for all clients; each is a function of a `Bench`."""

from __future__ import annotations

from compat_tests.scenarios import (
    admin,
    consumer_groups,
    cross_client,
    errors,
    groups,
    offsets,
    records,
    transactions,
)
from compat_tests.scenarios.registry import SCENARIOS, Bench, Scenario

__all__ = [
    "SCENARIOS",
    "Bench",
    "Scenario",
    "admin",
    "consumer_groups",
    "cross_client",
    "errors",
    "groups",
    "offsets",
    "records",
    "transactions",
]
