"""Options, refusals and tables of the command line."""

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from kafkalite.pipeline import cli
from kafkalite.pipeline.audit import PartitionAudit, PartitionContent
from kafkalite.pipeline.broker_view import PartitionOffsets
from kafkalite.pipeline.errors import PipelineError
from kafkalite.types import TopicPartition


@pytest.fixture
def call(monkeypatch):
    """Run a command where Spark is missing, which is found out last."""

    def missing(**_):
        raise PipelineError("PySpark is not installed; do this")

    monkeypatch.setattr(cli, "spark_session", missing)
    return lambda *arguments: CliRunner().invoke(cli.pipeline, arguments)


def test_help_lists_the_commands_with_what_each_does(call):
    done = call("--help")
    assert done.exit_code == 0
    listed = dict(re.findall(r"^  (archive|replay|audit)  +(\S.*)$", done.output, re.MULTILINE))
    assert set(listed) == set(cli.pipeline.commands)


@pytest.mark.parametrize("name", ["archive", "replay", "audit"])
def test_help_of_a_command_tells_what_each_option_does(call, name):
    done = call(name, "--help")
    assert done.exit_code == 0
    command = cli.pipeline.commands[name]
    words = " ".join(done.output.split())
    assert " ".join(command.help.split("\n\n")[0].split()) in words
    for option in (each for each in command.params if isinstance(each, click.Option)):
        assert option.opts[-1] in words
        assert option.help, option.opts
        assert " ".join(option.help.split()) in words


@pytest.mark.parametrize("name", ["archive", "replay", "audit"])
def test_examples_in_help_are_command_lines_that_are_taken(name):
    command = cli.pipeline.commands[name]
    examples = re.sub(r"\\\n\s*", "", command.epilog or "")
    lines = re.findall(rf"kafkalite pipeline {name} (.*)", examples)
    assert lines
    for line in lines:
        assert command.make_context(name, shlex.split(line)).params


@pytest.mark.parametrize(
    "arguments",
    [
        ("archive", "t", "-o", "out"),
        ("replay", "t", "rows.csv", "--header", "a=b", "--rate", "5"),
        ("audit", "--pattern", "a.*"),
    ],
)
def test_missing_spark_is_one_line(call, arguments):
    done = call(*arguments)
    assert (done.exit_code, done.output) == (1, "Error: PySpark is not installed; do this\n")


@pytest.mark.parametrize("option", ["-b", "--bootstrap", "--bootstrap-server", None])
def test_cluster_is_named_as_in_the_other_commands(option, call, monkeypatch):
    asked = []
    monkeypatch.setattr(cli, "AuditJob", lambda **fields: asked.append(fields["bootstrap"]))
    if option is None:
        monkeypatch.setenv("KAFKALITE_BOOTSTRAP", "h:1")
    call("audit", "t", *(() if option is None else (option, "h:1")))
    assert asked == ["h:1"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("archive", "-o", "out"), "name topics, or give --pattern"),
        (("archive", "t", "--pattern", "x", "-o", "out"), "name topics, or give --pattern"),
        (("archive", "t", "-o", "out", "--from", "yesterday"), "'yesterday' is not earliest"),
        (("archive", "t", "-o", "out", "--kafka-option", "x"), "'x' is not NAME=VALUE"),
        (("replay", "t", "a.csv", "--header", "=x"), "'=x' is not NAME=VALUE"),
        (("replay", "t", "a.csv", "--rate", "1", "--speed", "1"), "not both"),
        (("replay", "t", "a.csv", "--speed", "1"), "--speed needs --time"),
        (("audit",), "name topics, or give --pattern"),
    ],
)
def test_wrong_options_are_told(call, arguments, reason):
    done = call(*arguments)
    assert done.exit_code == 2
    assert reason in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("1356998400000", 1_356_998_400_000),
        ("2013-01-01T00:00:00", 1_356_998_400_000),
        ("2013-01-01T01:00:00+01:00", 1_356_998_400_000),
        ("2013-01-01", 1_356_998_400_000),
    ],
)
def test_start_is_a_word_or_a_time_in_utc(text, start):
    assert cli.parse_start(text) == start


def test_start_of_another_form_is_refused():
    with pytest.raises(click.BadParameter):
        cli.parse_start("soon")


def test_table_is_aligned_and_shows_absent_values_as_dashes():
    audits = [
        PartitionAudit(
            partition=TopicPartition("orders", 0),
            content=PartitionContent(
                records=1000,
                first_offset=0,
                last_offset=999,
                first_timestamp_ms=0,
                last_timestamp_ms=1_356_998_400_000,
            ),
            reported=PartitionOffsets(earliest=0, latest=1000),
            findings=(),
        ),
        PartitionAudit(
            partition=TopicPartition("orders", 1),
            content=PartitionContent(),
            reported=PartitionOffsets(earliest=5, latest=5),
            findings=(),
        ),
    ]
    title, first, second = cli.audit_table(audits).splitlines()
    assert title.split()[:3] == ["PARTITION", "RECORDS", "FIRST"]
    assert first.endswith("1970-01-01T00:00:00 … 2013-01-01T00:00:00")
    assert second.split() == ["orders-1", "0", "-", "-", "5", "5", "0", "0", "0"]
    assert first.index("1000") + 4 == title.index("RECORDS") + 7
