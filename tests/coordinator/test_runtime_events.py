"""Shards are told of events that nobody waits for, and watched."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.coordinator import slot as slot_module
from kafkalite.wire.errors import ErrorCode
from tests.coordinator.runtime_kit import KEYS, Setup, run
from tests.coordinator.toy import TOPIC, ToyKind, TrioClock


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
