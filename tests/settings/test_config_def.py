import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.settings.config_def import (
    ConfigType,
    Setting,
    SettingError,
    format_double,
    format_value,
    parse_value,
    split_list,
)
from kafkalite.settings.registry import BROKER, GROUP, TOPIC


def setting(kind: ConfigType, **columns: object) -> Setting:
    return Setting("some.setting", kind, None, **columns)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.INT, " 5 ", 5),
        (ConfigType.INT, "+5", 5),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, "5E-1", 0.5),
        (ConfigType.DOUBLE, ".5", 0.5),
        (ConfigType.LIST, " a , b,c ", ("a", "b", "c")),
        (ConfigType.LIST, "  ", ()),
        (ConfigType.STRING, " kept ", " kept "),
        (ConfigType.CLASS, " org.x ", "org.x"),
        (ConfigType.PASSWORD, "secret", "secret"),
    ],
)
def test_text_is_read_as_kafka_reads_it(kind: ConfigType, text: str, value: object) -> None:
    """White space counts as in Kafka's ConfigDef: `delete.retention.ms=' 5 '` is 5."""
    parsed = parse_value(setting(kind), text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ConfigType.BOOLEAN, "1"),
        (ConfigType.BOOLEAN, "yes"),
        (ConfigType.INT, "2147483648"),
        (ConfigType.INT, "1_000"),
        (ConfigType.INT, "1.0"),
        (ConfigType.INT, ""),
        (ConfigType.INT, "٣"),
        (ConfigType.SHORT, "32768"),
        (ConfigType.LONG, "9223372036854775808"),
        (ConfigType.DOUBLE, "x"),
        (ConfigType.DOUBLE, "NaN"),
        (ConfigType.DOUBLE, "1_0.0"),
    ],
)
def test_text_of_the_wrong_type_is_refused_with_name_and_value(kind: ConfigType, text: str) -> None:
    """Rule 227."""
    with pytest.raises(SettingError, match=r"^some\.setting: ") as caught:
        parse_value(setting(kind), text)
    assert f"'{text}'" in str(caught.value)


def test_range_ends_are_inclusive() -> None:
    row = setting(ConfigType.INT, minimum=1, maximum=17)
    assert parse_value(row, "1") == 1
    assert parse_value(row, "17") == 17
    with pytest.raises(SettingError, match="at least 1"):
        parse_value(row, "0")
    with pytest.raises(SettingError, match="at most 17"):
        parse_value(row, "18")


def test_each_element_of_a_list_has_to_be_a_choice() -> None:
    policy = TOPIC["cleanup.policy"]
    assert parse_value(policy, "compact, delete") == ("compact", "delete")
    assert parse_value(policy, "") == ()
    with pytest.raises(SettingError, match=r"'nope'.*compact, delete"):
        parse_value(policy, "delete,nope")
    with pytest.raises(SettingError):
        parse_value(policy, "COMPACT")


def test_choices_of_a_text_are_exact() -> None:
    with pytest.raises(SettingError, match="'GZIP'"):
        parse_value(TOPIC["compression.type"], "GZIP")


def test_gzip_level_zero_lies_between_two_allowed_ranges() -> None:
    level = TOPIC["compression.gzip.level"]
    assert [parse_value(level, text) for text in ("-1", "1", "9")] == [-1, 1, 9]
    with pytest.raises(SettingError, match="1 to 9"):
        parse_value(level, "0")


def test_throttled_replicas_are_a_star_or_pairs() -> None:
    row = TOPIC["leader.replication.throttled.replicas"]
    for text in ("*", "", "0:1,1:1"):
        parse_value(row, text)
    for text in ("x", "0:1,x", "*,0:1"):
        with pytest.raises(SettingError, match="partition:broker"):
            parse_value(row, text)


def test_log_retention_may_not_be_zero_at_the_broker() -> None:
    row = BROKER["log.retention.ms"]
    assert parse_value(row, "-1") == -1
    with pytest.raises(SettingError, match="at least 1"):
        parse_value(row, "0")


def test_share_groups_reset_to_a_position_or_by_duration() -> None:
    row = GROUP["share.auto.offset.reset"]
    for text in ("earliest", "latest", "by_duration:PT1H", "by_duration:P1DT2H30.5S"):
        assert parse_value(row, text) == text
    for text in ("x", "by_duration", "by_duration:", "by_duration:P", "latest:PT1H"):
        with pytest.raises(SettingError):
            parse_value(row, text)


def test_connections_per_address_are_pairs() -> None:
    row = BROKER["max.connections.per.ip.overrides"]
    parse_value(row, "127.0.0.1:5,host:10")
    for text in ("x", "host:", ":5", "host:x"):
        with pytest.raises(SettingError):
            parse_value(row, text)


def test_a_refused_secret_is_not_repeated() -> None:
    row = Setting("some.password", ConfigType.PASSWORD, None, choices=("right",))
    with pytest.raises(SettingError) as caught:
        parse_value(row, "hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (-2.5, "-2.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1234567.0, "1234567.0"),
        (1e7, "1.0E7"),
        (1.25e10, "1.25E10"),
        (-1.5e-5, "-1.5E-5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_are_written_as_java_does(value: float, text: str) -> None:
    assert format_double(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_written_doubles_read_back(value: float) -> None:
    assert float(format_double(value)) == value


def test_values_are_written_as_kafka_reports_them() -> None:
    assert format_value(None) is None
    assert format_value(True) == "true"
    assert format_value(False) == "false"
    assert format_value(("a", "b")) == "a,b"
    assert format_value(()) == ""
    assert format_value(7) == "7"
    assert format_value(0.9) == "0.9"
    assert format_value("x") == "x"


def test_lists_are_split_at_commas() -> None:
    assert split_list("a,,b") == ("a", "", "b")


def test_a_row_with_an_unknown_form_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="unknown form"):
        parse_value(setting(ConfigType.STRING, form="nope"), "x")
