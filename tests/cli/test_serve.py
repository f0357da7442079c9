"""`kafkalite serve` as a process of its own: its one line, its signals, its refusals."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import click
import pytest
from kazoo.client import KazooClient

from kafkalite.cli.serve import _overrides, _raise_plainly
from kafkalite.client.admin import create_topic
from kafkalite.client.cluster import Client
from kafkalite.meta.store import BrokerIdTaken
from kafkalite.testing.zookeeper import ZooKeeper

API_VERSIONS = b"\0\0\0\x0a\0\x12\0\0\0\0\0\x09\xff\xff"
"""A request of version 0."""

READY = re.compile(r"kafkalite ready: bootstrap=(\S+) profile=(\S+)(?: http=(\S+))? data=(\S+)\n")


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
            process.bootstrap, process.profile, process.http, process.data = match.groups()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def refusal(*arguments, cwd, environment=None, waiting=None):
    """The line on stderr of a process that does not start; before it, why it waits, if it does."""
    with started(*arguments, cwd=cwd, environment=environment, ready=False) as process:
        output, errors = process.communicate(timeout=20)
    assert process.returncode == 1
    assert output == ""
    *before, line = errors.splitlines()
    assert len(before) == (waiting is not None), errors
    assert all(waiting in each for each in before), errors
    return line.removeprefix("kafkalite: ")


@pytest.fixture
def terminal():
    """As started from a terminal, whatever these tests are run by."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
class TestLife:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_is_ready_when_it_says_so_and_stops_cleanly(self, number, tmp_path, terminal):
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

    def test_goes_on_without_its_terminal_under_nohup(self, tmp_path):
        ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with started("serve", "--listen", "127.0.0.1:0", cwd=tmp_path) as process:
                process.send_signal(signal.SIGHUP)
                with Client(process.bootstrap) as client:
                    create_topic(client, "orders")
                process.terminate()
                assert process.wait(20) == 0
        finally:
            signal.signal(signal.SIGHUP, ignored)

    def test_says_where_a_browser_finds_it(self, tmp_path):
        with (
            started("serve", "--listen", "0", cwd=tmp_path) as process,
            urllib.request.urlopen(f"{process.http}/health/ready", timeout=20) as answer,
        ):
            assert json.load(answer)["status"] == "ready"
        with started("serve", "--listen", "0", "--http", "off", cwd=tmp_path) as process:
            assert process.http is None
        with started("serve", "--listen", "0", "--http", "0.0.0.0:0", cwd=tmp_path) as process:
            address, _, token = process.http.partition("/?token=")
            assert len(token) == 32
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"{address}/api/v1/cluster", timeout=20)

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


@pytest.fixture(scope="module")
def zookeeper():
    with ZooKeeper() as started_one:
        yield started_one


def of_cluster(zookeeper, name, *settings):
    """Arguments of a broker of the cluster that has this path in ZooKeeper."""
    chosen = [
        f"zookeeper.connect={zookeeper.connect}/{name}",
        "zookeeper.session.timeout.ms=1000",
        "zookeeper.connection.timeout.ms=18000",
        *settings,
    ]
    return ["serve", "--listen", "0", *(word for text in chosen for word in ("--set", text))]


def nodes_of(zookeeper, name):
    """Every node of a cluster with its content."""
    client = KazooClient(zookeeper.connect)
    client.start(timeout=20)
    found = {}

    def walk(path):
        found[path] = client.get(path)[0]
        for child in client.get_children(path):
            walk(f"{path}/{child}")

    try:
        walk(f"/{name}")
    finally:
        client.stop()
        client.close()
    return found


def files_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def folder(tmp_path, name):
    made = tmp_path / name
    made.mkdir(exist_ok=True)
    return made


