"""Sessions with ZooKeeper that are lost, taken, or too long."""

import sys

import pytest
import trio

from kafkalite.clock import SystemClock
from kafkalite.meta.image import BrokerImage, Image
from kafkalite.meta.store import (
    BrokerIdTaken,
    FellBehind,
    LiveBrokers,
    MetadataStoreError,
    SessionLost,
)
from kafkalite.meta.zookeeper.store import ZookeeperStore
from kafkalite.testing.zookeeper import ZooKeeper
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.meta.zookeeper_kit import (
    Look,
    address,
    broker,
    commit,
    comparable,
    create,
    nodes_on,
    opened,
    topic_change,
    until,
)

pytestmark = [pytest.mark.slow]


def test_a_broker_that_fell_behind_loads_everything(zookeeper, monkeypatch):
    monkeypatch.setattr("kafkalite.meta.zookeeper.store.CHANGES_KEPT", 5)
    monkeypatch.setattr("kafkalite.meta.zookeeper.store.CHANGES_DROPPED_AT_ONCE", 2)

    async def main():
        async with opened(zookeeper, 2) as (store, other):
            await store.register(broker(1))
            await store.campaign()
            await other.load()
            image = Image()
            for number in range(20):
                image = await commit(store, image, topic_change(f"t{number}", number))
                with trio.move_on_after(0.05):
                    while True:
                        await store.next_event()
            seen = []
            with trio.move_on_after(1):
                while True:
                    seen.append(await other.next_event())
            assert FellBehind() in seen
            stored = await other.load()
            assert stored.version == 20
            assert Image().apply(stored.changes).topics == image.topics
            with Look(zookeeper) as look:
                assert 5 <= len(look.client.get_children("/changes")) <= 8

    trio.run(main)


def test_an_id_that_is_taken_is_refused_with_one_line(zookeeper, monkeypatch):
    monkeypatch.setattr("kafkalite.meta.zookeeper.store.LONGER_SESSION_S", 0)

    async def main():
        async with opened(zookeeper, 2, session_timeout_ms=600) as (first, second):
            await first.register(broker(1))
            with trio.fail_after(10), pytest.raises(BrokerIdTaken) as caught:
                await second.register(broker(1))
            assert str(caught.value) == (
                f"another broker is registered as node.id 1 in ZooKeeper at {address(zookeeper)}"
            )

    trio.run(main)


def test_an_id_of_a_dead_session_is_waited_for(zookeeper, caplog):
    async def main():
        async with opened(zookeeper, 2) as (first, second):
            before = await first.register(broker(1))

            async def die():
                await trio.sleep(0.3)
                first.close()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(die)
                with trio.fail_after(10):
                    assert await second.register(broker(1)) > before

    trio.run(main)
    (told,) = [each for each in caplog.messages if "waiting up to" in each]
    assert told.startswith("another broker is registered as node.id 1 in ZooKeeper at ")


def test_a_session_longer_than_asked_for_is_waited_for():
    """A broker that is killed and started again at once; ZooKeeper has its default tickTime."""
    killed = (
        "import os, sys; from kazoo.client import KazooClient; "
        "client = KazooClient(sys.argv[1], timeout=2.0); client.start(); "
        "client.create('/brokers/ids/1', ephemeral=True, makepath=True); os._exit(0)"
    )
    with ZooKeeper(tick_ms=2_000) as own:
        own.chroot = ""

        async def main():
            await trio.run_process([sys.executable, "-c", killed, own.connect])
            async with opened(own, session_timeout_ms=2_000) as store:
                assert await store.register(broker(1)) > 0

        trio.run(main)


def test_addresses_are_replaced_under_the_same_epoch(zookeeper):
    async def main():
        async with opened(zookeeper) as store:
            epoch = await store.register(broker(1))
            await store.campaign()
            moved = BrokerImage(broker_id=1, endpoints={"PLAINTEXT": ("::1", 1)}, rack="r")
            assert await store.register(moved) == epoch
            with trio.fail_after(5):
                while True:
                    event = await store.next_event()
                    if isinstance(event, LiveBrokers):
                        break
            assert event.brokers[1].endpoints == moved.endpoints
            assert event.brokers[1].rack == "r"
            assert event.brokers[1].broker_epoch == epoch

    trio.run(main)


def test_another_broker_takes_over_when_the_controller_dies(zookeeper):
    async def main():
        async with nodes_on(zookeeper, 3) as nodes:
            await nodes[0].runner.submit(create("t", 1, num_partitions=6, replication_factor=3))
            await until(lambda: all("t" in node.image.topics for node in nodes))
            nodes[0].stop()
            await until(lambda: 1 not in nodes[1].image.brokers)
            for node in nodes[1:]:
                await until(lambda node=node: 1 not in node.image.brokers)
                assert node.image.controller_id in (2, 3)
                assert node.image.controller_epoch == 2
                assert all(
                    state.leader in (2, 3) and 1 not in state.isr
                    for state in node.image.topics["t"].partitions
                )
            assert [node.runner.is_controller for node in nodes[1:]].count(True) == 1

    trio.run(main)


