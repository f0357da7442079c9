"""Definition of a setting: its type, and how its text becomes a value and back.

The rules are those of Kafka's ConfigDef: which white space is dropped, what counts as a number or
as true, and how a value is written in DescribeConfigs.
"""

import math
import re
from enum import IntEnum
from typing import NamedTuple

Value = bool | int | float | str | tuple[str, ...] | None

# Compiled when first needed, by `re` itself: most starts need few of them.
_INTEGER = r"[+-]?[0-9]+"
_DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_REPLICA = r"[0-9]+:[0-9]+"
_DURATION = r"(?i)[+-]?P(?!$)([+-]?\d+D)?(T(?!$)([+-]?\d+H)?([+-]?\d+M)?([+-]?\d+(\.\d+)?S)?)?"


class ConfigType(IntEnum):
    """Types as DescribeConfigs v3+ numbers them (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Source of a reported value, as DescribeConfigs v1+ numbers it (rule 33)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Update(IntEnum):
    """Whether a broker setting can be changed while the broker runs (KIP-226)."""

    READ_ONLY = 0
    PER_BROKER = 1
    """For one broker by its id only."""
    CLUSTER_WIDE = 2
    """For one broker, or as the default of all."""


class Setting(NamedTuple):
    """One row of the table.

    Attributes:
        name: Kafka's name.
        type: decides how the text is read, checked and reported.
        default: Apache Kafka 4.3's default; None where Kafka has none.
        minimum: smallest number allowed, inclusive.
        maximum: largest number allowed, inclusive.
        choices: the values, or for a list the elements, that are allowed; empty for any.
        update: how it may change at run time; only broker settings have this.
        inert: known to Kafka and accepted here, without effect.
        internal: accepted, and not reported by DescribeConfigs, as Kafka does with settings for
            its own tests.
        form: name of a further check, see `_check_form`.
    """

    name: str
    type: ConfigType
    default: Value
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    update: Update = Update.READ_ONLY
    inert: bool = False
    internal: bool = False
    form: str = ""

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is never told to anybody."""
        return self.type is ConfigType.PASSWORD


class SettingError(ValueError):
    """A value that a setting cannot have; the message names both, and says what is allowed."""


def parse_value(setting: Setting, text: str) -> Value:
    """Return the value that `text` means.

    Raises:
        SettingError: wrong type, out of range, or not one of the choices.
    """
    value = _read(setting, text)
    _check_range(setting, text, value)
    if setting.choices:
        elements = value if isinstance(value, tuple) else (value,)
        for element in elements:
            if element not in setting.choices:
                choices = ", ".join(setting.choices)
                raise _refusal(setting, str(element), f"has to be one of: {choices}")
    if setting.form:
        _check_form(setting, text, value)
    return value


def format_value(value: Value) -> str | None:
    """Return the text that Kafka reports for a value; None stays None."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return format_double(value)
        case tuple():
            return ",".join(value)
        case _:
            return value


def format_double(value: float) -> str:
    """Return a number as Java writes a double: 0.5, 1.0E7, 1.7976931348623157E308."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else f"{value:.1f}"
    mantissa, exponent = f"{value:e}".split("e")
    digits = repr(value).split("e")[0].replace(".", "").replace("-", "").strip("0")
    mantissa = f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}"
    return f"{mantissa}E{int(exponent)}"


def split_list(text: str) -> tuple[str, ...]:
    """Return the elements of a list setting; white space around commas does not count."""
    text = text.strip()
    return tuple(element.strip() for element in text.split(",")) if text else ()


_LIMITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def _read(setting: Setting, text: str) -> Value:
    trimmed = text.strip()
    match setting.type:
        case ConfigType.BOOLEAN:
            if trimmed.lower() not in ("true", "false"):
                raise _refusal(setting, text, "has to be true or false")
            return trimmed.lower() == "true"
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            bound = 1 << (_LIMITS[setting.type] - 1)
            if not _matches(_INTEGER, trimmed) or not -bound <= int(trimmed) < bound:
                bits = _LIMITS[setting.type]
                raise _refusal(setting, text, f"has to be a whole number of {bits} bits")
            return int(trimmed)
        case ConfigType.DOUBLE:
            if not _matches(_DECIMAL, trimmed):
                raise _refusal(setting, text, "has to be a number")
            return float(trimmed)
        case ConfigType.LIST:
            return split_list(text)
        case ConfigType.CLASS:
            return trimmed
        case _:
            return text


def _check_range(setting: Setting, text: str, value: Value) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    if setting.minimum is not None and value < setting.minimum:
        raise _refusal(setting, text, f"has to be at least {setting.minimum}")
    if setting.maximum is not None and value > setting.maximum:
        raise _refusal(setting, text, f"has to be at most {setting.maximum}")


_MIGRATION_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")


def _check_form(setting: Setting, text: str, value: Value) -> None:
    """Apply the check that a row names in its column `form`."""
    match setting.form:
        case "gzip level":
            if value == 0:
                raise _refusal(setting, text, "has to be 1 to 9, or -1 for the codec's default")
        case "replicas":
            assert isinstance(value, tuple)
            if value != ("*",) and not all(_matches(_REPLICA, pair) for pair in value):
                raise _refusal(setting, text, "has to be * or a list of partition:broker")
        case "age":
            if value == 0:
                raise _refusal(setting, text, "has to be at least 1, or -1 for no limit")
        case "reset":
            prefix, colon, duration = text.partition(":")
            by_duration = prefix == "by_duration" and bool(colon) and _matches(_DURATION, duration)
            if text not in ("latest", "earliest") and not by_duration:
                allowed = "latest, earliest, or by_duration: and a duration such as PT1H30M"
                raise _refusal(setting, text, f"has to be {allowed}")
        case "migration policy":
            if text.lower() not in _MIGRATION_POLICIES:
                reason = f"has to be one of, in any case: {', '.join(_MIGRATION_POLICIES)}"
                raise _refusal(setting, text, reason)
        case "address counts":
            for pair in filter(None, text.split(",")):
                address, colon, count = pair.rpartition(":")
                if not (address.strip() and colon and _matches(_INTEGER, count.strip())):
                    raise _refusal(setting, text, "has to be a list of address:count")
        case other:
            raise AssertionError(f"{setting.name} has the unknown form {other}")


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.ASCII) is not None


def _refusal(setting: Setting, text: str, reason: str) -> SettingError:
    shown = "the given value" if setting.is_sensitive else f"'{text}'"
    return SettingError(f"{setting.name}: {shown} is not allowed, it {reason}")
