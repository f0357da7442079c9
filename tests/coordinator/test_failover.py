"""The runtime while partitions move between brokers, and while too few replicas are in sync."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.coordinator.runtime import TELL_AGAIN_MS
from kafkalite.deferred import Promise
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.coordinator.fakes import FakePartition
from tests.coordinator.runtime_kit import KEYS, Setup, code_of, run
from tests.coordinator.toy import TOPIC, TrioClock

GONE, LOADING = ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.fixture
def setup():
    return Setup().lead()


def running(main):
    """Run `main(setup)` beside the runtime of a setup, in trio's time."""

    async def beside():
        setup = Setup(clock=TrioClock()).lead()
        async with trio.open_nursery() as nursery:
            await nursery.start(setup.runtime.run)
            await wait_all_tasks_blocked()
            await main(setup)
            nursery.cancel_scope.cancel()

    run(beside)


class TestEpochs:
    def test_shard_of_a_leader_that_goes_on_in_another_epoch_stays(self, setup):
        """Another replica died: its removal is an epoch, but nothing here has changed."""
        setup.ask("set", "x", "1")
        shard = setup.shard()
        setup.partitions[0].leader_epoch = 1
        setup.lead()
        assert setup.shard() is shard
        assert setup.ask("get", "x") == ("1", 0)

    def test_parked_requests_and_effects_stay_too(self):
        async def main():
            performed = []
            setup = Setup(perform=performed.append).lead()
            setup.partitions[0].replicates = False
            written = setup.ask("effect", "x", "tell")
            setup.partitions[0].leader_epoch = 1
            setup.lead()
            setup.partitions[0].replicate()
            assert await written.wait() == "done"
            assert performed == ["tell"]

        run(main)

    def test_log_that_moved_between_two_epochs_is_loaded(self):
        """Lost, changed by another leader, and got back before anybody was told."""

        async def main(setup):
            setup.ask("set", "x", "1")
            other = Setup().lead()
            other.ask("set", "x", "2")
            other.ask("set", "y", "2")
            partition = setup.partitions[0]
            partition.batches = other.partitions[0].batches
            partition.log_end_offset = partition.high_watermark = 2
            partition.leader_epoch = 2
            setup.lead()
            assert code_of(setup.ask, "get", "x") is LOADING
            await wait_all_tasks_blocked()
            assert setup.ask("get", "x") == ("2", 0)

        running(main)

    def test_leadership_that_was_lost_and_regained_is_loaded(self):
        async def main(setup):
            setup.ask("set", "x", "1")
            old = setup.shard()
            kept = dict(setup.partitions)
            setup.partitions.clear()
            setup.lead()
            assert code_of(setup.ask, "get", "x") is GONE
            setup.partitions.update(kept)
            setup.partitions[0].leader_epoch = 2
            setup.lead()
            assert code_of(setup.ask, "get", "x") is LOADING
            await wait_all_tasks_blocked()
            assert setup.shard() is not old
            assert setup.ask("get", "x") == ("1", 0)

        running(main)

    def test_loading_begins_anew_in_another_epoch(self):
        async def main(setup):
            setup.ask("set", "x", "1")
            setup.partitions[0].replicates = False
            setup.ask("set", "x", "2")
            kept = dict(setup.partitions)
            setup.partitions.clear()
            setup.lead()
            setup.partitions.update(kept)
            setup.lead()
            setup.runtime.on_topics_deleted(["a"])
            await wait_all_tasks_blocked()
            partition = setup.partitions[0]
            partition.batches.pop()  # never replicated, and cut off
            partition.log_end_offset = 1
            partition.leader_epoch = 2
            setup.lead()
            await wait_all_tasks_blocked()
            assert setup.shard().values["x"] == ("1", 0)
            assert setup.shard().told == ["a"]

        running(main)

    def test_shard_that_could_not_be_loaded_is_tried_again(self, caplog):
        async def main(setup):
            setup.ask("set", "x", "1")
            partition = setup.partitions[0]
            good = partition.batches[0]
            batch = bytearray(good)
            batch[57:61] = b"\0\0\0\x09"
            partition.batches[0] = memoryview(batch)
            setup.partitions[0] = twin(partition)
            setup.lead()
            await wait_all_tasks_blocked()
            assert code_of(setup.ask, "get", "x") is GONE
            setup.partitions[0].batches[0] = good
            setup.lead()
            await wait_all_tasks_blocked()
            assert setup.ask("get", "x") == ("1", 0)

        running(main)


