"""Rule 270."""

from dataclasses import fields

from kafkalite.config import BrokerConfig
from kafkalite.meta.changes import GROUP_RESOURCE, ConfigsChanged
from kafkalite.meta.group_configs import GroupConfig, GroupConfigs, group_config
from kafkalite.meta.image import Image
from kafkalite.settings.registry import GROUP


def test_every_setting_of_a_group_is_a_field() -> None:
    assert {field.name.replace("_", ".") for field in fields(GroupConfig)} == set(GROUP)


def test_a_group_that_sets_nothing_has_what_the_broker_has() -> None:
    config = BrokerConfig({"group.consumer.heartbeat.interval.ms": "6000"})
    found = group_config(config, {})
    assert found.consumer_heartbeat_interval_ms == 6000
    assert found.consumer_session_timeout_ms == 45000
    assert found.streams_num_standby_replicas == 0
    assert found.share_auto_offset_reset == "latest"
    assert found.share_isolation_level == "read_uncommitted"
    assert found.share_renew_acknowledge_enable is True


def test_a_groups_own_settings_go_first() -> None:
    own = {
        "consumer.session.timeout.ms": "50000",
        "share.auto.offset.reset": "earliest",
        "share.renew.acknowledge.enable": "false",
        "streams.initial.rebalance.delay.ms": "7",
    }
    found = group_config(BrokerConfig(), own)
    assert found.consumer_session_timeout_ms == 50000
    assert found.share_auto_offset_reset == "earliest"
    assert found.share_renew_acknowledge_enable is False
    assert found.streams_initial_rebalance_delay_ms == 7


def test_stored_values_are_brought_into_the_brokers_bounds() -> None:
    own = {
        "consumer.session.timeout.ms": "1",
        "consumer.heartbeat.interval.ms": "99999",
        "share.delivery.count.limit": "25",
        "streams.num.standby.replicas": "9",
    }
    found = group_config(BrokerConfig(), own)
    assert found.consumer_session_timeout_ms == 45000
    assert found.consumer_heartbeat_interval_ms == 15000
    assert found.share_delivery_count_limit == 10
    assert found.streams_num_standby_replicas == 2


def test_a_stored_value_that_cannot_be_read_is_passed_over() -> None:
    own = {"consumer.session.timeout.ms": "soon", "of.another.version": "1"}
    assert group_config(BrokerConfig(), own) == group_config(BrokerConfig(), {})


def test_changes_are_seen_at_the_next_use_and_nothing_is_worked_out_twice() -> None:
    config, image = BrokerConfig(), Image()
    configs = GroupConfigs(config, lambda: image)
    assert configs("a") is configs("b")

    change = ConfigsChanged(
        resource_type=GROUP_RESOURCE,
        resource_name="a",
        values={"consumer.assignment.interval.ms": "3"},
    )
    image = image.apply([change])
    assert configs("a").consumer_assignment_interval_ms == 3
    assert configs("a") is configs("a")
    assert configs("b").consumer_assignment_interval_ms == 1000

    config.apply_dynamic({}, {"group.consumer.assignment.interval.ms": "4"})
    assert configs("a").consumer_assignment_interval_ms == 3
    assert configs("b").consumer_assignment_interval_ms == 4

    removed = ConfigsChanged(
        resource_type=GROUP_RESOURCE,
        resource_name="a",
        removed=("consumer.assignment.interval.ms",),
    )
    image = image.apply([removed])
    assert configs("a") is configs("b")
