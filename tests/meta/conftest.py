"""A real ZooKeeper, which PySpark brings along; metadata of a lone broker."""

import pytest

from kafkalite.testing.zookeeper import ZooKeeper
from tests.meta.runner_kit import Kit


@pytest.fixture(scope="module")
def server():
    with ZooKeeper(tick_ms=100) as running:
        yield running


@pytest.fixture
def zookeeper(server, request):
    """A ZooKeeper of this test alone: a folder of its own on the module's server."""
    server.chroot = "/" + "".join(c for c in request.node.name if c.isalnum())
    return server


@pytest.fixture
def kit():
    made = Kit()
    made.register()
    return made
