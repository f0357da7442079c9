"""UnregisterBroker (key 64), version 0: a broker that will not come back (KIP-500).

A registration here ends with the broker's session, so there is nothing left to end for one that is
gone; one that lives is refused, as it would register again at once (decision 0071).
"""

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.unregister_broker import (
    UNREGISTER_BROKER,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


def handle(request: UnregisterBrokerRequest, context: RequestContext) -> UnregisterBrokerResponse:
    """Say whether the broker is gone.

    Raises:
        KafkaError: INVALID_REQUEST for one that lives, BROKER_ID_NOT_REGISTERED for one that no
            partition knows.
    """
    broker_id = request.broker_id
    image = context.services.metadata.image
    if broker_id in image.brokers:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Broker {broker_id} is alive and would register again: stop it, that ends its "
            "registration",
        )
    is_known = any(
        broker_id in state.replicas for topic in image.topics.values() for state in topic.partitions
    )
    if not is_known:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered"
        )
    return UnregisterBrokerResponse()


def refuse(
    request: UnregisterBrokerRequest, error: KafkaError, context: RequestContext
) -> UnregisterBrokerResponse:
    """Answer the error."""
    del request, context
    return UnregisterBrokerResponse(error_code=error.code, error_message=error.message or None)


HANDLERS = (Handler(UNREGISTER_BROKER, handle, refuse, forward_to_controller=True),)
