"""Partition counts of internal topics and tasks, as Kafka decides them (rules 467-469).

After the cases of Kafka's InternalTopicManagerTest, RepartitionTopicsTest, ChangelogTopicsTest and
CopartitionedTopicsEnforcerTest.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.group.streams.internal_topics import (
    InternalTopic,
    StatusCode,
    _repartition_counts,
    configure_topology,
)
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.group.streams.topologies import COUNTING, subtopology, topology


def configured(*subtopologies, **counts):
    """The topology under topics with these partition counts; underscores stand for hyphens."""
    topics = {name.replace("_", "-"): count for name, count in counts.items()}
    return configure_topology(topology(*subtopologies), topics.get)


def counts_of(result):
    """Partition counts of all internal topics, and tasks by subtopology."""
    internal = {}
    for each in result.subtopologies.values():
        for topics in (each.repartition_source_topics, each.state_changelog_topics):
            internal.update({name: topic.partition_count for name, topic in topics.items()})
    return internal, {name: each.task_count for name, each in result.subtopologies.items()}


class TestReadiness:
    def test_a_topology_is_ready_when_all_its_topics_are_there(self):
        result = configured(*COUNTING, in1=3, st_rep=3, st_store_changelog=3)
        assert result.is_ready
        assert result.missing_topics == {}
        assert counts_of(result) == ({"st-rep": 3, "st-store-changelog": 3}, {"0": 3, "1": 3})

    def test_missing_internal_topics_are_to_be_created_with_their_settings(self):
        result = configured(
            subtopology("0", "in1", sinks="st-rep"),
            subtopology("1", repartition="st-rep:5:2", changelogs="log"),
            in1=3,
        )
        assert result.problem is StatusCode.MISSING_INTERNAL_TOPICS
        assert result.detail == "Internal topics are missing: log, st-rep"
        assert result.missing_topics == {
            "st-rep": InternalTopic(
                name="st-rep", partition_count=5, replication_factor=2, configs={}
            ),
            "log": InternalTopic(
                name="log",
                partition_count=5,
                replication_factor=0,
                configs={"cleanup.policy": "compact"},
            ),
        }
        assert result.subtopologies

    def test_only_the_topics_that_lack_are_missing(self):
        assert list(configured(*COUNTING, in1=3, st_rep=3).missing_topics) == ["st-store-changelog"]

    def test_at_most_three_missing_internal_topics_are_named(self):
        """Those that Java's HashMap gives first."""
        result = configured(subtopology("0", "in", changelogs="c1 c2 c3 c4 c5"), **{"in": 1})
        assert result.detail == "Internal topics are missing: c3, c4, c5 and 2 additional topics"

    def test_missing_source_topics_come_first_and_nothing_else_is_decided(self):
        result = configured(subtopology("0", "b a", changelogs="c"), b=None)
        assert result.problem is StatusCode.MISSING_SOURCE_TOPICS
        assert result.detail == "Source topics a, b are missing."
        assert result.subtopologies == {}
        assert result.missing_topics == {}

    def test_at_most_three_missing_source_topics_are_named(self):
        result = configured(subtopology("0", "e d c b a"))
        assert result.detail == "Source topics a, b, c and 2 additional topics are missing."

    def test_an_internal_topic_with_another_count_is_a_problem(self):
        result = configured(*COUNTING, in1=3, st_rep=3, st_store_changelog=2)
        assert result.problem is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
        assert result.detail == (
            "Existing topic st-store-changelog has different number of partitions: expected 3, "
            "found 2"
        )

    def test_an_existing_repartition_topic_of_another_count_is_a_problem(self):
        result = configured(*COUNTING, in1=3, st_rep=4)
        assert "Existing topic st-rep" in result.detail


class TestRepartitionTopics:
    def test_they_have_what_is_said_or_what_the_writer_reads_at_most(self):
        counts, _ = counts_of(
            configured(
                subtopology("0", "a b", sinks="r1 r2"),
                subtopology("1", repartition="r1"),
                subtopology("2", repartition="r2:7"),
                a=2,
                b=3,
            )
        )
        assert counts == {"r1": 3, "r2": 7}

    def test_a_chain_is_followed_whatever_its_order(self):
        counts, tasks = counts_of(
            configured(
                subtopology("0", repartition="r1", sinks="r2"),
                subtopology("1", repartition="r2", sinks="r3"),
                subtopology("2", repartition="r3"),
                subtopology("3", "a", sinks="r1"),
                a=4,
            )
        )
        assert counts == {"r1": 4, "r2": 4, "r3": 4}
        assert set(tasks.values()) == {4}

    def test_a_writer_takes_the_larger_of_source_and_repartition_topic(self):
        counts, _ = counts_of(
            configured(
                subtopology("0", "a", sinks="r1"),
                subtopology("1", "b", repartition="r1", sinks="r2"),
                subtopology("2", repartition="r2"),
                a=5,
                b=2,
            )
        )
        assert counts == {"r1": 5, "r2": 5}

    def test_a_loop_is_refused(self):
        with pytest.raises(KafkaError, match="loops in the topology") as refusal:
            configured(
                subtopology("0", repartition="r1", sinks="r2"),
                subtopology("1", repartition="r2", sinks="r1"),
            )
        assert refusal.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY

    def test_a_repartition_topic_that_nobody_writes_is_refused_unless_its_count_is_said(self):
        with pytest.raises(KafkaError, match="never used as a sink topic"):
            configured(subtopology("0", repartition="r"))
        assert counts_of(configured(subtopology("0", repartition="r:2")))[0] == {"r": 2}

    def test_a_subtopology_that_reads_nothing_is_refused(self):
        with pytest.raises(KafkaError, match="No source topics found for subtopology 0"):
            configured(subtopology("0", changelogs="c"))


