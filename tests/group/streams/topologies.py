"""Topologies for tests, in few words."""

from kafkalite.group.streams.topology import Topology, stored_topology
from kafkalite.wire.messages.streams_group_heartbeat import (
    CopartitionGroup,
    KeyValue,
    Subtopology,
    TopicInfo,
)
from kafkalite.wire.messages.streams_group_heartbeat import Topology as TopologyMessage


def info(text, **configs):
    """A topic by its name, or `name:partitions`, or `name:partitions:replicas`."""
    name, partitions, replicas = [*text.split(":"), "0", "0"][:3]
    return TopicInfo(
        name=name,
        partitions=int(partitions),
        replication_factor=int(replicas),
        topic_configs=[
            KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )


def subtopology(name, sources="", *, repartition="", sinks="", changelogs="", together=()):
    """One subtopology; topics in words, copartition groups as pairs of index lists."""
    return Subtopology(
        subtopology_id=name,
        source_topics=sources.split(),
        repartition_source_topics=[info(each) for each in repartition.split()],
        repartition_sink_topics=sinks.split(),
        state_changelog_topics=[
            info(each, cleanup_policy="compact") for each in changelogs.split()
        ],
        copartition_groups=[
            CopartitionGroup(source_topics=list(externals), repartition_source_topics=list(own))
            for externals, own in together
        ],
    )


def message(*subtopologies, epoch=0):
    return TopologyMessage(epoch=epoch, subtopologies=list(subtopologies))


def topology(*subtopologies, epoch=0):
    return Topology(stored_topology(message(*subtopologies, epoch=epoch)))


COUNTING = (
    subtopology("0", "in1", sinks="st-rep"),
    subtopology("1", repartition="st-rep", changelogs="st-store-changelog"),
)
"""Reads in1, counts by another key: the topology of the recorded transcripts."""
