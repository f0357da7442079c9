"""ControlledShutdown (key 7), versions 0-3: a broker is about to stop (rules 182, 183).

Only brokers ask this, and the controller alone answers, with the partitions that the broker still
leads because nobody else can. It asks again, or stops all the same. Kafka 4 has this API no more.
"""

from functools import partial

import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.meta.brokers import still_led
from kafkalite.meta.events import ControlledShutdown
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.controlled_shutdown import (
    CONTROLLED_SHUTDOWN,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)

TIMEOUT_S = 30.0
"""As the request of a broker may take (request.timeout.ms)."""


def handle(
    request: ControlledShutdownRequest, context: RequestContext
) -> Deferred[ControlledShutdownResponse]:
    """Give the broker's leaderships away."""
    return Deferred(partial(_shut_down, request, context))


def refuse(
    request: ControlledShutdownRequest, error: KafkaError, context: RequestContext
) -> ControlledShutdownResponse:
    """Answer the error."""
    del request, context
    return ControlledShutdownResponse(error_code=error.code)


async def _shut_down(
    request: ControlledShutdownRequest, context: RequestContext
) -> ControlledShutdownResponse:
    metadata = context.services.metadata
    event = ControlledShutdown(broker_id=request.broker_id, broker_epoch=request.broker_epoch)
    with trio.move_on_after(TIMEOUT_S):
        await metadata.submit(event)
        return ControlledShutdownResponse(
            error_code=ErrorCode.NONE,
            remaining_partitions=[
                RemainingPartition(topic_name=name, partition_index=index)
                for name, index in still_led(metadata.image, request.broker_id)
            ],
        )
    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "metadata could not be stored in time")


HANDLERS = (Handler(CONTROLLED_SHUTDOWN, handle, refuse, inter_broker_only=True),)
