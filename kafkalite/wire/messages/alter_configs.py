"""AlterConfigs (API key 33), versions 0-2, flexible from 2."""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int8, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, nullable, structure

AlterableConfig = structure(
    "AlterableConfig",
    "name" / String,
    "value" / nullable(String),
)

AlterConfigsResource = structure(
    "AlterConfigsResource",
    "resource_type" / Int8,
    "resource_name" / String,
    "configs" / ArrayOf(AlterableConfig),
)

AlterConfigsRequest = structure(
    "AlterConfigsRequest",
    "resources" / ArrayOf(AlterConfigsResource),
    "validate_only" / Bool,
)

AlterConfigsResourceResponse = structure(
    "AlterConfigsResourceResponse",
    "error_code" / Int16,
    "error_message" / nullable(String),
    "resource_type" / Int8,
    "resource_name" / String,
)

AlterConfigsResponse = structure(
    "AlterConfigsResponse",
    "throttle_time_ms" / Int32,
    "responses" / ArrayOf(AlterConfigsResourceResponse),
)

ALTER_CONFIGS = Api(
    ApiKey.ALTER_CONFIGS,
    versions=(0, 2),
    flexible_from=2,
    request=AlterConfigsRequest,
    response=AlterConfigsResponse,
)
