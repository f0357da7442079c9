"""RenewDelegationToken (API key 39), versions 1-2, flexible from 2.

KIP-48.

v2: compact encoding and tag sections (KIP-482).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64
from kafkalite.wire.schema import Bytes, structure

RenewDelegationTokenRequest = structure(
    "RenewDelegationTokenRequest",
    "hmac" / Bytes,
    "renew_period_ms" / Int64,
)

RenewDelegationTokenResponse = structure(
    "RenewDelegationTokenResponse",
    "error_code" / Int16,
    "expiry_timestamp_ms" / Int64,
    "throttle_time_ms" / Int32,
)

RENEW_DELEGATION_TOKEN = Api(
    ApiKey.RENEW_DELEGATION_TOKEN,
    versions=(1, 2),
    flexible_from=2,
    request=RenewDelegationTokenRequest,
    response=RenewDelegationTokenResponse,
)
