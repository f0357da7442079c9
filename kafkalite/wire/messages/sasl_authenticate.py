"""SaslAuthenticate (API key 36), versions 0-2, flexible from 2.

KIP-152.

v1: the answer tells how long the session lives (KIP-368).
v2: compact encoding and tag sections (KIP-482).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int64
from kafkalite.wire.schema import Bytes, String, nullable, since, structure

SaslAuthenticateRequest = structure(
    "SaslAuthenticateRequest",
    "auth_bytes" / Bytes,
)

SaslAuthenticateResponse = structure(
    "SaslAuthenticateResponse",
    "error_code" / Int16,
    "error_message" / nullable(String),
    "auth_bytes" / Bytes,
    "session_lifetime_ms" / since(1, Int64, default=0),
)

SASL_AUTHENTICATE = Api(
    ApiKey.SASL_AUTHENTICATE,
    versions=(0, 2),
    flexible_from=2,
    request=SaslAuthenticateRequest,
    response=SaslAuthenticateResponse,
)
