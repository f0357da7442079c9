"""Requests by partition: which they name, and how one answer is made for some of them.

A rule about a topic touches the matching partitions of a request alone. The request is split: what
a rule refuses is taken out and answered by the API's own `refuse`, the rest is handled as ever, and
both answers become one. What only reads may be answered first and changed then.
"""

from collections.abc import Callable, Container, Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from kafkalite.faults.rules import Unit
from kafkalite.types import ZERO_UUID
from kafkalite.wire.api import ApiKey

TopicName = Callable[[UUID], str | None]
"""Gives the name of a topic id; None if there is no such topic."""

WHOLE_TOPIC: Final = -1


@dataclass(slots=True, frozen=True, kw_only=True)
class Shape:
    """Names of the fields in which an API's messages have topics and partitions.

    Attributes:
        index: of the partition in the request; empty if the request has bare numbers, None if it
            names topics alone.
        response_partitions: None if the response has an error for each topic, not each partition.
    """

    topics: str = "topics"
    name: str = "name"
    partitions: str = "partitions"
    index: str | None = "partition_index"
    response_topics: str = "topics"
    response_partitions: str | None = "partitions"
    response_index: str = "partition_index"
    error: str = "error_code"


SHAPES: Final = {
    ApiKey.PRODUCE: Shape(
        topics="topic_data",
        partitions="partition_data",
        index="index",
        response_topics="responses",
        response_partitions="partition_responses",
        response_index="index",
    ),
    ApiKey.FETCH: Shape(name="topic", index="partition", response_topics="responses"),
    ApiKey.LIST_OFFSETS: Shape(),
    ApiKey.METADATA: Shape(index=None, response_partitions=None),
    ApiKey.OFFSET_COMMIT: Shape(),
    ApiKey.DELETE_RECORDS: Shape(),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Shape(
        name="topic", index="partition", response_index="partition"
    ),
    ApiKey.TXN_OFFSET_COMMIT: Shape(),
    ApiKey.ADD_PARTITIONS_TO_TXN: Shape(
        topics="v3_and_below_topics",
        index="",
        response_topics="results_by_topic_v3_and_below",
        response_partitions="results_by_partition",
        error="partition_error_code",
    ),
}
"""APIs in which single partitions can fail. A rule about a topic that fires for another API is
about its request as a whole."""

MENTIONS: Final = {
    ApiKey.CREATE_TOPICS: ("topics", "name"),
    ApiKey.DELETE_TOPICS: ("topics", "name"),
    ApiKey.CREATE_PARTITIONS: ("topics", "name"),
    ApiKey.DESCRIBE_PRODUCERS: ("topics", "name"),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ("topics", "name"),
}
"""Other APIs whose requests name topics: list, and field of the name."""

BY_PARTITION: Final = {
    ApiKey.OFFSET_FETCH: "partition_indexes",
    ApiKey.SHARE_FETCH: "partitions",
    ApiKey.SHARE_ACKNOWLEDGE: "partitions",
}
"""Others whose requests name partitions, and fail as a whole; field of a topic's partitions."""

NAMING_TOPICS: Final = frozenset({*SHAPES, *MENTIONS, *BY_PARTITION})
"""APIs that a rule about a topic can be about."""

READS: Final = frozenset(
    {ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.OFFSET_FOR_LEADER_EPOCH}
)
"""APIs that apply nothing: an error may as well come after."""


def units_of(api: ApiKey, request: Any, topic_name: TopicName) -> list[Unit]:
    """Return the partitions that a request names, in its order."""
    shape = SHAPES.get(api)
    if shape is None:
        return _mentioned(api, request, topic_name)
    found = []
    for topic in getattr(request, shape.topics) or ():
        name = name_of(topic, shape, topic_name)
        if shape.index is None:
            found.append(Unit(name, WHOLE_TOPIC))
            continue
        found += [
            Unit(name, _index(each, shape.index)) for each in getattr(topic, shape.partitions)
        ]
    return found


