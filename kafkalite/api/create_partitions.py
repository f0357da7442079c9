"""CreatePartitions (key 37), versions 0-3 (rule 31).

v2: flexible. v3: throttling by error (KIP-599).
"""

from collections import Counter
from functools import partial

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.quotas import submit_counted
from kafkalite.deferred import Deferred
from kafkalite.meta.events import CreatePartitions
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

FIRST_STRICT_VERSION = 3


def handle(
    request: CreatePartitionsRequest, context: RequestContext
) -> Deferred[CreatePartitionsResponse]:
    """Add the partitions with one commit; a refused topic does not touch the others."""
    return Deferred(partial(_create, request, context))


def refuse(
    request: CreatePartitionsRequest, error: KafkaError, context: RequestContext
) -> CreatePartitionsResponse:
    """Answer the error for each topic."""
    del context
    return CreatePartitionsResponse(results=[_refused(t.name, error) for t in request.topics])


async def _create(
    request: CreatePartitionsRequest, context: RequestContext
) -> CreatePartitionsResponse:
    counts = Counter(topic.name for topic in request.topics)
    topics = [topic for topic in request.topics if counts[topic.name] == 1]
    results, throttle_ms = await submit_counted(
        [_event(topic) for topic in topics],
        context,
        strict_from=FIRST_STRICT_VERSION,
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    answers = [
        _refused(topic.name, result)
        if isinstance(result, KafkaError)
        else CreatePartitionsTopicResult(name=topic.name, error_message=None)
        for topic, result in zip(topics, results, strict=True)
    ]
    twice = KafkaError(ErrorCode.INVALID_REQUEST, "The request names this topic more than once")
    answers += [_refused(name, twice) for name, count in counts.items() if count > 1]
    return CreatePartitionsResponse(throttle_time_ms=throttle_ms, results=answers)


def _event(topic: CreatePartitionsTopic) -> CreatePartitions:
    assignments = topic.assignments
    return CreatePartitions(
        name=topic.name,
        count=topic.count,
        assignments=None if assignments is None else [each.broker_ids for each in assignments],
    )


def _refused(name: str, error: KafkaError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=error.code, error_message=error.message or None
    )


HANDLERS = (Handler(CREATE_PARTITIONS, handle, refuse, forward_to_controller=True),)
