"""One cluster for all tests of this folder, whole again after each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.conftest import skip_or_fail
from kafkalite.testing import Cluster
from kafkalite.testing.zookeeper import ZooKeeperError

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def running_cluster() -> Iterator[Cluster]:
    """Three brokers; two in-sync replicas are needed for acks=all."""
    settings = {"min.insync.replicas": 2, "offsets.topic.num.partitions": 8}
    try:
        running = Cluster(3, config=settings, links=False).start()
    except ZooKeeperError as error:
        skip_or_fail(error.summary)
    yield running
    running.close()


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
