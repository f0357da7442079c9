"""AlterPartition (key 56), versions 2-3: in-sync replicas that a leader asks for (KIP-497).

Only brokers ask this, and the controller alone answers. v3: the epochs under which replicas are in
sync (KIP-903).

Not implemented: a leader_recovery_state other than RECOVERED (KIP-704), which nobody sends here.
"""

from functools import partial
from uuid import UUID

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.metadata_requests import Result, submit_within
from kafkalite.deferred import Deferred
from kafkalite.meta.changes import PartitionChanged
from kafkalite.meta.events import AlterPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.alter_partition import (
    ALTER_PARTITION,
    AlterPartitionData,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    AlterPartitionTopicResult,
)

FIRST_VERSION_WITH_EPOCHS = 3
TIMEOUT_MS = 30_000
"""The leader gives up no later (request.timeout.ms of a broker), and asks again for what is."""
OF_THE_WHOLE = (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.NOT_CONTROLLER)


def handle(
    request: AlterPartitionRequest, context: RequestContext
) -> Deferred[AlterPartitionResponse]:
    """Decide about all partitions with one commit; a refused one does not touch the others."""
    return Deferred(partial(_alter, request, context))


def refuse(
    request: AlterPartitionRequest, error: KafkaError, context: RequestContext
) -> AlterPartitionResponse:
    """Answer the error at the top."""
    del request, context
    return AlterPartitionResponse(error_code=error.code)


async def _alter(request: AlterPartitionRequest, context: RequestContext) -> AlterPartitionResponse:
    """Raises what concerns the broker that asks, or this one: then no partition has an answer."""
    events = [
        _event(request, topic.topic_id, data, context)
        for topic in request.topics
        for data in topic.partitions
    ]
    results = await submit_within(events, context, timeout_ms=TIMEOUT_MS)
    for result in results:
        if isinstance(result, KafkaError) and result.code in OF_THE_WHOLE:
            raise result
    topics: dict[UUID, AlterPartitionTopicResult] = {}
    for event, result in zip(events, results, strict=True):
        topic = topics.setdefault(
            event.topic_id, AlterPartitionTopicResult(topic_id=event.topic_id)
        )
        topic.partitions.append(_answer(event, result, context))
    return AlterPartitionResponse(topics=list(topics.values()))


def _event(
    request: AlterPartitionRequest,
    topic_id: UUID,
    data: AlterPartitionData,
    context: RequestContext,
) -> AlterPartition:
    if context.api_version >= FIRST_VERSION_WITH_EPOCHS:
        new_isr = [(each.broker_id, each.broker_epoch) for each in data.new_isr_with_epochs]
    else:
        new_isr = [(broker_id, -1) for broker_id in data.new_isr]
    return AlterPartition(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        topic_id=topic_id,
        index=data.partition_index,
        leader_epoch=data.leader_epoch,
        partition_epoch=data.partition_epoch,
        new_isr=new_isr,
    )


def _answer(event: AlterPartition, result: Result, context: RequestContext) -> AlterPartitionResult:
    if isinstance(result, KafkaError):
        return AlterPartitionResult(partition_index=event.index, error_code=result.code)
    image = context.services.metadata.image
    name = image.topic_names.get(event.topic_id)
    state = None if name is None else image.partition(name, event.index)
    for change in result:
        if isinstance(change, PartitionChanged):
            state = change.state
    if state is None:  # deleted while this was answered
        return AlterPartitionResult(
            partition_index=event.index, error_code=ErrorCode.UNKNOWN_TOPIC_ID
        )
    if state.leader_epoch != event.leader_epoch:
        # They completed a reassignment, which began a new epoch (as Kafka since KIP-841).
        return AlterPartitionResult(
            partition_index=event.index, error_code=ErrorCode.NEW_LEADER_ELECTED
        )
    return AlterPartitionResult(
        partition_index=event.index,
        error_code=ErrorCode.NONE,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        partition_epoch=state.partition_epoch,
    )


HANDLERS = (Handler(ALTER_PARTITION, handle, refuse, inter_broker_only=True),)
