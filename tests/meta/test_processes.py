"""Metadata that the first of several processes keeps, and others follow by a socket."""

import shutil
import tempfile
from dataclasses import replace
from functools import partial

import pytest
import trio

from kafkalite.log.disk import OsDisk
from kafkalite.meta import processes as module
from kafkalite.meta.changes import BrokerRegistered, ConfigsChanged
from kafkalite.meta.image import BrokerImage, Image
from kafkalite.meta.local import LocalStore
from kafkalite.meta.processes import FirstProcessStore, FollowingStore
from kafkalite.meta.store import (
    BrokerIdTaken,
    CommitEvent,
    ControllerChanged,
    LiveBrokers,
    MetadataStoreError,
    SessionLost,
    SessionSuspended,
)
from kafkalite.wire.errors import ErrorCode, KafkaError

BROKER = 4
NAME = "log.retention.ms"


@pytest.fixture
def folder():
    made = tempfile.mkdtemp(prefix="kafkalite-")  # pytest's are too long for a socket
    yield made
    shutil.rmtree(made)


class First:
    """The first process: a store, and the image that it keeps."""

    def __init__(self, folder):
        local = LocalStore(OsDisk(syncs=False), f"{folder}/metadata.log", flush=False)
        self.store = FirstProcessStore(local, f"{folder}/socket")
        self.image = Image()

    async def open(self):
        await self.store.open()
        await self.store.cluster_id("the-cluster")
        stored = await self.store.load()
        for change in stored.changes:
            self.image = self.image.apply([change])
        self.version = stored.version
        await self.store.register(broker(1))
        assert await self.store.campaign() is not None
        return self

    async def commit(self, value):
        before = Image(version=self.version)
        after = Image(version=self.version + 1)
        changes = [ConfigsChanged(resource_type=BROKER, resource_name="", values={NAME: value})]
        self.version = await self.store.commit(before, after, changes)
        return self.version


def broker(number):
    return BrokerImage(broker_id=number, endpoints={"PLAINTEXT": ("127.0.0.1", 9000 + number)})


async def following(folder):
    store = FollowingStore(f"{folder}/socket")
    await store.open()
    return store


async def event_of(store, kind):
    with trio.fail_after(10):
        while True:
            event = await store.next_event()
            if isinstance(event, kind):
                return event


def run(main, folder):
    trio.run(partial(main, folder))


def test_a_follower_loads_what_is_there_and_is_told_what_comes(folder):
    async def main(folder):
        first = await First(folder).open()
        await first.commit("1")
        store = await following(folder)
        assert await store.cluster_id("another") == "the-cluster"
        stored = await store.load()
        assert stored.version == 1
        (change,) = stored.changes
        assert change.values == {NAME: "1"}
        assert await store.load(1) is None
        assert await store.register(broker(2)) == 2
        assert await event_of(store, ControllerChanged) == ControllerChanged(broker_id=1, epoch=1)
        await first.commit("2")
        event = await event_of(store, CommitEvent)
        assert (event.version, event.changes[0].values) == (2, {NAME: "2"})
        live = await event_of(first.store, LiveBrokers)
        while len(live.brokers) < 2:
            live = await event_of(first.store, LiveBrokers)
        assert live.brokers[2].endpoints == broker(2).endpoints
        store.close()
        assert set((await event_of(first.store, LiveBrokers)).brokers) == {1}
        first.store.close()

    run(main, folder)


def test_only_the_first_decides(folder):
    async def main(folder):
        first = await First(folder).open()
        store = await following(folder)
        assert await store.campaign() is None
        with pytest.raises(KafkaError) as raised:
            await store.commit(Image(), Image(), [])
        assert raised.value.code is ErrorCode.NOT_CONTROLLER
        store.close()
        first.store.close()

    run(main, folder)


def test_an_id_is_taken_once(folder):
    async def main(folder):
        first = await First(folder).open()
        one, other = await following(folder), await following(folder)
        await one.register(broker(2))
        first.store._ensemble.session_timeout_s = 0.1
        with pytest.raises(BrokerIdTaken):
            await other.register(broker(2))
        one.close()
        assert await other.register(broker(2)) == 3
        other.close()
        first.store.close()

    run(main, folder)


def test_a_first_process_that_comes_back_has_everything_and_is_followed_again(folder):
    async def main(folder):
        first = await First(folder).open()
        await first.commit("1")
        store = await following(folder)
        await store.load()
        epoch = await store.register(broker(2))
        registered = BrokerRegistered.of(replace(broker(2), broker_epoch=epoch))
        await first.store.commit(Image(version=1), Image(version=2), [registered])
        await event_of(store, ControllerChanged)
        first.store.close()
        await event_of(store, SessionSuspended)
        with pytest.raises(KafkaError):
            await store.load()
        again = await First(folder).open()
        assert again.version == 2
        await event_of(store, SessionLost)
        live = await event_of(again.store, LiveBrokers)
        assert 2 in live.brokers, "its process never was away"
        assert await store.load(2) is None
        assert await store.register(broker(2)) == epoch
        await again.commit("2")
        assert (await event_of(store, CommitEvent)).version == 3
        store.close()
        again.store.close()

    run(main, folder)


def test_a_question_that_is_cancelled_leaves_nobody_else_with_its_answer(folder):
    async def main(folder):
        first = await First(folder).open()
        store = await following(folder)
        for _ in range(20):
            with trio.move_on_after(0):
                await store.load()
            with trio.move_on_after(0.0001):
                await store.load()
        assert await store.cluster_id("") == "the-cluster"
        store.close()
        first.store.close()

    run(main, folder)


def test_nonsense_on_the_socket_harms_nobody(folder, caplog):
    async def main(folder):
        first = await First(folder).open()
        for data in (b"\n", b"[]\n", b"{}\n", b'{"do":"follow","session":"x","version":0}\n', b""):
            stream = await trio.open_unix_socket(f"{folder}/socket")
            await stream.send_all(data)
            await stream.aclose()
        store = await following(folder)
        assert await store.cluster_id("") == "the-cluster"
        store.close()
        first.store.close()

    run(main, folder)


def test_nobody_there_is_said_in_a_line(folder, monkeypatch):
    monkeypatch.setattr(module, "CONNECT_TIMEOUT_S", 0.2)

    async def main(folder):
        with pytest.raises(MetadataStoreError, match="no process serves metadata there"):
            await following(folder)

    run(main, folder)


def test_brokers_of_a_file_keep_their_epochs(folder):
    """A broker that comes back counts as restarted, also where the first process did, too."""

    async def main(folder):
        first = await First(folder).open()
        change = BrokerRegistered(broker_id=2, endpoints={}, broker_epoch=7)
        await first.store.commit(Image(), Image(version=1), [change])
        first.store.close()
        again = await First(folder).open()
        store = await following(folder)
        assert await store.register(broker(2)) > 7
        store.close()
        again.store.close()

    run(main, folder)
