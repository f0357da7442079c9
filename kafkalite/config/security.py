"""Settings of one listener: those with its prefix, then those for all (KIP-103).

`listener.name.<name in lower case>.<setting>` beats `<setting>`, and for logins
`listener.name.<name>.<mechanism in lower case>.<setting>` beats both (rule
523). What was changed while the broker runs beats what its file says.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkalite.settings.config_def import SettingError, Value, parse_value
from kafkalite.settings.registry import BROKER

if TYPE_CHECKING:
    from kafkalite.config import BrokerConfig

LISTENER_PREFIX = "listener.name."

LISTENER_PREFIXES = ("ssl.", "sasl.", "connections.max.reauth.", "max.connection.creation.rate")
"""Beginnings of the settings that a listener may have for itself."""


def listener_prefix(listener: str) -> str:
    """Return what the names of a listener's own settings begin with."""
    return f"{LISTENER_PREFIX}{listener.lower()}."


class ListenerSettings:
    """Settings as they are now for one listener, and perhaps for one mechanism of login.

    Attributes:
        listener: its name.
    """

    def __init__(self, config: "BrokerConfig", listener: str, mechanism: str = "") -> None:
        prefix = listener_prefix(listener)
        self.listener = listener
        self._config = config
        self._prefixes = (f"{prefix}{mechanism.lower()}.", prefix) if mechanism else (prefix,)

    def for_mechanism(self, mechanism: str) -> "ListenerSettings":
        """Return the same for a mechanism of login."""
        return ListenerSettings(self._config, self.listener, mechanism)

    def value(self, name: str) -> Value:
        """Return the value of a setting.

        Raises:
            SettingError: the listener's own has a value that is not allowed.
        """
        for prefix in self._prefixes:
            for layer in (self._config.dynamic_broker, self._config.static):
                text = layer.get(prefix + name)
                if text is None:
                    continue
                try:
                    return parse_value(BROKER[name], text)
                except SettingError as error:
                    raise SettingError(f"{prefix}{error}") from None
        return self._config.value(name)

    def text(self, name: str) -> str | None:
        """Return a text; None where none is set, or an empty one."""
        value = self.value(name)
        assert value is None or isinstance(value, str), name
        return value or None

    def number(self, name: str) -> int:
        """Return a whole number."""
        value = self.value(name)
        assert isinstance(value, int), name
        return value

    def elements(self, name: str) -> tuple[str, ...]:
        """Return the elements of a list; none where none is set."""
        value = self.value(name)
        assert value is None or isinstance(value, tuple), name
        return value or ()

    def fingerprint(self, names: Iterable[str]) -> tuple[Value, ...]:
        """Return the values of several settings, to see whether any has changed."""
        return tuple(self.value(name) for name in names)


ZOOKEEPER_NAMES = {
    "ssl.cipher.suites": "zookeeper.ssl.cipher.suites",
    "ssl.enabled.protocols": "zookeeper.ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm": "zookeeper.ssl.endpoint.identification.algorithm",
    "ssl.keystore.location": "zookeeper.ssl.keystore.location",
    "ssl.keystore.password": "zookeeper.ssl.keystore.password",
    "ssl.keystore.type": "zookeeper.ssl.keystore.type",
    "ssl.truststore.location": "zookeeper.ssl.truststore.location",
    "ssl.truststore.password": "zookeeper.ssl.truststore.password",
    "ssl.truststore.type": "zookeeper.ssl.truststore.type",
}
"""What listeners have and connections to ZooKeeper too."""


class ZookeeperSettings(ListenerSettings):
    """Settings of encryption towards ZooKeeper, by the names that a listener has them under.

    There is one password for a store and the key in it; of a PEM file it is the key's.
    """

    def __init__(self, config: "BrokerConfig") -> None:
        super().__init__(config, "ZooKeeper")

    def value(self, name: str) -> Value:
        """Return the value of a setting; what is not set has the default of listeners."""
        if name in ("ssl.keystore.password", "ssl.key.password"):
            location, kind = self.text("ssl.keystore.location"), self.text("ssl.keystore.type")
            is_pem = (kind or "").upper() == "PEM" or (location or "").endswith(".pem")
            if is_pem != (name == "ssl.key.password"):
                return None
            name = "ssl.keystore.password"
        own = ZOOKEEPER_NAMES.get(name)
        value = None if own is None else self._config.value(own)
        return BROKER[name].default if value is None else value


AUTHORIZERS = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)
"""Classes that `authorizer.class.name` may name; both mean the one that is here."""


def check_authorizer(class_name: str, super_users: str) -> None:
    """Check who is to say what clients may do.

    Raises:
        SettingError: a class of somebody else's, or a super user that is none.
    """
    if class_name and class_name not in AUTHORIZERS:
        raise SettingError(
            f"authorizer.class.name: '{class_name}' is not supported, it has to be "
            f"{' or '.join(AUTHORIZERS)}, or empty"
        )
    for name in filter(None, map(str.strip, super_users.split(";"))):
        if ":" not in name:
            raise SettingError(
                f"super.users: '{name}' is not allowed, it has to be of the form User:name; "
                "several are separated by semicolons"
            )


def is_of_a_listener(name: str, listeners: Iterable[str]) -> bool:
    """Tell whether a name with a listener's prefix is one of a setting that has an effect."""
    for listener in listeners:
        prefix = listener_prefix(listener)
        if not name.startswith(prefix):
            continue
        rest = name.removeprefix(prefix)
        for candidate in (rest, rest.partition(".")[2]):  # the latter without a mechanism
            setting = BROKER.get(candidate)
            if setting is not None and not setting.inert:
                return candidate.startswith(LISTENER_PREFIXES)
    return False
