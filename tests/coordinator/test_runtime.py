"""The runtime: routing, writing, waiting for the high watermark, loading, time."""

import logging
import struct

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from kafkalite.coordinator import slot as slot_module
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.coordinator.shard import Result, StoredRecord, partition_for
from kafkalite.deferred import Promise
from kafkalite.log.validate import AppendOrigin
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.coordinator.fakes import FakeClock, FakePartition
from tests.coordinator.toy import TOPIC, ToyKind, ToyShard, TrioClock

KEYS = {partition_for(name, 3): name for name in "abcdef"}
"""One key for each of three partitions."""


class Setup:
    def __init__(self, *, kind=None, clock=None, count=3, led=None, **settings):
        self.clock = clock or FakeClock()
        self.runtime = CoordinatorRuntime([kind or ToyKind()], self.clock, **settings)
        self.count = count
        self.partitions = {
            index: FakePartition(TOPIC, index) for index in (range(count) if led is None else led)
        }

    def lead(self):
        self.runtime.set_leaderships(TOPIC, self.count, self.partitions)
        return self

    def ask(self, *event, index=0):
        return self.runtime.handle(TOPIC, KEYS[index], event)

    def shard(self, index=0):
        return self.runtime._slots[TOPIC][index].core

    def reload(self, **settings):
        """Another runtime over the same partitions."""
        other = Setup(clock=self.clock, count=self.count, **settings)
        other.partitions = self.partitions
        return other


@pytest.fixture
def setup():
    return Setup().lead()


def code_of(*args, **kwargs):
    with pytest.raises(KafkaError) as raised:
        args[0](*args[1:], **kwargs)
    return raised.value.code


def run(main, **clock):
    trio.run(main, clock=MockClock(autojump_threshold=0, **clock))


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


class TestTime:
    def test_timers_fire_at_their_time(self):
        async def main():
            setup = Setup(clock=TrioClock()).lead()
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                await wait_all_tasks_blocked()
                start = trio.current_time()
                late = setup.ask("park", "late", 3000)
                early = setup.ask("park", "early", 1000, index=1)
                assert await early.wait() == "early is late"
                assert trio.current_time() - start == pytest.approx(1, abs=0.01)
                assert await late.wait() == "late is late"
                assert trio.current_time() - start == pytest.approx(3, abs=0.01)
                assert setup.ask("get", "late") == ("late", 0)
                nursery.cancel_scope.cancel()

        run(main)

    def test_tick_tells_the_next_deadline(self):
        setup = Setup().lead()
        assert setup.runtime.tick() is None
        setup.ask("park", "p", 3000)
        assert setup.runtime.tick() == setup.clock.now_ms + 3000
        setup.clock.now_ms += 3000
        assert setup.runtime.tick() is None
        assert setup.shard().parked == {}

    def test_shard_lost_while_its_timers_fire_stops_firing(self):
        setup = Setup().lead()
        setup.ask("park", "p", 1000)
        setup.ask("park", "q", 1000)
        setup.partitions[0].refusal = ErrorCode.KAFKA_STORAGE_ERROR
        setup.clock.now_ms += 1000
        old = setup.shard()
        setup.runtime.tick()
        assert len(old.parked) == 1
        assert setup.shard() is not old


class TestFailingInTime:
    """Nobody asked, so nobody can be refused."""

    def test_shard_is_loaded_anew_and_the_others_go_on(self, caplog):
        async def main():
            setup = Setup(clock=TrioClock()).lead()
            setup.ask("set", "x", "1", index=0)
            parked = [setup.ask("park", name, 1000, index=i) for i, name in enumerate("ab")]
            failing = setup.shard(0)
            failing.on_time = lambda now: {}["bug"]
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                assert await parked[1].wait() == "b is late"
                with pytest.raises(KafkaError) as raised:
                    await parked[0].wait()
                await wait_all_tasks_blocked()
                assert setup.shard(0) is not failing
                assert setup.ask("get", "x", index=0) == ("1", 0)
                nursery.cancel_scope.cancel()
            return raised.value.code

        out = trio.run(main, clock=MockClock(autojump_threshold=0))
        assert out is ErrorCode.NOT_COORDINATOR
        assert "fails in time" in caplog.text

    def test_what_asserts_that_there_is_no_bug_still_ends_the_broker(self):
        setup = Setup().lead()
        setup.ask("park", "a", 0)

        def fail(now):
            raise AssertionError

        setup.shard().on_time = fail
        with pytest.raises(AssertionError):
            setup.runtime.tick()

    def test_text_that_its_field_cannot_hold_is_refused(self, setup):
        def encode(record):
            return struct.pack(">h", 40_000), b""

        setup.runtime._slots[TOPIC][0].kind.codec.encode = encode
        assert code_of(setup.ask, "set", "x", "1") is ErrorCode.INVALID_REQUEST
        assert setup.shard().values == {}


