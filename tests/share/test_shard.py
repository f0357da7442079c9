"""A shard of the share coordinator: its checks, its log, its time (rules 416-422)."""

from uuid import UUID

import pytest

from kafkalite.coordinator.records import decode_batch, encode_batches
from kafkalite.coordinator.shard import Now, Ticket
from kafkalite.share.batches import RecordState, SharePartitionKey, StateBatch
from kafkalite.share.effects import PruneLog
from kafkalite.share.events import (
    DeleteState,
    ForgetTopics,
    InitializeState,
    ReadState,
    ReadSummary,
    ShareState,
    StateUpdate,
    Summary,
    WriteState,
)
from kafkalite.share.records import ShareStateCodec
from kafkalite.share.settings import ShareCoordinatorSettings
from kafkalite.share.shard import ShareStateShard
from kafkalite.share.shards import ShareStateShards
from kafkalite.types import SHARE_GROUP_STATE_TOPIC, ZERO_UUID
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import set_offset_and_epoch
from tests.coordinator.fakes import START_MS, WALL_OFFSET_MS

TOPIC_ID = UUID(int=7)
KEY = SharePartitionKey("g", TOPIC_ID, 0)
OTHER = SharePartitionKey("g", TOPIC_ID, 1)
A, K, R = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
MINUTES_5 = 300_000


class Harness:
    """A shard, its log replayed record by record into a second one, which must agree."""

    def __init__(self, **settings):
        self.topics = {TOPIC_ID: 2}
        self.codec = ShareStateCodec()
        self.kind = ShareStateShards(
            ShareCoordinatorSettings(**settings),
            lambda topic_id, index: index < self.topics.get(topic_id, 0),
        )
        self.shard = self.kind.new_shard(3)
        self.replica = self.kind.new_shard(3)
        self.now_ms = START_MS
        self.log = []
        self.effects = []
        self.shard.on_loaded(self.now)

    @property
    def now(self):
        return Now(self.now_ms, self.now_ms + WALL_OFFSET_MS)

    def ask(self, event):
        ticket = Ticket(1)
        result = self.shard.handle(event, ticket, self.now)
        self.process(result)
        ((replied, answer),) = result.replies
        assert replied == ticket
        return answer

    def code(self, event):
        with pytest.raises(KafkaError) as raised:
            self.ask(event)
        return raised.value.code

    def process(self, result):
        self.effects += result.effects
        if not result.records:
            return
        for batch in encode_batches(
            result, self.codec, timestamp_ms=self.now.wall_ms, max_batch_bytes=1 << 20
        ):
            base = len(self.log)
            set_offset_and_epoch(batch.data, 0, base_offset=base, leader_epoch=0)
            for offset, record in enumerate(batch.records, base):
                record.offset = offset
                self.shard.replay(record)
                self.log.append(record)
            for record in decode_batch(memoryview(batch.data), self.codec):
                self.replica.replay(record)
        for name in ("states", "leader_epochs", "state_epochs", "update_counts"):
            assert getattr(self.shard, name) == getattr(self.replica, name)
        assert self.shard.snapshot_offsets == self.replica.snapshot_offsets

    def advance(self, milliseconds):
        end_ms = self.now_ms + milliseconds
        while (at := self.shard.next_deadline_ms()) <= end_ms:
            self.now_ms = at
            self.process(self.shard.on_time(self.now))
        self.now_ms = end_ms


@pytest.fixture
def harness():
    return Harness()


@pytest.fixture
def ready(harness):
    harness.ask(InitializeState(KEY, state_epoch=2, start_offset=-1))
    return harness


def write(*batches, start=-1, count=0, state_epoch=2, leader_epoch=0, key=KEY):
    return WriteState(key, state_epoch, leader_epoch, start, count, batches)


