"""Produce (key 0), versions 3-13: batches into logs, checked and stamped but never decoded.

v3: magic 2 and transactions (KIP-98). v5: log start offset. v7: zstd (KIP-110). v8: errors of
single records (KIP-467). v9: flexible. v10: current leader (KIP-951). v11: TRANSACTION_ABORTABLE
(KIP-890). v12: transactions V2 (KIP-890). v13: topic IDs (KIP-516).

Not implemented: CurrentLeader tags (there is one broker).
"""

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import NO_RESPONSE, CloseConnection, Handler, NoResponse
from kafkalite.isr.partition import Partition
from kafkalite.log.validate import InvalidRecord
from kafkalite.types import INTERNAL_TOPICS
from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.produce import (
    PRODUCE,
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

CODEC_POSITION = 22
"""Byte of a record batch whose lowest three bits name the codec: the low byte of attributes."""
CODEC_MASK = 0x07

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_WITH_TOPIC_IDS = 13
ADMIN_CLIENT_ID = "__admin_client"
"""The one client id that may write to internal topics, as in Kafka (rule 23)."""


def admit(request: ProduceRequest, context: RequestContext) -> ProduceResponse | NoResponse:
    """Append each partition's batch; one bad partition does not fail the rest (rule 37).

    The high watermark passes each append at once while there is one replica, so acks=1 and
    acks=all are answered alike.
    """
    response = ProduceResponse(responses=[])
    failed = False
    for topic in request.topic_data:
        answers = [_append(topic, data, request, context) for data in topic.partition_data]
        failed = failed or any(answer.error_code != ErrorCode.NONE for answer in answers)
        response.responses.append(
            TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=answers
            )
        )
    if request.acks != 0:
        return response
    if failed:
        # The only way to tell a producer that does not listen (rule 12).
        raise CloseConnection("Produce with acks=0 failed")
    return NO_RESPONSE


def refuse(
    request: ProduceRequest, error: KafkaError, context: RequestContext
) -> ProduceResponse | NoResponse:
    """Answer the error for every partition."""
    del context
    if request.acks == 0:
        raise CloseConnection(f"Produce with acks=0 failed: {error}")
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_failed(data.index, error) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


def _append(
    topic: TopicProduceData,
    data: PartitionProduceData,
    request: ProduceRequest,
    context: RequestContext,
) -> PartitionProduceResponse:
    try:
        if request.acks not in (-1, 0, 1):
            raise KafkaError(
                ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks}; must be -1, 0 or 1"
            )
        partition = _partition(topic, data.index, context)
        records = data.records
        if not isinstance(records, memoryview) or len(records) <= CODEC_POSITION:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, f"{partition.topic_partition}: no record batch"
            )
        if (
            context.api_version < FIRST_VERSION_WITH_ZSTD
            and records[CODEC_POSITION] & CODEC_MASK == Codec.ZSTD
        ):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce v7 or later"
            )
        info = partition.append(records, now_ms=context.now_ms)
    except KafkaError as error:
        return _failed(data.index, error)
    return PartitionProduceResponse(
        index=data.index,
        error_code=ErrorCode.NONE,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time_ms,
        log_start_offset=info.log_start_offset,
    )


def _partition(topic: TopicProduceData, index: int, context: RequestContext) -> Partition:
    replicas = context.services.replicas
    if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        partition = replicas.partition_by_id(topic.topic_id, index)
    else:
        partition = replicas.partition(topic.name, index)
    name = partition.topic_partition.topic
    if name in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is internal: the broker alone writes to it"
        )
    return partition


def _failed(index: int, error: KafkaError) -> PartitionProduceResponse:
    answer = PartitionProduceResponse(
        index=index, error_code=error.code, base_offset=-1, error_message=error.message or None
    )
    if isinstance(error, InvalidRecord):
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message)
            for at, message in error.record_errors
        ]
    return answer


HANDLERS = (Handler(PRODUCE, admit, refuse),)
