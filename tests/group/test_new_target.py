"""Targets that take longer than a turn: computed in slices, with the same result."""

import random
from dataclasses import dataclass

import pytest

from kafkalite.group import new_target
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.group.consumer.harness import ConsumerHarness
from tests.group.share.harness import ShareHarness
from tests.group.streams.harness import StreamsHarness, Thread
from tests.group.work import lines_of

SECOND = 1_000


@pytest.fixture
def slowly(monkeypatch):
    """One step is a slice, one record a batch."""
    monkeypatch.setattr(new_target, "AT_ONCE_UNITS", 0)
    monkeypatch.setattr(new_target, "SLICE_UNITS", 1)


class Consumers:
    """Members that come by the consumer protocol, of three topics."""

    def __init__(self, assignor="uniform", **settings):
        self.harness = ConsumerHarness(topics={"t1": 7, "t2": 3, "t3": 1}, **settings)
        self.assignor = assignor

    def join(self, name, topics=("t1", "t2")):
        self.harness.beat(name, 0, topics=[*topics], server_assignor=self.assignor)

    def settle(self):
        self.harness.settle(*self.harness.group.members)

    @property
    def targets(self):
        return self.harness.group.targets


class ShareConsumers:
    def __init__(self):
        self.harness = ShareHarness({"t1": 7, "t2": 3, "t3": 1})

    def join(self, name, topics=("t1", "t2")):
        self.harness.beat(name, 0, *topics)
        self.harness.initialize()

    def settle(self):
        for _ in range(3):
            self.harness.advance(SECOND)
            for name, member in [*self.harness.group.members.items()]:
                self.harness.beat(name, member.member_epoch)
            self.harness.initialize()

    @property
    def targets(self):
        return self.harness.group.targets


class StreamsThreads:
    def __init__(self, **config):
        named = {name.replace("_", "."): str(value) for name, value in config.items()}
        topics = {"in1": 9, "st-rep": 9, "st-store-changelog": 9}
        self.harness = StreamsHarness(topics, config=named)
        self.threads = {}

    def join(self, name, topics=()):
        del topics
        thread = self.threads[name] = Thread(name, process_id=name[:1])
        self.harness.join(thread)

    def settle(self):
        for _ in range(12):
            self.harness.advance(SECOND)
            for thread in self.threads.values():
                self.harness.beat(thread, owned=True)

    @property
    def targets(self):
        return self.harness.group.targets


def test_members_stay_with_the_old_target_until_the_new_one_is_computed(slowly):
    group = Consumers()
    group.join("a")
    harness = group.harness
    assert harness.epochs() == (2, 1, 1)
    assert harness.has("a") == {}
    assert not group.targets
    harness.advance(SECOND)
    assert harness.epochs() == (2, 2, 1)
    assert harness.beat("a", 1).has == {"t1": [*range(7)], "t2": [0, 1, 2]}


