"""`kafkalite serve` as a process of its own: its one line, its signals, its refusals."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from kafkalite.cli.serve import _overrides
from kafkalite.client.admin import create_topic
from kafkalite.client.cluster import Client

READY = re.compile(r"kafkalite ready: bootstrap=(\S+) profile=(\S+) data=(\S+)\n")


@contextlib.contextmanager
def started(*arguments, cwd, environment=None, ready=True):
    """A process, killed at the end if it still runs; with what its first line says."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kafkalite", *arguments],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        if ready:
            line = process.stdout.readline()
            match = READY.fullmatch(line)
            assert match, line + process.stderr.read()
            process.bootstrap, process.profile, process.data = match.groups()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def refusal(*arguments, cwd, environment=None):
    """The line on stderr of a process that does not start."""
    with started(*arguments, cwd=cwd, environment=environment, ready=False) as process:
        output, errors = process.communicate(timeout=20)
    assert process.returncode not in (0, None)
    assert output == ""
    assert errors.count("\n") == 1, errors
    return errors.removeprefix("kafkalite: ").rstrip()


@pytest.mark.slow
class TestLife:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_is_ready_when_it_says_so_and_stops_cleanly(self, number, tmp_path):
        with started("serve", "--listen", "127.0.0.1:0", cwd=tmp_path) as process:
            assert process.profile == "dev"
            assert process.data == str(tmp_path / "kafkalite-data")
            with Client(process.bootstrap) as client:
                create_topic(client, "orders")
            process.send_signal(number)
            output, errors = process.communicate(timeout=20)
            assert (process.returncode, output, errors) == (0, "", "")
        kept = {path.name for path in (tmp_path / "kafkalite-data").iterdir()}
        assert {"orders-0", ".kafka_cleanshutdown", ".gitignore"} <= kept

    def test_without_a_command_it_serves(self, tmp_path):
        environment = {"KAFKA_LISTENERS": "PLAINTEXT://127.0.0.1:0"}
        with started(cwd=tmp_path, environment=environment) as process:
            assert process.bootstrap.startswith("127.0.0.1:")

    def test_temporary_data_is_gone_after_a_test(self, tmp_path):
        with started("serve", "--profile", "test", cwd=tmp_path) as process:
            assert os.path.isdir(process.data)
            process.terminate()
            process.wait(20)
        assert not os.path.exists(process.data)
        assert list(tmp_path.iterdir()) == []

    def test_options_come_after_environment_and_file(self, tmp_path):
        file = tmp_path / "server.properties"
        file.write_text("listeners=PLAINTEXT://127.0.0.1:1\nlog.dirs=from-file\nnum.partitions=2\n")
        arguments = ["serve", str(file), "--listen", "0", "--set", "num.partitions=3"]
        environment = {"KAFKA_LOG_DIRS": "from-environment"}
        with started(*arguments, cwd=tmp_path, environment=environment) as process:
            assert process.data == str(tmp_path / "from-environment")
            with Client(process.bootstrap) as client:
                create_topic(client, "orders")
                assert len(client.partitions("orders")) == 3

    def test_log_lines_go_to_stderr(self, tmp_path):
        arguments = ["serve", "--profile", "test", "-v", "--set", "nonsense.setting=1"]
        with started(*arguments, cwd=tmp_path) as process:
            process.terminate()
            output, errors = process.communicate(timeout=20)
        assert output == ""
        assert "nonsense.setting" in errors


@pytest.mark.slow
class TestRefusals:
    def test_wrong_setting_is_named(self, tmp_path):
        line = refusal("serve", "--set", "num.partitions=many", cwd=tmp_path)
        assert line.startswith("num.partitions: ")
        assert line.endswith("(from the command line)")

    def test_missing_file_is_named(self, tmp_path):
        line = refusal("serve", "nowhere.properties", cwd=tmp_path)
        assert line == "nowhere.properties: cannot be read: No such file or directory"

    def test_taken_port_is_named(self, tmp_path):
        with socket.create_server(("127.0.0.1", 0)) as other:
            address = f"127.0.0.1:{other.getsockname()[1]}"
            line = refusal("serve", "--listen", address, cwd=tmp_path)
        assert address in line
        assert line.endswith("--listen HOST:PORT chooses another")

    def test_data_directory_in_use_is_named(self, tmp_path):
        arguments = ["serve", "--listen", "0"]
        with started(*arguments, cwd=tmp_path):
            assert "kafkalite-data" in refusal(*arguments, cwd=tmp_path)

    def test_data_directory_of_another_broker_is_named(self, tmp_path):
        with started("serve", "--listen", "0", "--set", "node.id=7", cwd=tmp_path) as process:
            process.terminate()
            process.wait(20)
        line = refusal("serve", "--listen", "0", cwd=tmp_path)
        assert "belongs to node.id 7" in line

    def test_profile_test_leaves_data_alone_that_it_would_not_keep_safe(self, tmp_path):
        with started("serve", "--listen", "0", cwd=tmp_path) as process:
            process.terminate()
            process.wait(20)
        arguments = ["serve", "--profile", "test", "--data-dir", "kafkalite-data"]
        assert "--force" in refusal(*arguments, cwd=tmp_path)
        with started(*arguments, "--force", cwd=tmp_path) as process:
            assert process.profile == "test"

    def test_file_in_place_of_the_data_directory_is_named(self, tmp_path):
        (tmp_path / "kafkalite-data").write_text("")
        line = refusal("serve", "--listen", "0", cwd=tmp_path)
        assert line == "File exists: kafkalite-data"


@pytest.mark.parametrize(
    ("listen", "listeners"),
    [
        ("127.0.0.1:9093", "PLAINTEXT://127.0.0.1:9093"),
        (":9093", "PLAINTEXT://:9093"),
        ("9093", "PLAINTEXT://127.0.0.1:9093"),
        ("[::1]:0", "PLAINTEXT://[::1]:0"),
    ],
)
def test_address_may_be_short(listen, listeners):
    options = {"data_dir": None, "profile": None, "settings": ()}
    assert _overrides(listen=listen, **options) == {"listeners": listeners}
