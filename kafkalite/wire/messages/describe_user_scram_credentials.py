"""DescribeUserScramCredentials (API key 50), version 0, all flexible.

KIP-554.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int8, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, nullable, structure

UserName = structure(
    "UserName",
    "name" / String,
)

DescribeUserScramCredentialsRequest = structure(
    "DescribeUserScramCredentialsRequest",
    "users" / nullable(ArrayOf(UserName)),
)

CredentialInfo = structure(
    "CredentialInfo",
    "mechanism" / Int8,
    "iterations" / Int32,
)

DescribeUserScramCredentialsResult = structure(
    "DescribeUserScramCredentialsResult",
    "user" / String,
    "error_code" / Int16,
    "error_message" / nullable(String),
    "credential_infos" / ArrayOf(CredentialInfo),
)

DescribeUserScramCredentialsResponse = structure(
    "DescribeUserScramCredentialsResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / nullable(String),
    "results" / ArrayOf(DescribeUserScramCredentialsResult),
)

DESCRIBE_USER_SCRAM_CREDENTIALS = Api(
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    versions=(0, 0),
    flexible_from=0,
    request=DescribeUserScramCredentialsRequest,
    response=DescribeUserScramCredentialsResponse,
)
