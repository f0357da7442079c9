"""What the simulator found, each as a test of its own: seeds mean another run after any change."""

import trio
from trio.testing import MockClock

from kafkalite.config import load_config
from kafkalite.meta.ensemble import Ensemble
from kafkalite.meta.runner import MetadataRunner


def test_a_broker_that_starts_while_the_store_is_away_registers_when_it_is_back():
    """It ended with a traceback: NOT_CONTROLLER out of `register`."""

    async def main():
        ensemble = Ensemble(session_timeout_s=3.0)
        store = ensemble.store()
        await store.open()
        config = load_config(
            overrides={
                "node.id": "1",
                "listeners": "PLAINTEXT://one:9092",
                "zookeeper.connect": "simulated:2181",
            }
        )
        runner = MetadataRunner(config, store, cluster_id="c")
        await runner.load()
        async with trio.open_nursery() as nursery:
            await nursery.start(runner.run)
            store.cut_off()
            with trio.move_on_after(1):
                await runner.register({"PLAINTEXT": 9092})
            store.reconnect()
            with trio.fail_after(30):
                await runner.register({"PLAINTEXT": 9092})
            assert list(runner.image.brokers) == [1]
            nursery.cancel_scope.cancel()

    trio.run(main, clock=MockClock(autojump_threshold=0))
