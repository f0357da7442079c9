"""Envelope (API key 58), version 0, flexible.

KIP-590. A client's request, with its header, that a broker hands on to the controller; the
response holds the controller's, with its header, for the client.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16
from kafkalite.wire.schema import Bytes, nullable, optional, structure

EnvelopeRequest = structure(
    "EnvelopeRequest",
    "request_data" / Bytes,
    "request_principal" / nullable(Bytes),
    "client_host_address" / Bytes,
)

EnvelopeResponse = structure(
    "EnvelopeResponse",
    "response_data" / optional(Bytes),
    "error_code" / Int16,
)

ENVELOPE = Api(
    ApiKey.ENVELOPE,
    versions=(0, 0),
    flexible_from=0,
    request=EnvelopeRequest,
    response=EnvelopeResponse,
)
