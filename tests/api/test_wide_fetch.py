"""Fetches in a session of many partitions look at those that moved, and answer as if at all."""

import random
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.api import fetch, fetch_session
from kafkalite.deferred import DelayedOperation
from kafkalite.isr.leader_role import IsrAccepted
from kafkalite.meta.changes import PartitionChanged, TopicCreated, TopicDeleted
from kafkalite.meta.image import PartitionImage
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kafkalite.wire.records import iterate_batches
from tests.api.data_kit import batch
from tests.api.test_replication import ReplicatedKit

(HANDLER,) = fetch.HANDLERS
WIDE_ID = UUID(int=0x71DE)
WIDTH = 8
CONSUMER, FOLLOWER = -1, 2
NEVER = 10**9


@contextmanager
def wide_from(count):
    """Have sessions of more partitions than this know what moved."""
    before, fetch_session.WIDE_MIN = fetch_session.WIDE_MIN, count
    try:
        yield
    finally:
        fetch_session.WIDE_MIN = before


class Side:
    """A broker, and one client of it with a session."""

    def __init__(self, wide_min, replica_id, seed, width=WIDTH):
        self.wide_min = wide_min
        self.replica_id = replica_id
        self.width = width
        self.sizes = (1, 1 << 20)
        self.random = random.Random(seed)
        self.isolation = self.random.randrange(2)
        self.kit = ReplicatedKit()
        self.waiting = None
        self.woken = False
        self.last = None
        self.begin_session()
        self.wanted = {}

    async def start(self):
        await self.kit.start()
        self.states = [PartitionImage((1, 2, 3), (1, 2, 3), 1) for _ in range(self.width)]
        self.kit.tell(TopicCreated(name="w", topic_id=WIDE_ID, partitions=tuple(self.states)))
        while self.kit.replicas.open_some():
            pass
        return self

    @property
    def moves(self):
        session = self.kit.sessions._sessions.get(self.session_id)
        return None if session is None else session.moves

    def partition(self, index):
        return self.kit.replicas.hosted(TopicPartition("w", index))

    # What happens to partitions

    def append(self, index):
        try:
            self.partition(index).append(batch("a"), now_ms=self.kit.clock.now_ms)
        except (KafkaError, AttributeError) as error:
            return repr(error)

    def progress(self, index, replica_id):
        """A follower without a session has everything."""
        partition = self.partition(index)
        if partition is None or replica_id == self.replica_id:
            return
        try:
            partition.on_follower_fetch(
                replica_id,
                10 * replica_id,
                partition.log_end_offset,
                partition.log_start_offset,
                self.kit.clock.monotonic_ms(),
            )
        except KafkaError as error:
            return error.code

    def change(self, index, **changed):
        state = self.states[index]
        changed.setdefault("leader", state.leader)
        moves = changed.pop("epoch", 0) or changed["leader"] != state.leader
        self.states[index] = replace(
            state,
            **changed,
            leader_epoch=state.leader_epoch + moves,
            partition_epoch=state.partition_epoch + 1,
        )
        self.kit.tell(
            PartitionChanged(name="w", topic_id=WIDE_ID, index=index, state=self.states[index])
        )

    def answer_isr_changes(self):
        for partition, change in self.kit.replicas.take_isr_changes():
            topic, index = partition.topic_partition
            if topic != "w":
                continue
            isr = tuple(member.broker_id for member in change.isr)
            state = self.states[index]
            if change.partition_epoch != state.partition_epoch:
                partition.on_isr_answer(change, ErrorCode.INVALID_UPDATE_VERSION)
                continue
            self.states[index] = replace(state, isr=isr, partition_epoch=state.partition_epoch + 1)
            accepted = IsrAccepted(
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch + 1,
                isr=isr,
            )
            partition.on_isr_answer(change, accepted)
            self.kit.tell(
                PartitionChanged(name="w", topic_id=WIDE_ID, index=index, state=self.states[index])
            )

    def shorten(self, index):
        partition = self.partition(index)
        if partition is not None and partition.is_leader:
            try:
                partition.delete_records_before(-1)
            except KafkaError as error:
                return error.code

    def fail(self, index):
        if self.partition(index) is not None:
            self.partition(index).log.fail("it is broken")

    def delete(self):
        self.kit.tell(TopicDeleted(name="w", topic_id=WIDE_ID))

    def tick(self):
        self.kit.replicas.tick()

    # The client

    def begin_session(self):
        self.session_id, self.epoch, self.told = 0, 0, {}

    def asked(self, index):
        offset, last_epoch, known, epoch = self.wanted.setdefault(index, (0, -1, 0, -1))
        is_follower = self.replica_id >= 0
        return FetchPartition(
            partition=index,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            current_leader_epoch=epoch,
            log_start_offset=0 if is_follower else -1,
            partition_max_bytes=self.random.choice(self.sizes),
            high_watermark=known if is_follower else 2**63 - 1,
        )

    def fetch(self, *, forgets, repeats, max_wait_ms, max_bytes, ends):
        if self.waiting is not None:
            self.waiting.close()
            self.waiting = None
            if self.random.random() < 0.5:
                self.begin_session()
        if ends:
            self.begin_session()
        if self.session_id == 0:
            names, forgets = list(range(self.width)), ()
        else:
            names = [
                index
                for index in range(self.width)
                if self.told.get(index) != self.wanted.get(index) or index == repeats
            ]
            forgets = [index for index in forgets if index in self.told]
            names = [index for index in names if index not in forgets]
        self.random.shuffle(names)
        asked = [self.asked(index) for index in names]
        for index in names:
            self.told[index] = self.wanted[index]
        for index in forgets:
            del self.told[index]
        replica_id = self.replica_id
        request = FetchRequest(
            replica_state=ReplicaState(
                replica_id=replica_id, replica_epoch=10 * replica_id if replica_id >= 0 else -1
            ),
            isolation_level=self.isolation,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[FetchTopic(topic_id=WIDE_ID, partitions=asked)] if asked else [],
            forgotten_topics_data=[ForgottenTopic(topic_id=WIDE_ID, partitions=list(forgets))]
            if forgets
            else [],
        )
        self.epoch += 1
        with wide_from(self.wide_min):
            response = self.kit.handle(HANDLER, request)
        if isinstance(response, DelayedOperation):
            self.waiting, self.woken = response, True
            response.on_change = self.wake
            return self.poll()
        return self.take(response)

    def wake(self):
        self.woken = True

    def poll(self):
        """Do as the poller does: look at a request that waits when it says so, or is late."""
        if self.waiting is None or not (self.woken or self.waiting.is_late):
            return None
        self.woken = False
        response = self.waiting.complete()
        if response is None:
            return "waits", self.waiting.deadline_s
        self.waiting = None
        return self.take(response)

    def take(self, response):
        self.last = response
        response = self.kit.read(HANDLER, response)
        if response.error_code:
            self.begin_session()
            return response
        self.session_id = response.session_id
        for topic in response.responses:
            for data in topic.partitions:
                self.take_one(data)
        return response

    def take_one(self, data):
        index = data.partition_index
        offset, last_epoch, known, epoch = self.wanted[index]
        if data.diverging_epoch.epoch >= 0:
            offset = min(offset, data.diverging_epoch.end_offset)
            last_epoch = data.diverging_epoch.epoch
        elif data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            offset, last_epoch = max(data.log_start_offset, 0), -1
            partition = self.partition(index)
            offset = partition.log_start_offset if partition is not None else 0
        elif data.error_code in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH):
            epoch = self.states[index].leader_epoch
        elif not data.error_code:
            if self.random.random() < 0.9:  # else its disk is full
                for _, header in iterate_batches(bytes(data.records or b"")):
                    offset, last_epoch = header.next_offset, header.partition_leader_epoch
            known = max(known, min(data.high_watermark, offset))
            if epoch < 0 and self.random.random() < 0.3:
                epoch = self.states[index].leader_epoch
        self.wanted[index] = (offset, last_epoch, known, epoch)

    def not_told(self):
        """An answer is not sent, as its client used too much."""
        if self.last is not None and self.waiting is None:
            self.kit.sessions.not_told(self.session_id, self.last.responses)

    # What is to be the same

    def seen(self):
        found = []
        now_ms = self.kit.clock.monotonic_ms()
        for index in range(self.width):
            partition = self.partition(index)
            if partition is None:
                found.append(None)
                continue
            row = [partition.high_watermark, partition.log_end_offset, partition.leader_id]
            leader = partition.leader
            if leader is not None:
                row += [leader.state, leader.has_proposal]
                for follower in leader.followers.values():
                    row += [follower.log_end_offset, follower.has_fetched]
                    for ahead in (0, 1):  # what an append would make of it
                        end = partition.log_end_offset + ahead
                        if ahead and follower.log_end_offset == partition.log_end_offset:
                            continue  # it is told of that when it happens
                        row.append(
                            follower.is_caught_up(
                                leader_end_offset=end, now_ms=now_ms, lag_ms_max=30_000
                            )
                        )
            found.append(row)
        return found


