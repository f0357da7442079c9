"""UpdateFeatures (key 57), versions 0-2: levels of features that the cluster uses (KIP-584).

v1: how to update, and trying it out (KIP-778). v2: one answer for all, which are updated together
or not at all.
"""

from functools import partial

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.metadata_requests import submit_within
from kafkalite.deferred import Deferred
from kafkalite.meta.events import UpdateFeatures
from kafkalite.meta.features import FeatureUpdate, UpgradeType
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.update_features import (
    UPDATE_FEATURES,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

LAST_VERSION_WITH_RESULTS = 1
NO_ERROR = "NONE"
"""Apache Kafka's answer has this word where nothing is wrong."""


def handle(
    request: UpdateFeaturesRequest, context: RequestContext
) -> Deferred[UpdateFeaturesResponse]:
    """Update all the features, or none."""
    return Deferred(partial(_update, request, context))


def refuse(
    request: UpdateFeaturesRequest, error: KafkaError, context: RequestContext
) -> UpdateFeaturesResponse:
    """Answer the error of the whole request."""
    del request, context
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message or None)


async def _update(
    request: UpdateFeaturesRequest, context: RequestContext
) -> UpdateFeaturesResponse:
    updates = {
        update.feature: FeatureUpdate(
            name=update.feature,
            level=update.max_version_level,
            upgrade_type=(
                UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else update.upgrade_type
            ),
        )
        for update in request.feature_updates
    }
    event = UpdateFeatures(updates=tuple(updates.values()))
    (result,) = await submit_within(
        [event], context, timeout_ms=request.timeout_ms, validate_only=request.validate_only
    )
    if isinstance(result, KafkaError):
        if result.code is not ErrorCode.INVALID_UPDATE_VERSION:
            raise result
        raise KafkaError(
            result.code,
            "The update failed for all features since the following feature had an error: "
            f"{result.message}",
        )
    has_results = context.api_version <= LAST_VERSION_WITH_RESULTS
    return UpdateFeaturesResponse(
        error_code=ErrorCode.NONE,
        error_message=NO_ERROR,
        results=[
            UpdatableFeatureResult(
                feature=update.feature, error_code=ErrorCode.NONE, error_message=NO_ERROR
            )
            for update in request.feature_updates
        ]
        if has_results
        else [],
    )


HANDLERS = (Handler(UPDATE_FEATURES, handle, refuse, forward_to_controller=True),)
