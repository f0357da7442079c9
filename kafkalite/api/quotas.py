"""Quotas as handlers ask for them: changes of metadata (KIP-599), and how much to fetch at once."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kafkalite.api.metadata_requests import Result, submit_within
from kafkalite.meta.changes import Change, PartitionsAdded, TopicCreated, TopicDeleted
from kafkalite.wire.errors import KafkaError

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext
    from kafkalite.meta.events import Event
    from kafkalite.quota.clients import Mutations


async def submit_counted(
    events: "Sequence[Event]",
    context: "RequestContext",
    *,
    strict_from: int,
    timeout_ms: int,
    validate_only: bool = False,
) -> tuple[list[Result], int]:
    """Return what `submit_within` does, and how many milliseconds the client is to wait.

    What is refused for another reason counts nothing (rule 565).

    Args:
        events: that make or delete partitions.
        context: of the request.
        strict_from: first version whose clients are refused; older ones are only made to wait.
        timeout_ms: see `submit_within`.
        validate_only: see `submit_within`.
    """
    services = context.services
    mutations = None
    who = context.principal.partition(":")[2], context.client_id
    if services.quotas is not None:
        is_strict = context.api_version >= strict_from
        mutations = services.quotas.mutation.of(*who, is_strict=is_strict)
    if mutations is None:
        plain = await submit_within(
            events, context, timeout_ms=timeout_ms, validate_only=validate_only
        )
        return plain, 0
    results = await services.metadata.preview(events)
    for place, decided in enumerate(results):
        if not isinstance(decided, KafkaError):
            results[place] = _counted(decided, mutations, context)
    allowed = [
        event
        for event, result in zip(events, results, strict=True)
        if not isinstance(result, KafkaError)
    ]
    done = iter(
        await submit_within(allowed, context, timeout_ms=timeout_ms, validate_only=validate_only)
    )
    answers: list[Result] = [
        result if isinstance(result, KafkaError) else next(done) for result in results
    ]
    now_ms = services.clock.monotonic_ms()
    throttle_ms = mutations.throttle_ms(now_ms)
    if services.quotas is not None:  # the last quota may have gone meanwhile
        services.quotas.mutation.throttled(*who, throttle_ms, now_ms)
    return answers, throttle_ms


def fetch_max_bytes(asked_bytes: int, context: "RequestContext") -> int:
    """Return the most bytes of records that a client's Fetch is answered with (rule 561)."""
    services = context.services
    most = min(asked_bytes, services.fetch_max_bytes)
    if services.quotas is None:
        return most
    user = context.principal.partition(":")[2]
    limit = services.quotas.fetch.most_in_window(user, context.client_id)
    return most if limit is None else min(most, int(limit))


def _counted(
    changes: list[Change], mutations: "Mutations", context: "RequestContext"
) -> list[Change] | KafkaError:
    """Count what is about to change; return it, or that it is too much."""
    services = context.services
    try:
        count = _partitions_of(changes, context)
        mutations.record(count, services.clock.monotonic_ms())
    except KafkaError as error:
        return error
    return changes


def _partitions_of(changes: Iterable[Change], context: "RequestContext") -> int:
    """Return how many partitions are made and deleted."""
    count = 0
    for change in changes:
        match change:
            case TopicCreated() | PartitionsAdded():
                count += len(change.partitions)
            case TopicDeleted():
                topic = context.services.metadata.image.topics.get(change.name)
                count += 0 if topic is None else len(topic.partitions)
            case _:
                pass
    return count