def name_of(topic: Any, shape: Shape, topic_name: TopicName) -> str:
    """Return the name of a topic of a message, which may tell its id instead; "" if unknown."""
    name = getattr(topic, shape.name, None)
    topic_id = getattr(topic, "topic_id", ZERO_UUID)
    if not name and topic_id != ZERO_UUID:
        name = topic_name(topic_id)
    return name or ""


def split(
    api: ApiKey, request: Any, units: Container[Unit], topic_name: TopicName
) -> tuple[Any | None, Any]:
    """Return two requests: one for all but `units`, None if nothing is left, and one for `units`.

    Neither shares lists with `request`, which is not changed.
    """
    shape = SHAPES[api]
    assert shape.index is not None
    rest, taken = copy(request), copy(request)
    rest_topics: list[Any] = []
    taken_topics: list[Any] = []
    for topic in getattr(request, shape.topics):
        name = name_of(topic, shape, topic_name)
        sides: tuple[list[Any], list[Any]] = ([], [])
        for partition in getattr(topic, shape.partitions):
            is_taken = Unit(name, _index(partition, shape.index)) in units
            sides[is_taken].append(partition)
        for partitions, topics in zip(sides, (rest_topics, taken_topics), strict=True):
            if partitions:
                part = copy(topic)
                setattr(part, shape.partitions, partitions)
                topics.append(part)
    setattr(rest, shape.topics, rest_topics)
    setattr(taken, shape.topics, taken_topics)
    return (rest if rest_topics else None), taken


def merge(api: ApiKey, response: Any, refused: Any, topic_name: TopicName) -> Any:
    """Put the answers of `refused` in the place of those for the same partitions in `response`.

    What `response` does not have is added. `response` is changed, and returned.
    """
    shape = SHAPES[api]
    assert shape.response_partitions is not None
    topics = getattr(response, shape.response_topics)
    by_name = {name_of(topic, shape, topic_name): topic for topic in topics}
    for topic in getattr(refused, shape.response_topics):
        name = name_of(topic, shape, topic_name)
        answers = getattr(topic, shape.response_partitions)
        there = by_name.get(name)
        if there is None:
            topics.append(topic)
            continue
        replaced = {getattr(answer, shape.response_index) for answer in answers}
        kept = [
            answer
            for answer in getattr(there, shape.response_partitions)
            if getattr(answer, shape.response_index) not in replaced
        ]
        setattr(there, shape.response_partitions, [*kept, *answers])
    return response


def answers_for(
    api: ApiKey, response: Any, units: Container[Unit] | None, topic_name: TopicName
) -> Iterable[Any]:
    """Return the parts of a response that are about `units`, or all; those with an error code."""
    shape = SHAPES[api]
    for topic in getattr(response, shape.response_topics):
        name = name_of(topic, shape, topic_name)
        if shape.response_partitions is None:
            if units is None or Unit(name, WHOLE_TOPIC) in units:
                yield topic
            continue
        for answer in getattr(topic, shape.response_partitions):
            if units is None or Unit(name, getattr(answer, shape.response_index)) in units:
                yield answer


def _index(partition: Any, field: str) -> int:
    index: int = getattr(partition, field) if field else partition
    return index


def _mentioned(api: ApiKey, request: Any, topic_name: TopicName) -> list[Unit]:
    if api in BY_PARTITION:
        parts = [request, *(getattr(request, "groups", None) or ())]
        return [
            Unit(name_of(topic, SHAPES[ApiKey.LIST_OFFSETS], topic_name), _number(each))
            for part in parts
            for topic in getattr(part, "topics", None) or ()
            for each in getattr(topic, BY_PARTITION[api])
        ]
    field = MENTIONS.get(api)
    if field is None:
        return []
    names = [getattr(topic, field[1]) for topic in getattr(request, field[0]) or ()]
    return [Unit(name, WHOLE_TOPIC) for name in names if name]


def _number(partition: Any) -> int:
    index: int = partition if isinstance(partition, int) else partition.partition_index
    return index