class TestNoLongerLeader:
    def test_append_that_finds_out_closes_the_shard(self):
        """Rule 148; there is nothing to load until the leadership is back."""

        async def main():
            setup = Setup().lead()
            setup.ask("set", "x", "1")
            parked = setup.ask("park", "p")
            setup.partitions[0].refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert code_of(setup.ask, "set", "x", "2") is GONE
            with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
                await parked.wait()
            assert code_of(setup.ask, "get", "x") is GONE
            assert not setup.runtime.is_loading()
            assert setup.partitions[0].watchers == {}
            setup.partitions[0].refusal = None
            setup.lead()
            assert code_of(setup.ask, "get", "x") is LOADING

        run(main)

    def test_log_that_ends_in_a_compacted_gap_is_loaded(self):
        """No batch tells of the offsets whose records are gone."""

        async def main(setup):
            setup.ask("set", "x", "1")
            setup.ask("set", "x", "2")
            setup.partitions[0] = twin(setup.partitions[0])
            del setup.partitions[0].batches[-1]
            setup.lead()
            await wait_all_tasks_blocked()
            assert setup.ask("get", "x") == ("1", 0)

        running(main)

    def test_loading_that_waits_for_replicas_ends_at_once(self):
        """Nobody wakes the watchers of a partition that became a follower."""

        async def main(setup):
            setup.ask("set", "x", "1")
            setup.partitions[0].replicates = False
            setup.ask("set", "x", "2")
            setup.partitions[0] = twin(setup.partitions[0])
            setup.lead()
            await wait_all_tasks_blocked()
            waiting = setup.partitions[0]
            assert len(waiting.watchers) == 2
            setup.partitions.clear()
            setup.lead()
            await wait_all_tasks_blocked()
            assert waiting.watchers == {}

        running(main)

    def test_marker_that_finds_out_closes_the_shard(self, setup):
        setup.partitions[0].refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
        marker = {
            "producer_id": 9, "producer_epoch": 0, "coordinator_epoch": 0, "committed": True,
        }  # fmt: skip
        code = code_of(setup.runtime.end_transaction, TopicPartition(TOPIC, 0), **marker)
        assert code is GONE
        assert code_of(setup.ask, "get", "x") is GONE

    def test_event_that_finds_out_is_not_kept(self, setup):
        setup.partitions[0].refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
        setup.runtime.on_topics_deleted(["a"])
        assert code_of(setup.ask, "get", "x") is GONE
        assert setup.shard(1).told == ["a"]


class TestTooFewReplicas:
    def test_who_is_refused_hears_it_at_once(self, setup):
        setup.partitions[0].replicates = False
        assert isinstance(setup.ask("set", "x", "1"), Promise)
        setup.partitions[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
        assert code_of(setup.ask, "set", "x", "2") is ErrorCode.COORDINATOR_NOT_AVAILABLE

    def test_what_says_nothing_about_the_log_does_not_wait(self, setup):
        setup.partitions[0].replicates = False
        setup.ask("set", "x", "1")
        assert isinstance(setup.ask("get", "x"), Promise)
        assert setup.ask("ping") == "pong"

    def test_events_that_nobody_asked_for_are_told_again(self):
        """Offsets of a deleted topic must not come back with a new topic of its name."""

        async def main(setup):
            setup.partitions[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
            setup.runtime.on_topics_deleted(["a"])
            assert "gone" not in setup.shard().values
            await trio.sleep(2.5 * TELL_AGAIN_MS / 1000)
            assert setup.shard().told == ["a"] * 3
            setup.partitions[0].refusal = None
            await trio.sleep(TELL_AGAIN_MS / 1000)
            assert setup.shard().values["gone"] == ("a", 0)
            await trio.sleep(3 * TELL_AGAIN_MS / 1000)
            assert setup.shard().told == ["a"] * 4

        running(main)

    def test_events_are_told_again_to_the_shard_that_is_loaded_anew(self):
        async def main(setup):
            setup.ask("set", "x", "1")
            setup.partitions[0].refusal = ErrorCode.KAFKA_STORAGE_ERROR
            setup.runtime.on_topics_deleted(["a"])
            setup.runtime.on_topics_deleted(["b"])
            setup.partitions[0].refusal = None
            await trio.sleep(TELL_AGAIN_MS / 1000)
            await wait_all_tasks_blocked()
            assert setup.shard().told == ["a", "b"]

        running(main)

    def test_storage_that_fails_while_events_are_told_again_loses_none(self):
        async def main(setup):
            setup.ask("set", "x", "1")
            setup.partitions[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
            setup.runtime.on_topics_deleted(["a"])
            setup.runtime.on_topics_deleted(["b"])
            setup.partitions[0].refusal = ErrorCode.KAFKA_STORAGE_ERROR
            await trio.sleep(1.5 * TELL_AGAIN_MS / 1000)
            setup.partitions[0].refusal = None
            await trio.sleep(2 * TELL_AGAIN_MS / 1000)
            assert sorted(setup.shard().told[-2:]) == ["a", "b"]

        running(main)

    def test_operator_hears_it_once(self, setup, caplog):
        setup.partitions[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
        for _ in range(3):
            code_of(setup.ask, "set", "x", "1")
        assert len(caplog.records) == 1
        setup.partitions[0].refusal = None
        setup.ask("set", "x", "1")
        setup.partitions[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
        code_of(setup.ask, "set", "x", "1")
        assert len(caplog.records) == 2


class TestPlaces:
    def test_where_a_key_belongs(self):
        setup = Setup(led=[1])
        assert setup.runtime.location_of(TOPIC, KEYS[0]) is None
        setup.lead()
        assert setup.runtime.location_of(TOPIC, KEYS[0]) == (TopicPartition(TOPIC, 0), False)
        assert setup.runtime.location_of(TOPIC, KEYS[1]) == (TopicPartition(TOPIC, 1), True)
        assert setup.runtime.check(TOPIC, KEYS[1]) is None
        assert code_of(setup.runtime.check, TOPIC, KEYS[0]) is GONE


def twin(partition):
    """The log of a partition, led through another object."""
    other = FakePartition(TOPIC, partition.topic_partition.partition)
    other.batches = partition.batches
    other.log_end_offset = partition.log_end_offset
    other.high_watermark = partition.high_watermark
    return other