class TestLoading:
    def filled(self, count=250, **settings):
        setup = Setup(**settings).lead()
        for number in range(count):
            setup.ask("set", f"n{number % 100}", str(number))
        return setup

    def test_state_is_that_of_before(self):
        async def main():
            before = self.filled()
            setup = before.reload().lead()
            assert setup.runtime.is_loading()
            assert code_of(setup.ask, "get", "n1") is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            assert code_of(setup.runtime.handle_all, TOPIC, ("get", "n1")) is (
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            )
            assert setup.ask("get", "n1", index=1) is None  # empty ones are ready at once
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                await wait_all_tasks_blocked()
                assert not setup.runtime.is_loading()
                assert setup.shard().values == before.shard().values
                assert setup.shard().loaded
                nursery.cancel_scope.cancel()

        run(main)

    def test_loop_is_not_held(self):
        async def main():
            setup = self.filled(1000).reload().lead()
            turns = 0
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                while setup.runtime.is_loading():
                    turns += 1
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            assert turns >= 10

        run(main)

    @pytest.mark.parametrize("turns", [1, 3, 6])
    def test_leadership_that_moves_meanwhile_ends_it(self, turns):
        async def main():
            setup = self.filled(600).reload().lead()
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                for _ in range(turns):
                    await trio.lowlevel.checkpoint()
                shard = setup.shard()
                setup.runtime.set_leaderships(TOPIC, 3, {})
                await wait_all_tasks_blocked()
                assert not shard.loaded
                nursery.cancel_scope.cancel()

        run(main)

    def test_what_is_not_replicated_yet_is_waited_for(self):
        async def main():
            before = self.filled(3)
            before.partitions[0].replicates = False
            before.ask("set", "n0", "last")
            setup = before.reload().lead()
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                await wait_all_tasks_blocked()
                assert setup.runtime.is_loading()
                setup.partitions[0].replicate()
                await wait_all_tasks_blocked()
                assert setup.ask("get", "n0") == ("last", 3)
                nursery.cancel_scope.cancel()

        run(main)

    def test_waiting_ends_when_leadership_moves(self):
        async def main():
            before = self.filled(3)
            before.partitions[0].replicates = False
            before.ask("set", "n0", "last")
            setup = before.reload().lead()
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                await wait_all_tasks_blocked()
                setup.runtime.set_leaderships(TOPIC, 3, {})
                setup.partitions[0].replicate(0)  # as a closing partition wakes its watchers
                await wait_all_tasks_blocked()
                assert not setup.runtime.is_loading()
                with pytest.raises(KafkaError) as refused:
                    setup.ask("get", "n0")
                assert refused.value.code is ErrorCode.NOT_COORDINATOR
                nursery.cancel_scope.cancel()

        run(main)

    def test_open_transactions_and_markers_are_replayed(self):
        async def main():
            before = Setup().lead()
            before.ask("set", "x", "1", 9)
            end = before.runtime.end_transaction(
                TopicPartition(TOPIC, 0),
                producer_id=9,
                producer_epoch=0,
                coordinator_epoch=0,
                committed=True,
            )
            assert end == 2
            before.ask("set", "y", "1", 9)
            assert before.ask("get", "x") == ("1", 0)
            setup = before.reload().lead()
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                await wait_all_tasks_blocked()
                assert setup.shard().values == {"x": ("1", 0)}
                assert setup.shard().pending == {"y": ("1", 2)}
                nursery.cancel_scope.cancel()

        run(main)

    def test_unreadable_record_is_skipped_with_a_word(self, caplog):
        async def main():
            before = self.filled(1)
            before.ask("set", "!broken", "1")
            before.ask("set", "z", "1")
            setup = before.reload().lead()
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                await wait_all_tasks_blocked()
                assert set(setup.shard().values) == {"n0", "z"}
                nursery.cancel_scope.cancel()
            assert "offset 1" in caplog.text

        run(main)

    def test_corrupt_log_leaves_its_shard_closed_and_the_others_open(self, caplog):
        async def main():
            before = self.filled(1)
            before.ask("set", "x", "1", index=1)
            batch = bytearray(before.partitions[0].batches[0])
            batch[57:61] = b"\0\0\0\x09"  # more records than there are
            before.partitions[0].batches[0] = memoryview(batch)
            setup = before.reload().lead()
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                await wait_all_tasks_blocked()
                assert code_of(setup.ask, "get", "n0") is ErrorCode.NOT_COORDINATOR
                assert setup.ask("get", "x", index=1) == ("1", 0)
                assert len(setup.runtime.handle_all(TOPIC, ("get", "x"))) == 2
                nursery.cancel_scope.cancel()

        with caplog.at_level(logging.ERROR):
            run(main)
        assert "could not be loaded" in caplog.text

    def test_log_that_could_not_be_loaded_is_tried_again_after_growing_pauses(self):
        async def main():
            before = self.filled(1)
            partition = before.partitions[0]
            whole = partition.batches[0]
            batch = bytearray(whole)
            batch[57:61] = b"\0\0\0\x09"  # more records than there are
            partition.batches[0] = memoryview(batch)
            setup = Setup(clock=TrioClock())
            setup.partitions = before.partitions
            setup.lead()
            loads = []
            read = partition.read_batches
            partition.read_batches = lambda offset: (
                loads.append(trio.current_time()) or read(offset)
            )
            start = trio.current_time()
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                await trio.sleep(200)
                assert [at - start for at in loads] == [0, 1, 3, 7, 15, 31, 63, 123, 183]
                assert code_of(setup.ask, "get", "n0") is ErrorCode.NOT_COORDINATOR
                setup.runtime.on_topics_deleted(["a"])
                partition.batches[0] = whole
                await trio.sleep(60)
                assert setup.ask("get", "n0") == ("0", 0)
                assert setup.shard().told == ["a"]
                nursery.cancel_scope.cancel()

        run(main)

    def test_shard_that_cannot_write_what_is_overdue_is_loaded_once_a_second(self):
        class Overdue(ToyShard):
            def next_deadline_ms(self):
                return 0 if "due" not in self.values else None

            def on_time(self, now):
                return Result([StoredRecord("due", "done")])

        async def main():
            before = self.filled(1)
            partition = before.partitions[0]
            partition.refusal = ErrorCode.KAFKA_STORAGE_ERROR
            kind = ToyKind()
            kind.new_shard = lambda partition: Overdue()
            setup = Setup(kind=kind, clock=TrioClock(), led=())
            setup.partitions = {0: partition}
            setup.lead()
            loads = []
            read = partition.read_batches
            partition.read_batches = lambda offset: (
                loads.append(trio.current_time()) or read(offset)
            )
            start = trio.current_time()
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                await trio.sleep(9.5)
                assert [round(at - start) for at in loads] == [0, 0, *range(1, 10)]
                partition.refusal = None
                await trio.sleep(1)
                assert setup.ask("get", "due")[0] == "done"
                nursery.cancel_scope.cancel()

        run(main)

    def test_shard_that_was_taken_over_in_the_pause_is_left_alone(self):
        async def main():
            before = self.filled(1)
            partition = before.partitions[0]
            batch = bytearray(partition.batches[0])
            batch[57:61] = b"\0\0\0\x09"
            partition.batches[0] = memoryview(batch)
            setup = Setup(clock=TrioClock())
            setup.partitions = before.partitions
            setup.lead()
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                await wait_all_tasks_blocked()
                del setup.partitions[0]
                setup.lead()
                await trio.sleep(10)
                assert 0 not in setup.runtime._slots[TOPIC]
                nursery.cancel_scope.cancel()

        run(main)

    def test_leaderships_taken_while_running_are_loaded(self):
        async def main():
            before = self.filled(3)
            setup = before.reload()
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                await wait_all_tasks_blocked()
                setup.lead()
                await wait_all_tasks_blocked()
                assert setup.ask("get", "n0") == ("0", 0)
                nursery.cancel_scope.cancel()

        run(main)


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


