"""Subscriptions by pattern: what RE2 takes, and when topics are looked for (rules 326-329)."""

import pytest

from kafkalite.group.consumer.group import NameCount
from kafkalite.group.consumer.patterns import check_pattern, matching_topics
from kafkalite.group.consumer.target import is_homogeneous
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.group.consumer.harness import ConsumerHarness
from tests.group.harness import SECOND

PATTERN = "t.*"


@pytest.fixture
def harness():
    return ConsumerHarness(topics={"t1": 2, "t2": 1, "other": 1})


def join(harness, member_id="a", pattern=PATTERN, **said):
    return harness.beat(member_id, 0, subscribed_topic_regex=pattern, **said)


class TestRe2:
    @pytest.mark.parametrize(
        "pattern", ["(", "(?=a)", r"(a)\1", "a{1001}", "(a{1000}){1000}", "x" * 10_001]
    )
    def test_what_is_no_pattern_is_refused(self, pattern):
        with pytest.raises(KafkaError) as refused:
            check_pattern(pattern)
        assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
        assert "is not a valid regular expression" in refused.value.message

    @pytest.mark.parametrize("pattern", [r"\pN", r"\Qa.b\E", "(?U)a*", "[[:alpha:]]", "é+", ".*"])
    def test_what_java_takes_is_taken(self, pattern):
        check_pattern(pattern)

    def test_a_pattern_matches_the_whole_name(self):
        names = ["a", "aa", "ba", "ab"]
        assert matching_topics("a+", names) == {"a", "aa"}
        assert matching_topics("a|b.", names) == {"a", "ba"}

    def test_what_takes_others_for_ever_takes_no_time(self):
        assert matching_topics("(a*)*b", ["a" * 249]) == frozenset()


class TestJoining:
    def test_topics_come_with_a_later_heartbeat(self, harness):
        joined = join(harness)
        assert (joined.epoch, joined.has) == (1, {})
        assert harness.written == [5, 8]
        assert harness.resolve() == 1
        assert harness.written == [16, 3]
        told = harness.beat("a", 1)
        assert (told.epoch, told.has) == (2, {"t1": [0, 1], "t2": [0]})

    def test_a_bad_pattern_changes_nothing(self, harness):
        code = ErrorCode.INVALID_REGULAR_EXPRESSION
        assert harness.refused("a", 0, subscribed_topic_regex="(") is code
        assert harness.group is None
        harness.beat("a", 0)
        assert harness.refused("a", 2, subscribed_topic_regex="(") is code
        assert harness.beat("a", 2).epoch == 2

    def test_a_pattern_that_is_known_gives_its_topics_at_once(self, harness):
        join(harness)
        harness.resolve()
        harness.beat("a", 1)
        harness.advance(1_100)
        joined = join(harness, "b")
        assert (joined.epoch, harness.target("b")) != (1, {})
        assert harness.effects == []

    def test_names_and_a_pattern_add_up(self, harness):
        join(harness, topics=["other"])
        harness.resolve()
        harness.settle("a")
        assert harness.has("a") == {"t1": [0, 1], "t2": [0], "other": [0]}


class TestKinds:
    """Whether all members read the same, as the assignor is told."""

    @pytest.mark.parametrize(
        ("names", "patterns", "count", "same"),
        [
            ({"a": (2, 0)}, {}, 2, True),
            ({"a": (1, 0)}, {}, 2, False),
            ({"a": (0, 1)}, {"p": 2}, 2, True),
            ({"a": (0, 1)}, {"p": 1}, 2, False),
            ({"a": (0, 2)}, {"p": 2, "q": 2}, 2, False),
            ({"a": (1, 1)}, {"p": 2}, 2, False),
            ({}, {}, 3, True),
        ],
    )
    def test_of_subscriptions(self, names, patterns, count, same):
        counts = {name: NameCount(*each) for name, each in names.items()}
        assert is_homogeneous(counts, patterns, count) is same


class TestChanging:
    @pytest.fixture
    def joined(self, harness):
        join(harness)
        harness.resolve()
        harness.settle("a")
        return harness

    def test_the_last_ones_pattern_is_forgotten(self, joined):
        joined.advance(11 * SECOND)
        joined.beat("a", 2, subscribed_topic_regex="o.*", owned={})
        assert joined.written == [5, -16, 8]
        assert joined.resolve() == 1
        joined.settle("a")
        assert joined.has("a") == {"other": [0]}

    def test_others_keep_it(self, joined):
        join(joined, "b")
        joined.settle("a", "b")
        joined.beat("b", joined.group.members["b"].member_epoch, subscribed_topic_regex="o.*")
        assert -16 not in joined.written
        assert PATTERN in joined.group.resolutions

    def test_no_pattern_any_more_is_a_change(self, joined):
        joined.advance(1_100)
        told = joined.beat("a", 2, subscribed_topic_regex="", owned={})
        assert joined.written == [5, -16, 3, 7, 6, 8]
        assert (told.epoch, told.has) == (3, {})

    def test_who_leaves_takes_its_pattern_along(self, joined):
        joined.beat("a", -1)
        assert joined.written == [-8, -7, -5, -16, 3]
        assert joined.group.names == {}

    def test_a_result_that_nobody_wants_any_more_is_dropped(self, harness):
        harness.beat("b", 0)
        join(harness)
        harness.beat("a", -1)
        harness.written = []
        harness.resolve()
        assert harness.written == []
        harness.beat("a", 0, group_id="h", subscribed_topic_regex="t.*")
        del harness.shard.groups["h"], harness.replica.groups["h"]
        harness.resolve()
        assert harness.written == []


class TestLookingAgain:
    @pytest.fixture
    def joined(self, harness):
        join(harness)
        harness.resolve()
        harness.settle("a")
        harness.advance(11 * SECOND)
        return harness

    def test_nothing_new_is_not_looked_for(self, joined):
        joined.beat("a", 2)
        assert joined.effects == []

    def test_a_new_topic_is_looked_for(self, joined):
        joined.create(t3=1)
        joined.beat("a", 2)
        assert joined.resolve() == 1
        joined.settle("a")
        assert joined.has("a") == {"t1": [0, 1], "t2": [0], "t3": [0]}

    def test_not_within_ten_seconds(self, harness):
        join(harness)
        harness.resolve()
        harness.create(t3=1)
        harness.beat("a", 1)
        assert harness.effects == []
        harness.advance(10 * SECOND + 1)
        harness.beat("a", 2)
        assert harness.resolve() == 1

    def test_not_while_somebody_looks(self, joined):
        joined.create(t3=1)
        joined.beat("a", 2)
        joined.beat("a", 2)
        assert joined.resolve() == 1

    def test_every_ten_minutes(self, joined):
        for _ in range(19):
            joined.advance(30 * SECOND)
            joined.beat("a", 2)
        assert joined.resolve() == 0
        joined.advance(30 * SECOND)
        joined.beat("a", 2)
        assert joined.resolve() == 1
        assert joined.written == [16], "the same topics"

    def test_a_result_of_another_brokers_metadata_is_not_trusted(self, joined):
        found = joined.group.resolutions[PATTERN]
        for shard in (joined.shard, joined.replica):
            group = shard.groups["g"]
            group.put_resolution(PATTERN, found._replace(version=10**9))
        joined.beat("a", 2)
        assert joined.resolve() == 1


def test_after_a_restart_patterns_are_as_they_were(harness):
    join(harness)
    harness.resolve()
    harness.settle("a")
    other = harness.restarted()
    assert other.beat("a", 2).has is None
    assert other.effects == []
    assert other.has("a") == {"t1": [0, 1], "t2": [0]}
