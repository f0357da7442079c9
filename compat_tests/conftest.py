"""Fixtures of the compatibility suite: one broker and one driver a client for each worker."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

# Before anything imports them, which is why the imports below are late.
pytest.register_assert_rewrite("compat_tests.scenarios", "compat_tests.kafka_tools")

from compat_tests import matrix  # noqa: E402
from compat_tests.broker import compat_broker  # noqa: E402
from compat_tests.clients import Client, trusted_client  # noqa: E402
from compat_tests.driver import Driver, DriverDied  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator


class Drivers:
    """The running drivers of this worker, started when first asked for."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.running: dict[str, Driver] = {}

    def of(self, client: Client) -> Driver:
        """Return the driver of a client; a dead one is replaced."""
        driver = self.running.get(client.id)
        if driver is not None:
            try:
                with driver.changed:
                    driver.check_alive()
            except DriverDied:
                driver.close()
                driver = None
        if driver is None:
            driver = self.running[client.id] = client.start(self.bootstrap)
        return driver

    def close(self) -> None:
        """End all of them."""
        for driver in self.running.values():
            driver.close()


@pytest.fixture(scope="session")
def compat_bootstrap() -> Iterator[str]:
    """``host:port`` of the broker under test."""
    with compat_broker() as bootstrap:
        yield bootstrap


@pytest.fixture(scope="session")
def drivers(compat_bootstrap: str) -> Iterator[Drivers]:
    """The drivers of all clients."""
    with contextlib.closing(Drivers(compat_bootstrap)) as running:
        yield running


@pytest.fixture(scope="session")
def helper(drivers: Drivers) -> Driver:
    """The driver that sets scenes."""
    return drivers.of(trusted_client())


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect outcomes for the matrix; runs where the reports are brought together."""
    matrix.collect(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the matrix if every cell of it was run."""
    if not hasattr(session.config, "workerinput"):
        matrix.write_if_complete()
