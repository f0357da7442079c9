"""What a member's topology becomes, and what is refused whatever topics there are (rule 466)."""

import pytest

from kafkalite.group.streams.topology import check_topology, stored_topology
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.stored import streams_group as stored
from tests.group.streams.topologies import COUNTING, info, message, subtopology, topology


def test_a_topology_is_stored_as_it_was_sent():
    sent = message(
        subtopology(
            "1",
            "b a",
            repartition="r:3:2",
            sinks="s",
            changelogs="c",
            together=[((0, 1), (0,))],
        ),
        epoch=4,
    )
    assert stored_topology(sent) == stored.StreamsGroupTopologyValue(
        epoch=4,
        subtopologies=[
            stored.Subtopology(
                subtopology_id="1",
                source_topics=["b", "a"],
                state_changelog_topics=[
                    stored.TopicInfo(
                        name="c",
                        topic_configs=[stored.TopicConfig(key="cleanup.policy", value="compact")],
                    )
                ],
                repartition_sink_topics=["s"],
                repartition_source_topics=[
                    stored.TopicInfo(name="r", partitions=3, replication_factor=2)
                ],
                copartition_groups=[
                    stored.CopartitionGroup(source_topics=[0, 1], repartition_source_topics=[0])
                ],
            )
        ],
    )


def test_all_that_is_read_and_changelogs_are_required():
    assert set(topology(*COUNTING).required_topics) == {"in1", "st-rep", "st-store-changelog"}


def test_it_is_known_which_subtopology_reads_a_topic():
    assert topology(*COUNTING).subtopology_of == {"in1": "0", "st-rep": "1"}


def test_topologies_are_compared_by_id_with_their_epoch_and_the_order_in_lists():
    known = topology(*COUNTING)
    assert known.is_same_as(topology(*reversed(COUNTING)))
    assert not known.is_same_as(topology(*COUNTING, epoch=1))
    assert not known.is_same_as(topology(COUNTING[0]))
    two = topology(subtopology("0", "a b"))
    assert not two.is_same_as(topology(subtopology("0", "b a")))


def test_a_sensible_topology_is_accepted():
    check_topology(message(*COUNTING))
    check_topology(message(subtopology("0", "a b", together=[((0, 1), ())])))


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (
            message(subtopology("0", "a", changelogs="c:2")),
            "Changelog topic c must have an undefined partition count, but it is set to 2.",
        ),
        (message(epoch=-1), "non-negative"),
        (message(subtopology("0", "a", repartition="r:-1")), "at least 1"),
        (message(subtopology("0", "a"), subtopology("0", "b")), "same id"),
        (message(subtopology("0", "a", together=[((1,), ())])), "copartition group"),
        (message(subtopology("0", "a", together=[((-1,), ())])), "copartition group"),
        (message(subtopology("0", "a", together=[((), (0,))])), "copartition group"),
    ],
)
def test_nonsense_is_refused(sent, words):
    with pytest.raises(KafkaError, match=words) as refusal:
        check_topology(sent)
    assert refusal.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_topics_in_words():
    assert info("a") == info("a:0:0")
