"""IncrementalAlterConfigs (API key 44), versions 0-1, flexible from 1.

KIP-339. Sets, deletes, appends to or subtracts from single settings of a resource.

v1: compact encoding and tag sections (KIP-482).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int8, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, nullable, structure

AlterableConfig = structure(
    "AlterableConfig",
    "name" / String,
    "config_operation" / Int8,
    "value" / nullable(String),
)

AlterConfigsResource = structure(
    "AlterConfigsResource",
    "resource_type" / Int8,
    "resource_name" / String,
    "configs" / ArrayOf(AlterableConfig),
)

IncrementalAlterConfigsRequest = structure(
    "IncrementalAlterConfigsRequest",
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

IncrementalAlterConfigsResponse = structure(
    "IncrementalAlterConfigsResponse",
    "throttle_time_ms" / Int32,
    "responses" / ArrayOf(AlterConfigsResourceResponse),
)

INCREMENTAL_ALTER_CONFIGS = Api(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    versions=(0, 1),
    flexible_from=1,
    request=IncrementalAlterConfigsRequest,
    response=IncrementalAlterConfigsResponse,
)
