"""Every scenario with every client that can do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.clients import Client, all_clients
from compat_tests.scenarios import SCENARIOS, Bench, Scenario

if TYPE_CHECKING:
    from compat_tests.conftest import Drivers
    from compat_tests.driver import Driver

pytestmark = [pytest.mark.compat, pytest.mark.slow]

_CASES = [
    pytest.param(
        scenario,
        client,
        id=f"{scenario.id}-{client.id}",
        marks=() if client.is_current else pytest.mark.long,
    )
    for scenario in SCENARIOS
    for client in all_clients()
    if client.reason_against(scenario.needs) is None
]


@pytest.mark.parametrize(("scenario", "client"), _CASES)
def test_scenario(scenario: Scenario, client: Client, drivers: Drivers, helper: Driver) -> None:
    """The client does what the scenario says against this broker."""
    bench = Bench(client, drivers.of(client), helper, drivers.bootstrap, drivers.of)
    try:
        scenario.run(bench)
    finally:
        bench.close()
