"""Quotas in a cluster: all brokers act by them, and the controller's word reaches clients."""

import pytest

from kafkalite.testing.cluster import Cluster
from tests.quota.scenarios import BURST_S, Asker, Server
from tests.quota.test_muting import is_silent

pytestmark = pytest.mark.slow


def test_controller_counts_and_the_broker_that_was_asked_mutes():
    """Rules 563 and 565."""
    with Cluster(2) as cluster:
        servers = [Server(address) for address in cluster.bootstrap.split(",")]
        with Asker(servers[0], "admin") as first, Asker(servers[1], "admin") as second:
            assert first.set_quota({"client-id": "maker"}, controller_mutation_rate=0.1) == 0
            second._wait_known({"client-id": "maker"}, {"controller_mutation_rate": 0.1})
        with Asker(servers[0], "maker") as client:
            assert client.create("made", 30) == (0, 0)
        for server in servers:
            with Asker(server, "maker") as client:
                code, throttle_ms = client.create("refused")
                assert code == 89
                assert 200_000 < throttle_ms <= (300 - BURST_S) * 1_000
                assert is_silent(client)
