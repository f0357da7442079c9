"""ListConfigResources (API key 74), versions 0-1, all flexible.

v0: as ListClientMetricsResources, lists nothing else (KIP-714).
v1: resource_types; an empty list asks for all types (KIP-1142).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int8, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, since, structure

ListConfigResourcesRequest = structure(
    "ListConfigResourcesRequest",
    "resource_types" / since(1, ArrayOf(Int8)),
)

ConfigResource = structure(
    "ConfigResource",
    "resource_name" / String,
    "resource_type" / since(1, Int8, default=16),
)

ListConfigResourcesResponse = structure(
    "ListConfigResourcesResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "config_resources" / ArrayOf(ConfigResource),
)

LIST_CONFIG_RESOURCES = Api(
    ApiKey.LIST_CONFIG_RESOURCES,
    versions=(0, 1),
    flexible_from=0,
    request=ListConfigResourcesRequest,
    response=ListConfigResourcesResponse,
)
