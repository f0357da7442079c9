"""DescribeDelegationToken (API key 41), versions 1-3, flexible from 2.

KIP-48.

v2: compact encoding and tag sections (KIP-482).
v3: who asked for the token (KIP-373).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, Bytes, String, nullable, since, structure

DescribeDelegationTokenOwner = structure(
    "DescribeDelegationTokenOwner",
    "principal_type" / String,
    "principal_name" / String,
)

DescribeDelegationTokenRequest = structure(
    "DescribeDelegationTokenRequest",
    "owners" / nullable(ArrayOf(DescribeDelegationTokenOwner)),
)

DescribedDelegationTokenRenewer = structure(
    "DescribedDelegationTokenRenewer",
    "principal_type" / String,
    "principal_name" / String,
)

DescribedDelegationToken = structure(
    "DescribedDelegationToken",
    "principal_type" / String,
    "principal_name" / String,
    "token_requester_principal_type" / since(3, String),
    "token_requester_principal_name" / since(3, String),
    "issue_timestamp" / Int64,
    "expiry_timestamp" / Int64,
    "max_timestamp" / Int64,
    "token_id" / String,
    "hmac" / Bytes,
    "renewers" / ArrayOf(DescribedDelegationTokenRenewer),
)

DescribeDelegationTokenResponse = structure(
    "DescribeDelegationTokenResponse",
    "error_code" / Int16,
    "tokens" / ArrayOf(DescribedDelegationToken),
    "throttle_time_ms" / Int32,
)

DESCRIBE_DELEGATION_TOKEN = Api(
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    versions=(1, 3),
    flexible_from=2,
    request=DescribeDelegationTokenRequest,
    response=DescribeDelegationTokenResponse,
)