KINDS = {
    "uniform": Consumers,
    "range": lambda: Consumers("range"),
    "share": ShareConsumers,
    "streams": StreamsThreads,
    "streams with standbys": lambda: StreamsThreads(group_streams_num_standby_replicas=1),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_the_target_is_the_same_in_slices_and_at_once(kind, seed, monkeypatch):
    """Two groups to which the same happens, each epoch of which has the same target."""
    rng = random.Random(seed)
    joins = [
        (f"{rng.choice('abc')}{number}", rng.choice([("t1", "t2"), ("t1", "t2"), ("t2", "t3")]))
        for number in range(8)
    ]
    found = []
    for at_once_units in (new_target.AT_ONCE_UNITS, 0):
        monkeypatch.setattr(new_target, "AT_ONCE_UNITS", at_once_units)
        monkeypatch.setattr(new_target, "SLICE_UNITS", 1 if not at_once_units else 1_000)
        group = kind()
        seen = []
        for name, topics in joins:
            group.join(name, topics)
            group.settle()
            seen.append(dict(group.targets))
        found.append(seen)
    assert found[0] == found[1]
    assert any(any(target for target in seen.values()) for seen in found[0])


def test_a_group_that_changes_meanwhile_gets_the_target_of_before_and_then_its_own(slowly):
    group = Consumers()
    for name in ("a", "b", "c"):
        group.join(name)
        group.harness.advance(2 * SECOND)
    group.settle()
    harness = group.harness
    began = harness.epochs()[0] + 1
    group.join("d")
    harness.advance(2)
    group.join("e")
    harness.beat("b", -1)
    assert harness.epochs()[:2] == (began + 2, began - 1)
    harness.advance(SECOND)
    assert harness.epochs()[:2] == (began + 2, began)
    assert {*group.targets} == {"a", "c", "d"}, "who left has none, who came has none yet"
    group.settle()
    assert harness.epochs()[0] == harness.epochs()[1] == began + 2
    assert_all_is_read(harness, "a", "c", "d", "e")


def test_who_takes_a_static_members_place_meanwhile_gets_its_target(slowly):
    group = Consumers()
    harness = group.harness
    harness.beat("a", 0, topics=["t1"], instance_id="i")
    harness.advance(2 * SECOND)
    harness.beat("b", 0, topics=["t1"])
    harness.advance(5)
    assert "g" in harness.shard.new_targets
    harness.beat("a", -2, instance_id="i")
    harness.beat("a2", 0, topics=["t1"], instance_id="i")
    harness.advance(SECOND)
    assert sorted([*harness.target("a2")["t1"], *harness.target("b")["t1"]]) == [*range(7)]
    assert "a" not in group.targets
    group.settle()
    assert_all_is_read(harness, "a2", "b", topics={"t1": 7})


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_log_that_refuses_a_slice_ends_it_and_the_next_heartbeat_begins_anew(slowly, written):
    group = Consumers()
    harness = group.harness
    for name in ("a", "b", "c"):
        group.join(name)
        harness.advance(2 * SECOND)
    group.settle()
    group.join("d")
    end = len(harness.log) + written
    while len(harness.log) < end:
        harness.advance(1)
    harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
    harness.advance(SECOND)
    assert not harness.shard.new_targets
    assert harness.epochs()[0] == harness.epochs()[1] + 1
    harness.refuse_appends_with = None
    group.settle()
    assert_all_is_read(harness, "a", "b", "c", "d")


def test_a_member_that_the_log_refused_has_no_part_in_the_target(slowly):
    group = Consumers()
    group.join("a")
    group.harness.advance(SECOND)
    group.settle()
    group.harness.refuse_appends_with = ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(KafkaError):
        group.join("b")
    group.harness.refuse_appends_with = None
    group.harness.advance(SECOND)
    assert not group.harness.shard.new_targets
    assert_all_is_read(group.harness, "a")


@pytest.mark.parametrize("after_ms", [1, 30, 60, 70])
def test_the_next_coordinator_begins_anew(slowly, after_ms):
    """Whatever of the target is in the log by then."""
    group = Consumers()
    for name in ("a", "b", "c", "d"):
        group.join(name)
        group.harness.advance(after_ms)
    next_one = group.harness.restarted()
    next_one.settle("a", "b", "c", "d")
    assert_all_is_read(next_one, "a", "b", "c", "d")


def test_a_group_that_is_gone_leaves_nothing_to_do(slowly):
    group = Consumers()
    group.join("a")
    harness = group.harness
    harness.advance(2)
    harness.beat("a", -1)
    harness.delete_group()
    assert harness.group is None
    harness.advance(SECOND)
    assert not harness.shard.new_targets
    written = len(harness.log)
    harness.advance(SECOND)
    assert len(harness.log) == written


@dataclass
class Work:
    """Slices that a target took, and the lines of Python that the longest turn ran."""

    slices: int = 0
    lines: int = 0


def longest(make, count):
    """Have so many members join, and then one more that makes a target of its own."""
    group = make()
    harness = group.harness
    harness.check = lambda: None
    for number in range(count):
        group.join(f"{number % 7}-{number}")
    harness.advance(10 * SECOND)
    work = Work()
    handle, on_time = harness.shard.handle, harness.shard.on_time
    harness.replica.replay = lambda record: None
    write = harness._process

    def counted(function):
        def run(*arguments):
            def turn():
                outcome.append(function(*arguments))

            outcome = []
            work.lines = max(work.lines, lines_of(turn))
            work.slices += bool(harness.shard.new_targets)
            return outcome[0]

        return run

    harness.shard.handle, harness.shard.on_time = counted(handle), counted(on_time)
    harness._process = counted(write)
    group.join("one more")
    harness.advance(10 * SECOND)
    assert not harness.shard.new_targets
    assert group.targets.keys() == harness.group.members.keys()
    return work


@pytest.mark.parametrize("kind", ["uniform", "range", "share", "streams with standbys"])
def test_the_longest_step_does_not_grow_with_the_group(kind, monkeypatch):
    """In lines of Python that run between two turns of others, whatever the machine."""
    monkeypatch.setattr(new_target, "AT_ONCE_UNITS", 200)
    monkeypatch.setattr(new_target, "SLICE_UNITS", 200)
    small, large = longest(KINDS[kind], 40), longest(KINDS[kind], 160)
    assert large.slices >= 2 * small.slices > 2
    assert large.lines < 1.5 * small.lines


def assert_all_is_read(harness, *names, topics=None):
    wanted = {"t1": 7, "t2": 3} if topics is None else topics
    found = []
    for name in names:
        found += [(topic, index) for topic, own in harness.has(name).items() for index in own]
    assert sorted(found) == [(topic, index) for topic in wanted for index in range(wanted[topic])]
