"""A very large request taken for several smaller ones, and one answer made of theirs."""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, Final

PART_MAX: Final = 1_000
"""Topics or partitions of one part, some milliseconds of work."""


def by_topic(request: Any) -> Iterator[Any]:
    """Yield requests of PART_MAX `topics` at most; the request itself if it asks for all."""
    topics = request.topics
    if topics is None or len(topics) <= PART_MAX:
        yield request
        return
    for start in range(0, len(topics), PART_MAX):
        yield _with(request, topics[start : start + PART_MAX])


def by_partition(request: Any) -> Iterator[Any]:
    """Yield requests of PART_MAX `partitions` of `topics` at most."""
    for topics in _chunks(request.topics):
        yield _with(request, topics)


def joined(responses: list[Any]) -> Any:
    """Return the last response with the `topics` of all, each as often as it was asked for."""
    response = responses[-1]
    response.topics = [topic for each in responses for topic in each.topics]
    return response


def _with(request: Any, topics: list[Any]) -> Any:
    part = copy(request)
    part.topics = topics
    return part


def _chunks(topics: Iterable[Any]) -> Iterator[list[Any]]:
    chunk: list[Any] = []
    room = PART_MAX
    for topic in topics:
        start = 0
        while start < len(topic.partitions) or not start:
            part = copy(topic)
            part.partitions = topic.partitions[start : start + room]
            chunk.append(part)
            start += max(len(part.partitions), 1)
            room -= max(len(part.partitions), 1)
            if room <= 0:
                yield chunk
                chunk, room = [], PART_MAX
    if chunk:
        yield chunk