@pytest.mark.slow
class TestRefusalsInACluster:
    def test_zookeeper_that_is_not_there_is_named(self, tmp_path):
        settings = ["zookeeper.connect=127.0.0.1:1", "zookeeper.connection.timeout.ms=500"]
        words = [word for text in settings for word in ("--set", text)]
        line = refusal("serve", "--listen", "0", *words, cwd=tmp_path)
        assert line == (
            "ZooKeeper at 127.0.0.1:1 was not reached within 500 ms "
            "(zookeeper.connection.timeout.ms)"
        )
        assert list(files_of(tmp_path)) == ["kafkalite-data/.gitignore"]

    def test_second_broker_of_the_same_id_is_refused_and_the_first_serves_on(
        self, zookeeper, tmp_path
    ):
        arguments = of_cluster(zookeeper, "taken")
        first = folder(tmp_path, "first")
        with started(*arguments, cwd=first) as process, Client(process.bootstrap) as client:
            create_topic(client, "orders")
            nodes, files = nodes_of(zookeeper, "taken"), files_of(first)
            second = folder(tmp_path, "second")
            line = refusal(*arguments, cwd=second, waiting="waiting up to ")
            assert line.startswith("another broker is registered as node.id 1 in ZooKeeper at ")
            assert nodes_of(zookeeper, "taken") == nodes
            assert files_of(first) == files
            create_topic(client, "more")
            # The directory is not bound to the id that was another's.
            with started(*of_cluster(zookeeper, "taken", "node.id=2"), cwd=second):
                assert {broker.node_id for broker in client.fetch_metadata([]).brokers} == {1, 2}

    def test_cluster_id_of_another_cluster_is_refused(self, zookeeper, tmp_path):
        arguments = of_cluster(zookeeper, "other-id")
        with started(*arguments, cwd=folder(tmp_path, "first")):
            nodes = nodes_of(zookeeper, "other-id")
            second = folder(tmp_path, "second")
            line = refusal(
                *of_cluster(zookeeper, "other-id", "node.id=2"),
                cwd=second,
                environment={"CLUSTER_ID": "AAAAAAAAAAAAAAAAAAAAAA"},
            )
            assert line.startswith("kafkalite.cluster.id is AAAAAAAAAAAAAAAAAAAAAA, the cluster ")
            assert nodes_of(zookeeper, "other-id") == nodes
            assert list(files_of(second)) == ["kafkalite-data/.gitignore"]

    def test_data_directory_of_another_cluster_is_refused(self, zookeeper, tmp_path):
        one, other = folder(tmp_path, "one"), folder(tmp_path, "other")
        with started(*of_cluster(zookeeper, "one"), cwd=one) as process:
            with Client(process.bootstrap) as client:
                create_topic(client, "orders")
            process.terminate()
            process.wait(20)
        with started(*of_cluster(zookeeper, "other", "node.id=2"), cwd=other):
            nodes, files = nodes_of(zookeeper, "other"), files_of(one)
            line = refusal(*of_cluster(zookeeper, "other"), cwd=one)
            assert re.fullmatch(
                r"log directory kafkalite-data belongs to cluster \S+, not to \S+", line
            )
            assert nodes_of(zookeeper, "other") == nodes
            assert files_of(one) == files


def test_what_two_tasks_find_out_at_once_is_one_line():
    line = "another broker is registered as node.id 1"
    inner = BaseExceptionGroup("", [BrokerIdTaken(line)])
    with pytest.raises(click.ClickException) as told:
        _raise_plainly(BaseExceptionGroup("", [inner, BrokerIdTaken(line)]))
    assert told.value.message == line


def test_bug_beside_a_refusal_is_told_with_all_that_is_known():
    group = BaseExceptionGroup("", [BrokerIdTaken("taken"), ZeroDivisionError()])
    with pytest.raises(BaseExceptionGroup) as told:
        _raise_plainly(group)
    assert told.value is group


@pytest.mark.parametrize(
    ("listen", "listeners"),
    [
        (("127.0.0.1", 9093), "PLAINTEXT://127.0.0.1:9093"),
        (("", 9093), "PLAINTEXT://:9093"),
        (("::1", 0), "PLAINTEXT://[::1]:0"),
    ],
)
def test_address_becomes_a_listener(listen, listeners):
    options = {"data_dir": None, "profile": None, "settings": {}}
    assert _overrides(listen=listen, **options) == {"listeners": listeners}


@pytest.mark.slow
@pytest.mark.slow
def test_requests_that_are_kept_are_not_looked_at_again_and_again_for_garbage(tmp_path):
    """A collection of Python's for each few requests would cost more than counting them."""

    def collections(url):
        with urllib.request.urlopen(f"{url}/metrics") as answer:
            text = answer.read().decode()
        return float(re.search(r'python_gc_collections_total{generation="0"} (\S+)', text)[1])

    options = ("serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data-dir", "data")
    with started(*options, cwd=tmp_path) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        before = collections(broker.http)
        with (
            socket.create_connection((host, int(port))) as client,
            client.makefile("rb") as answers,
        ):
            client.sendall(API_VERSIONS * 5_000)
            for _ in range(5_000):
                answers.read(int.from_bytes(answers.read(4), "big"))
        time.sleep(1.1)  # who asks sooner gets the same again
        found = collections(broker.http) - before
        assert found < 10


def test_broker_stops_when_its_standard_input_ends(tmp_path):
    command = [sys.executable, "-m", "kafkalite", "serve", "--profile", "test"]
    process = subprocess.Popen(
        [*command, "--until-stdin-ends", "--kafka-log-lines"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert READY.fullmatch(process.stdout.readline())
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines[1] == "[KafkaRaftServer nodeId=1] Kafka Server started\n"
        process.stdin.write("what comes is not looked at\n")
        process.stdin.flush()
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
