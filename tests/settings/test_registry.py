"""The tables against what Apache Kafka 4.3.1 reports of itself.

`apache_kafka_4_3.json` holds, for each setting that a running Kafka 4.3.1 answered to
DescribeConfigs: number of the type, default, read-only, sensitive.
"""

import json
import re
from pathlib import Path

import pytest

import kafkalite.settings.documentation as documentation_module
from kafkalite.log_config import LogConfig
from kafkalite.settings.checks import GROUP_BOUNDS
from kafkalite.settings.config_def import Setting, Update, format_value, parse_value
from kafkalite.settings.documentation import documentation
from kafkalite.settings.kafkalite import OWN_SETTINGS, PROFILES
from kafkalite.settings.registry import BROKER, CLIENT_METRICS, GROUP, GROUP_SYNONYMS, TOPIC
from kafkalite.settings.topics import TOPIC_SYNONYMS

KAFKA = json.loads(Path(__file__).with_name("apache_kafka_4_3.json").read_text())
TABLES = {"topic": TOPIC, "broker": BROKER, "group": GROUP, "metrics": CLIENT_METRICS}

KNOWN_DIFFERENCES = {
    # A lone node needs neither an id nor a quorum.
    ("broker", "node.id"): "default",
    ("broker", "controller.listener.names"): "default",
    ("broker", "process.roles"): "default",
    # May be changed after the start: a container learns its outside address only then.
    ("broker", "advertised.listeners"): "read-only",
    # Sockets are opened once.
    ("broker", "listeners"): "read-only",
    ("broker", "listener.security.protocol.map"): "read-only",
}

FROM_BEFORE_4_0 = ("zookeeper.", "password.encoder.")
"""Settings of Apache Kafka 3.9 that 4.0 dropped, and that mean here what they meant there."""


@pytest.mark.parametrize("kind", TABLES)
def test_every_setting_that_kafka_reports_is_there_and_no_other(kind: str) -> None:
    """Rule 223, and the broker settings of 4.3."""
    ours = {name for name, setting in TABLES[kind].items() if not setting.internal}
    ours -= {setting.name for setting in OWN_SETTINGS}
    if kind == "broker":
        ours = {name for name in ours if not name.startswith(FROM_BEFORE_4_0)}
    assert ours == set(KAFKA[kind])


@pytest.mark.parametrize("kind", TABLES)
def test_types_defaults_and_flags_are_those_of_kafka(kind: str) -> None:
    """Rule 224."""
    different = set()
    for name, (number, default, read_only, sensitive) in KAFKA[kind].items():
        setting = TABLES[kind][name]
        assert setting.type == number, name
        assert setting.is_sensitive == sensitive, name
        if format_value(setting.default) != default:
            different.add(((kind, name), "default"))
        if kind == "broker" and (setting.update is Update.READ_ONLY) != read_only:
            different.add(((kind, name), "read-only"))
    assert different == {item for item in KNOWN_DIFFERENCES.items() if item[0][0] == kind}


@pytest.mark.parametrize("kind", TABLES)
def test_every_default_is_allowed_by_its_own_row(kind: str) -> None:
    for setting in TABLES[kind].values():
        text = format_value(setting.default)
        if text is not None:
            assert parse_value(setting, text) == setting.default


@pytest.mark.parametrize("kind", TABLES)
def test_every_setting_is_documented_and_inert_ones_say_so(kind: str) -> None:
    for setting in TABLES[kind].values():
        text = documentation(setting)
        assert text[0].isupper()
        assert text.endswith(".")
        assert ("does not act on it" in text) == setting.inert


def test_documentation_has_no_line_without_a_setting() -> None:
    path = Path(documentation_module.__file__).with_name("documentation.txt")
    names = [line.split("\t")[0] for line in path.read_text().splitlines() if "\t" in line]
    assert len(names) == len(set(names))
    assert set(names) == set(TOPIC) | set(BROKER) | set(GROUP) | set(CLIENT_METRICS)


def test_topic_synonyms_name_settings_of_the_same_meaning() -> None:
    """Rule 225."""
    for topic_name, synonyms in TOPIC_SYNONYMS.items():
        for broker_name, factor in synonyms:
            same_type = TOPIC[topic_name].type == BROKER[broker_name].type
            assert same_type or factor != 1, (topic_name, broker_name)


def test_defaults_of_log_config_are_those_of_the_topic_settings() -> None:
    for field in LogConfig.__dataclass_fields__:
        default = getattr(LogConfig(), field)
        if field in {"validate_records", "looks_at_records"}:  # the broker's
            continue
        setting: Setting = TOPIC[field.replace("_", ".")]
        expected = frozenset(setting.default) if field == "cleanup_policy" else setting.default
        assert default == expected, field


def test_profiles_set_known_settings_to_allowed_values() -> None:
    for profile in PROFILES.values():
        for name, text in profile.items():
            parse_value(BROKER[name], text)


def test_settings_say_rightly_whether_the_broker_acts_on_them() -> None:
    """A setting is either named by the code that acts on it, or marked as inert."""
    package = Path(documentation_module.__file__).parent.parent
    code = "".join(
        path.read_text()
        for path in package.rglob("*.py")
        if path.parent.name != "settings" and path.name != "log_config.py"
    )
    named = set(re.findall(r'"([a-z][a-zA-Z0-9.]+)"', code))
    # Settings of topics reach the code that acts on them as fields of LogConfig.
    fields = set(re.findall(r"\.([a-z0-9_]+)\b", code)) & set(LogConfig.__dataclass_fields__)
    used = {name for name in TOPIC_SYNONYMS if name.replace(".", "_") in fields}
    unused = set(TOPIC_SYNONYMS) - used - named
    assert sorted(unused) == sorted(name for name in TOPIC_SYNONYMS if TOPIC[name].inert)
    defaults = {name for topic_name in used for name, _ in TOPIC_SYNONYMS[topic_name]}
    # Settings of groups reach it as fields of GroupConfig, within the broker's bounds.
    attributes = set(re.findall(r"\.([a-z0-9_]+)\b", code))
    of_groups = {name for name in GROUP if name.replace(".", "_") in attributes}
    assert sorted(of_groups) == sorted(name for name in GROUP if not GROUP[name].inert)
    defaults |= {GROUP_SYNONYMS[name] for name in of_groups if name in GROUP_SYNONYMS}
    defaults |= {bound for name in of_groups for bound in GROUP_BOUNDS.get(name, ())} & set(BROKER)
    acted_on = (named | defaults) & set(BROKER)
    inert = {name for name, setting in BROKER.items() if setting.inert}
    assert sorted(acted_on & inert - defaults) == []
    assert sorted(set(BROKER) - inert - acted_on) == []
