"""APIs of transactional producers at their coordinator (keys 22, 24, 25, 26; KIP-98, KIP-890).

InitProducerId 0-5 with a transactional id. v3: a producer that goes on (KIP-360). v4:
PRODUCER_FENCED. v5: transactions of the second protocol.
AddPartitionsToTxn 0-5. v2: PRODUCER_FENCED. v3: flexible. v4: several transactions, verification;
only brokers send it, so a cluster refuses it on listeners that are not theirs. v5:
TRANSACTION_ABORTABLE.
AddOffsetsToTxn 0-4. v2: PRODUCER_FENCED. v3: flexible. v4: TRANSACTION_ABORTABLE.
EndTxn 0-5. v2: PRODUCER_FENCED. v3: flexible. v4: TRANSACTION_ABORTABLE. v5: second protocol.

Clients that do not know PRODUCER_FENCED are told INVALID_PRODUCER_EPOCH (rule 108).

Not implemented: two-phase commit (InitProducerId 6, KIP-939).
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from kafkalite.api.context import RequestContext
from kafkalite.api.coordinator_requests import (
    check_size,
    client_code,
    gather,
    map_answer,
)
from kafkalite.api.handler import Handler
from kafkalite.coordinator.shard import partition_for
from kafkalite.deferred import Deferred, Promise
from kafkalite.txn.events import (
    PRODUCER_ID_NEEDED,
    AddPartitions,
    Answer,
    Codes,
    EndTransaction,
    InitProducer,
    VerifyPartitions,
)
from kafkalite.txn.transactions import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    V1,
    V2,
    ProducerIdentity,
)
from kafkalite.types import CONSUMER_OFFSETS_TOPIC, INTERNAL_TOPICS, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.add_offsets_to_txn import (
    ADD_OFFSETS_TO_TXN,
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kafkalite.wire.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kafkalite.wire.messages.end_txn import END_TXN, EndTxnRequest, EndTxnResponse
from kafkalite.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FIRST_INIT_WITH_PRODUCER_FENCED = 4
FIRST_VERSION_WITH_PRODUCER_FENCED = 2
"""Of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn."""
FIRST_ADD_WITH_SEVERAL_TRANSACTIONS = 4
FIRST_END_OF_SECOND_PROTOCOL = 5

Converted = TypeVar("Converted")


def known_code(error: KafkaError, api_version: int, *, fenced_from: int) -> ErrorCode:
    """Return the code for a refusal as a client of this version knows it (rule 108)."""
    if error.code is ErrorCode.PRODUCER_FENCED and api_version < fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return client_code(error)


def _check_transactional_id(transactional_id: str) -> None:
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    check_size("transactional id", transactional_id)


# --- Answers that may need a new producer id -----------------------------------------------------


def _ask_with_producer_id(
    event: InitProducer | EndTransaction,
    context: RequestContext,
    convert: Callable[[ProducerIdentity], Converted],
) -> Converted | Deferred[Converted]:
    """Return what `convert` makes of the answer; a producer id is made only where one is needed."""
    ask = context.services.transactions.ask
    answer = ask(event.transactional_id, event)
    if answer is PRODUCER_ID_NEEDED:
        event.new_producer_id = context.services.producer_ids.next_nowait()
        if event.new_producer_id is not None:
            answer = ask(event.transactional_id, event)
    if answer is PRODUCER_ID_NEEDED or isinstance(answer, Promise):
        return Deferred(partial(_answer_later, event, answer, context, convert))
    return convert(answer)


async def _answer_later(
    event: InitProducer | EndTransaction,
    answer: ProducerIdentity | Answer | Promise[ProducerIdentity | Answer],
    context: RequestContext,
    convert: Callable[[ProducerIdentity], Converted],
) -> Converted:
    while True:
        if isinstance(answer, Promise):
            answer = await answer.wait()
        if answer is not PRODUCER_ID_NEEDED:
            return convert(answer)
        event.new_producer_id = await new_producer_id(context)
        answer = context.services.transactions.ask(event.transactional_id, event)


async def new_producer_id(context: RequestContext) -> int:
    """Return a producer id that was never used; the next block may have to come from elsewhere.

    Raises:
        KafkaError: COORDINATOR_LOAD_IN_PROGRESS, as Kafka says it while it has none: every client
            asks again then. KAFKA_STORAGE_ERROR, this broker cannot store that it gave one.
    """
    try:
        return await context.services.producer_ids.next()
    except KafkaError as error:
        if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
            raise
        raise KafkaError(
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"there are no producer ids now: {error}"
        ) from error


# --- InitProducerId ------------------------------------------------------------------------------


def init_producer(
    request: InitProducerIdRequest, context: RequestContext
) -> InitProducerIdResponse | Deferred[InitProducerIdResponse]:
    """Answer InitProducerId with a transactional id (rules 103-105).

    Raises:
        KafkaError: what the coordinator refuses, in codes that this version knows.
    """
    _check_transactional_id(request.transactional_id or "")
    expected = None
    if (request.producer_id, request.producer_epoch) != (NO_PRODUCER_ID, NO_PRODUCER_EPOCH):
        expected = ProducerIdentity(request.producer_id, request.producer_epoch)
    assert request.transactional_id is not None
    event = InitProducer(request.transactional_id, request.transaction_timeout_ms, expected)
    return _ask_with_producer_id(event, context, _initialised)


def _initialised(producer: ProducerIdentity) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        producer_id=producer.producer_id, producer_epoch=producer.producer_epoch
    )


# --- AddPartitionsToTxn --------------------------------------------------------------------------


def add_partitions(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse | Deferred[AddPartitionsToTxnResponse]:
    """Add or verify partitions, for each transaction by itself.

    Raises:
        KafkaError: CLUSTER_AUTHORIZATION_FAILED, a client of a cluster asks what brokers ask.
    """
    if (
        context.api_version >= FIRST_ADD_WITH_SEVERAL_TRANSACTIONS
        and not context.is_inter_broker
        and not context.services.config.is_alone
    ):
        raise KafkaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"ADD_PARTITIONS_TO_TXN v{context.api_version} is for brokers, which do not come in by "
            f"{context.listener} (inter.broker.listener.name)",
        )
    return gather(
        _transactions_of(request, context),
        lambda transaction: _add(transaction, context),
        lambda transaction, error: _not_added(transaction, error, context),
        lambda results: _added_response(results, context),
    )


def refuse_add_partitions(
    request: AddPartitionsToTxnRequest, error: KafkaError, context: RequestContext
) -> AddPartitionsToTxnResponse:
    """Answer the error for each partition; brokers are told of all at once, as by Kafka."""
    if context.api_version >= FIRST_ADD_WITH_SEVERAL_TRANSACTIONS:
        return AddPartitionsToTxnResponse(error_code=error.code)
    results = [_not_added(t, error, context) for t in _transactions_of(request, context)]
    return _added_response(results, context)


def _transactions_of(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> list[AddPartitionsToTxnTransaction]:
    if context.api_version >= FIRST_ADD_WITH_SEVERAL_TRANSACTIONS:
        return request.transactions
    return [
        AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
    ]


def _add(
    transaction: AddPartitionsToTxnTransaction, context: RequestContext
) -> AddPartitionsToTxnResult | Deferred[AddPartitionsToTxnResult]:
    _check_transactional_id(transaction.transactional_id)
    partitions = _partitions_of(transaction)
    wrong = _unusable(partitions, context)
    if wrong:
        codes = {tp: wrong.get(tp, ErrorCode.OPERATION_NOT_ATTEMPTED) for tp in partitions}
        return _result(transaction, codes)
    producer = ProducerIdentity(transaction.producer_id, transaction.producer_epoch)
    event: AddPartitions | VerifyPartitions
    if transaction.verify_only:
        event = VerifyPartitions(transaction.transactional_id, producer, partitions)
    else:
        # From v4 on it is a broker that asks, for a client that writes by the second protocol.
        is_second = context.api_version >= FIRST_ADD_WITH_SEVERAL_TRANSACTIONS
        event = AddPartitions(
            transaction.transactional_id, producer, partitions, V2 if is_second else V1
        )
    answer = context.services.transactions.ask(transaction.transactional_id, event)

    def convert(codes: Codes | None) -> AddPartitionsToTxnResult:
        # Also v4 is told TRANSACTION_ABORTABLE, by Kafka too: it is brokers that ask, and they say
        # to their clients what these know.
        return _result(transaction, codes or dict.fromkeys(partitions, ErrorCode.NONE))

    return map_answer(answer, convert)


def _unusable(partitions: Iterable[TopicPartition], context: RequestContext) -> Codes:
    """Return the partitions that cannot be part of a transaction, which fail it as a whole."""
    image = context.services.metadata.image
    from_client = context.api_version < FIRST_ADD_WITH_SEVERAL_TRANSACTIONS
    codes = {}
    for tp in partitions:
        if from_client and tp.topic in INTERNAL_TOPICS:
            codes[tp] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif image.partition(*tp) is None:
            codes[tp] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return codes


def _partitions_of(transaction: AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, index)
        for topic in transaction.topics
        for index in topic.partitions
    ]


def _result(transaction: AddPartitionsToTxnTransaction, codes: Codes) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index,
                        partition_error_code=codes[TopicPartition(topic.name, index)],
                    )
                    for index in topic.partitions
                ],
            )
            for topic in transaction.topics
        ],
    )


def _not_added(
    transaction: AddPartitionsToTxnTransaction, error: KafkaError, context: RequestContext
) -> AddPartitionsToTxnResult:
    code = known_code(error, context.api_version, fenced_from=FIRST_VERSION_WITH_PRODUCER_FENCED)
    return _result(transaction, dict.fromkeys(_partitions_of(transaction), code))


def _added_response(
    results: list[AddPartitionsToTxnResult], context: RequestContext
) -> AddPartitionsToTxnResponse:
    if context.api_version >= FIRST_ADD_WITH_SEVERAL_TRANSACTIONS:
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)


# --- AddOffsetsToTxn -----------------------------------------------------------------------------


def add_offsets(
    request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse | Deferred[AddOffsetsToTxnResponse]:
    """Add the group's partition of `__consumer_offsets` (rule 107), which is made if need be.

    Producers ask this before they look for the group's coordinator, which would make it otherwise.
    """
    _check_transactional_id(request.transactional_id)
    if CONSUMER_OFFSETS_TOPIC not in context.services.metadata.image.topics:
        return Deferred(partial(_add_offsets_later, request, context))
    return _add_offsets(request, context)


def refuse_add_offsets(
    request: AddOffsetsToTxnRequest, error: KafkaError, context: RequestContext
) -> AddOffsetsToTxnResponse:
    """Answer the error."""
    del request
    code = known_code(error, context.api_version, fenced_from=FIRST_VERSION_WITH_PRODUCER_FENCED)
    return AddOffsetsToTxnResponse(error_code=code)


async def _add_offsets_later(
    request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse:
    try:
        await context.services.topic_creation.ensure_topic(CONSUMER_OFFSETS_TOPIC)
    except KafkaError as error:  # why is fatal to producers, and none of their making
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"could not create {CONSUMER_OFFSETS_TOPIC}: {error}",
        ) from error
    answer = _add_offsets(request, context)
    return await answer.wait() if isinstance(answer, Deferred) else answer


def _add_offsets(
    request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse | Deferred[AddOffsetsToTxnResponse]:
    event = AddPartitions(
        request.transactional_id,
        ProducerIdentity(request.producer_id, request.producer_epoch),
        [offsets_partition(request.group_id, context)],
        V1,
    )
    answer = context.services.transactions.ask(request.transactional_id, event)
    return map_answer(answer, lambda _: AddOffsetsToTxnResponse(error_code=ErrorCode.NONE))


def offsets_partition(group_id: str, context: RequestContext) -> TopicPartition:
    """Return where a group's offsets are.

    Raises:
        KafkaError: COORDINATOR_NOT_AVAILABLE, there is no such topic yet.
    """
    topic = context.services.metadata.image.topics.get(CONSUMER_OFFSETS_TOPIC)
    if topic is None:
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, f"there is no {CONSUMER_OFFSETS_TOPIC} yet"
        )
    return TopicPartition(CONSUMER_OFFSETS_TOPIC, partition_for(group_id, len(topic.partitions)))


# --- EndTxn --------------------------------------------------------------------------------------


def end(
    request: EndTxnRequest, context: RequestContext
) -> EndTxnResponse | Deferred[EndTxnResponse]:
    """Commit or abort (rules 109, 122); the markers are written when this returns, if they can."""
    _check_transactional_id(request.transactional_id)
    is_second = context.api_version >= FIRST_END_OF_SECOND_PROTOCOL
    event = EndTransaction(
        request.transactional_id,
        ProducerIdentity(request.producer_id, request.producer_epoch),
        request.committed,
        V2 if is_second else V1,
    )
    return _ask_with_producer_id(event, context, _ended)


def refuse_end(
    request: EndTxnRequest, error: KafkaError, context: RequestContext
) -> EndTxnResponse:
    """Answer the error."""
    del request
    code = known_code(error, context.api_version, fenced_from=FIRST_VERSION_WITH_PRODUCER_FENCED)
    return EndTxnResponse(error_code=code)


def _ended(producer: ProducerIdentity) -> EndTxnResponse:
    return EndTxnResponse(
        error_code=ErrorCode.NONE,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
    )


HANDLERS = (
    Handler(ADD_PARTITIONS_TO_TXN, add_partitions, refuse_add_partitions),
    Handler(ADD_OFFSETS_TO_TXN, add_offsets, refuse_add_offsets),
    Handler(END_TXN, end, refuse_end),
)