class TestChangelogTopics:
    def test_they_have_as_many_partitions_as_there_are_tasks(self):
        counts, tasks = counts_of(
            configured(
                subtopology("0", "a", repartition="r:4", changelogs="c d"),
                a=6,
            )
        )
        assert counts == {"r": 4, "c": 6, "d": 6}
        assert tasks == {"0": 6}


class TestCopartitioning:
    def test_repartition_topics_follow_the_sources(self):
        counts, _ = counts_of(
            configured(
                subtopology("0", "a", sinks="r"),
                subtopology("1", "b", repartition="r", together=[((0,), (0,))]),
                a=2,
                b=5,
            )
        )
        assert counts == {"r": 5}

    def test_sources_have_to_agree(self):
        result = configured(
            subtopology("0", "in1 in2", together=[((0, 1), ())]),
            in1=3,
            in2=2,
        )
        assert result.problem is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
        assert result.detail == (
            "Following topics do not have the same number of partitions: [{in1=3, in2=2}]"
        )

    def test_a_said_count_has_to_be_that_of_the_sources(self):
        result = configured(
            subtopology("0", "a", repartition="r:4", together=[((0,), (0,))]),
            a=3,
        )
        assert result.problem is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
        assert result.detail == (
            "Number of partitions [4] of repartition topic [r] doesn't match number of partitions "
            "[3] of the source topic."
        )

    def test_repartition_topics_alone_take_the_largest_count(self):
        counts, _ = counts_of(
            configured(
                subtopology("0", "a", sinks="r1"),
                subtopology("1", "b", sinks="r2"),
                subtopology("2", repartition="r1 r2", together=[((), (0, 1))]),
                a=2,
                b=5,
            )
        )
        assert counts == {"r1": 5, "r2": 5}

    def test_repartition_topics_alone_take_a_count_that_is_said(self):
        counts, _ = counts_of(
            configured(
                subtopology("0", "a", sinks="r1"),
                subtopology("1", repartition="r1 r2:3", together=[((), (0, 1))]),
                a=2,
            )
        )
        assert counts == {"r1": 3, "r2": 3}

    def test_said_counts_of_the_whole_topology_have_to_agree(self):
        """As in Kafka also those of another subtopology."""
        result = configured(
            subtopology("0", repartition="r1:2 r2", together=[((), (0, 1))]),
            subtopology("1", repartition="r3:4"),
            subtopology("2", "a", sinks="r2"),
            a=1,
        )
        assert result.problem is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
        assert result.detail.endswith("[{r1=2, r2=1}]")

    def test_an_empty_group_says_nothing(self):
        assert configured(subtopology("0", "a", together=[((), ())]), a=1).is_ready

    def test_an_existing_repartition_topic_counts_as_it_is(self):
        result = configured(
            subtopology("0", "a", sinks="r"),
            subtopology("1", "b", repartition="r", together=[((0,), (0,))]),
            a=2,
            b=5,
            r=2,
        )
        assert "Existing topic r has different number" in result.detail


def as_kafka_does(topology, partition_count):
    """RepartitionTopics: round and round over all subtopologies, until nothing is open."""
    subtopologies = list(topology.subtopologies.values())
    counts = {
        info.name: info.partitions
        for each in subtopologies
        for info in each.repartition_source_topics
        if info.partitions
    }
    while True:
        is_open = has_moved = False
        for each in subtopologies:
            for sink in each.repartition_sink_topics:
                if sink in counts:
                    continue
                known = [counts.get(info.name) for info in each.repartition_source_topics]
                known += [partition_count(name) for name in each.source_topics]
                known = [count for count in known if count is not None]
                if known:
                    counts[sink] = max(known)
                    has_moved = True
                else:
                    is_open = True
        if is_open and not has_moved:
            return "loop"
        if not is_open:
            break
    for each in subtopologies:
        if any(info.name not in counts for info in each.repartition_source_topics):
            return "unwritten"
    return counts


repartition_topics = st.sampled_from([f"r{number}" for number in range(8)])


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(["a", "b", "c"]), max_size=1),
            st.lists(st.tuples(repartition_topics, st.sampled_from([0, 0, 0, 7])), max_size=2),
            st.lists(repartition_topics, max_size=2),
        ),
        max_size=12,
    )
)
def test_counts_are_those_of_kafkas_rounds(parts):
    made = topology(
        *(
            subtopology(
                str(number),
                " ".join(sources),
                repartition=" ".join(f"{name}:{count}" for name, count in repartition),
                sinks=" ".join(sinks),
            )
            for number, (sources, repartition, sinks) in enumerate(parts)
        )
    )
    topics = {"a": 1, "b": 2, "c": 3}
    try:
        found = _repartition_counts(made, topics.get)
    except KafkaError as error:
        found = "loop" if "loops" in error.message else "unwritten"
    assert found == as_kafka_does(made, topics.get)


def test_a_long_chain_in_the_worst_order_takes_one_look_at_each():
    """Kafka's rounds would be a million looks; a count of them shows that they are not made."""
    length = 1_000
    looks = []

    def partition_count(topic):
        looks.append(topic)
        return 2 if topic == "a" else None

    made = topology(
        subtopology("s0", "a", sinks="r0"),
        *(
            subtopology(f"s{number}", repartition=f"r{number - 1}", sinks=f"r{number}")
            for number in range(1, length)
        ),
        subtopology("end", repartition=f"r{length - 1}"),
    )
    counts = _repartition_counts(made, partition_count)
    assert set(counts.values()) == {2}
    assert len(looks) == 1
