"""Rule 271."""

import pytest

from kafkalite.api.update_features import HANDLERS
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.api.metadata_kit import MetadataKit

(HANDLER,) = HANDLERS
NAME = "transaction.version"


@pytest.fixture
def kit():
    return MetadataKit()


def update(kit, level, version=2, **more):
    key = FeatureUpdateKey(feature=NAME, max_version_level=level, **more.pop("key", {}))
    return kit.ask(HANDLER, UpdateFeaturesRequest(feature_updates=[key], **more), version)


def test_an_update_is_in_force_when_it_is_answered(kit):
    response = update(kit, 1, key={"upgrade_type": 2})
    assert (response.error_code, response.error_message, response.results) == (0, "NONE", [])
    assert kit.image.feature_level(NAME) == 1


def test_v1_has_a_result_for_each_feature(kit):
    response = update(kit, 1, version=1, key={"upgrade_type": 2})
    (result,) = response.results
    assert (result.feature, result.error_code, result.error_message) == (NAME, 0, "NONE")


def test_v0_says_otherwise_that_a_level_may_go_down(kit):
    assert update(kit, 1, version=0).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert update(kit, 1, version=0, key={"allow_downgrade": True}).error_code == 0
    assert kit.image.feature_level(NAME) == 1


def test_validation_only_changes_nothing(kit):
    assert update(kit, 1, key={"upgrade_type": 2}, validate_only=True).error_code == 0
    assert kit.image.feature_level(NAME) == 2
    assert update(kit, 7, validate_only=True).error_code == ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_refusal_is_told_at_the_top(kit, version):
    response = update(kit, 7, version=version)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert response.error_message == (
        "The update failed for all features since the following feature had an error: Invalid "
        "update version 7 for feature transaction.version. Local controller 1 only supports "
        "versions 0-2"
    )
    assert response.results == []


def test_without_time_the_answer_is_that_it_is_over(kit):
    response = update(kit, 1, key={"upgrade_type": 2}, timeout_ms=0)
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
