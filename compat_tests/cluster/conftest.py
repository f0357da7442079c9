"""One cluster for all tests of this folder, whole again after each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.conftest import Drivers
from kafkalite.testing import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def running_cluster() -> Iterator[Cluster]:
    """Three brokers as for a developer, all topics of theirs replicated."""
    # Nobody is to be missed because this machine is busy with a Java or two.
    settings = {"kafkalite.profile": "dev", "zookeeper.session.timeout.ms": 8000}
    with Cluster(3, config=settings, links=False) as running:
        yield running


@pytest.fixture
def cluster(running_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster; what a test has broken is mended behind it."""
    yield running_cluster
    for number, broker in running_cluster.brokers.items():
        if broker.is_paused:
            running_cluster.resume(number)
        if not broker.is_running:
            running_cluster.restart(number)
    running_cluster.wait_members()
    running_cluster.wait_in_sync()


@pytest.fixture(scope="session")
def cluster_drivers(running_cluster: Cluster) -> Iterator[Drivers]:
    """The drivers of all clients, with the addresses of all brokers."""
    drivers = Drivers(running_cluster.bootstrap)
    yield drivers
    drivers.close()