@pytest.mark.parametrize("who", [0, 1])
def test_an_expired_session_is_a_failure_and_a_return(zookeeper, who):
    """Rule 197, of the controller and of another broker."""

    async def main():
        async with nodes_on(zookeeper, 3) as nodes:
            controller = nodes[0].runner
            await controller.submit(create("t", 1, num_partitions=6, replication_factor=3))
            await until(lambda: all("t" in node.image.topics for node in nodes))
            epochs = {
                number: known.broker_epoch for number, known in nodes[0].image.brokers.items()
            }
            owning = f"{zookeeper.chroot}/brokers/ids/{who + 1}"
            assert zookeeper.expire_sessions(owning=owning)
            changed = nodes[who]

            def is_back(node):
                known = node.image.brokers.get(who + 1)
                return known is not None and known.broker_epoch > epochs[who + 1]

            await until(lambda: all(map(is_back, nodes)))
            assert changed.runner.broker_epoch == changed.image.brokers[who + 1].broker_epoch
            await until(
                lambda: (
                    [node.runner.is_controller for node in nodes].count(True) == 1
                    and len({comparable(node.image) for node in nodes[:0]}) == 0
                )
            )
            await until(lambda: len({node.image.controller_id for node in nodes}) == 1)
            leads = [state.leader for state in nodes[0].image.topics["t"].partitions]
            assert who + 1 not in leads

    trio.run(main)


def test_work_goes_on_after_zookeeper_was_away(server, request):
    """A restart within the session timeout costs nothing but the wait."""
    with ZooKeeper(tick_ms=200) as own:
        own.chroot = ""

        async def main():
            async with nodes_on(own, 2) as nodes:
                await nodes[0].runner.submit(create("a", 1))
                await trio.to_thread.run_sync(own.restart)

                async def works():
                    for node in nodes:
                        if node.runner.is_controller:
                            try:
                                await node.runner.submit(create("b", 2))
                            except KafkaError as error:
                                if error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
                                    return True
                            else:
                                return True
                    return False

                with trio.fail_after(30):
                    while not await works():  # noqa: ASYNC110
                        await trio.sleep(0.05)
                await until(lambda: all({"a", "b"} == set(node.image.topics) for node in nodes))
                await until(lambda: all({1, 2} == set(node.image.brokers) for node in nodes))

        trio.run(main)


def test_a_controller_that_was_stopped_for_too_long_decides_nothing(server):
    """The ensemble falls silent: no decision, and afterwards one controller."""
    with ZooKeeper(tick_ms=200) as own:
        own.chroot = ""

        async def main():
            async with nodes_on(own, 2) as nodes:
                await nodes[0].runner.submit(create("a", 1))
                own.pause()
                try:
                    await until(lambda: not any(node.runner.is_controller for node in nodes))
                    with pytest.raises(KafkaError) as caught:
                        await nodes[0].runner.submit(create("b", 2))
                    assert caught.value.code is ErrorCode.NOT_CONTROLLER
                finally:
                    own.resume()
                await until(lambda: [node.runner.is_controller for node in nodes].count(True) == 1)
                await until(lambda: all({1, 2} == set(node.image.brokers) for node in nodes))

        trio.run(main)


def test_an_unreachable_zookeeper_stops_the_start_with_one_line():
    store = ZookeeperStore("127.0.0.1:1/kafka", clock=SystemClock(), connection_timeout_ms=300)
    with pytest.raises(MetadataStoreError) as caught:
        trio.run(store.open)
    assert str(caught.value) == (
        "ZooKeeper at 127.0.0.1:1/kafka was not reached within 300 ms "
        "(zookeeper.connection.timeout.ms)"
    )


def test_nodes_that_hold_something_else_stop_the_start_with_one_line(zookeeper):
    async def main():
        async with opened(zookeeper) as store:
            with Look(zookeeper) as look:
                look.client.create("/brokers/topics/t", b"nonsense")
            with pytest.raises(MetadataStoreError, match="/brokers/topics/t holds b'nonsense'"):
                await store.load()

    trio.run(main)


def test_a_lost_session_is_told_once_the_store_is_back(zookeeper):
    async def main():
        async with opened(zookeeper) as store:
            await store.register(broker(1))
            zookeeper.expire_sessions(owning=f"{zookeeper.chroot}/brokers/ids/1")
            with trio.fail_after(10):
                while not isinstance(await store.next_event(), SessionLost):
                    pass
            assert await store.register(broker(1)) > 0

    trio.run(main)
