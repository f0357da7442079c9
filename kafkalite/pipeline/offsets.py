"""Offsets per partition in the JSON form that Spark's Kafka source reads and reports."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kafkalite.types import TopicPartition

#: Offsets by topic and partition, each exclusive when it is an end.
TopicOffsets = dict[str, dict[int, int]]


def offsets_json(offsets: Mapping[TopicPartition, int]) -> str:
    """Return the value of startingOffsets or endingOffsets for these partitions."""
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        by_topic.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(by_topic)


def assignment_json(partitions: Iterable[TopicPartition]) -> str:
    """Return the value of the option ``assign`` for these partitions."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return json.dumps(by_topic)


def parse_offsets(reported: Any) -> TopicOffsets:
    """Return the offsets in a source's progress report, sorted; empty for none.

    PySpark hands out the same field as JSON text or already parsed, depending on its version, and
    a field that is absent as None or as its name in one language or the other.
    """
    if isinstance(reported, str) and reported in {"None", "null", ""}:
        return {}
    parsed = json.loads(reported) if isinstance(reported, str) else reported
    return {
        topic: dict(sorted((int(number), int(offset)) for number, offset in partitions.items()))
        for topic, partitions in sorted((parsed or {}).items())
    }


def offsets_behind(end: TopicOffsets, latest: TopicOffsets) -> int:
    """Return how many offsets lie between what was read (`end`) and what is there (`latest`)."""
    return sum(
        max(0, offset - end.get(topic, {}).get(partition, 0))
        for topic, partitions in latest.items()
        for partition, offset in partitions.items()
    )
