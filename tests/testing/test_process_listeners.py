"""Ports and listeners of several processes of one machine."""

import pytest

from kafkalite.config import load_config
from kafkalite.settings.config_def import SettingError
from kafkalite.testing.process_listeners import ProcessListeners


def made(processes=2, **settings):
    settings = {name.replace("_", "."): text for name, text in settings.items()}
    return ProcessListeners(load_config(overrides=settings), range(1, processes + 1))


def test_each_process_has_ports_one_higher():
    found = made(listeners="PLAINTEXT://:9092")
    assert found.address(1) == ("0.0.0.0", 9092)
    assert found.address(2) == ("0.0.0.0", 9093)
    assert found.addresses("PLAINTEXT") == "127.0.0.1:9092,127.0.0.1:9093"


def test_free_ports_are_chosen_before_the_start():
    found = made(listeners="PLAINTEXT://127.0.0.1:0")
    ports = {found.address(1)[1], found.address(2)[1]}
    assert len(ports) == 2
    assert 0 not in ports


def test_processes_talk_by_a_listener_of_their_own_on_loopback():
    found = made(listeners="PLAINTEXT://:9092").settings(2)
    first, own = found["listeners"].split(",")
    assert first == "PLAINTEXT://:9093"
    assert own.startswith("REPLICATION://127.0.0.1:")
    assert found["inter.broker.listener.name"] == "REPLICATION"
    assert "advertised.listeners" not in found


def test_a_listener_for_brokers_that_the_settings_name_is_kept():
    found = made(
        listeners="SASL_SSL://:9094,IN://:9192",
        listener_security_protocol_map="SASL_SSL:SASL_SSL,IN:SSL",
        inter_broker_listener_name="IN",
    ).settings(2)
    assert found == {
        "inter.broker.listener.name": "IN",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,IN:SSL",
        "listeners": "SASL_SSL://:9095,IN://:9193",
    }


def test_without_plaintext_nobody_comes_in_unasked():
    found = made(listeners="SSL://:9094")
    assert found.plain is None
    assert found.settings(1) == {
        "listener.security.protocol.map": "SSL:SSL",
        "listeners": "SSL://:9094",
    }


def test_ports_that_clients_are_told_count_up_too():
    found = made(
        listeners="PLAINTEXT://:9092", advertised_listeners="PLAINTEXT://kafka.example:19092"
    )
    assert "PLAINTEXT://kafka.example:19093" in found.settings(2)["advertised.listeners"]
    auto = made(listeners="PLAINTEXT://:9092", advertised_listeners="auto")
    assert auto.settings(2)["advertised.listeners"] == "auto"


def test_listeners_without_room_between_their_ports_are_refused():
    with pytest.raises(SettingError, match="3 processes take the ports 9092 to 9094"):
        made(
            3,
            listeners="A://:9092,B://:9094",
            listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
        )
    assert made(3, listeners="PLAINTEXT://:9092,SSL://:9095")