OPERATIONS = {
    "append": 30,
    "progress": 16,
    "fetch": 40,
    "time": 12,
    "isr": 5,
    "lead": 4,
    "answer_isr_changes": 8,
    "shorten": 4,
    "tick": 4,
    "not_told": 2,
    "fail": 0.5,
    "delete": 0.2,
}


def operation(dice):
    """Return a step of a history as a function of a side."""
    (kind,) = dice.choices(list(OPERATIONS), list(OPERATIONS.values()))
    index = dice.choice([0, 0, 1, dice.randrange(WIDTH)])
    if kind == "fetch":
        options = {
            "forgets": [dice.randrange(WIDTH)] if dice.random() < 0.1 else [],
            "repeats": dice.randrange(WIDTH) if dice.random() < 0.2 else None,
            "max_wait_ms": dice.choice([0, 500, 500, 500]),
            "max_bytes": dice.choice([1, 200, 1 << 20]),
            "ends": dice.random() < 0.02,
        }
        return lambda side: side.fetch(**options)
    if kind == "progress":
        replica_id = dice.choice([2, 3, 3])
        return lambda side: side.progress(index, replica_id)
    if kind == "isr":
        isr = dice.choice([(1, 2, 3), (1, 3), (1, 2)])
        return lambda side: side.change(index, isr=isr, leader=1)
    if kind == "lead":
        changed = dice.choice([{"leader": 2}, {"leader": 1}, {"leader": 1, "epoch": 1}])
        return lambda side: side.change(index, isr=(1, 2, 3), **changed)
    if kind in ("append", "shorten", "fail"):
        return lambda side: getattr(side, kind)(index)
    if kind == "time":
        return None
    return lambda side: getattr(side, kind)()


