"""ListOffsets (key 2), versions 1-11: earliest, latest, by timestamp (rules 92-97).

v2: isolation level (KIP-98). v4: leader epoch (KIP-320). v6: flexible. v7: -3, the record with the
largest timestamp (KIP-734). v8: -4, earliest local (KIP-405). v9: -5, latest tiered (KIP-1005).
v10: timeout (KIP-1075). v11: -6, earliest pending upload (KIP-1023).

Nothing is tiered here: -4 answers as -2 does, -5 and -6 answer "none".
"""

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.isr.offset_lookup import list_offset
from kafkalite.isr.partition_read import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    MAX_TIMESTAMP,
    IsolationLevel,
)
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

FIRST_VERSION_WITH = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
"""Special timestamps that older versions do not know."""

FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5
CONSUMER = -1
DEBUGGING = -2
"""Replica id of tools that compare replicas: they ask any of them (rule 96)."""


def handle(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    """Answer each partition by itself; a partition named twice is refused (rule 96)."""
    named: dict[tuple[str, int], int] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            key = (topic.name, partition.partition_index)
            named[key] = named.get(key, 0) + 1
    isolation = IsolationLevel.READ_COMMITTED if request.isolation_level == 1 else IsolationLevel(0)
    response = ListOffsetsResponse(topics=[])
    for topic in request.topics:
        answers = []
        for partition in topic.partitions:
            try:
                if named[topic.name, partition.partition_index] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "partition named twice")
                answers.append(
                    _list_offset(topic.name, partition, isolation, request.replica_id, context)
                )
            except KafkaError as error:
                answers.append(_failed(partition.partition_index, _known_to(context, error)))
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return response


def refuse(
    request: ListOffsetsRequest, error: KafkaError, context: RequestContext
) -> ListOffsetsResponse:
    """Answer the error for every partition."""
    del context
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_failed(p.partition_index, error) for p in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _known_to(context: RequestContext, error: KafkaError) -> KafkaError:
    """Return the error as the client's version has it (rule 95)."""
    if (
        error.code is ErrorCode.OFFSET_NOT_AVAILABLE
        and context.api_version < FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE
    ):
        return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, error.message)
    return error


def _list_offset(
    topic: str,
    wanted: ListOffsetsPartition,
    isolation: IsolationLevel,
    replica_id: int,
    context: RequestContext,
) -> ListOffsetsPartitionResponse:
    replicas = context.services.replicas
    find = replicas.replica if replica_id == DEBUGGING else replicas.partition
    partition = find(topic, wanted.partition_index)
    partition.check_leader_epoch(wanted.current_leader_epoch)
    if context.api_version < FIRST_VERSION_WITH.get(wanted.timestamp, 0):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"timestamp {wanted.timestamp} needs a later version of ListOffsets",
        )
    offset, timestamp, leader_epoch = list_offset(
        partition, wanted.timestamp, isolation, as_replica=replica_id != CONSUMER
    )
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch,
    )


def _failed(index: int, error: KafkaError) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error.code)


HANDLERS = (Handler(LIST_OFFSETS, handle, refuse),)
