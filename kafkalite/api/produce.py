"""Produce (key 0), versions 3-13: batches into logs, checked and stamped but never decoded.

v3: magic 2 and transactions (KIP-98). v5: log start offset. v7: zstd (KIP-110). v8: errors of
single records (KIP-467). v9: flexible. v10: current leader (KIP-951). v11: TRANSACTION_ABORTABLE
(KIP-890). v12: transactions V2 (KIP-890). v13: topic IDs (KIP-516).
"""

from functools import partial
from typing import cast

import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.current_leader import CurrentLeaders
from kafkalite.api.handler import (
    NO_RESPONSE,
    CloseConnection,
    Handler,
    NoResponse,
)
from kafkalite.api.record_checks import RecordChecks, Unfinished
from kafkalite.api.txn_verification import (
    UNAVAILABLE,
    DeferredRefusals,
    Refusals,
    is_in_transaction,
    refusals,
    transactional_producer,
)
from kafkalite.deferred import Deferred, DelayedOperation
from kafkalite.isr.partition import Partition
from kafkalite.isr.pending_acks import PendingAck
from kafkalite.log.sequence_hold import PASSING, sequence_of
from kafkalite.log.validate import CheckedBatch, InvalidRecord
from kafkalite.security.acls import Operation, ResourceType
from kafkalite.types import INTERNAL_TOPICS, ZERO_UUID, TopicPartition
from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.produce import (
    PRODUCE,
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
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
TRANSACTIONAL = 0x10
"""Bit of the same byte."""
MAX_TIMESTAMP = slice(35, 43)
"""Bytes of the largest timestamp."""

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_WITH_CURRENT_LEADER = 10
FIRST_VERSION_WITH_TRANSACTION_ABORTABLE = 11
FIRST_VERSION_THAT_ADDS_PARTITIONS = 12
FIRST_VERSION_WITH_TOPIC_IDS = 13
ADMIN_CLIENT_ID = "__admin_client"
"""The one client id that may write to internal topics, as in Kafka (rule 23)."""

FAILURES_TOLD_MAX = 3
"""Partitions that the log line about a failed acks=0 request names."""

TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)

NONE_REFUSED: Refusals = {}

ALL_ACKS = -1

Unacknowledged = list[tuple[Partition, int, PartitionProduceResponse]]
"""Partitions whose replicas are to be waited for, the high watermark needed, the answer so far."""


def handle(
    request: ProduceRequest, context: RequestContext
) -> ProduceResponse | NoResponse | Deferred[ProduceResponse | NoResponse]:
    """Append each partition's batch; one bad partition does not fail the rest (rule 37).

    With acks=all the answer waits for the in-sync replicas (rules 51-52), unless there are none
    but this one: the high watermark then passes each append at once.
    """
    if request.transactional_id is None:
        return _append_all(request, NONE_REFUSED, context)
    authorizer = context.services.authorizer
    if authorizer is not None and not authorizer.allows(
        context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    ):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    refused = _check_transaction(request, request.transactional_id, context)
    if isinstance(refused, DeferredRefusals):
        return Deferred(partial(_append_later, request, refused, context))
    return _append_all(request, refused, context)


async def _append_later(
    request: ProduceRequest, refused: DeferredRefusals, context: RequestContext
) -> ProduceResponse | NoResponse:
    answer = _append_all(request, await refused.wait(), context)
    if isinstance(answer, Deferred):
        response: ProduceResponse | NoResponse = await answer.wait()
        return response
    return answer


def _append_all(
    request: ProduceRequest, refused: Refusals, context: RequestContext
) -> ProduceResponse | NoResponse | Deferred[ProduceResponse | NoResponse]:
    response = ProduceResponse(responses=[])
    unacknowledged: Unacknowledged = []
    checks = RecordChecks()
    for topic in request.topic_data:
        answers = [
            _append(topic, data, request, refused, unacknowledged, checks, None, context)
            for data in topic.partition_data
        ]
        response.responses.append(
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=cast("list[PartitionProduceResponse]", answers),
            )
        )
    if checks.is_done:
        return _answered(request, response, unacknowledged, context)
    return Deferred(partial(_append_checked, request, refused, response, unacknowledged, context))


async def _append_checked(
    request: ProduceRequest,
    refused: Refusals,
    response: ProduceResponse,
    unacknowledged: Unacknowledged,
    context: RequestContext,
) -> ProduceResponse | NoResponse:
    """Look at the records of those that are not done, with a turn for others after each step."""
    checks = RecordChecks()
    for topic, answered in zip(request.topic_data, response.responses, strict=True):
        answers = cast("list[PartitionProduceResponse | Unfinished]", answered.partition_responses)
        for place, check in enumerate(answers):
            if not isinstance(check, Unfinished):
                continue
            outcome = None
            while outcome is None:
                await trio.lowlevel.checkpoint()
                outcome = check.step()
            data = topic.partition_data[place]
            answers[place] = (
                _failed(data.index, outcome)
                if isinstance(outcome, KafkaError)
                else _append(
                    topic, data, request, refused, unacknowledged, checks, outcome, context
                )
            )
    result = _answered(request, response, unacknowledged, context)
    if isinstance(result, DelayedProduce):
        return await result.wait()
    return result


