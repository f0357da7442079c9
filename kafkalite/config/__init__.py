"""The broker's settings: where they come from, and what they are now.

Sources, the later ones first: a change made while the broker runs (for this broker, then for all),
`--set`, the environment, `server.properties`, the profile's defaults, Apache Kafka's defaults.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kafkalite.config.listeners import (
    endpoints,
    inter_broker_listener,
    parse_advertised,
    parse_listeners,
)
from kafkalite.config.protection import refuse_missing_protection
from kafkalite.config.security import ListenerSettings, check_authorizer, is_of_a_listener
from kafkalite.log_config import LogConfig
from kafkalite.settings.config_def import SettingError, Value, parse_value, split_list
from kafkalite.settings.kafkalite import PROFILES
from kafkalite.settings.properties import parse_properties
from kafkalite.settings.registry import BROKER, TOPIC
from kafkalite.settings.topics import TOPIC_SYNONYMS

# BrokerConfig has methods with the names of types, which hide those types inside of the class.
_Bool = bool
_Float = float
_Int = int
_Str = str

_ENVIRONMENT_PREFIX = "KAFKA_"
_NOT_SETTINGS = frozenset(
    {
        # What Kafka's container image leaves out (as its KafkaDockerWrapper), ...
        *("VERSION", "HEAP_OPTS", "LOG4J_OPTS", "OPTS", "JMX_OPTS", "JVM_PERFORMANCE_OPTS"),
        *("GC_LOG_OPTS", "LOG4J_ROOT_LOGLEVEL", "LOG4J_LOGGERS", "TOOLS_LOG4J_LOGLEVEL"),
        *("JMX_HOSTNAME", "JMX_PORT"),
        # ... and what is often set for clients and scripts on the same machine.
        *("HOME", "DIR", "PATH", "BIN", "BOOTSTRAP_SERVERS", "BOOTSTRAP_SERVER", "BROKERS"),
        *("BROKER", "HOST", "PORT", "SERVERS", "TOPIC", "URL"),
    }
)
_FOREIGN_PREFIXES = ("listener.name.", "rsm.config.", "rlmm.config.", "config.providers.")
"""Beginnings of names of per-listener settings, which are looked up by what follows
(`config/security.py`), and of settings for plug-ins of Kafka."""


class KafkaliteConfigError(Exception):
    """A setting that stops the start; the message is one line and names it."""


def load_config(
    path: str | Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
    overrides_from: str = "the command line",
) -> "BrokerConfig":
    """Return the settings of a broker that is about to start.

    Args:
        path: a `server.properties`.
        environment: the process's environment, of which `KAFKA_*` and `CLUSTER_ID` are read.
        overrides: what goes before all these.
        overrides_from: where it comes from, for errors.

    Raises:
        KafkaliteConfigError: a value that is not allowed, or a file that cannot be read.
    """
    static: dict[str, str] = {}
    origins: dict[str, str] = {}
    layers: list[tuple[Mapping[str, str], str]] = []
    if path is not None:
        layers.append((_read_properties(Path(path)), str(path)))
    layers.append((settings_of_environment(environment or {}), "the environment"))
    layers.append((overrides or {}, overrides_from))
    for layer, origin in layers:
        static.update(layer)
        origins.update(dict.fromkeys(layer, origin))
    return BrokerConfig(static, origins=origins)


def settings_of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings among the variables of an environment.

    The rule is that of Kafka's container image: after `KAFKA_`, `_` means a dot, `__` an
    underscore, `___` a dash. `CLUSTER_ID` is the id that this image formats its storage with.
    """
    settings = {}
    if environment.get("CLUSTER_ID"):
        settings["kafkalite.cluster.id"] = environment["CLUSTER_ID"]
    for variable, value in environment.items():
        if not variable.startswith(_ENVIRONMENT_PREFIX):
            continue
        name = variable.removeprefix(_ENVIRONMENT_PREFIX)
        if name and name not in _NOT_SETTINGS:
            dotted = name.lower().replace("_", ".").replace("...", "-").replace("..", "_")
            settings[dotted] = value
    return settings


