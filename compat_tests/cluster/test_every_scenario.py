"""The scenarios of one broker, with the main clients, where everything is on three brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.clients import Client, all_clients, trusted_client
from compat_tests.scenarios import SCENARIOS, Bench, Scenario

if TYPE_CHECKING:
    from compat_tests.conftest import Drivers
    from kafkalite.testing import Cluster

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.xdist_group("compat-cluster"),
]

NAMES = ("Java-4.3.1", "confluent-kafka-2.16.1", "franz-go-1.22.2")

_CASES = [
    pytest.param(scenario, client, id=f"{scenario.id}-{client.id}")
    for scenario in SCENARIOS
    for client in all_clients()
    if client.id in NAMES
    and client.reason_against(scenario.needs) is None
    # What other clients read there is their matter, and says nothing about a cluster.
    and not scenario.id.startswith("cross_client:")
]


@pytest.mark.parametrize(("scenario", "client"), _CASES)
def test_scenario(
    scenario: Scenario, client: Client, running_cluster: Cluster, cluster_drivers: Drivers
) -> None:
    """The client does what the scenario says, whichever broker it asks."""
    drivers = cluster_drivers
    helper = drivers.of(trusted_client())
    bench = Bench(client, drivers.of(client), helper, running_cluster.bootstrap, drivers.of)
    try:
        scenario.run(bench)
    finally:
        bench.close()
