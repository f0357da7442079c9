"""Asking for changes of metadata within the time that a request allows (rules 28, 29)."""

from collections.abc import Sequence

import trio

from kafkalite.api.context import RequestContext
from kafkalite.meta.changes import Change
from kafkalite.meta.events import Event
from kafkalite.wire.errors import ErrorCode, KafkaError

Result = list[Change] | KafkaError


async def submit_within(
    events: Sequence[Event],
    context: RequestContext,
    *,
    timeout_ms: int,
    validate_only: bool = False,
) -> list[Result]:
    """Return, for each event, what changed or why it was refused.

    A change is done when it is answered, so the time can only pass on the way to it: while changes
    asked for earlier are stored. With `timeout_ms` 0 or less the change is made and answered with
    REQUEST_TIMED_OUT, as Kafka does; clients that do so want not to wait, and know that answer.
    """
    metadata = context.services.metadata
    if validate_only:
        return list(await metadata.preview(events))
    if timeout_ms <= 0:
        results = await metadata.submit_all(events)
        return [
            result if isinstance(result, KafkaError) else KafkaError(ErrorCode.REQUEST_TIMED_OUT)
            for result in results
        ]
    with trio.move_on_after(timeout_ms / 1000):
        return list(await metadata.submit_all(events))
    late = KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"not done within {timeout_ms} ms")
    return [late for _ in events]