class TestChecks:
    """Rule 416."""

    @pytest.mark.parametrize(
        "key", [SharePartitionKey("g", ZERO_UUID, 0), SharePartitionKey("g", TOPIC_ID, -1)]
    )
    @pytest.mark.parametrize(
        "event",
        [
            lambda key: InitializeState(key, 1, -1),
            lambda key: ReadState(key, -1),
            lambda key: write(key=key),
            DeleteState,
            ReadSummary,
        ],
    )
    def test_key_must_be_one(self, harness, key, event):
        assert harness.code(event(key)) is ErrorCode.INVALID_REQUEST
        assert harness.log == []

    def test_what_is_not_initialised_is_neither_read_nor_written(self, harness):
        assert harness.code(ReadState(KEY, -1)) is ErrorCode.INVALID_REQUEST
        assert harness.code(write()) is ErrorCode.INVALID_REQUEST
        assert harness.ask(ReadSummary(KEY)) == Summary(0, 0, -1, -1)
        assert harness.ask(DeleteState(KEY)) is None
        assert harness.log == []

    def test_older_leaders_are_fenced(self, ready):
        ready.ask(ReadState(KEY, 5))
        assert ready.code(write(leader_epoch=4)) is ErrorCode.FENCED_LEADER_EPOCH
        assert ready.code(ReadState(KEY, 4)) is ErrorCode.FENCED_LEADER_EPOCH
        ready.ask(write(leader_epoch=5))
        ready.ask(write(leader_epoch=-1))

    def test_older_states_are_fenced(self, ready):
        assert ready.code(write(state_epoch=1)) is ErrorCode.FENCED_STATE_EPOCH
        assert ready.code(InitializeState(KEY, 1, 0)) is ErrorCode.FENCED_STATE_EPOCH
        ready.ask(write(state_epoch=-1))
        ready.ask(InitializeState(KEY, 3, 0))
        assert ready.code(write(state_epoch=2)) is ErrorCode.FENCED_STATE_EPOCH

    def test_fence_comes_before_the_unknown_topic(self, ready):
        ready.topics.clear()
        assert ready.code(write(state_epoch=1)) is ErrorCode.FENCED_STATE_EPOCH
        for event in (
            write(),
            ReadState(KEY, -1),
            ReadSummary(KEY),
            DeleteState(KEY),
            InitializeState(KEY, 2, 0),
        ):
            assert ready.code(event) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TestStates:
    def test_initialised_without_a_start_nothing_is_known_of_it(self, ready):
        """Rule 417."""
        assert ready.ask(ReadSummary(KEY)) == Summary(2, 0, -1, -1)
        ready.ask(InitializeState(KEY, 3, 10))
        assert ready.ask(ReadSummary(KEY)) == Summary(3, 0, 10, 0)
        assert [record.value.snapshot_epoch for record in ready.log] == [0, 1]

    def test_writes_are_merged(self, ready):
        """Rule 419."""
        ready.ask(write(StateBatch(0, 9, 1, A), start=0))
        ready.ask(write(StateBatch(0, 4, 1, K), start=0, count=5))
        ready.ask(write(StateBatch(7, 7, 2, R), start=5, count=1))
        state = ready.ask(ReadState(KEY, -1))
        assert state.batches == (
            StateBatch(5, 6, 1, A),
            StateBatch(7, 7, 2, R),
            StateBatch(8, 9, 1, A),
        )
        assert ready.ask(ReadSummary(KEY)) == Summary(2, 0, 5, 1)

    def test_leader_epoch_is_stored_by_reading_alone(self, ready):
        """Rule 418."""
        ready.ask(write(StateBatch(3, 4, 1, A), leader_epoch=8))
        assert ready.log[-1].value == StateUpdate(0, 0, -1, 0, (StateBatch(3, 4, 1, A),))
        state = ready.ask(ReadState(KEY, 9))
        assert state.leader_epoch == 0
        assert ready.log[-1].value == StateUpdate(0, 9, -1, 0, ())
        count = len(ready.log)
        ready.ask(ReadState(KEY, 9))
        assert len(ready.log) == count

    def test_after_enough_updates_comes_a_snapshot(self):
        """Rule 418."""
        harness = Harness(update_records_per_snapshot=3)
        harness.ask(InitializeState(KEY, 2, 0))
        for offset in range(9):
            harness.ask(write(StateBatch(offset, offset, offset + 1, A)))
        kinds = [type(record.value) for record in harness.log]
        assert kinds == [ShareState] + 2 * [*3 * [StateUpdate], ShareState] + [StateUpdate]
        snapshot = harness.log[4].value
        assert (snapshot.snapshot_epoch, snapshot.state_epoch, len(snapshot.batches)) == (1, 2, 4)
        assert snapshot.create_timestamp == snapshot.write_timestamp == harness.now.wall_ms

    def test_deleted_state_may_be_begun_anew(self, ready):
        ready.ask(DeleteState(KEY))
        assert ready.ask(ReadSummary(KEY)) == Summary()
        ready.ask(InitializeState(KEY, 1, 4))
        assert ready.ask(ReadSummary(KEY)) == Summary(1, 0, 4, 0)

    def test_update_without_a_snapshot_before_it_stands_alone(self, ready):
        ready.ask(write(StateBatch(0, 1, 1, A), start=0))
        shard = ShareStateShard(ready.shard.settings, 3, lambda *_: True)
        shard.replay(ready.log[-1])
        assert shard.states[KEY].batches == (StateBatch(0, 1, 1, A),)


class TestTime:
    def test_log_is_pruned_below_the_oldest_snapshot(self, ready):
        """Rule 421."""
        ready.ask(InitializeState(OTHER, 2, 0))
        ready.ask(InitializeState(KEY, 3, 0))
        ready.advance(MINUTES_5)
        assert ready.effects == [PruneLog(3, 1)]

    def test_nothing_is_pruned_below_the_first_record(self, ready):
        ready.advance(MINUTES_5 - 1)
        ready.ask(write())
        assert ready.effects == []

    def test_last_tombstone_leaves_nothing_that_is_needed(self, ready):
        ready.ask(DeleteState(KEY))
        ready.advance(MINUTES_5)
        assert ready.effects == [PruneLog(3, 1)]

    def test_cold_partitions_are_written_again_once(self, ready):
        """Rule 420."""
        ready.advance(MINUTES_5)
        assert len(ready.log) == 2
        copy = ready.log[-1].value
        assert copy.snapshot_epoch == 1
        assert copy.write_timestamp - copy.create_timestamp == MINUTES_5
        ready.advance(3 * MINUTES_5)
        assert len(ready.log) == 2
        ready.ask(InitializeState(OTHER, 2, 0))
        ready.advance(MINUTES_5)
        assert [record.key for record in ready.log[2:]] == [OTHER, KEY, OTHER]

    def test_share_partitions_of_deleted_topics_are_forgotten(self, ready):
        """Rule 422."""
        ready.topics.clear()
        event = ready.kind.event_for_deleted_topics(["t"])
        assert event == ForgetTopics(frozenset({"t"}))
        ready.ask(event)
        assert ready.shard.states == {}
        assert ready.log[-1].value is None

    def test_timer_that_is_not_due_does_nothing(self, ready):
        assert not ready.shard.on_time(ready.now).records


def test_kind():
    kind = Harness().kind
    assert kind.topic == SHARE_GROUP_STATE_TOPIC
    assert kind.event_for_disconnect(1) is None
    assert kind.new_shard(0).replay_marker(1, committed=True) is None