class BrokerConfig:
    """The settings of one broker, as they are now.

    Attributes:
        profile: dev, test or kafka.
        static: what file, environment and command line say, as text.
        profile_defaults: what the profile says, as text.
        dynamic_broker: what was changed for this broker while it ran, as text.
        dynamic_default: what was changed for all brokers while they ran, as text.
        listeners: where clients and other brokers are listened for.
        inter_broker_listener: name of the listener by which brokers reach each other.
        unknown: names among the given settings that mean nothing to Kafka or to kafkalite.
        warnings: one line for each thing about the given settings that their author should know.
    """

    def __init__(
        self,
        static: Mapping[_Str, _Str] | None = None,
        *,
        origins: Mapping[_Str, _Str] | None = None,
    ) -> None:
        self._origins = origins or {}
        self.static: dict[_Str, _Str] = dict(static or {})
        self.dynamic_broker: Mapping[_Str, _Str] = {}
        self.dynamic_default: Mapping[_Str, _Str] = {}
        for one, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if one in self.static:
                self.static[other] = self.static[one]
        try:
            profile = BROKER["kafkalite.profile"]
            self.profile = str(parse_value(profile, self.static.get(profile.name, "dev")))
        except SettingError as error:
            raise self._stop("kafkalite.profile", error) from None
        self.profile_defaults = PROFILES[self.profile]
        self._static_values = self._parse_static()
        self._values = self._static_values
        self._log_config: LogConfig | None = None
        self.unknown = tuple(
            name
            for name in self.static
            if name not in BROKER and not name.startswith(_FOREIGN_PREFIXES)
        )
        self._check_together()
        self.warnings = self._find_warnings()

    def int(self, name: _Str) -> _Int:
        """Return a whole number; the setting has to have a value."""
        value = self._values[name]
        assert type(value) is _Int, name
        return value

    def optional_int(self, name: _Str) -> _Int | None:
        """Return a whole number, or None where none is set."""
        return None if self._values[name] is None else self.int(name)

    def bool(self, name: _Str) -> _Bool:
        """Return a truth value."""
        value = self._values[name]
        assert type(value) is _Bool, name
        return value

    def float(self, name: _Str) -> _Float:
        """Return a number."""
        value = self._values[name]
        assert type(value) is _Float or type(value) is _Int, name
        return value

    def str(self, name: _Str) -> _Str:
        """Return a text; the setting has to have a value."""
        value = self._values[name]
        assert type(value) is _Str, name
        return value

    def optional_str(self, name: _Str) -> _Str | None:
        """Return a text, or None where none is set."""
        return None if self._values[name] is None else self.str(name)

    @property
    def is_alone(self) -> _Bool:
        """Whether there is no other broker: neither ZooKeeper nor another process is named."""
        return not any(
            self.optional_str(name)
            for name in (
                "zookeeper.connect",
                "kafkalite.metadata.serve",
                "kafkalite.metadata.follow",
            )
        )

    def list(self, name: _Str) -> tuple[_Str, ...]:
        """Return the elements of a list; none where none is set."""
        value = self._values[name]
        assert value is None or type(value) is tuple, name
        return value or ()

    def value(self, name: _Str) -> Value:
        """Return the value of any setting."""
        return self._values[name]

    @property
    def values(self) -> Mapping[_Str, Value]:
        """All values by name, as they are now; replaced, not changed, by `apply_dynamic`."""
        return self._values

    @property
    def node_id(self) -> _Int:
        """The number of this broker."""
        return self.int("node.id")

    @property
    def log_dirs(self) -> tuple[_Str, ...]:
        """The data directories. None means that a temporary one is to be made (profile test)."""
        return self.list("log.dirs") or self.list("log.dir")

    def endpoints(self, bound_ports: Mapping[_Str, _Int]) -> dict[_Str, tuple[_Str, _Int]]:
        """Return what this broker registers for each listener, given the ports that they got.

        An empty host means the address that a client came in by.
        """
        return self.endpoints_with(self.dynamic_broker.get("advertised.listeners"), bound_ports)

    def endpoints_with(
        self, advertised: _Str | None, bound_ports: Mapping[_Str, _Int]
    ) -> dict[_Str, tuple[_Str, _Int]]:
        """Return the same for an `advertised.listeners` that is about to be; None removes it.

        Raises:
            SettingError: it cannot be; never for one that was checked when it was set.
        """
        static = self._static_values["advertised.listeners"]
        assert static is None or type(static) is tuple
        addresses = (static or ()) if advertised is None else split_list(advertised)
        names = tuple(bound_ports)
        parsed = parse_advertised(
            addresses, listener_names=names, controller_names=self._controller_names
        )
        return endpoints(bound_ports, parsed)

    def log_config(self, topic_overrides: Mapping[_Str, _Str] | None = None) -> LogConfig:
        """Return the settings of a topic's logs: its own, and the broker's where it has none.

        Raises:
            SettingError: an override that is not allowed; never for stored ones, which were
                checked when they were set.
        """
        if not topic_overrides:
            if self._log_config is None:
                self._log_config = self._resolve_log_config({})
            return self._log_config
        return self._resolve_log_config(topic_overrides)

    def topic_default(self, name: _Str) -> Value:
        """Return the value of a topic setting for topics that do not set it (rule 225)."""
        for synonym, factor in TOPIC_SYNONYMS.get(name, ()):
            value = self._values[synonym]
            if value is None:
                continue
            if factor != 1:
                assert isinstance(value, _Int)
                return value * factor if value >= 0 else -1
            if name == "retention.ms":
                assert isinstance(value, _Int)
                return max(value, -1)
            return value
        return TOPIC[name].default

    def apply_dynamic(
        self, broker: Mapping[_Str, _Str], cluster_default: Mapping[_Str, _Str]
    ) -> frozenset[_Str]:
        """Take over what was changed at run time; return the names of settings that have changed.

        Values that cannot be read are left out: they were checked when they were set, so another
        version of kafkalite must have written them.
        """
        values = dict(self._static_values)
        for layer in (cluster_default, broker):
            for name, text in layer.items():
                if name in BROKER:
                    try:
                        values[name] = parse_value(BROKER[name], text)
                    except SettingError:
                        continue
        changed = frozenset(name for name in values if values[name] != self._values[name])
        self.dynamic_broker, self.dynamic_default = broker, cluster_default
        self._values = values
        self._log_config = None
        return changed

    def _resolve_log_config(self, overrides: Mapping[_Str, _Str]) -> LogConfig:
        fields: dict[_Str, Value | frozenset[_Str]] = {}
        for field, name in _log_config_fields().items():
            text = overrides.get(name)
            fields[field] = (
                self.topic_default(name) if text is None else parse_value(TOPIC[name], text)
            )
        fields["cleanup_policy"] = frozenset(fields["cleanup_policy"] or ())  # type: ignore[arg-type]
        if "internal.segment.bytes" in overrides:
            internal = TOPIC["internal.segment.bytes"]
            fields["segment_bytes"] = parse_value(internal, overrides[internal.name])
        fields["validate_records"] = self._values["kafkalite.validate.records"]
        return LogConfig(**fields)  # type: ignore[arg-type]

    def _parse_static(self) -> dict[_Str, Value]:
        values = dict(profile_values(self.profile))
        for name, text in self.static.items():
            setting = BROKER.get(name)
            if setting is None:
                continue
            try:
                values[name] = parse_value(setting, text)
            except SettingError as error:
                raise self._stop(name, error) from None
        return values

    def _find_warnings(self) -> tuple[_Str, ...]:
        warnings = []
        if self.unknown:
            names = ", ".join(sorted(self.unknown))
            warnings.append(f"unknown settings, which are ignored: {names}")
        ignored = [
            name
            for name in self._controller_names
            if any(address.upper().startswith(f"{name}:") for address in self.list("listeners"))
        ]
        if ignored:
            warnings.append(
                f"listeners of a KRaft controller, which are not opened: {', '.join(ignored)}"
            )
        inert = sorted(
            name
            for name in self.static
            if (name.startswith(_FOREIGN_PREFIXES) and not self._is_of_a_listener(name))
            or (
                name in BROKER and BROKER[name].inert and self._values[name] != BROKER[name].default
            )
        )
        if inert:
            names = ", ".join(inert)
            warnings.append(f"settings that have no effect in kafkalite: {names}")
        return tuple(warnings)

    def for_listener(self, name: _Str) -> ListenerSettings:
        """Return the settings of a listener, by its name: its own and those of all."""
        return ListenerSettings(self, name)

    def _inter_broker_name(self) -> _Str | None:
        """Return the listener of brokers, if one is named, be it by its protocol."""
        name = self.optional_str("inter.broker.listener.name")
        if "security.inter.broker.protocol" not in self.static:
            return name
        if name is not None:
            raise SettingError(
                "inter.broker.listener.name: cannot be set together with "
                "security.inter.broker.protocol"
            )
        return self.str("security.inter.broker.protocol")

    @property
    def _controller_names(self) -> tuple[_Str, ...]:
        """Names of a KRaft controller's listeners, which are not opened here."""
        return tuple(name.upper() for name in self.list("controller.listener.names"))

    def _is_of_a_listener(self, name: _Str) -> _Bool:
        return is_of_a_listener(name, [listener.name for listener in self.listeners])

    def _check_together(self) -> None:
        """Check what depends on more than one setting."""
        try:
            self.listeners = parse_listeners(
                self.list("listeners"),
                protocol_map=self.str("listener.security.protocol.map"),
                controller_names=self._controller_names,
                inter_broker_name=self._inter_broker_name(),
            )
            self.inter_broker_listener = inter_broker_listener(self.listeners).name
            parse_advertised(
                self.list("advertised.listeners"),
                listener_names=tuple(listener.name for listener in self.listeners),
                controller_names=self._controller_names,
            )
            refuse_missing_protection(self._values)
            if self.int("group.min.session.timeout.ms") > self.int("group.max.session.timeout.ms"):
                raise SettingError(
                    "group.min.session.timeout.ms: has to be at most group.max.session.timeout.ms"
                )
            if 0 < self.int("queued.max.request.bytes") < self.int("socket.request.max.bytes"):
                raise SettingError(
                    "queued.max.request.bytes: has to be at least socket.request.max.bytes, "
                    "or a request of that size could never be read"
                )
            check_authorizer(self.str("authorizer.class.name"), self.str("super.users"))
            if len(set(self.log_dirs)) < len(self.log_dirs):
                raise SettingError("log.dirs: names a directory twice")
        except SettingError as error:
            raise self._stop(str(error).partition(":")[0], error) from None

    def _stop(self, name: _Str, error: Exception) -> KafkaliteConfigError:
        origin = self._origins.get(name)
        return KafkaliteConfigError(f"{error} (from {origin})" if origin else str(error))


@cache
def profile_values(profile: str) -> Mapping[str, Value]:
    """Return the value that each setting has in a profile if nobody sets it."""
    values: dict[str, Value] = {name: setting.default for name, setting in BROKER.items()}
    for name, text in PROFILES[profile].items():
        values[name] = parse_value(BROKER[name], text)
    values["kafkalite.profile"] = profile
    values["broker.id"] = values["node.id"]
    return values


@cache
def _log_config_fields() -> dict[str, str]:
    """Return the name of the topic setting behind each field of LogConfig that has one."""
    others = {"validate_records", "looks_at_records"}
    fields = [field for field in LogConfig.__dataclass_fields__ if field not in others]
    return {field: field.replace("_", ".") for field in fields}


def _read_properties(path: Path) -> dict[str, str]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise KafkaliteConfigError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        # What java.util.Properties reads.
        text = data.decode("latin-1")
    return parse_properties(text)
