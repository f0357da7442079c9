"""Topics of patterns are found after the answer, in slices, for who may see them."""

from uuid import UUID

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.deferred import Promise
from kafkalite.group.effects import ResolvePatterns
from kafkalite.group.metadata import GroupMetadata
from kafkalite.meta.changes import TopicCreated
from kafkalite.meta.image import Image, PartitionImage
from kafkalite.server import pattern_resolver
from kafkalite.server.pattern_resolver import PatternResolver
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.coordinator.fakes import WALL_OFFSET_MS, FakeClock

ONE = (PartitionImage(replicas=(1,), isr=(1,), leader=1),)


class Groups:
    """Takes what is found."""

    def __init__(self):
        self.told = []
        self.answers = None

    def handle(self, topic, key, event):
        assert (topic, key) == ("__consumer_offsets", event.group_id)
        if isinstance(self.answers, Exception):
            raise self.answers
        self.told.append(event)
        return self.answers


@pytest.fixture
def groups():
    return Groups()


def metadata(*names):
    topics = [
        TopicCreated(name=name, topic_id=UUID(int=number), partitions=ONE)
        for number, name in enumerate(names, 1)
    ]
    return GroupMetadata(Image().apply(topics))


async def resolve(groups, *effects, topics=("t1", "t2", "other"), may_see=None):
    resolver = PatternResolver(FakeClock())
    if may_see is not None:
        resolver.restrict(may_see)
    resolver.attach(groups, metadata(*topics))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(resolver.run)
        await wait_all_tasks_blocked()
        for effect in effects:
            resolver.perform(effect)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()


def wanted(*patterns, group="g", principal="User:me"):
    return ResolvePatterns(group, patterns, principal, "10.0.0.1")


async def test_topics_are_found_with_version_and_time(groups):
    await resolve(groups, wanted("t.*", "o.*", "x"))
    (event,) = groups.told
    found = {pattern: each.topics for pattern, each in event.resolutions.items()}
    assert found == {"t.*": {"t1", "t2"}, "o.*": {"other"}, "x": frozenset()}
    assert event.resolutions["x"][1:] == (1, FakeClock().now_ms + WALL_OFFSET_MS)


async def test_only_the_last_wish_of_a_group_counts(groups):
    await resolve(groups, wanted("a"), wanted("b", group="h"), wanted("t.*"))
    assert [(each.group_id, [*each.resolutions]) for each in groups.told] == [
        ("h", ["b"]),
        ("g", ["t.*"]),
    ]


async def test_what_a_principal_may_not_see_is_left_out(groups):
    asked = []

    def may_see(principal, host, topic):
        asked.append((principal, host))
        return topic != "t2"

    await resolve(groups, wanted("t.*"), may_see=may_see)
    assert groups.told[0].resolutions["t.*"].topics == {"t1"}
    assert set(asked) == {("User:me", "10.0.0.1")}


async def test_many_topics_are_looked_at_in_slices(groups, monkeypatch):
    monkeypatch.setattr(pattern_resolver, "NAMES_PER_SLICE", 2)
    names = [f"t{number}" for number in range(7)]
    await resolve(groups, wanted("t.*"), topics=names)
    assert groups.told[0].resolutions["t.*"].topics == set(names)


async def test_a_group_that_has_moved_away_is_not_its_concern(groups):
    groups.answers = KafkaError(ErrorCode.NOT_COORDINATOR, "moved")
    await resolve(groups, wanted("t.*"), wanted("o.*", group="h"))
    assert groups.told == []


async def test_nobody_waits_for_replicas(groups):
    forgotten = []
    groups.answers = Promise(lambda: forgotten.append(True))
    await resolve(groups, wanted("t.*"))
    assert forgotten


async def test_who_may_see_topics_is_asked_in_slices(groups):
    """An authorizer takes longer than a match, and others have their turn all the same."""
    turns, asked = 0, []

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    def may_see(principal, host, name):
        asked.append(turns)
        return name != "t0"

    names = [f"t{number}" for number in range(10 * pattern_resolver.CHECKS_PER_SLICE)]
    resolver = PatternResolver(FakeClock())
    resolver.restrict(may_see)
    resolver.attach(groups, metadata(*names))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(resolver.run)
        nursery.start_soon(others)
        resolver.perform(wanted("t.*"))
        while not groups.told:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert groups.told[0].resolutions["t.*"].topics == {*names} - {"t0"}
    # Of two tasks either goes first, each time.
    assert max(asked.count(turn) for turn in {*asked}) <= 2 * pattern_resolver.CHECKS_PER_SLICE