@pytest.mark.pure  # a number is put in the place of another
@pytest.mark.parametrize("replica_id", [CONSUMER, FOLLOWER])
@pytest.mark.parametrize("seed", range(30))
async def test_answers_are_those_of_a_look_at_everything(seed, replica_id, mock_clock):
    """In random histories: each answer, when it comes, and what the leader knows of followers."""
    full = await Side(NEVER, replica_id, seed).start()
    wide = await Side(0, replica_id, seed).start()
    dice = random.Random(seed)
    had_moves = False
    for step in range(150):
        happens = operation(dice)
        if happens is None:
            passed_ms = dice.choice([5, 60, 600, 20_000, 40_000])
            mock_clock.jump(passed_ms / 1_000)
            for side in (full, wide):
                side.kit.clock.now_ms += passed_ms
        else:
            assert happens(full) == happens(wide), step
        assert full.poll() == wide.poll(), step
        assert full.seen() == wide.seen(), step
        had_moves = had_moves or wide.moves is not None
    assert had_moves
    assert full.moves is None


class Session:
    """Fetches of a follower that has everything, in a session of very many partitions."""

    WIDTH = 300

    async def open(self, replica_id=FOLLOWER):
        self.side = await Side(0, replica_id, 0, width=self.WIDTH).start()
        self.side.sizes = (1 << 20,)
        for _ in range(3):  # opened, looked at for what moves, and told high watermarks
            self.side.fetch(**self.options(max_wait_ms=0))
        return self

    def options(self, **options):
        values = {"forgets": (), "repeats": None, "max_wait_ms": 500, "max_bytes": 1 << 20}
        return {**values, "ends": False, **options}

    def fetch(self, **options):
        return self.side.fetch(**self.options(**options))


@pytest.fixture(params=[CONSUMER, FOLLOWER])
async def session(request):
    return await Session().open(request.param)


def count_calls(monkeypatch, *places):
    """Return a counter of the calls of functions, each a pair of owner and name."""
    calls = Counter()
    for owner, name in places:
        real = getattr(owner, name)

        def counted(*arguments, _real=real, _name=name, **options):
            calls[_name] += 1
            return _real(*arguments, **options)

        monkeypatch.setattr(owner, name, counted)
    return calls


