"""Topics that a topology needs: partition counts of internal ones, and which are missing.

After Kafka's InternalTopicManager, RepartitionTopics, CopartitionedTopicsEnforcer and
ChangelogTopics. Where the order of Java's collections decides what is found first it is theirs.
"""

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from kafkalite.group.java_order import hash_map_order, string_hash
from kafkalite.group.streams.topology import Topology, invalid_topology, source_topics

if TYPE_CHECKING:
    from kafkalite.wire.stored.streams_group import Subtopology, TopicInfo

SHOWN_TOPICS_MAX = 3
"""How many topics a message names."""

PartitionCount = Callable[[str], int | None]
"""Gives a topic's number of partitions, None if there is no such topic."""


class StatusCode(IntEnum):
    """Status that a member is told of its group besides errors."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


@dataclass(slots=True, frozen=True, kw_only=True)
class InternalTopic:
    """A repartition or changelog topic as it has to be."""

    name: str
    partition_count: int
    replication_factor: int
    """0: the cluster's default."""
    configs: Mapping[str, str]


@dataclass(slots=True, frozen=True, kw_only=True)
class ConfiguredSubtopology:
    """A subtopology whose partition counts are known; tasks are numbered from 0."""

    task_count: int
    source_topics: Sequence[str]
    repartition_source_topics: Mapping[str, InternalTopic]
    repartition_sink_topics: Sequence[str]
    state_changelog_topics: Mapping[str, InternalTopic]

    def topics(self) -> Iterable[str]:
        """Return the topics that it reads."""
        return (*self.source_topics, *self.repartition_source_topics)


@dataclass(slots=True, frozen=True, kw_only=True)
class ConfiguredTopology:
    """A topology under the topics of a moment.

    Attributes:
        epoch: of the topology.
        subtopologies: by id, ascending; empty if that could not be decided.
        missing_topics: internal topics that have to be created.
        problem: why no tasks can be assigned, None if they can.
        detail: the problem in words.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] = field(default_factory=dict)
    missing_topics: Mapping[str, InternalTopic] = field(default_factory=dict)
    problem: StatusCode | None = None
    detail: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether tasks can be assigned."""
        return self.problem is None


