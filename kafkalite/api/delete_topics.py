"""DeleteTopics (key 20), versions 1-6 (rule 30).

v3: TOPIC_DELETION_DISABLED. v4: flexible. v5: error messages, throttling by error (KIP-599).
v6: topics named by ID (KIP-516).

When a topic is answered as deleted its name can be used again at once, for a topic with a new ID.
"""

from collections import Counter
from functools import partial
from uuid import UUID

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.quotas import submit_counted
from kafkalite.deferred import Deferred
from kafkalite.meta.events import DeleteTopic
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.delete_topics import (
    DELETE_TOPICS,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

FIRST_VERSION_BY_ID = 6
FIRST_VERSION_THAT_KNOWS_DISABLED = 3
FIRST_STRICT_VERSION = 5


def handle(request: DeleteTopicsRequest, context: RequestContext) -> Deferred[DeleteTopicsResponse]:
    """Delete the topics with one commit; a refused one does not touch the others."""
    return Deferred(partial(_delete, request, context))


def refuse(
    request: DeleteTopicsRequest, error: KafkaError, context: RequestContext
) -> DeleteTopicsResponse:
    """Answer the error for each topic."""
    return DeleteTopicsResponse(
        responses=[
            _refused(state.name, state.topic_id, error) for state in _wanted(request, context)
        ]
    )


async def _delete(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    answers: list[DeletableTopicResult] = []
    chosen: dict[str, list[DeleteTopicState]] = {}
    for state, twice in _once_each(_wanted(request, context)):
        try:
            if twice:
                what = "id" if state.name is None else "name"
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"The request gives this topic {what} twice"
                )
            name, topic_id = _look_up(state, context)
        except KafkaError as error:
            answers.append(_refused(state.name, state.topic_id, error))
        else:
            found = DeleteTopicState(name=name, topic_id=topic_id)
            chosen.setdefault(name, []).append(found)
    both = KafkaError(
        ErrorCode.INVALID_REQUEST, "The request names this topic by its name and by its id"
    )
    answers += [
        _refused(name, states[0].topic_id, both)
        for name, states in chosen.items()
        if len(states) > 1
    ]
    wanted = {name: states[0].topic_id for name, states in chosen.items() if len(states) == 1}
    results, throttle_ms = await submit_counted(
        [DeleteTopic(name=name, topic_id=topic_id) for name, topic_id in wanted.items()],
        context,
        strict_from=FIRST_STRICT_VERSION,
        timeout_ms=request.timeout_ms,
    )
    for (name, topic_id), result in zip(wanted.items(), results, strict=True):
        if isinstance(result, KafkaError):
            answers.append(_refused(name, topic_id, _translate(result, context)))
        else:
            answers.append(DeletableTopicResult(name=name, topic_id=topic_id, error_message=None))
    return DeleteTopicsResponse(throttle_time_ms=throttle_ms, responses=answers)


def _wanted(request: DeleteTopicsRequest, context: RequestContext) -> list[DeleteTopicState]:
    if context.api_version >= FIRST_VERSION_BY_ID:
        return list(request.topics)
    return [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names]


def _once_each(states: list[DeleteTopicState]) -> list[tuple[DeleteTopicState, bool]]:
    """Return each topic that is named, with whether it is named more than once."""
    counts = Counter((state.name, state.topic_id) for state in states)
    return [
        (DeleteTopicState(name=name, topic_id=topic_id), count > 1)
        for (name, topic_id), count in counts.items()
    ]


def _look_up(state: DeleteTopicState, context: RequestContext) -> tuple[str, UUID]:
    image = context.services.metadata.image
    if state.name is not None:
        if state.topic_id != ZERO_UUID:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "A topic is named by its name or its id, not by both"
            )
        topic = image.topics.get(state.name)
        if topic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"There is no topic '{state.name}' on this cluster",
            )
    else:
        if state.topic_id == ZERO_UUID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A topic is given no name and no id")
        topic = image.topic_by_id(state.topic_id)
        if topic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with the id {state.topic_id}"
            )
    return topic.name, topic.topic_id


def _translate(error: KafkaError, context: RequestContext) -> KafkaError:
    """Return an error in codes that the client's version knows (rule 30)."""
    old = context.api_version < FIRST_VERSION_THAT_KNOWS_DISABLED
    if error.code is ErrorCode.TOPIC_DELETION_DISABLED and old:
        return KafkaError(ErrorCode.INVALID_REQUEST, error.message)
    return error


def _refused(name: str | None, topic_id: UUID, error: KafkaError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=error.code,
        error_message=error.message or None,
    )


HANDLERS = (Handler(DELETE_TOPICS, handle, refuse, forward_to_controller=True),)