@pytest.mark.pure  # functions are put in the place of others
async def test_a_fetch_looks_at_what_moved_alone(session, monkeypatch):
    """Counted: partitions read, found, watched, and told of their follower's progress."""
    side = session.side
    calls = count_calls(
        monkeypatch,
        (fetch, "_read_one"),
        (fetch, "_partition"),
        (type(side.partition(0)), "watch"),
        (type(side.partition(0)), "unwatch"),
        (type(side.partition(0)), "on_follower_fetch"),
    )
    assert session.fetch() == ("waits", side.waiting.deadline_s)
    assert calls == {}
    for index in (7, 3, 7):
        side.append(index)
        for replica_id in (2, 3):
            side.progress(index, replica_id)
    calls.clear()
    response = side.poll()
    (topic,) = response.responses
    assert sorted(data.partition_index for data in topic.partitions) == [3, 7]
    assert 0 < max(calls.values()) <= 8
    calls.clear()
    session.fetch(max_wait_ms=0)
    assert 0 < max(calls.values()) <= 8
    assert calls["watch"] == calls["unwatch"] == 0


async def test_what_was_watched_for_a_session_ends_with_it(session):
    def watchers():
        return sum(
            len(each._watchers) + len(each._append_watchers)
            for each in map(session.side.partition, range(Session.WIDTH))
        )

    assert watchers() == len(session.side.moves) * (1 + (session.side.replica_id >= 0))
    session.side.kit.sessions.forget(session.side.session_id)
    assert watchers() == 0


@pytest.mark.pure  # a number is put in the place of another
async def test_a_session_of_very_many_ends_a_part_at_a_time(session, monkeypatch):
    """So that no turn is longer for it, and none of it is left in the end."""
    monkeypatch.setattr("kafkalite.api.session_moves.END_MAX", 100)
    sessions, moves = session.side.kit.sessions, session.side.moves
    sessions.forget(session.side.session_id)
    assert len(moves) == Session.WIDTH - 100
    session.side.begin_session()
    session.fetch(max_wait_ms=0)
    session.fetch(max_wait_ms=0)
    assert len(moves) == 0


async def test_a_session_that_becomes_small_watches_nothing(session):
    side = session.side
    side.wide_min = Session.WIDTH - 2
    moves = side.moves
    session.fetch(max_wait_ms=0, forgets=[0, 1])
    assert side.moves is None
    assert len(moves) == 0
    side.append(5)
    if side.replica_id == FOLLOWER:
        (topic,) = session.fetch(max_wait_ms=0).responses
        assert 5 in [data.partition_index for data in topic.partitions]


async def test_who_waits_in_a_session_that_ends_is_answered(session):
    session.fetch()
    session.side.kit.sessions.forget(session.side.session_id)
    assert session.side.woken
    assert session.side.poll().responses == []


@pytest.mark.pure  # a number is put in the place of another
class TestInSteps:
    """Where more moved than is looked at in one turn."""

    @pytest.fixture
    async def session(self, monkeypatch):
        session = await Session().open(FOLLOWER)
        monkeypatch.setattr(fetch, "PART_MAX", 20)
        return session

    async def ask(self, session, **options):
        """Have 30 partitions named again, and return what they are answered once it is there."""
        side = session.side
        for index in range(100, 130):
            side.told.pop(index, None)
        pending = None

        def take(response):
            nonlocal pending
            pending = response

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(side, "take", take)
            session.fetch(**options)
        return side.take(await pending.wait())

    async def test_it_waits_for_what_it_does_not_name(self, session, autojump_clock):
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def _():
                response = await self.ask(session)
                (topic,) = response.responses
                assert [data.partition_index for data in topic.partitions] == [5]
                assert trio.current_time() < begin_s + 0.5

            begin_s = trio.current_time()
            await wait_all_tasks_blocked()
            session.side.append(5)
        session.fetch()
        assert session.side.waiting is not None
        session.side.append(6)
        assert session.side.woken

    async def test_it_ends_when_its_time_is_over(self, session, autojump_clock):
        begin_s = trio.current_time()
        assert (await self.ask(session)).responses == []
        assert trio.current_time() == pytest.approx(begin_s + 0.5, abs=0.01)
        assert session.side.moves.listeners == []

    async def test_what_is_there_is_told_at_once(self, session, autojump_clock):
        session.side.append(110)
        session.side.append(8)
        (topic,) = (await self.ask(session)).responses
        assert sorted(data.partition_index for data in topic.partitions) == [8, 110]
