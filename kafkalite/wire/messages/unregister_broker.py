"""UnregisterBroker (API key 64), version 0, flexible.

KIP-500.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32
from kafkalite.wire.schema import String, nullable, structure

UnregisterBrokerRequest = structure("UnregisterBrokerRequest", "broker_id" / Int32)

UnregisterBrokerResponse = structure(
    "UnregisterBrokerResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / nullable(String),
)

UNREGISTER_BROKER = Api(
    ApiKey.UNREGISTER_BROKER,
    versions=(0, 0),
    flexible_from=0,
    request=UnregisterBrokerRequest,
    response=UnregisterBrokerResponse,
)
