"""The runtime: routing, writing, waiting for the high watermark, loading, time."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.deferred import Promise
from kafkalite.log.validate import AppendOrigin
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.coordinator.fakes import FakePartition
from tests.coordinator.runtime_kit import Setup, code_of, run
from tests.coordinator.toy import TOPIC, TrioClock


class TestRouting:
    """Rule 124."""

    def test_event_goes_to_the_shard_of_its_key(self, setup):
        setup.ask("set", "x", "1", index=1)
        assert setup.shard(1).values == {"x": ("1", 0)}
        assert setup.shard(0).values == {}

    def test_topic_that_is_not_there_yet(self):
        assert code_of(Setup().ask, "get", "x") is ErrorCode.NOT_COORDINATOR

    def test_partition_that_is_led_elsewhere(self):
        setup = Setup(led=[1]).lead()
        assert setup.ask("get", "x", index=1) is None
        assert code_of(setup.ask, "get", "x", index=0) is ErrorCode.NOT_COORDINATOR

    def test_partition_that_is_no_longer_led(self, setup):
        kept = setup.shard(1)
        del setup.partitions[0]
        setup.lead()
        assert code_of(setup.ask, "get", "x", index=0) is ErrorCode.NOT_COORDINATOR
        assert setup.shard(1) is kept
        assert setup.ask("get", "x", index=1) is None

    def test_partition_led_through_another_object_is_loaded_anew(self, setup):
        old = setup.shard(0)
        setup.partitions[0] = FakePartition(TOPIC, 0)
        setup.lead()
        assert setup.shard(0) is not old

    def test_it_says_which_topics_it_coordinates(self, setup):
        assert setup.runtime.coordinates(TOPIC)
        assert not setup.runtime.coordinates("__other")

    def test_all_shards_can_be_asked(self, setup):
        setup.ask("set", "x", "1", index=2)
        assert setup.runtime.handle_all(TOPIC, ("get", "x")) == [None, None, ("1", 0)]


class TestWriting:
    def test_answer_comes_with_the_call_when_the_high_watermark_has_passed(self, setup):
        assert setup.ask("set", "x", "1") == "set x"
        assert setup.partitions[0].origins == [AppendOrigin.COORDINATOR]

    def test_records_are_replayed_with_their_offsets(self, setup):
        setup.ask("set", "x", "1")
        setup.ask("set", "y", None)
        assert setup.shard().values == {"x": ("1", 0), "y": (None, 1)}

    def test_refusal_of_the_shard_reaches_the_caller(self, setup):
        assert code_of(setup.ask, "refuse") is ErrorCode.INVALID_REQUEST
        assert code_of(setup.ask, "refuse_later") is ErrorCode.INVALID_REQUEST

    def test_large_result_is_spread_over_batches(self, setup):
        setup.partitions[0].max_batch_bytes = 2000
        assert setup.ask("fill", 100, False) == "filled"
        assert len(setup.partitions[0].batches) > 5
        assert len(setup.shard().values) == 100

    def test_too_large_atomic_result_is_refused_and_not_replayed(self, setup):
        setup.partitions[0].max_batch_bytes = 2000
        assert code_of(setup.ask, "fill", 100, True) is ErrorCode.MESSAGE_TOO_LARGE
        assert setup.shard().values == {}

    @pytest.mark.parametrize(
        ("refusal", "told"),
        [
            (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
            (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE),
        ],
    )
    def test_refused_append_keeps_the_shard(self, setup, refusal, told):
        """Rule 148: nothing was written, so nothing has to be undone."""
        setup.ask("set", "x", "1")
        shard = setup.shard()
        setup.partitions[0].refusal = refusal
        assert code_of(setup.ask, "set", "x", "2") is told
        setup.partitions[0].refusal = None
        assert setup.shard() is shard
        assert setup.ask("get", "x") == ("1", 0)

    def test_lost_log_starts_the_shard_anew(self, setup):
        """Rule 148: whoever is parked looks for another coordinator."""

        async def main():
            setup.ask("set", "x", "1")
            parked = setup.ask("park", "p")
            setup.partitions[0].refusal = ErrorCode.KAFKA_STORAGE_ERROR
            assert code_of(setup.ask, "set", "x", "2") is ErrorCode.NOT_COORDINATOR
            with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
                await parked.wait()
            assert code_of(setup.ask, "get", "x") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            setup.partitions[0].refusal = None
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                await wait_all_tasks_blocked()
                assert setup.ask("get", "x") == ("1", 0)
                nursery.cancel_scope.cancel()

        run(main)

    def test_who_would_be_parked_in_a_lost_shard_is_told(self, setup):
        setup.partitions[0].refusal = ErrorCode.KAFKA_STORAGE_ERROR
        assert code_of(setup.ask, "park_writing", "p") is ErrorCode.NOT_COORDINATOR

    def test_who_is_parked_by_a_refused_write_waits_for_its_deadline(self, setup):
        setup.partitions[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
        assert isinstance(setup.ask("park_writing", "p"), Promise)


class TestParking:
    def test_answer_of_a_later_event(self, setup):
        async def main():
            parked = setup.ask("park", "p")
            assert setup.ask("release", "p") == "done"
            assert await parked.wait() == "released p"

        run(main)

    def test_who_goes_away_is_forgotten(self, setup):
        async def main():
            parked = setup.ask("park", "p")
            with trio.move_on_after(1):
                await parked.wait()
            assert setup.runtime._slots[TOPIC][0].waiting == {}
            assert setup.ask("release", "p") == "done"

        run(main)

    def test_answers_wait_for_the_high_watermark(self, setup):
        async def main():
            setup.partitions[0].replicates = False
            first = setup.ask("set", "x", "1")
            second = setup.ask("set", "x", "2")
            assert isinstance(first, Promise)
            async with trio.open_nursery() as nursery:
                done = []

                async def wait(name, parked):
                    done.append((name, await parked.wait()))

                nursery.start_soon(wait, "first", first)
                nursery.start_soon(wait, "second", second)
                await wait_all_tasks_blocked()
                setup.partitions[0].replicate(1)
                await wait_all_tasks_blocked()
                assert done == [("first", "set x")]
                setup.partitions[0].replicate()
            assert done[1] == ("second", "set x")

        run(main)

    def test_reads_wait_for_what_was_written_before(self, setup):
        """So that nobody sees what may yet be lost."""

        async def main():
            setup.partitions[0].replicates = False
            setup.ask("set", "x", "1")
            read = setup.ask("get", "x")
            assert isinstance(read, Promise)
            assert setup.ask("get", "x", index=1) is None
            setup.partitions[0].replicate()
            assert await read.wait() == ("1", 0)
            assert setup.ask("get", "x") == ("1", 0)

        run(main)

    def test_not_replicated_in_time(self):
        """Rule 148: offsets.commit.timeout.ms."""

        async def main():
            setup = Setup(clock=TrioClock(), write_timeout_ms=500).lead()
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                setup.partitions[0].replicates = False
                start = trio.current_time()
                with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
                    await setup.ask("set", "x", "1").wait()
                assert trio.current_time() - start == pytest.approx(0.5, abs=0.01)
                setup.partitions[0].replicate()
                assert setup.ask("get", "x") == ("1", 0)
                nursery.cancel_scope.cancel()

        run(main)

    def test_parked_requests_are_turned_away_when_leadership_moves(self, setup):
        async def main():
            parked = setup.ask("park", "p")
            setup.partitions[0].replicates = False
            written = setup.ask("set", "x", "1")
            setup.runtime.set_leaderships(TOPIC, 3, {})
            for answer in (parked, written):
                with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
                    await answer.wait()
            assert setup.partitions[0].watchers == {}

        run(main)


class TestEffects:
    @pytest.fixture
    def performed(self):
        return []

    @pytest.fixture
    def setup(self, performed):
        return Setup(perform=performed.append).lead()

    def test_effect_is_performed_with_the_event_when_the_high_watermark_has_passed(
        self, setup, performed
    ):
        assert setup.ask("effect", "x", "tell") == "done"
        assert performed == ["tell"]
        assert setup.ask("effect", "x", "read", False) == "done"
        assert performed == ["tell", "read"]

    def test_effects_wait_for_the_high_watermark_in_order(self, setup, performed):
        setup.partitions[0].replicates = False
        setup.ask("effect", "x", "first")
        setup.ask("effect", "x", "with first", False)
        setup.ask("effect", "x", "second")
        assert performed == []
        setup.partitions[0].replicate(1)
        assert performed == ["first", "with first"]
        setup.partitions[0].replicate()
        assert performed == ["first", "with first", "second"]

    def test_effect_outlives_the_deadline_of_its_replies(self, performed):
        async def main():
            setup = Setup(clock=TrioClock(), write_timeout_ms=500, perform=performed.append).lead()
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                setup.partitions[0].replicates = False
                with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
                    await setup.ask("effect", "x", "tell").wait()
                assert performed == []
                setup.partitions[0].replicate()
                assert performed == ["tell"]
                nursery.cancel_scope.cancel()

        run(main)

    @pytest.mark.parametrize(
        "refusal", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR]
    )
    def test_effect_of_records_that_were_refused_is_not_performed(self, setup, performed, refusal):
        setup.partitions[0].refusal = refusal
        code_of(setup.ask, "effect", "x", "tell")
        assert performed == []

    def test_effects_are_lost_with_the_shard(self, setup, performed):
        setup.partitions[0].replicates = False
        setup.ask("effect", "x", "tell")
        setup.runtime.set_leaderships(TOPIC, 3, {})
        setup.partitions[0].replicate()
        assert performed == []

    def test_without_anybody_to_perform_them_effects_are_ignored(self):
        assert Setup().lead().ask("effect", "x", "tell") == "done"


class TestTransactions:
    def test_marker_needs_a_shard(self, setup):
        marker = {
            "producer_id": 9, "producer_epoch": 0, "coordinator_epoch": 0, "committed": True,
        }  # fmt: skip
        end = setup.runtime.end_transaction
        assert code_of(end, TopicPartition(TOPIC, 9), **marker) is ErrorCode.NOT_COORDINATOR
        setup.partitions[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
        code = code_of(end, TopicPartition(TOPIC, 0), **marker)
        assert code is ErrorCode.COORDINATOR_NOT_AVAILABLE
