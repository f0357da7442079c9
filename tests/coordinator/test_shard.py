"""Timers, and which partition a group belongs to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.coordinator.shard import Timers, partition_for


@pytest.fixture
def timers():
    return Timers()


def fire(timers, now_ms):
    fired = []
    while (key := timers.pop_due(now_ms)) is not None:
        fired.append(key)
    return fired


class TestTimers:
    def test_nothing_is_due_before_its_time(self, timers):
        timers.schedule("a", 10)
        assert timers.pop_due(9) is None
        assert timers.pop_due(10) == "a"
        assert timers.pop_due(99) is None

    def test_they_fire_in_order_of_time_then_of_setting(self, timers):
        for key, at in [("late", 30), ("b", 20), ("a", 20)]:
            timers.schedule(key, at)
        assert fire(timers, 100) == ["b", "a", "late"]

    def test_a_key_has_one_deadline(self, timers):
        timers.schedule("a", 10)
        timers.schedule("a", 50)
        assert timers.deadline_ms("a") == 50
        assert fire(timers, 49) == []
        assert fire(timers, 50) == ["a"]

    def test_putting_forward_counts_at_once(self, timers):
        timers.schedule("a", 50)
        timers.schedule("a", 10)
        assert timers.next_deadline_ms() == 10
        assert fire(timers, 10) == ["a"]
        assert fire(timers, 50) == []

    def test_putting_forward_and_back_fires_once(self, timers):
        timers.schedule("a", 50)
        timers.schedule("a", 10)
        timers.schedule("a", 50)
        assert fire(timers, 49) == []
        assert fire(timers, 50) == ["a"]
        assert fire(timers, 99) == []

    def test_cancelled_does_not_fire(self, timers):
        timers.schedule("a", 10)
        timers.cancel("a")
        timers.cancel("never set")
        assert timers.deadline_ms("a") is None
        assert fire(timers, 99) == []
        assert timers.next_deadline_ms() is None

    def test_set_again_after_firing(self, timers):
        timers.schedule("a", 10)
        fire(timers, 10)
        timers.schedule("a", 20)
        assert fire(timers, 20) == ["a"]

    @given(
        st.lists(
            st.tuples(st.sampled_from("abc"), st.sampled_from(["set", "cancel", "time"]),
                      st.integers(0, 30))
        )
    )  # fmt: skip
    def test_they_behave_as_a_dictionary_of_deadlines(self, steps):
        timers, model, now_ms = Timers(), {}, 0
        for key, action, number in steps:
            if action == "set":
                timers.schedule(key, now_ms + number)
                model[key] = now_ms + number
            elif action == "cancel":
                timers.cancel(key)
                model.pop(key, None)
            else:
                now_ms += number
                due = {key for key, at in model.items() if at <= now_ms}
                fired = fire(timers, now_ms)
                assert len(fired) == len(set(fired))
                assert set(fired) == due
                model = {key: at for key, at in model.items() if key not in due}
            if model:
                assert timers.next_deadline_ms() <= min(model.values())


class TestPartitionFor:
    """Rules 101 and 124."""

    @pytest.mark.parametrize(
        ("key", "hash_code"), [("", 0), ("a", 97), ("group", 98629247), ("\U0001f600", 1772899)]
    )
    def test_hash_is_that_of_javas_strings(self, key, hash_code):
        assert partition_for(key, 1 << 31) == hash_code

    @given(st.text(st.characters(max_codepoint=0xD7FF)), st.integers(1, 100))
    def test_it_is_the_remainder_of_the_absolute_value(self, key, count):
        code = 0
        for character in key:
            code = 31 * code + ord(character)
        code = (code + (1 << 31)) % (1 << 32) - (1 << 31)
        assert partition_for(key, count) == abs(code) % count

    def test_the_one_number_without_a_positive_counterpart_is_zero(self):
        """abs(Integer.MIN_VALUE) is 0 in Kafka; this string has that hash."""
        assert partition_for("polygenelubricants", 50) == 0

    def test_lone_surrogates_are_hashed_too(self):
        assert partition_for("\ud800", 1 << 31) == 0xD800
