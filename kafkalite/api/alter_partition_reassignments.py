"""AlterPartitionReassignments (key 45), versions 0-1, and ListPartitionReassignments (key 46), 0.

Replicas are exchanged while the partition is served (KIP-455). v1 of the first: whether there may
be more or fewer replicas than before (KIP-860).
"""

from collections.abc import Iterable
from functools import partial

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.metadata_requests import Result, submit_within
from kafkalite.deferred import Deferred
from kafkalite.meta.events import Reassign
from kafkalite.meta.image import Image
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kafkalite.wire.messages.list_partition_reassignments import (
    LIST_PARTITION_REASSIGNMENTS,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle_alter(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> Deferred[AlterPartitionReassignmentsResponse]:
    """Begin or cancel with one commit; a refused partition does not touch the others."""
    return Deferred(partial(_alter, request, context))


def refuse_alter(
    request: AlterPartitionReassignmentsRequest, error: KafkaError, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    """Answer the error at the top."""
    del context
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=error.code,
        error_message=error.message or None,
    )


def handle_list(
    request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """Answer from the image, of which the controller has the latest."""
    image = context.services.metadata.image
    if request.topics is None:
        wanted = {name: range(len(topic.partitions)) for name, topic in image.topics.items()}
        topics = [_ongoing(name, indexes, image) for name, indexes in wanted.items()]
    else:
        topics = [_ongoing(topic.name, topic.partition_indexes, image) for topic in request.topics]
    return ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        topics=[topic for topic in topics if topic.partitions],
    )


def refuse_list(
    request: ListPartitionReassignmentsRequest, error: KafkaError, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """Answer the error."""
    del request, context
    return ListPartitionReassignmentsResponse(
        error_code=error.code, error_message=error.message or None
    )


async def _alter(
    request: AlterPartitionReassignmentsRequest, context: RequestContext
) -> AlterPartitionReassignmentsResponse:
    events = [
        Reassign(
            topic=topic.name,
            index=each.partition_index,
            replicas=each.replicas,
            allow_replication_factor_change=request.allow_replication_factor_change,
        )
        for topic in request.topics
        for each in topic.partitions
    ]
    results = await submit_within(events, context, timeout_ms=request.timeout_ms)
    topics: dict[str, ReassignableTopicResponse] = {}
    for event, result in zip(events, results, strict=True):
        topic = topics.setdefault(event.topic, ReassignableTopicResponse(name=event.topic))
        topic.partitions.append(_answer(event.index, result))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=list(topics.values()),
    )


def _answer(index: int, result: Result) -> ReassignablePartitionResponse:
    if isinstance(result, KafkaError):
        return ReassignablePartitionResponse(
            partition_index=index, error_code=result.code, error_message=result.message or None
        )
    return ReassignablePartitionResponse(partition_index=index, error_message=None)


def _ongoing(name: str, indexes: Iterable[int], image: Image) -> OngoingTopicReassignment:
    states = [(index, image.partition(name, index)) for index in dict.fromkeys(indexes)]
    return OngoingTopicReassignment(
        name=name,
        partitions=[
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(state.replicas),
                adding_replicas=list(state.adding),
                removing_replicas=list(state.removing),
            )
            for index, state in states
            if state is not None and state.is_reassigned
        ],
    )


HANDLERS = (
    Handler(ALTER_PARTITION_REASSIGNMENTS, handle_alter, refuse_alter, forward_to_controller=True),
    Handler(LIST_PARTITION_REASSIGNMENTS, handle_list, refuse_list, forward_to_controller=True),
)
