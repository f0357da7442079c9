"""ApiVersions (API key 18), versions 0-4, flexible from 3."""

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
