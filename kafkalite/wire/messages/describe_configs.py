"""DescribeConfigs (API key 32), versions 1-4, flexible from 4.

Version 0 left Kafka with 4.0 (KIP-896).

v1: config_source and synonyms instead of is_default (KIP-226).
v2: the throttled client gets its answer before the pause (KIP-219).
v3: config_type and documentation (KIP-569).
v4: compact encoding and tag sections (KIP-482).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int8, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, default, nullable, since, structure

DescribeConfigsResource = structure(
    "DescribeConfigsResource",
    "resource_type" / Int8,
    "resource_name" / String,
    "configuration_keys" / nullable(ArrayOf(String)),
)

DescribeConfigsRequest = structure(
    "DescribeConfigsRequest",
    "resources" / ArrayOf(DescribeConfigsResource),
    "include_synonyms" / Bool,
    "include_documentation" / since(3, Bool),
)

DescribeConfigsSynonym = structure(
    "DescribeConfigsSynonym",
    "name" / String,
    "value" / nullable(String),
    "source" / Int8,
)

DescribeConfigsResourceResult = structure(
    "DescribeConfigsResourceResult",
    "name" / String,
    "value" / nullable(String),
    "read_only" / Bool,
    "config_source" / default(Int8, -1),
    "is_sensitive" / Bool,
    "synonyms" / ArrayOf(DescribeConfigsSynonym),
    "config_type" / since(3, Int8),
    "documentation" / since(3, nullable(String)),
)

DescribeConfigsResult = structure(
    "DescribeConfigsResult",
    "error_code" / Int16,
    "error_message" / nullable(String),
    "resource_type" / Int8,
    "resource_name" / String,
    "configs" / ArrayOf(DescribeConfigsResourceResult),
)

DescribeConfigsResponse = structure(
    "DescribeConfigsResponse",
    "throttle_time_ms" / Int32,
    "results" / ArrayOf(DescribeConfigsResult),
)

DESCRIBE_CONFIGS = Api(
    ApiKey.DESCRIBE_CONFIGS,
    versions=(1, 4),
    flexible_from=4,
    request=DescribeConfigsRequest,
    response=DescribeConfigsResponse,
)
