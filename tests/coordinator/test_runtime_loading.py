"""Shards are loaded from their logs, and again when something went wrong."""

import logging
import struct

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from kafkalite.coordinator.shard import Result, StoredRecord
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.coordinator.runtime_kit import Setup, code_of, run
from tests.coordinator.toy import TOPIC, ToyKind, ToyShard, TrioClock


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

    def unreplicated(self):
        """A runtime over a log whose last record is not replicated yet."""
        before = self.filled(3)
        before.partitions[0].replicates = False
        before.ask("set", "n0", "last")
        return before.reload().lead()

    def test_what_is_not_replicated_yet_is_waited_for(self):
        async def main():
            setup = self.unreplicated()
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
            setup = self.unreplicated()
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
