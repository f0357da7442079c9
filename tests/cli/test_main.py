"""What the command line does before it talks to anybody."""

import os
import subprocess
import sys

import click
import pytest

from kafkalite import NEEDS_ASSERTIONS, __version__
from kafkalite.cli import main as main_module
from kafkalite.cli.main import COMMANDS, run
from kafkalite.client.errors import ClientError
from kafkalite.wire.errors import ErrorCode, KafkaError


def test_help_lists_all_commands(capsys):
    assert run(["--help"]) == 0
    listed = capsys.readouterr().out.split("Commands:\n")[1].split("\n\n")[0]
    assert [line.split()[0] for line in listed.splitlines()] == [*COMMANDS]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "pipeline"])
def test_every_command_has_help(name, capsys):
    assert run([name, "--help"]) == 0
    assert f"Usage: kafkalite {name}" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["-m", "kafkalite", "serve"],
        ["-c", "from kafkalite import Broker; Broker().start()"],
    ],
)
def test_python_without_assertions_is_refused_in_one_line(arguments, tmp_path):
    done = subprocess.run(
        [sys.executable, "-O", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    line = done.stderr.splitlines()[-1]
    assert line.endswith(NEEDS_ASSERTIONS)
    assert "-m" not in arguments or done.stderr == f"kafkalite: {NEEDS_ASSERTIONS}\n"
    assert list(tmp_path.iterdir()) == []


def test_version_is_told(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"kafkalite {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nope"], "kafkalite: No such command 'nope'. See 'kafkalite --help'.\n"),
        (["topics", "nope"], "kafkalite: No such command 'nope'. See 'kafkalite topics --help'.\n"),
        (["consume"], "kafkalite: Missing argument 'TOPIC'. See 'kafkalite consume --help'.\n"),
    ],
)
def test_wrong_usage_is_one_line(arguments, line, capsys):
    assert run(arguments) == 2
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KafkaError(ErrorCode.INVALID_CONFIG, "bad\nvalue"), 1, "INVALID_CONFIG: bad value"),
        (ClientError("no broker"), 1, "no broker"),
        (PermissionError(13, "Permission denied", "/data"), 1, "Permission denied: /data"),
        (OSError("just so"), 1, "just so"),
        (click.ClickException("wrong"), 1, "wrong"),
        (KeyboardInterrupt(), 130, None),
        (click.Abort(), 130, None),
    ],
)
def test_what_is_no_bug_is_one_line(error, code, line, monkeypatch, capsys):
    @click.command()
    def failing():
        raise error

    monkeypatch.setattr(main_module.kafkalite, "get_command", lambda *_: failing)
    assert run(["failing"]) == code
    assert capsys.readouterr().err.lstrip() == (f"kafkalite: {line}\n" if line else "")


def test_bug_keeps_its_traceback(monkeypatch):
    @click.command()
    def failing():
        raise ZeroDivisionError

    monkeypatch.setattr(main_module.kafkalite, "get_command", lambda *_: failing)
    with pytest.raises(ZeroDivisionError):
        run(["failing"])


def loaded_by(code):
    """Names of the modules that a fresh interpreter has after running `code`."""
    script = f"{code}\nimport sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.splitlines()[-1].split())


def test_help_imports_neither_broker_nor_client():
    loaded = loaded_by("from kafkalite.cli.main import run; run(['--help'])")
    assert not loaded & {"trio", "construct", "tqdm", "kafkalite.client.cluster", "pyspark"}


def test_client_commands_import_no_broker():
    loaded = loaded_by("import kafkalite.cli.topics, kafkalite.cli.consume, kafkalite.cli.groups")
    assert not loaded & {"trio", "tqdm", "kafkalite.server.broker", "pyspark", "cramjam", "kazoo"}


def test_pytest_plugin_costs_nothing_until_it_is_used():
    loaded = loaded_by("import kafkalite.testing.pytest_plugin")
    assert not loaded & {"trio", "construct", "kafkalite.wire", "kafkalite.client"}
