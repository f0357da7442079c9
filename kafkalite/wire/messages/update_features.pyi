# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class FeatureUpdateKey(Structure):
    feature: str
    max_version_level: int
    allow_downgrade: bool
    upgrade_type: int
    def __init__(
        self,
        *,
        feature: str = ...,
        max_version_level: int = ...,
        allow_downgrade: bool = ...,
        upgrade_type: int = ...,
    ) -> None: ...

class UpdateFeaturesRequest(Structure):
    timeout_ms: int
    feature_updates: list[FeatureUpdateKey]
    validate_only: bool
    def __init__(
        self,
        *,
        timeout_ms: int = ...,
        feature_updates: list[FeatureUpdateKey] = ...,
        validate_only: bool = ...,
    ) -> None: ...

class UpdatableFeatureResult(Structure):
    feature: str
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        feature: str = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class UpdateFeaturesResponse(Structure):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[UpdatableFeatureResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        results: list[UpdatableFeatureResult] = ...,
    ) -> None: ...

UPDATE_FEATURES: Api[UpdateFeaturesRequest, UpdateFeaturesResponse]