def _answered(
    request: ProduceRequest,
    response: ProduceResponse,
    unacknowledged: Unacknowledged,
    context: RequestContext,
) -> "ProduceResponse | NoResponse | DelayedProduce":
    if unacknowledged:
        for topic in request.topic_data:
            for data in topic.partition_data:
                data.records = None  # the logs have them; the frame need not be kept for so long
        delayed = DelayedProduce(unacknowledged, response, request.timeout_ms, context)
        return delayed.complete() or delayed
    if request.acks != 0:
        return _with_leaders(response, context.api_version, context)
    failed = [
        f"{topic.name or topic.topic_id}-{answer.index} {ErrorCode(answer.error_code).name}"
        for topic in response.responses
        for answer in topic.partition_responses
        if answer.error_code != ErrorCode.NONE
    ]
    if failed:
        # The only way to tell a producer that does not listen (rule 12).
        more = len(failed) - FAILURES_TOLD_MAX
        raise CloseConnection(
            f"Produce v{context.api_version} with acks=0 failed: "
            + ", ".join(failed[:FAILURES_TOLD_MAX])
            + (f" and {more} more" if more > 0 else "")
        )
    return NO_RESPONSE


class DelayedProduce(DelayedOperation[ProduceResponse | NoResponse]):
    """The wait of one request for the replicas of all its partitions (rule 51).

    The time runs from the request's arrival, not from its turn to be answered. Batches behind it
    are appended meanwhile, so that followers fetch several at once (decision 0001).
    """

    __slots__ = ("_api_version", "_context", "_left", "_response", "_waiters")

    def __init__(
        self,
        unacknowledged: Unacknowledged,
        response: ProduceResponse,
        timeout_ms: int,
        context: RequestContext,
    ) -> None:
        super().__init__(timeout_ms, allows_pipelining=True)
        self._response = response
        self._context = context
        self._api_version = context.api_version
        deadline_ms = context.services.clock.monotonic_ms() + timeout_ms
        self._left = len(unacknowledged)
        self._waiters = [
            (partition, PendingAck(required_offset, deadline_ms, self._on_done), answer)
            for partition, required_offset, answer in unacknowledged
        ]
        for partition, waiter, _ in self._waiters:
            partition.add_ack_waiter(waiter)

    def complete(self) -> ProduceResponse | None:
        """Return the response if each outcome is there, or it is late."""
        if self._left and not self.is_late:
            return None
        self.close()
        for _, waiter, answer in self._waiters:
            # What was appended stays, so the offsets are told with an error, too.
            assert waiter.outcome is not None
            answer.error_code = waiter.outcome
        return _with_leaders(self._response, self._api_version, self._context)

    def close(self) -> None:
        """Wait for no replica any more."""
        for partition, waiter, _ in self._waiters:
            partition.cancel_wait(waiter)

    def _on_done(self, waiter: PendingAck) -> None:
        del waiter
        self._left -= 1
        if self._left == 0:
            self.on_change()


def _with_leaders(
    response: ProduceResponse, api_version: int, context: RequestContext
) -> ProduceResponse:
    """Tell who leads what is not led here (rule 54)."""
    leaders: CurrentLeaders | None = None
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                continue
            if api_version < FIRST_VERSION_WITH_CURRENT_LEADER:
                return response
            leaders = leaders or CurrentLeaders(context)
            found = leaders.of(topic.name, topic.topic_id, answer.index)
            if found is not None:
                leader_id, leader_epoch = found
                answer.current_leader = LeaderIdAndEpoch(
                    leader_id=leader_id, leader_epoch=leader_epoch
                )
    if leaders is not None:
        response.node_endpoints = [
            NodeEndpoint(node_id=each.node_id, host=each.host, port=each.port, rack=each.rack)
            for each in leaders.endpoints()
        ]
    return response


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


