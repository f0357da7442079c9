"""Simulated machines: what a crash leaves, and who may start again."""

from random import Random

import trio

from kafkalite.sim.hosts import Host
from kafkalite.sim.level2 import DELAY_S, SETTINGS
from kafkalite.sim.network import Fabric
from kafkalite.sim.runtime import run_deterministically
from kafkalite.sim.traces import Trace


def test_broker_that_crashes_comes_back_on_its_disk_and_a_stopped_one_stays_down():
    async def main():
        failures = []
        fabric = Fabric(Random(1), DELAY_S, Trace())
        host = Host(1, fabric, None, SETTINGS, random=Random(2), on_failure=failures.append)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.run)
            await trio.sleep(1)
            first = host.broker
            assert first is not None
            before = set(host.disk.files)
            host.crash(loses_data=False)
            assert host.broker is None
            assert not host.is_up
            assert set(host.disk.files) == before
            nursery.start_soon(host.run)
            await trio.sleep(1)
            assert host.broker not in (None, first)
            assert host.starts == 2
            await host.shut_down()
            assert not host.is_up
            assert ".kafka_cleanshutdown" in {path.rpartition("/")[2] for path in host.disk.files}
            nursery.cancel_scope.cancel()
        assert failures == []

    run_deterministically(main, seed=1)


def test_error_that_ends_a_broker_is_told():
    async def main():
        failures = []
        fabric = Fabric(Random(1), DELAY_S, Trace())
        host = Host(1, fabric, None, SETTINGS, random=Random(2), on_failure=failures.append)
        async with trio.open_nursery() as nursery:
            host.disk.open = None  # as only a bug can have it
            nursery.start_soon(host.run)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
        assert any("NoneType" in repr(failure) for failure in failures)

    run_deterministically(main, seed=1)
