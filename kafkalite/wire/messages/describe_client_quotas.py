"""DescribeClientQuotas (API key 48), versions 0-1, flexible from 1.

KIP-546.

v1: compact encoding and tag sections (KIP-482).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Float64, Int8, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, nullable, structure

ComponentData = structure(
    "ComponentData",
    "entity_type" / String,
    "match_type" / Int8,
    "match" / nullable(String),
)

DescribeClientQuotasRequest = structure(
    "DescribeClientQuotasRequest",
    "components" / ArrayOf(ComponentData),
    "strict" / Bool,
)

EntityData = structure(
    "EntityData",
    "entity_type" / String,
    "entity_name" / nullable(String),
)

ValueData = structure(
    "ValueData",
    "key" / String,
    "value" / Float64,
)

EntryData = structure(
    "EntryData",
    "entity" / ArrayOf(EntityData),
    "values" / ArrayOf(ValueData),
)

DescribeClientQuotasResponse = structure(
    "DescribeClientQuotasResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / nullable(String),
    "entries" / nullable(ArrayOf(EntryData)),
)

DESCRIBE_CLIENT_QUOTAS = Api(
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    versions=(0, 1),
    flexible_from=1,
    request=DescribeClientQuotasRequest,
    response=DescribeClientQuotasResponse,
)
