"""Topics that are made while nobody waits (rule 479)."""

from uuid import UUID

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.meta import background_topics as module
from kafkalite.meta.background_topics import BackgroundTopics
from kafkalite.meta.events import CreateTopic
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.coordinator.toy import TrioClock

SECOND_MS = 1_000


def topics(*names):
    return [CreateTopic(name=name, topic_id=UUID(int=1)) for name in names]


class Creator:
    """What the runner is to it: takes its time, and refuses what it is told to refuse."""

    def __init__(self):
        self.asked = []
        self.refuses = {}
        self.fails = None
        self.may_go_on = trio.Event()

    async def create_missing(self, events):
        self.asked.append([event.name for event in events])
        await self.may_go_on.wait()
        if self.fails is not None:
            raise self.fails
        return {e.name: self.refuses[e.name] for e in events if e.name in self.refuses}


@pytest.fixture
async def kit(nursery, autojump_clock):
    creator = Creator()
    made = BackgroundTopics(creator, TrioClock())
    nursery.start_soon(made.run)
    await wait_all_tasks_blocked()
    return creator, made


async def test_topics_are_created_each_once_at_a_time(kit):
    creator, made = kit
    made.create(topics("a", "b"), remember_ms=SECOND_MS)
    made.create(topics("b"), remember_ms=SECOND_MS)
    await wait_all_tasks_blocked()
    made.create(topics("a", "c"), remember_ms=SECOND_MS)
    await wait_all_tasks_blocked()
    assert creator.asked == [["a", "b"]]
    creator.may_go_on.set()
    await wait_all_tasks_blocked()
    assert creator.asked == [["a", "b"], ["c"]]
    made.create(topics("a"), remember_ms=SECOND_MS)
    await wait_all_tasks_blocked()
    assert creator.asked[2:] == [["a"]]


async def test_a_failure_is_remembered_and_not_tried_again_meanwhile(kit):
    creator, made = kit
    creator.may_go_on.set()
    creator.refuses = {"a": KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "too few brokers")}
    made.create(topics("a", "b"), remember_ms=SECOND_MS)
    await wait_all_tasks_blocked()
    assert made.failures(["a", "b", "c"]) == {"a": "too few brokers"}
    made.create(topics("a"), remember_ms=SECOND_MS)
    await wait_all_tasks_blocked()
    assert len(creator.asked) == 1
    await trio.sleep(1.1)
    assert made.failures(["a"]) == {}
    made.create(topics("a"), remember_ms=SECOND_MS)
    await wait_all_tasks_blocked()
    assert len(creator.asked) == 2


async def test_a_failure_of_all_is_that_of_each_and_the_next_are_tried(kit):
    creator, made = kit
    creator.may_go_on.set()
    creator.fails = KafkaError(ErrorCode.NOT_CONTROLLER)
    made.create(topics("a", "b"), remember_ms=SECOND_MS)
    await wait_all_tasks_blocked()
    assert made.failures(["a", "b"]) == {"a": "NOT_CONTROLLER", "b": "NOT_CONTROLLER"}
    creator.fails = None
    made.create(topics("c"), remember_ms=SECOND_MS)
    await wait_all_tasks_blocked()
    assert creator.asked[-1] == ["c"]


async def test_what_waits_and_what_is_remembered_is_bounded(kit, monkeypatch):
    creator, made = kit
    monkeypatch.setattr(module, "REMEMBERED_MAX", 2)
    creator.refuses = dict.fromkeys("abcd", KafkaError(ErrorCode.POLICY_VIOLATION, "no"))
    made.create(topics("a", "b", "c"), remember_ms=SECOND_MS)
    creator.may_go_on.set()
    await wait_all_tasks_blocked()
    assert creator.asked == [["a", "b"]]
    made.create(topics("d"), remember_ms=SECOND_MS)
    await wait_all_tasks_blocked()
    assert made.failures("abcd") == {"b": "no", "d": "no"}
