"""Rule 271."""

import pytest

from kafkalite.meta.events import UpdateFeatures
from kafkalite.meta.features import (
    FEATURES,
    GROUP_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
    FeatureUpdate,
    UpgradeType,
    finalized_levels,
)
from kafkalite.wire.errors import ErrorCode
from tests.meta.meta_kit import after, image, refusal

UP, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE


def update(*updates):
    return UpdateFeatures(updates=[FeatureUpdate(*each) for each in updates])


def test_a_new_cluster_has_the_levels_of_kafka_4_3_of_what_is_complete():
    kafkas = {
        METADATA_VERSION: (7, 30),
        TRANSACTION_VERSION: (0, 2),
        GROUP_VERSION: (0, 1),
        SHARE_VERSION: (0, 1),
        STREAMS_VERSION: (0, 1),
    }
    assert {row.name: (row.min_level, row.max_level) for row in FEATURES}.items() <= kafkas.items()
    assert finalized_levels({}) == {row.name: row.max_level for row in FEATURES}


def test_a_level_goes_down_and_up_again():
    before = image()
    assert before.feature_level(TRANSACTION_VERSION) == 2
    lower = after(update((TRANSACTION_VERSION, 1, SAFE)), before)
    assert lower.feature_level(TRANSACTION_VERSION) == 1
    off = after(update((TRANSACTION_VERSION, 0, UNSAFE)), lower)
    assert off.feature_level(TRANSACTION_VERSION) == 0
    assert TRANSACTION_VERSION not in finalized_levels(off.feature_levels)
    assert after(update((TRANSACTION_VERSION, 2, UP)), off).feature_level(TRANSACTION_VERSION) == 2


def test_the_level_that_is_there_already_changes_nothing():
    before = after(update((TRANSACTION_VERSION, 1, SAFE)), image())
    again = after(update((TRANSACTION_VERSION, 1, SAFE)), before)
    assert again.feature_levels == before.feature_levels


@pytest.mark.parametrize(
    ("name", "level", "how", "message"),
    [
        (TRANSACTION_VERSION, 1, 0, "does not support the given upgrade type"),
        (TRANSACTION_VERSION, -1, SAFE, "cannot be less than 0"),
        ("nope", 1, UP, "Local controller 1 does not support this feature."),
        (TRANSACTION_VERSION, 3, UP, "Local controller 1 only supports versions 0-2"),
        (TRANSACTION_VERSION, 1, UP, "without setting the upgrade type to either safe or unsafe"),
        (METADATA_VERSION, 29, SAFE, "Unsupported metadata.version downgrade from 30 to 29. Ref"),
        (METADATA_VERSION, 29, UNSAFE, "Unsafe metadata downgrade is not supported"),
    ],
)
def test_an_update_that_cannot_be_is_refused(name, level, how, message):
    refused = refusal(update((name, level, how)), image())
    assert refused.code is ErrorCode.INVALID_UPDATE_VERSION
    assert message in refused.message


def test_a_downgrade_does_not_go_up():
    before = after(update((TRANSACTION_VERSION, 0, SAFE)), image())
    refused = refusal(update((TRANSACTION_VERSION, 1, SAFE)), before)
    assert "Can't downgrade to a newer version." in refused.message


def test_one_that_is_refused_keeps_all_others_from_being_updated():
    before = image()
    refused = refusal(update((TRANSACTION_VERSION, 1, SAFE), ("nope", 1, UP)), before)
    assert "feature nope" in refused.message
    assert before.feature_level(TRANSACTION_VERSION) == 2


def test_stored_levels_of_another_version_count_as_the_nearest():
    assert finalized_levels({TRANSACTION_VERSION: 9, "of.the.future": 1}) == finalized_levels({})
