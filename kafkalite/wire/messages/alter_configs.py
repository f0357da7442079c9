"""AlterConfigs (API key 33), versions 0-2, flexible from 2.

KIP-133. Replaces all settings of a resource; IncrementalAlterConfigs is what tools use now.

v1: the throttled client gets its answer before the pause (KIP-219).
v2: compact encoding and tag sections (KIP-482).
"""

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
