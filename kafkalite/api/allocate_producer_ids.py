"""AllocateProducerIds (key 67), version 0: a block of producer ids for a broker (rule 64, KIP-730).

Only brokers ask this, and the controller alone answers.
"""

from functools import partial

import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.meta.changes import ProducerIdsAllocated
from kafkalite.meta.events import AllocateProducerIds
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.allocate_producer_ids import (
    ALLOCATE_PRODUCER_IDS,
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

TIMEOUT_S = 30.0
"""As the request of a broker may take (request.timeout.ms)."""


def handle(
    request: AllocateProducerIdsRequest, context: RequestContext
) -> Deferred[AllocateProducerIdsResponse]:
    """Allocate a block."""
    return Deferred(partial(_allocate, request, context))


def refuse(
    request: AllocateProducerIdsRequest, error: KafkaError, context: RequestContext
) -> AllocateProducerIdsResponse:
    """Answer the error."""
    del request, context
    return AllocateProducerIdsResponse(error_code=error.code, producer_id_start=-1)


async def _allocate(
    request: AllocateProducerIdsRequest, context: RequestContext
) -> AllocateProducerIdsResponse:
    event = AllocateProducerIds(broker_id=request.broker_id, broker_epoch=request.broker_epoch)
    with trio.move_on_after(TIMEOUT_S):
        (allocated,) = await context.services.metadata.submit(event)
        assert isinstance(allocated, ProducerIdsAllocated)
        return AllocateProducerIdsResponse(
            error_code=ErrorCode.NONE,
            producer_id_start=allocated.next_producer_id - event.count,
            producer_id_len=event.count,
        )
    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "metadata could not be stored in time")


HANDLERS = (Handler(ALLOCATE_PRODUCER_IDS, handle, refuse, inter_broker_only=True),)
