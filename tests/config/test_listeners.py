import pytest

from kafkalite.config.listeners import (
    Listener,
    endpoints,
    inter_broker_listener,
    parse_advertised,
    parse_listeners,
    with_hosts,
)
from kafkalite.settings.config_def import SettingError

MAP = "PLAINTEXT:PLAINTEXT,SSL:SSL,OTHER:PLAINTEXT"


def listeners(
    *addresses: str, controllers: tuple[str, ...] = (), protocols: str = MAP
) -> list[tuple[str, str, int]]:
    parsed = parse_listeners(addresses, protocol_map=protocols, controller_names=controllers)
    return [(listener.name, listener.host, listener.port) for listener in parsed]


def test_addresses_of_all_kinds_are_read() -> None:
    assert listeners("PLAINTEXT://:9092", "other://[::1]:0") == [
        ("PLAINTEXT", "", 9092),
        ("OTHER", "::1", 0),
    ]


def test_the_listener_of_a_controller_is_left_out() -> None:
    """A compose file made for a combined Kafka node keeps working (USERS 22)."""
    both = ("PLAINTEXT://:9092", "CONTROLLER://:9093")
    assert listeners(*both, controllers=("CONTROLLER",)) == [("PLAINTEXT", "", 9092)]
    with pytest.raises(SettingError, match="one for clients"):
        listeners("CONTROLLER://:9093", controllers=("CONTROLLER",))


@pytest.mark.parametrize(
    ("addresses", "message"),
    [
        (("localhost:9092",), "listeners: 'localhost:9092' is not allowed"),
        (("PLAINTEXT://localhost",), "NAME://host:port"),
        (("PLAINTEXT://a:70000",), "NAME://host:port"),
        (("PLAINTEXT://a:1", "PLAINTEXT://b:2"), "a name of its own"),
        (("PLAINTEXT://a:1", "OTHER://a:1"), "an address of its own"),
        (("UNKNOWN://a:1",), "has to give a protocol for UNKNOWN"),
    ],
)
def test_what_cannot_be_listened_on_is_refused(addresses: tuple[str, ...], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        listeners(*addresses)


def test_each_listener_has_the_protocol_that_the_map_gives() -> None:
    parsed = parse_listeners(
        ("SSL://a:1", "OTHER://a:2", "IN://a:3"),
        protocol_map=f"{MAP},in:ssl",
        controller_names=(),
    )
    assert [one.protocol for one in parsed] == ["SSL", "PLAINTEXT", "SSL"]
    assert [one.is_encrypted for one in parsed] == [True, False, True]


def test_two_listeners_may_ask_for_any_port() -> None:
    assert len(listeners("PLAINTEXT://a:0", "OTHER://a:0")) == 2


def test_a_protocol_map_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(SettingError, match=r"listener\.security\.protocol\.map: 'X'"):
        listeners("PLAINTEXT://a:1", protocols="X")
    with pytest.raises(SettingError, match="NAME:PROTOCOL"):
        listeners("PLAINTEXT://a:1", protocols="X:TELNET")


def test_without_advertised_addresses_clients_get_the_one_they_came_in_by() -> None:
    """USERS 1: an empty host stands for the client's own view of the broker."""
    for advertised in ((), ("auto",)):
        parsed = parse_advertised(advertised, listener_names=("PLAINTEXT",))
        assert endpoints({"PLAINTEXT": 4711}, parsed) == {"PLAINTEXT": ("", 4711)}


def test_advertised_addresses_are_told_to_clients() -> None:
    parsed = parse_advertised(
        ("PLAINTEXT://broker:19092", "OTHER://[::1]:0"),
        listener_names=("PLAINTEXT", "OTHER", "MORE"),
    )
    bound = {"PLAINTEXT": 9092, "OTHER": 4711, "MORE": 1}
    assert endpoints(bound, parsed) == {
        "PLAINTEXT": ("broker", 19092),
        "OTHER": ("::1", 4711),
        "MORE": ("", 1),
    }


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("broker:9092", "NAME://host:port"),
        ("NOPE://broker:9092", r"NOPE is not the name of a listener \(PLAINTEXT\)"),
        ("PLAINTEXT://0.0.0.0:9092", "no address that a client can connect to"),
        ("PLAINTEXT://:9092", "no address that a client can connect to"),
        ("PLAINTEXT://[::]:9092", "no address that a client can connect to"),
    ],
)
def test_addresses_that_no_client_can_use_are_refused(address: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        parse_advertised((address,), listener_names=("PLAINTEXT",))


def test_a_listener_is_advertised_once() -> None:
    with pytest.raises(SettingError, match="given twice"):
        parse_advertised(("PLAINTEXT://a:1", "PLAINTEXT://b:1"), listener_names=("PLAINTEXT",))


class TestListenerOfBrokers:
    @staticmethod
    def parsed(*addresses: str, name: str | None = None):
        return parse_listeners(
            addresses, protocol_map=MAP, controller_names=(), inter_broker_name=name
        )

    def test_one_that_is_named_is_theirs_alone(self) -> None:
        parsed = self.parsed("PLAINTEXT://:1", "OTHER://:2", name="other")
        assert [one.is_inter_broker for one in parsed] == [False, True]
        assert inter_broker_listener(parsed).name == "OTHER"

    def test_without_a_name_brokers_may_come_in_by_all_and_choose_plaintext(self) -> None:
        parsed = self.parsed("OTHER://:2", "PLAINTEXT://:1")
        assert [one.is_inter_broker for one in parsed] == [True, True]
        assert inter_broker_listener(parsed).name == "PLAINTEXT"
        assert inter_broker_listener(self.parsed("OTHER://:2")).name == "OTHER"

    def test_name_of_no_listener_stops_the_start(self) -> None:
        message = r"inter\.broker\.listener\.name: SIDE is not the name of a listener \(OTHER\)"
        with pytest.raises(SettingError, match=message):
            self.parsed("OTHER://:2", name="SIDE")


def test_other_brokers_are_told_a_host_whatever_is_advertised() -> None:
    """Rule 17: `auto` answers with the address a client came in by, which others never see."""
    listeners = [
        Listener(name="A", host="127.0.0.1", port=0),
        Listener(name="B", host="", port=0),
        Listener(name="C", host="0.0.0.0", port=0),
        Listener(name="D", host="10.0.0.1", port=0),
    ]
    found = {"A": ("", 1), "B": ("", 2), "C": ("", 3), "D": ("public", 4)}
    assert with_hosts(found, listeners, host_name="machine") == {
        "A": ("127.0.0.1", 1),
        "B": ("machine", 2),
        "C": ("machine", 3),
        "D": ("public", 4),
    }
