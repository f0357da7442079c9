"""Splits a rejected commit by topic, so that one corrupt node does not block all other topics."""

import logging
from collections.abc import Awaitable, Callable, Sequence

from kafkalite.meta.changes import (
    TOPIC_RESOURCE,
    Change,
    ConfigsChanged,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from kafkalite.meta.store import StoreConflict
from kafkalite.wire.errors import KafkaError

logger = logging.getLogger("kafkalite.meta")


async def commit_by_topic(
    changes: Sequence[Change],
    error: KafkaError,
    commit: Callable[[Sequence[Change]], Awaitable[None]],
) -> tuple[list[Change], KafkaError]:
    """Commit what can be of changes that the store contradicted; return the rest, and why.

    Halves are tried until each topic with a bad node is alone, so that few commits are needed.

    Args:
        changes: of one commit, nothing of which was made.
        error: what it failed with.
        commit: makes a commit of some of them.
    """
    groups = _by_topic(changes)
    if len(groups) == 1:
        return [*changes], error
    refused: list[Change] = []
    pending = _halves(groups)
    while pending:
        some = pending.pop()
        part = [change for group in some for change in group]
        try:
            await commit(part)
        except StoreConflict as contradiction:
            if len(some) > 1:
                pending += _halves(some)
                continue
            error = contradiction
            refused += part
            logger.error("all other topics go on without this one: %s", error.message)
        except KafkaError as other:
            rest = [change for some in pending for group in some for change in group]
            return [*refused, *part, *rest], other
    return refused, error


def with_failure(
    results: Sequence[list[Change] | KafkaError], missing: Sequence[Change], error: KafkaError
) -> list[list[Change] | KafkaError]:
    """Return what became of each event if some changes could not be made.

    Refusals stand, and so does the finding that there is nothing to do.
    """
    unmade = set(map(id, missing))
    return [
        error if isinstance(result, list) and unmade & set(map(id, result)) else result
        for result in results
    ]


def _by_topic(changes: Sequence[Change]) -> list[list[Change]]:
    """Return the changes of each topic, and then all others: brokers last, as in long commits."""
    groups: dict[str, list[Change]] = {}
    others: list[Change] = []
    for change in changes:
        match change:
            case TopicCreated() | TopicDeleted() | PartitionsAdded() | PartitionChanged():
                groups.setdefault(change.name, []).append(change)
            case ConfigsChanged() if change.resource_type == TOPIC_RESOURCE:
                groups.setdefault(change.resource_name, []).append(change)
            case _:
                others.append(change)
    return [*groups.values(), *([others] if others else [])]


def _halves(groups: list[list[Change]]) -> list[list[list[Change]]]:
    """Return both halves, the first one last; it is taken first."""
    middle = len(groups) // 2
    return [half for half in (groups[middle:], groups[:middle]) if half]
