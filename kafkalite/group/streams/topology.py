"""An application's topology, as its members state it and the group's log keeps it (KIP-1071).

A topology is made of subtopologies: each reads source topics and repartition topics, writes
repartition topics, and has state stores with changelog topics. Repartition and changelog topics are
internal: the broker makes them.
"""

from collections.abc import Sequence

from kafkalite.group.java_order import hash_map_order, string_hash
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages import streams_group_heartbeat as request
from kafkalite.wire.stored import streams_group as stored


class Topology:
    """One version of a group's topology. Not to be changed.

    Attributes:
        epoch: the application's number of this version.
        value: as it is stored.
        subtopologies: by id, in the order of Java's HashMap, which Kafka's decisions follow.
        required_topics: all that it reads, and its changelogs; external and internal.
        subtopology_of: the id of the subtopology that reads a topic, by topic.
    """

    __slots__ = ("epoch", "required_topics", "subtopologies", "subtopology_of", "value")

    def __init__(self, value: stored.StreamsGroupTopologyValue) -> None:
        self.value = value
        self.epoch = value.epoch
        by_id = {each.subtopology_id: each for each in value.subtopologies}
        self.subtopologies: dict[str, stored.Subtopology] = {
            name: by_id[name] for name in hash_map_order(by_id, string_hash)
        }
        self.subtopology_of: dict[str, str] = {}
        required: dict[str, None] = {}
        for name, subtopology in self.subtopologies.items():
            for topic in source_topics(subtopology):
                self.subtopology_of[topic] = name
                required[topic] = None
            required.update(dict.fromkeys(info.name for info in subtopology.state_changelog_topics))
        self.required_topics = hash_map_order(required, string_hash)

    def is_same_as(self, other: "Topology") -> bool:
        """Whether epoch and subtopologies are equal; the order inside their lists counts."""
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies


def source_topics(subtopology: stored.Subtopology) -> list[str]:
    """Return the topics that a subtopology reads, external ones first."""
    repartition = [info.name for info in subtopology.repartition_source_topics]
    return [*subtopology.source_topics, *repartition]


def stored_topology(topology: request.Topology) -> stored.StreamsGroupTopologyValue:
    """Return the record of a topology that a member sent."""
    return stored.StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            stored.Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=each.source_topics,
                source_topic_regex=each.source_topic_regex,
                state_changelog_topics=_topic_infos(each.state_changelog_topics),
                repartition_sink_topics=each.repartition_sink_topics,
                repartition_source_topics=_topic_infos(each.repartition_source_topics),
                copartition_groups=[
                    stored.CopartitionGroup(
                        source_topics=group.source_topics,
                        source_topic_regex=group.source_topic_regex,
                        repartition_source_topics=group.repartition_source_topics,
                    )
                    for group in each.copartition_groups
                ],
            )
            for each in topology.subtopologies
        ],
    )


def check_topology(topology: request.Topology) -> None:
    """Refuse a topology that makes no sense whatever topics there are.

    All but a changelog with a partition count fail in Kafka too, as errors of the server.

    Raises:
        KafkaError: STREAMS_INVALID_TOPOLOGY.
    """
    if topology.epoch < 0:
        raise invalid_topology("Topology epoch must be non-negative.")
    ids = [each.subtopology_id for each in topology.subtopologies]
    if len(set(ids)) < len(ids):
        raise invalid_topology("Two subtopologies have the same id.")
    for each in topology.subtopologies:
        for info in each.state_changelog_topics:
            if info.partitions != 0:
                raise invalid_topology(
                    f"Changelog topic {info.name} must have an undefined partition count, "
                    f"but it is set to {info.partitions}."
                )
        for info in each.repartition_source_topics:
            if info.partitions < 0:
                raise invalid_topology("Number of partitions must be at least 1.")
        for group in each.copartition_groups:
            _check_indices(group.source_topics, each.source_topics)
            _check_indices(group.repartition_source_topics, each.repartition_source_topics)


def invalid_topology(message: str) -> KafkaError:
    """Return the refusal of a topology."""
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _check_indices(indices: Sequence[int], topics: Sequence[object]) -> None:
    if any(not 0 <= index < len(topics) for index in indices):
        raise invalid_topology("A copartition group names a topic that its subtopology lacks.")


def _topic_infos(infos: list[request.TopicInfo]) -> list[stored.TopicInfo]:
    return [
        stored.TopicInfo(
            name=info.name,
            partitions=info.partitions,
            replication_factor=info.replication_factor,
            topic_configs=[
                stored.TopicConfig(key=config.key, value=config.value)
                for config in info.topic_configs
            ],
        )
        for info in infos
    ]