def _check_may_write(topic: TopicProduceData, context: RequestContext) -> None:
    """Raise KafkaError where the client may not write; a topic that is not there looks the same."""
    name = topic.name
    if topic.topic_id != ZERO_UUID:
        found = context.services.metadata.image.topic_by_id(topic.topic_id)
        if found is None:
            return
        name = found.name
    authorizer = context.services.authorizer
    if authorizer is not None and not authorizer.allows(
        context, Operation.WRITE, ResourceType.TOPIC, name
    ):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _append(
    topic: TopicProduceData,
    data: PartitionProduceData,
    request: ProduceRequest,
    refused: Refusals,
    unacknowledged: Unacknowledged,
    checks: RecordChecks,
    checked: CheckedBatch | None,
    context: RequestContext,
) -> PartitionProduceResponse | Unfinished:
    try:
        if request.acks not in (-1, 0, 1):
            raise KafkaError(
                ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks}; must be -1, 0 or 1"
            )
        if context.services.authorizer is not None:
            _check_may_write(topic, context)
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
        if records[CODEC_POSITION] & TRANSACTIONAL:
            _check_transactional(partition, request, refused, context)
        if context.services.sequence_hold.first_refused:
            _check_order(topic, data, partition, context)
        config = partition.log.config
        batch: memoryview | CheckedBatch = records
        if checked is not None:
            batch = checked
        elif config.looks_at_records or (
            int.from_bytes(records[MAX_TIMESTAMP], "big", signed=True) - context.now_ms
            > config.message_timestamp_after_max_ms
        ):
            found = checks.check(records, partition, context.now_ms)
            if isinstance(found, Unfinished):
                return found
            batch = found
        all_acks = request.acks == ALL_ACKS
        traffic = partition.traffic
        traffic.produce_requests += 1
        info = partition.append(batch, now_ms=context.now_ms, all_acks=all_acks)
    except KafkaError as error:
        _count_failure(topic, data, error, context)
        remember_refusal(topic, data, error.code, context)
        return _failed(data.index, error)
    if not info.duplicate:
        traffic.messages_in += info.last_offset - info.first_offset + 1
        traffic.bytes_in += info.size_bytes
    answer = PartitionProduceResponse(
        index=data.index,
        error_code=ErrorCode.NONE,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time_ms,
        log_start_offset=info.log_start_offset,
    )
    if all_acks and partition.leader is not None:
        unacknowledged.append((partition, info.last_offset + 1, answer))
    return answer


def _check_transaction(
    request: ProduceRequest, transactional_id: str, context: RequestContext
) -> Refusals | DeferredRefusals:
    """Return which partitions are not part of the producer's transaction (rules 113, 122).

    Asked only for those without records of it: afterwards the log knows the transaction itself.
    """
    unknown: dict[TopicPartition, None] = {}
    producer = None
    for topic in request.topic_data:
        for data in topic.partition_data:
            batch = data.records
            found = transactional_producer(batch) if isinstance(batch, memoryview) else None
            if found is None:
                continue
            try:
                partition = _partition(topic, data.index, context)
            except KafkaError:
                continue  # refused in its turn
            if producer not in (None, found):
                raise KafkaError(
                    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                    "a request with transactional records of more than one producer",
                )
            producer = found
            if not is_in_transaction(partition, found):
                unknown[partition.topic_partition] = None
    if producer is None or not unknown:
        return NONE_REFUSED
    return refusals(
        transactional_id,
        producer,
        unknown,
        context,
        adds=context.api_version >= FIRST_VERSION_THAT_ADDS_PARTITIONS,
        knows_abortable=context.api_version >= FIRST_VERSION_WITH_TRANSACTION_ABORTABLE,
    )


def remember_refusal(
    topic: TopicProduceData, data: PartitionProduceData, code: ErrorCode, context: RequestContext
) -> None:
    """Let no later batch of its producer overtake one that was refused for a passing reason."""
    if code in PASSING and (written := sequence_of(data.records)) is not None:
        place = topic.name or topic.topic_id, data.index
        context.services.sequence_hold.note(place, written, context.services.clock.monotonic_ms())


def _check_order(
    topic: TopicProduceData,
    data: PartitionProduceData,
    partition: Partition,
    context: RequestContext,
) -> None:
    """Refuse a batch while one before it has to come again (rule 231)."""
    written = sequence_of(data.records)
    if written is not None:
        state = partition.log.producers.get(written.producer_id)
        now_ms = context.services.clock.monotonic_ms()
        place = topic.name or topic.topic_id, data.index
        context.services.sequence_hold.check(place, written, state, now_ms)


def _check_transactional(
    partition: Partition, request: ProduceRequest, refused: Refusals, context: RequestContext
) -> None:
    """Refuse a transactional batch that its coordinator does not add_or_verify for.

    Raises:
        KafkaError: TRANSACTIONAL_ID_AUTHORIZATION_FAILED where the request names no transactional
            id, as Kafka does; else the refusal. Where the coordinator could not be asked that is
            NOT_ENOUGH_REPLICAS, because every producer tries again then (rule 113).
    """
    if request.transactional_id is None:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            f"{partition.topic_partition}: transactional records without a transactional id",
        )
    error = refused.get(partition.topic_partition)
    if error is None:
        return
    if error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
        if context.api_version >= FIRST_VERSION_THAT_ADDS_PARTITIONS:
            raise error
    elif error.code not in UNAVAILABLE:
        raise error
    raise KafkaError(
        ErrorCode.NOT_ENOUGH_REPLICAS,
        f"{partition.topic_partition}: the transaction could not be verified: {error}",
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


def _count_failure(
    topic: TopicProduceData, data: PartitionProduceData, error: KafkaError, context: RequestContext
) -> None:
    traffic = context.services.replicas.traffic
    known = traffic.topics.get(topic.name)
    if known is None:
        traffic.refused_produce_requests += 1
        return
    known.failed_produce_requests += 1
    if error.code in TOO_LARGE:
        known.bytes_rejected += len(data.records or b"")


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


HANDLERS = (Handler(PRODUCE, handle, refuse),)
