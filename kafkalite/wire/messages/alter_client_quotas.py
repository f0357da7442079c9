"""AlterClientQuotas (API key 49), versions 0-1, flexible from 1.

KIP-546.

v1: compact encoding and tag sections (KIP-482).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Float64, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, nullable, structure

EntityData = structure(
    "EntityData",
    "entity_type" / String,
    "entity_name" / nullable(String),
)

OpData = structure(
    "OpData",
    "key" / String,
    "value" / Float64,
    "remove" / Bool,
)

EntryData = structure(
    "EntryData",
    "entity" / ArrayOf(EntityData),
    "ops" / ArrayOf(OpData),
)

AlterClientQuotasRequest = structure(
    "AlterClientQuotasRequest",
    "entries" / ArrayOf(EntryData),
    "validate_only" / Bool,
)

EntityResult = structure(
    "EntityResult",
    "entity_type" / String,
    "entity_name" / nullable(String),
)

EntryResult = structure(
    "EntryResult",
    "error_code" / Int16,
    "error_message" / nullable(String),
    "entity" / ArrayOf(EntityResult),
)

AlterClientQuotasResponse = structure(
    "AlterClientQuotasResponse",
    "throttle_time_ms" / Int32,
    "entries" / ArrayOf(EntryResult),
)

ALTER_CLIENT_QUOTAS = Api(
    ApiKey.ALTER_CLIENT_QUOTAS,
    versions=(0, 1),
    flexible_from=1,
    request=AlterClientQuotasRequest,
    response=AlterClientQuotasResponse,
)
