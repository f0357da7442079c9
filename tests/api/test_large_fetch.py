"""A Fetch of very many partitions: the same answer as any other, made in steps (decision 0062)."""

from dataclasses import replace

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.api import fetch, fetch_session, parts
from kafkalite.api.fetch_reader import FetchReader
from kafkalite.api.large_fetch import STEP_PARTITIONS, LargeFetch
from kafkalite.deferred import Deferred
from kafkalite.isr.partition import IsolationLevel
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from tests.api.data_kit import DataKit

(HANDLER,) = fetch.HANDLERS
LARGE = replace(HANDLER, handle=HANDLER.handle_large)
VERSION = 12
WIDE = 2 * STEP_PARTITIONS + 100
"""Partitions of a topic, more than are looked at in one turn."""
PART_MAX = 200
"""Partitions that are planned in one turn here."""


@pytest.fixture
async def kit(monkeypatch):
    for owner in (fetch, parts):
        monkeypatch.setattr(owner, "PART_MAX", PART_MAX)
    kit = await DataKit().start()
    await kit.create("t", WIDE)
    return kit


def request(indexes, *, offset=0, **options):
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index in indexes
    ]
    values = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1}
    return FetchRequest(topics=[FetchTopic(topic="t", partitions=partitions)], **values | options)


async def ask(kit, asked, handler=LARGE):
    pending = kit.handle(handler, asked, VERSION)
    assert isinstance(pending, LargeFetch)
    return kit.read(handler, await pending.wait(), VERSION)


def with_records(response):
    return [
        data.partition_index
        for topic in response.responses
        for data in topic.partitions
        if data.records
    ]


@pytest.mark.parametrize("max_bytes", [1 << 20, 200, 0])
async def test_it_is_answered_as_any_other(kit, max_bytes, monkeypatch):
    """Limits count over all steps; what is unknown, or out of range, is refused alone."""
    for index in (0, STEP_PARTITIONS, WIDE - 1):
        kit.append("a" * 50, index=index)
    indexes = range(WIDE + 10)
    asked = request(indexes, max_bytes=max_bytes)
    in_steps = await ask(kit, asked)
    monkeypatch.setattr(fetch, "PART_MAX", 10 * WIDE)
    assert in_steps == kit.ask(HANDLER, asked, VERSION)
    codes = [data.error_code for topic in in_steps.responses for data in topic.partitions]
    assert codes == [0] * WIDE + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 10


@pytest.mark.pure  # functions and numbers are put in the place of others
async def test_no_turn_looks_at_more_than_a_step_of_it(kit, monkeypatch):
    """Counted: partitions planned, read, watched and told in one turn of the loop."""
    turn = 0
    done = {}

    def counted(owner, name):
        real = getattr(owner, name)

        def count(*arguments, **options):
            done[name, turn] = done.get((name, turn), 0) + 1
            return real(*arguments, **options)

        monkeypatch.setattr(owner, name, count)

    counted(fetch, "_read_one")
    counted(fetch.DelayedFetch, "_watch")
    counted(fetch.DelayedFetch, "_unwatch")
    counted(fetch_session.CachedPartition, "has_changed")
    counted(fetch_session, "CachedPartition")

    class Turns(trio.abc.Instrument):
        def before_task_step(self, task):
            nonlocal turn
            turn += 1

    trio.lowlevel.add_instrument(Turns())
    await ask(kit, request(range(WIDE), session_epoch=0, max_wait_ms=50))
    assert {name for name, _ in done} == {
        "CachedPartition", "_read_one", "_watch", "_unwatch", "has_changed"
    }  # fmt: skip
    assert max(done.values()) <= STEP_PARTITIONS


async def test_it_waits_until_there_is_something(kit, autojump_clock):
    asked = request(range(WIDE), max_wait_ms=1_000)
    async with kit.parked(LARGE, asked, VERSION) as parked:
        kit.append("a", index=7)
        await wait_all_tasks_blocked()
        assert with_records(parked.response) == [7]
        assert parked.after_s < 1
    assert not any(p._watchers for p in kit.replicas.partitions())


async def test_it_waits_for_all_that_it_wants(kit, autojump_clock):
    kit.append("a", index=WIDE - 2)
    size = kit.partition("t", WIDE - 2).log.size_bytes
    asked = request(range(WIDE - 2), max_wait_ms=1_000, min_bytes=2 * size)
    async with kit.parked(LARGE, asked, VERSION) as parked:
        kit.append("a", index=7)
        await wait_all_tasks_blocked()
        assert parked.response is None
        kit.append("b", index=WIDE - 3)
        await wait_all_tasks_blocked()
        assert with_records(parked.response) == [7, WIDE - 3]


async def test_what_came_too_late_is_not_waited_for(kit, autojump_clock):
    async with kit.parked(LARGE, request(range(WIDE), max_wait_ms=200), VERSION) as parked:
        await trio.sleep(0.3)
        assert with_records(parked.response) == []
        assert parked.after_s == pytest.approx(0.2, abs=0.01)


async def test_a_client_that_goes_leaves_nobody_who_watches(kit):
    pending = kit.handle(LARGE, request(range(WIDE), max_wait_ms=1_000), VERSION)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pending.wait)
        await wait_all_tasks_blocked()
        assert all(p._watchers for p in kit.replicas.partitions())
        nursery.cancel_scope.cancel()
    assert not any(p._watchers for p in kit.replicas.partitions())


@pytest.mark.pure  # functions and numbers are put in the place of others
async def test_a_session_of_very_many_is_served_in_steps_by_small_requests(kit):
    first = await ask(kit, request(range(WIDE), session_epoch=0))
    assert first.session_id
    kit.append("a", index=3)
    news = request((), session_id=first.session_id, session_epoch=1)
    news.topics = []
    second = await ask(kit, news, HANDLER)
    assert with_records(second) == [3]
    assert [data.partition_index for data in second.responses[0].partitions] == [3]


async def test_a_large_request_changes_its_session(kit):
    first = await ask(kit, request(range(WIDE), session_epoch=0))
    changed = request(range(WIDE), offset=1, session_id=first.session_id, session_epoch=1)
    changed.forgotten_topics_data = [ForgottenTopic(topic="t", partitions=[0])]
    kit.append("a", "b", index=5)
    second = await ask(kit, changed)
    refused = [
        data.partition_index
        for data in second.responses[0].partitions
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    ]
    assert refused == [index for index in range(1, WIDE) if index != 5]
    assert len(kit.sessions.partitions_of(first.session_id)) == WIDE - 1


async def test_a_session_that_is_none_is_refused(kit):
    asked = request(range(WIDE), session_id=99, session_epoch=3)
    pending = kit.handle(LARGE, asked, VERSION)
    with pytest.raises(Exception, match="fetch session 99"):
        await pending.wait()


async def test_a_follower_tells_what_it_has_and_hears_of_others(kit, monkeypatch):
    """Before it is answered, as without steps."""
    told = []
    monkeypatch.setattr(
        type(kit.partition()), "on_follower_fetch", lambda self, *of: told.append((self, of[2]))
    )
    context = kit.context(VERSION)
    reader = FetchReader(
        replica_id=2,
        broker_epoch=-1,
        isolation=IsolationLevel.READ_UNCOMMITTED,
        rack="",
        may_follow=False,
        is_follower=True,
    )
    response = await LargeFetch(request(range(WIDE)), reader, context).wait()
    assert [offset for _, offset in told] == [0] * WIDE
    assert len(response.responses[0].partitions) == WIDE


async def test_a_few_are_answered_at_once(kit):
    assert not isinstance(kit.handle(HANDLER, request(range(20)), VERSION), Deferred)
