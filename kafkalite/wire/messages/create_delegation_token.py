"""CreateDelegationToken (API key 38), versions 1-3, flexible from 2.

KIP-48.

v2: compact encoding and tag sections (KIP-482).
v3: an owner other than who asks (KIP-373).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, Bytes, String, nullable, since, structure

CreatableRenewers = structure(
    "CreatableRenewers",
    "principal_type" / String,
    "principal_name" / String,
)

CreateDelegationTokenRequest = structure(
    "CreateDelegationTokenRequest",
    "owner_principal_type" / since(3, nullable(String)),
    "owner_principal_name" / since(3, nullable(String)),
    "renewers" / ArrayOf(CreatableRenewers),
    "max_lifetime_ms" / Int64,
)

CreateDelegationTokenResponse = structure(
    "CreateDelegationTokenResponse",
    "error_code" / Int16,
    "principal_type" / String,
    "principal_name" / String,
    "token_requester_principal_type" / since(3, String),
    "token_requester_principal_name" / since(3, String),
    "issue_timestamp_ms" / Int64,
    "expiry_timestamp_ms" / Int64,
    "max_timestamp_ms" / Int64,
    "token_id" / String,
    "hmac" / Bytes,
    "throttle_time_ms" / Int32,
)

CREATE_DELEGATION_TOKEN = Api(
    ApiKey.CREATE_DELEGATION_TOKEN,
    versions=(1, 3),
    flexible_from=2,
    request=CreateDelegationTokenRequest,
    response=CreateDelegationTokenResponse,
)
