"""InitProducerId (key 22), versions 0-5: identities of producers (rules 64, 65).

v2: flexible. v3: a producer that goes on after an error (KIP-360). v4: PRODUCER_FENCED.
v5: transactions of the second protocol (KIP-890).

An idempotent producer gets an id of this broker's block and the epoch 0, whatever it sent. What a
transactional one gets is decided by the coordinator of its transactional id: see `transactions`.
"""

from functools import partial
from typing import Any

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.transactions import (
    FIRST_INIT_WITH_PRODUCER_FENCED,
    init_producer,
    known_code,
    new_producer_id,
)
from kafkalite.deferred import Deferred
from kafkalite.txn.transactions import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.init_producer_id import (
    INIT_PRODUCER_ID,
    InitProducerIdRequest,
    InitProducerIdResponse,
)


def handle(request: InitProducerIdRequest, context: RequestContext) -> Any:
    """Answer at once from the block that this broker holds; else wait for the next block."""
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "producer id and epoch have to be given both, or neither"
        )
    if request.transactional_id is not None:
        return init_producer(request, context)
    producer_id = context.services.producer_ids.next_nowait()
    if producer_id is None:
        return Deferred(partial(_allocate, context))
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def refuse(
    request: InitProducerIdRequest, error: KafkaError, context: RequestContext
) -> InitProducerIdResponse:
    """Answer the error; this API has no place for a message."""
    del request
    code = known_code(error, context.api_version, fenced_from=FIRST_INIT_WITH_PRODUCER_FENCED)
    return InitProducerIdResponse(
        error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )


async def _allocate(context: RequestContext) -> InitProducerIdResponse:
    producer_id = await new_producer_id(context)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


HANDLERS = (Handler(INIT_PRODUCER_ID, handle, refuse),)
