"""TxnOffsetCommit (key 28), versions 0-5: offsets that count when a transaction commits (rule 119).

v2: leader epoch. v3: flexible, the group's member (KIP-447). v4: TRANSACTION_ABORTABLE. v5: adds
the group to the transaction (KIP-890).
"""

from functools import partial

from kafkalite.api.context import RequestContext
from kafkalite.api.coordinator_requests import (
    client_code,
    handle_group_request,
    map_answer,
)
from kafkalite.api.handler import Handler
from kafkalite.api.transactions import offsets_partition
from kafkalite.api.txn_verification import DeferredRefusals, Refusals, is_in_transaction, refusals
from kafkalite.coordinator.runtime import CLIENT_ERRORS
from kafkalite.deferred import Deferred
from kafkalite.group.commit import CommitOffsetsInTransaction
from kafkalite.txn.transactions import ProducerIdentity
from kafkalite.types import CONSUMER_OFFSETS_TOPIC
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

FIRST_VERSION_WITH_LOADING = 2
FIRST_VERSION_WITH_TRANSACTION_ABORTABLE = 4
FIRST_VERSION_THAT_ADDS_THE_GROUP = 5


def handle(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]:
    """Keep offsets until the transaction ends (rule 119); checked as a produced batch is."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    refused = _check_group_is_part(request, context)
    if isinstance(refused, DeferredRefusals):
        return Deferred(partial(_commit_later, request, refused, context))
    return _commit(request, refused, context)


def refuse(
    request: TxnOffsetCommitRequest, error: KafkaError, context: RequestContext
) -> TxnOffsetCommitResponse:
    """Answer the error for every partition; before v2 clients do not bear a loading coordinator."""
    code = client_code(error)
    is_loading = code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NETWORK_EXCEPTION)
    if is_loading:
        code = (
            ErrorCode.COORDINATOR_NOT_AVAILABLE
            if context.api_version < FIRST_VERSION_WITH_LOADING
            else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )
    return TxnOffsetCommitResponse(topics=[_not_committed(topic, code) for topic in request.topics])


async def _commit_later(
    request: TxnOffsetCommitRequest, refused: DeferredRefusals, context: RequestContext
) -> TxnOffsetCommitResponse:
    answer = _commit(request, await refused.wait(), context)
    return await answer.wait() if isinstance(answer, Deferred) else answer


def _check_group_is_part(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> Refusals | DeferredRefusals:
    """Return whether the group's partition is refused: it is not part of the transaction.

    Raises:
        KafkaError: the group is coordinated elsewhere. A partition that is not written to here
            must not become part of the transaction here.
    """
    offsets = offsets_partition(request.group_id, context)
    context.services.coordinators.check(CONSUMER_OFFSETS_TOPIC, request.group_id)
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)
    partition = context.services.replicas.find(offsets)
    if partition is not None and is_in_transaction(partition, producer):
        return {}
    return refusals(
        request.transactional_id,
        producer,
        [offsets],
        context,
        adds=context.api_version >= FIRST_VERSION_THAT_ADDS_THE_GROUP,
        knows_abortable=context.api_version >= FIRST_VERSION_WITH_TRANSACTION_ABORTABLE,
    )


def _commit(
    request: TxnOffsetCommitRequest, refused: Refusals, context: RequestContext
) -> TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]:
    for error in refused.values():
        # The client asks about its group, and knows the codes of that (rule 148).
        raise KafkaError(CLIENT_ERRORS.get(error.code, error.code), error.message)
    image = context.services.metadata.image
    known = []
    unknown = []
    for topic in request.topics:
        missing = [
            p for p in topic.partitions if image.partition(topic.name, p.partition_index) is None
        ]
        present = [
            p
            for p in topic.partitions
            if image.partition(topic.name, p.partition_index) is not None
        ]
        if present:
            known.append(TxnOffsetCommitRequestTopic(name=topic.name, partitions=present))
        if missing:
            some = TxnOffsetCommitRequestTopic(name=topic.name, partitions=missing)
            unknown.append(_not_committed(some, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    if not known:
        return TxnOffsetCommitResponse(topics=unknown)
    event = CommitOffsetsInTransaction(_only(request, known))
    answer = handle_group_request(request.group_id, event, context)
    return map_answer(answer, partial(_merged, unknown))


def _only(
    request: TxnOffsetCommitRequest, topics: list[TxnOffsetCommitRequestTopic]
) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id=request.transactional_id,
        group_id=request.group_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=topics,
    )


def _merged(
    unknown: list[TxnOffsetCommitResponseTopic], response: TxnOffsetCommitResponse
) -> TxnOffsetCommitResponse:
    by_name = {topic.name: topic for topic in response.topics}
    for topic in unknown:
        if topic.name in by_name:
            by_name[topic.name].partitions += topic.partitions
        else:
            response.topics.append(topic)
    return response


def _not_committed(
    topic: TxnOffsetCommitRequestTopic, code: ErrorCode
) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code)
            for p in topic.partitions
        ],
    )


HANDLERS = (Handler(TXN_OFFSET_COMMIT, handle, refuse),)
