"""Settings of the group coordinator."""

from kafkalite.config import load_config
from kafkalite.group.settings import GroupSettings, group_settings


def settings_of(profile, **overrides):
    return group_settings(load_config(overrides={"kafkalite.profile": profile, **overrides}))


def test_defaults_are_those_of_profile_kafka():
    assert settings_of("kafka") == GroupSettings()


def test_profile_dev_does_not_wait_for_more_members():
    assert settings_of("dev") == GroupSettings(group_initial_rebalance_delay_ms=0)


def test_profile_test_lets_members_go_with_their_connection():
    settings = settings_of("test")
    assert settings.evict_on_disconnect
    assert settings.group_min_session_timeout_ms == 1


def test_retention_is_set_in_minutes():
    assert settings_of("dev", **{"offsets.retention.minutes": "2"}).offsets_retention_ms == 120_000