class TestTold:
    def test_shards_are_told_of_clients_and_topics_that_are_gone(self, setup):
        setup.runtime.on_disconnect(5)
        setup.runtime.on_topics_deleted(["a", "b"])
        assert [setup.shard(index).told for index in range(3)] == [[5, "a,b"]] * 3

    def test_shards_that_do_not_care_are_not(self):
        setup = Setup(kind=ToyKind(told=None)).lead()
        setup.runtime.on_disconnect(5)
        setup.runtime.on_topics_deleted(["a"])
        assert setup.shard().told == []

    def test_shards_that_are_ready_are_told_of_changed_topics(self, setup):
        setup.runtime._slots[TOPIC][1].close()
        setup.runtime.on_topics_changed(["a"])
        told = [setup.runtime._slots[TOPIC][index].core.told for index in range(3)]
        assert told == [["changed a"], [], ["changed a"]]

    def test_shards_that_do_not_care_are_not_told_of_changed_topics(self):
        setup = Setup(kind=ToyKind(told=None)).lead()
        setup.runtime.on_topics_changed(["a"])
        assert setup.shard().told == []

    def test_refused_write_is_not_the_tellers_concern(self, setup):
        setup.partitions[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
        setup.runtime.on_disconnect(5)
        assert setup.shard().told == [5]

    def test_what_could_not_be_written_is_kept_once_and_within_bounds(self, setup, monkeypatch):
        monkeypatch.setattr(slot_module, "MISSED_MAX", 3)
        setup.partitions[0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
        for connection in (1, 2, 2, 3, 4, 2):
            setup.runtime.on_disconnect(connection)
        missed = setup.runtime._slots[TOPIC][0].missed
        assert [*missed] == [("gone", 2), ("gone", 3), ("gone", 4)]

    def test_nobody_waits_for_an_answer(self):
        setup = Setup(kind=ToyKind(told="silence")).lead()
        setup.runtime.on_disconnect(5)
        assert setup.runtime._slots[TOPIC][0].waiting == {}

    def test_shard_that_is_loading_is_told_afterwards(self):
        async def main():
            before = Setup().lead()
            before.ask("set", "x", "1")
            setup = before.reload().lead()
            setup.runtime.on_topics_deleted(["a"])
            assert setup.shard().told == []
            async with trio.open_nursery() as nursery:
                await nursery.start(setup.runtime.run)
                await wait_all_tasks_blocked()
                assert setup.shard().told == ["a"]
                nursery.cancel_scope.cancel()

        run(main)

    def test_shard_that_is_gone_is_not_told(self, setup):
        slot = setup.runtime._slots[TOPIC][0]
        slot.close()
        setup.runtime.on_disconnect(5)
        assert slot.core.told == []


class TestWatching:
    """Hooks for tests: answered on a change of state, without polling."""

    def test_condition_that_holds_already(self, setup):
        async def main():
            setup.ask("set", "x", "1")
            looked_at = []
            await setup.runtime.wait_until(
                TOPIC, KEYS[0], lambda shard: looked_at.append(shard) or "x" in shard.values
            )
            assert looked_at == [setup.shard()]
            assert not setup.runtime._watches

        run(main)

    def test_condition_that_comes_true_later(self, setup):
        async def main():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(
                    setup.runtime.wait_until, TOPIC, KEYS[0], lambda shard: "y" in shard.values
                )
                await wait_all_tasks_blocked()
                setup.ask("set", "x", "1")
                setup.ask("set", "y", "1", index=1)
                await wait_all_tasks_blocked()
                assert setup.runtime._watches
                setup.ask("set", "y", "1")
            assert setup.runtime._watches == []

        run(main)

    def test_topic_and_shard_may_be_still_to_come(self):
        async def main():
            setup = Setup()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(
                    setup.runtime.wait_until, TOPIC, KEYS[0], lambda shard: shard.loaded
                )
                await wait_all_tasks_blocked()
                setup.lead()

        run(main)

    def test_who_gives_up_is_forgotten(self, setup):
        async def main():
            with trio.move_on_after(1):
                await setup.runtime.wait_until(TOPIC, KEYS[0], lambda shard: False)
            assert setup.runtime._watches == []

        run(main)
