"""AlterUserScramCredentials (API key 51), version 0, all flexible.

KIP-554.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int8, Int16, Int32
from kafkalite.wire.schema import ArrayOf, Bytes, String, nullable, structure

ScramCredentialDeletion = structure(
    "ScramCredentialDeletion",
    "name" / String,
    "mechanism" / Int8,
)

ScramCredentialUpsertion = structure(
    "ScramCredentialUpsertion",
    "name" / String,
    "mechanism" / Int8,
    "iterations" / Int32,
    "salt" / Bytes,
    "salted_password" / Bytes,
)

AlterUserScramCredentialsRequest = structure(
    "AlterUserScramCredentialsRequest",
    "deletions" / ArrayOf(ScramCredentialDeletion),
    "upsertions" / ArrayOf(ScramCredentialUpsertion),
)

AlterUserScramCredentialsResult = structure(
    "AlterUserScramCredentialsResult",
    "user" / String,
    "error_code" / Int16,
    "error_message" / nullable(String),
)

AlterUserScramCredentialsResponse = structure(
    "AlterUserScramCredentialsResponse",
    "throttle_time_ms" / Int32,
    "results" / ArrayOf(AlterUserScramCredentialsResult),
)

ALTER_USER_SCRAM_CREDENTIALS = Api(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    versions=(0, 0),
    flexible_from=0,
    request=AlterUserScramCredentialsRequest,
    response=AlterUserScramCredentialsResponse,
)
