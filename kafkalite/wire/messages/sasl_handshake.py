"""SaslHandshake (API key 17), versions 0-1, never flexible.

KIP-43.

v1: tokens follow in SaslAuthenticate, not raw (KIP-152).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16
from kafkalite.wire.schema import ArrayOf, String, structure

SaslHandshakeRequest = structure(
    "SaslHandshakeRequest",
    "mechanism" / String,
)

SaslHandshakeResponse = structure(
    "SaslHandshakeResponse",
    "error_code" / Int16,
    "mechanisms" / ArrayOf(String),
)

SASL_HANDSHAKE = Api(
    ApiKey.SASL_HANDSHAKE,
    versions=(0, 1),
    flexible_from=None,
    request=SaslHandshakeRequest,
    response=SaslHandshakeResponse,
)
