"""ElectLeaders (key 43), versions 0-2: leaders as they should be, or any at all (rule 181).

v1: unclean elections (KIP-460), and an error of the whole request. v2: flexible.
"""

from collections.abc import Iterable
from functools import partial

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.metadata_requests import Result, submit_within
from kafkalite.deferred import Deferred
from kafkalite.meta.events import ElectLeader
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.elect_leaders import (
    ELECT_LEADERS,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

PREFERRED = 0
UNCLEAN = 1
FIRST_VERSION_WITH_ERROR = 1


def handle(request: ElectLeadersRequest, context: RequestContext) -> Deferred[ElectLeadersResponse]:
    """Elect with one commit; a refused partition does not touch the others."""
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"There is no election of type {request.election_type}"
        )
    return Deferred(partial(_elect, request, context))


def refuse(
    request: ElectLeadersRequest, error: KafkaError, context: RequestContext
) -> ElectLeadersResponse:
    """Answer the error for each partition, and at the top from v1 on."""
    events = [] if request.topic_partitions is None else _events(request, context)
    return ElectLeadersResponse(
        error_code=error.code if context.api_version >= FIRST_VERSION_WITH_ERROR else 0,
        replica_election_results=_answers((event, error) for event in events),
    )


async def _elect(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    events = _events(request, context)
    results = await submit_within(events, context, timeout_ms=request.timeout_ms)
    answered = list(zip(events, results, strict=True))
    if request.topic_partitions is None:
        # Asked about everything, Kafka tells what was elected or could not be.
        answered = [
            (event, result)
            for event, result in answered
            if not (isinstance(result, KafkaError) and result.code is ErrorCode.ELECTION_NOT_NEEDED)
        ]
    return ElectLeadersResponse(
        error_code=ErrorCode.NONE, replica_election_results=_answers(answered)
    )


def _events(request: ElectLeadersRequest, context: RequestContext) -> list[ElectLeader]:
    unclean = request.election_type == UNCLEAN
    return [
        ElectLeader(topic=topic, index=index, unclean=unclean)
        for topic, index in _wanted(request, context)
    ]


def _wanted(request: ElectLeadersRequest, context: RequestContext) -> list[tuple[str, int]]:
    """Return topic and index of what is asked for, each once; null asks for everything."""
    if request.topic_partitions is None:
        return [
            (topic.name, index)
            for topic in context.services.metadata.image.topics.values()
            for index in range(len(topic.partitions))
        ]
    asked = [
        (topic.topic, index) for topic in request.topic_partitions for index in topic.partitions
    ]
    return list(dict.fromkeys(asked))


def _answers(results: Iterable[tuple[ElectLeader, Result]]) -> list[ReplicaElectionResult]:
    topics: dict[str, ReplicaElectionResult] = {}
    for event, result in results:
        topic = topics.setdefault(event.topic, ReplicaElectionResult(topic=event.topic))
        code, message = ErrorCode.NONE, None
        if isinstance(result, KafkaError):
            code, message = result.code, result.message or None
        topic.partition_result.append(
            PartitionResult(partition_id=event.index, error_code=code, error_message=message)
        )
    return list(topics.values())


HANDLERS = (Handler(ELECT_LEADERS, handle, refuse, forward_to_controller=True),)