class _TopologyProblemError(Exception):
    """Topics are not as the topology needs them; it may be so later."""

    def __init__(self, problem: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail


def configure_topology(topology: Topology, partition_count: PartitionCount) -> ConfiguredTopology:
    """Decide about a topology's internal topics and tasks.

    Args:
        topology: the group's.
        partition_count: of the topics that there are.

    Raises:
        KafkaError: STREAMS_INVALID_TOPOLOGY, it makes no sense whatever topics there are.
    """
    try:
        _check_source_topics(topology, partition_count)
        decided = _decide_partition_counts(topology, partition_count)
        subtopologies = {
            name: _configured(topology.subtopologies[name], decided)
            for name in sorted(topology.subtopologies)
        }
        missing = _missing_topics(topology, subtopologies, partition_count)
    except _TopologyProblemError as error:
        return ConfiguredTopology(epoch=topology.epoch, problem=error.problem, detail=error.detail)
    return ConfiguredTopology(
        epoch=topology.epoch,
        subtopologies=subtopologies,
        missing_topics=missing,
        problem=StatusCode.MISSING_INTERNAL_TOPICS if missing else None,
        detail=f"Internal topics are missing: {_summary(missing)}" if missing else "",
    )


def _check_source_topics(topology: Topology, partition_count: PartitionCount) -> None:
    missing = {
        topic
        for subtopology in topology.subtopologies.values()
        for topic in subtopology.source_topics
        if partition_count(topic) is None
    }
    if missing:
        raise _TopologyProblemError(
            StatusCode.MISSING_SOURCE_TOPICS,
            f"Source topics {_summary(sorted(missing))} are missing.",
        )


class _Decided:
    """Partition counts: of topics that there are, else as decided."""

    __slots__ = ("_existing", "counts")

    def __init__(self, existing: PartitionCount, counts: dict[str, int]) -> None:
        self._existing = existing
        self.counts = counts

    def __call__(self, topic: str) -> int:
        count = self._existing(topic)
        return self.counts[topic] if count is None else count


def _decide_partition_counts(topology: Topology, partition_count: PartitionCount) -> _Decided:
    decided = _Decided(partition_count, _repartition_counts(topology, partition_count))
    fixed: dict[str, None] = {}
    flexible: dict[str, None] = {}
    for subtopology in topology.subtopologies.values():
        for info in subtopology.repartition_source_topics:
            (fixed if info.partitions else flexible)[info.name] = None
    for subtopology in topology.subtopologies.values():
        for group in subtopology.copartition_groups:
            topics = [
                *(subtopology.source_topics[index] for index in group.source_topics),
                *(
                    subtopology.repartition_source_topics[index].name
                    for index in group.repartition_source_topics
                ),
            ]
            if topics:
                _enforce_copartitioning(dict.fromkeys(topics), fixed, flexible, decided)
    for name, subtopology in topology.subtopologies.items():
        sources = source_topics(subtopology)
        if not sources:
            raise invalid_topology(f"No source topics found for subtopology {name}")
        count = max(decided(topic) for topic in sources)
        for info in subtopology.state_changelog_topics:
            decided.counts[info.name] = count
    return decided


def _repartition_counts(topology: Topology, partition_count: PartitionCount) -> dict[str, int]:
    """Return how many partitions repartition topics have: what is said, else as the writer reads.

    A writer that reads repartition topics itself waits until one of its topics is known. Kafka goes
    round all subtopologies until nothing is open; here one is looked at again, at the place it has
    in that round, when something that it reads became known.
    """
    subtopologies = list(topology.subtopologies.values())
    counts = {
        info.name: info.partitions
        for subtopology in subtopologies
        for info in subtopology.repartition_source_topics
        if info.partitions
    }
    readers: dict[str, list[int]] = {}
    for position, subtopology in enumerate(subtopologies):
        for info in subtopology.repartition_source_topics:
            readers.setdefault(info.name, []).append(position)
    due = [(1, position) for position in range(len(subtopologies))]  # (round, position): a heap
    open_positions = set(range(len(subtopologies)))
    while due:
        round_, position = heapq.heappop(due)
        subtopology = subtopologies[position]
        sinks = [name for name in subtopology.repartition_sink_topics if name not in counts]
        count = _writers_count(subtopology, counts, partition_count) if sinks else None
        if sinks and count is None:
            continue
        open_positions.discard(position)
        for name in sinks:
            assert count is not None
            counts[name] = count
            for reader in readers.get(name, ()):
                if reader in open_positions:
                    heapq.heappush(due, (round_ if reader > position else round_ + 1, reader))
    if any(
        name not in counts
        for position in open_positions
        for name in subtopologies[position].repartition_sink_topics
    ):
        raise invalid_topology(
            "Failed to compute number of partitions for all repartition topics. There may be "
            "loops in the topology that cannot be resolved."
        )
    if not readers.keys() <= counts.keys():
        raise invalid_topology(
            "Failed to compute number of partitions for all repartition topics, because a "
            "repartition source topic is never used as a sink topic."
        )
    return counts


def _writers_count(
    subtopology: "Subtopology", counts: Mapping[str, int], partition_count: PartitionCount
) -> int | None:
    """Return the largest count of what a subtopology reads, as far as known; None if nothing is."""
    known = [counts.get(info.name) for info in subtopology.repartition_source_topics]
    known += [partition_count(topic) for topic in subtopology.source_topics]
    return max((count for count in known if count is not None), default=None)


def _enforce_copartitioning(
    topics: Collection[str],
    fixed: Mapping[str, None],
    flexible: Mapping[str, None],
    decided: _Decided,
) -> None:
    """Give the repartition topics of a copartition group the count of the others."""
    names = hash_map_order(topics, string_hash)
    repartition = {name: decided(name) for name in names if name in fixed or name in flexible}
    others = {name: decided(name) for name in names if name not in repartition}
    if others:
        count = _same_count(others, others)
    elif fixed:
        # As Kafka has it: all of the topology that are fixed, also those outside of this group.
        count = _same_count({name: decided(name) for name in fixed}, repartition)
    else:
        count = max(repartition.values())
    for name, own_count in repartition.items():
        decided.counts[name] = count
        if name in fixed and own_count != count:
            raise _TopologyProblemError(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{own_count}] of repartition topic [{name}] doesn't match "
                f"number of partitions [{count}] of the source topic.",
            )


def _same_count(counts: Mapping[str, int], shown: Mapping[str, int]) -> int:
    different = set(counts.values())
    if len(different) > 1:
        listed = ", ".join(f"{name}={shown[name]}" for name in sorted(shown))
        raise _TopologyProblemError(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    return different.pop()


def _configured(subtopology: "Subtopology", decided: _Decided) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        task_count=max(decided(topic) for topic in source_topics(subtopology)),
        source_topics=tuple(dict.fromkeys(subtopology.source_topics)),
        repartition_source_topics={
            info.name: _internal_topic(info, decided)
            for info in subtopology.repartition_source_topics
        },
        repartition_sink_topics=tuple(dict.fromkeys(subtopology.repartition_sink_topics)),
        state_changelog_topics={
            info.name: _internal_topic(info, decided) for info in subtopology.state_changelog_topics
        },
    )


def _internal_topic(info: "TopicInfo", decided: _Decided) -> InternalTopic:
    return InternalTopic(
        name=info.name,
        partition_count=info.partitions or decided.counts[info.name],
        replication_factor=info.replication_factor,
        configs={config.key: config.value for config in info.topic_configs},
    )


def _missing_topics(
    topology: Topology,
    subtopologies: Mapping[str, ConfiguredSubtopology],
    partition_count: PartitionCount,
) -> dict[str, InternalTopic]:
    internal: dict[str, InternalTopic] = {}
    for subtopology in subtopologies.values():
        internal.update(subtopology.repartition_source_topics)
        internal.update(subtopology.state_changelog_topics)
    for name in topology.required_topics:
        found = partition_count(name)
        if name in internal and found not in (None, internal[name].partition_count):
            raise _TopologyProblemError(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected "
                f"{internal[name].partition_count}, found {found}",
            )
    return {
        name: internal[name]
        for name in hash_map_order(internal, string_hash)
        if partition_count(name) is None
    }


def _summary(topics: Collection[str]) -> str:
    shown = ", ".join(list(topics)[:SHOWN_TOPICS_MAX])
    more = len(topics) - SHOWN_TOPICS_MAX
    return f"{shown} and {more} additional topics" if more > 0 else shown
