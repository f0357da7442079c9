"""UpdateFeatures (API key 57), versions 0-2, all flexible.

KIP-584.

v1: upgrade_type instead of allow_downgrade, validate_only (KIP-778).
v2: no results of single features: all are updated or none (KIP-1022).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int8, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, default, nullable, since, structure, until

FeatureUpdateKey = structure(
    "FeatureUpdateKey",
    "feature" / String,
    "max_version_level" / Int16,
    "allow_downgrade" / until(0, Bool),
    "upgrade_type" / since(1, Int8, default=1),
)

UpdateFeaturesRequest = structure(
    "UpdateFeaturesRequest",
    "timeout_ms" / default(Int32, 60_000),
    "feature_updates" / ArrayOf(FeatureUpdateKey),
    "validate_only" / since(1, Bool),
)

UpdatableFeatureResult = structure(
    "UpdatableFeatureResult",
    "feature" / String,
    "error_code" / Int16,
    "error_message" / nullable(String),
)

UpdateFeaturesResponse = structure(
    "UpdateFeaturesResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / nullable(String),
    "results" / until(1, ArrayOf(UpdatableFeatureResult)),
)

UPDATE_FEATURES = Api(
    ApiKey.UPDATE_FEATURES,
    versions=(0, 2),
    flexible_from=0,
    request=UpdateFeaturesRequest,
    response=UpdateFeaturesResponse,
)
