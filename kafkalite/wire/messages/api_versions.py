"""ApiVersions (API key 18), versions 0-4, flexible from 3.

The response header never has a tag section, whatever the version: see wire.header.

v1: throttle_time_ms (KIP-124).
v2: the throttled client gets its answer before the pause (KIP-219).
v3: compact encoding and tag sections (KIP-482); name and version of the client's software
    (KIP-511); features (KIP-584).
v4: a feature's min_version may be 0; v3 must leave such features out (KAFKA-17011).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, String, since, structure, tagged

ApiVersionsRequest = structure(
    "ApiVersionsRequest",
    "client_software_name" / since(3, String),
    "client_software_version" / since(3, String),
)

ApiVersion = structure(
    "ApiVersion",
    "api_key" / Int16,
    "min_version" / Int16,
    "max_version" / Int16,
)

SupportedFeatureKey = structure(
    "SupportedFeatureKey",
    "name" / String,
    "min_version" / Int16,
    "max_version" / Int16,
)

FinalizedFeatureKey = structure(
    "FinalizedFeatureKey",
    "name" / String,
    "max_version_level" / Int16,
    "min_version_level" / Int16,
)

ApiVersionsResponse = structure(
    "ApiVersionsResponse",
    "error_code" / Int16,
    "api_keys" / ArrayOf(ApiVersion),
    "throttle_time_ms" / since(1, Int32),
    "supported_features" / since(3, tagged(0, ArrayOf(SupportedFeatureKey))),
    "finalized_features_epoch" / since(3, tagged(1, Int64), default=-1),
    "finalized_features" / since(3, tagged(2, ArrayOf(FinalizedFeatureKey))),
    "zk_migration_ready" / since(3, tagged(3, Bool)),
)

API_VERSIONS = Api(
    ApiKey.API_VERSIONS,
    versions=(0, 4),
    flexible_from=3,
    request=ApiVersionsRequest,
    response=ApiVersionsResponse,
)
