"""`kafkalite cluster`: what it keeps, what it tells, and its life as a process."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kafkalite.cli.cluster import (
    LAYOUT_FILE,
    Layout,
    Watch,
    _ending,
    _kept_by_two,
)
from kafkalite.cli.main import run
from kafkalite.client import admin
from kafkalite.client.cluster import Client
from kafkalite.client.producer import Producer
from kafkalite.testing.broker_process import BrokerProcess
from kafkalite.testing.processes import wait_until_true
from kafkalite.testing.zookeeper import ZooKeeper

READY = re.compile(r"kafkalite ready: bootstrap=(\S+) zookeeper=(\S+) data=(\S+)\n")
FILES = re.compile(r"/(broker-\d|zookeeper)\S*(\.properties|\.cfg)")


class TestLayout:
    def test_first_start_takes_the_ports_from_9092_on(self):
        layout = Layout()
        layout.place(None, None)
        assert [port for port, _ in layout.ports] == [9092, 9093, 9094]
        assert layout.host == "127.0.0.1"
        assert len({peer for _, peer in layout.ports}) == 3

    def test_next_start_goes_on_with_the_same(self, tmp_path):
        layout = Layout()
        layout.place(2, ("0.0.0.0", 19092))
        layout.zookeeper_port = 2181
        layout.save(tmp_path)
        again = Layout.load(tmp_path)
        again.place(None, None)
        assert again == layout

    def test_brokers_are_added_behind_those_there(self):
        layout = Layout(ports=[(9092, 20_000), (9093, 20_001)])
        layout.place(3, None)
        assert layout.ports[:2] == [(9092, 20_000), (9093, 20_001)]
        assert layout.ports[2][0] == 9094

    def test_brokers_are_not_left_out(self):
        with pytest.raises(click.ClickException, match="there are 2 brokers"):
            Layout(ports=[(1, 2), (3, 4)]).place(1, None)

    def test_another_address_moves_all_clients_ports_and_no_other(self):
        layout = Layout(ports=[(9092, 20_000), (9093, 20_001)])
        layout.place(None, ("127.0.0.1", 19092))
        assert layout.ports == [(19_092, 20_000), (19_093, 20_001)]

    def test_port_0_takes_any_free_ones(self):
        layout = Layout()
        layout.place(3, ("127.0.0.1", 0))
        assert len({port for pair in layout.ports for port in pair}) == 6
        assert all(port for pair in layout.ports for port in pair)

    def test_ports_end_at_65535(self):
        with pytest.raises(click.ClickException, match="not 3 ports from 65534"):
            Layout().place(3, ("127.0.0.1", 65534))

    def test_damaged_file_is_told(self, tmp_path):
        (tmp_path / LAYOUT_FILE).write_text("{}")
        with pytest.raises(click.ClickException, match=r"cluster\.json is damaged"):
            Layout.load(tmp_path)


class FakeBroker(BrokerProcess):
    """A broker whose process lives and dies as the test says."""

    def __init__(self, number):
        self.broker_id = number
        self.code = None
        self.ready = True
        self.launched = 0

    @property
    def log_file(self):
        return Path(f"broker-{self.broker_id}.log")

    @property
    def is_running(self):
        return self.code is None

    @property
    def is_ready(self):
        return self.ready

    @property
    def process(self):
        return self

    def poll(self):
        return self.code

    def launch(self):
        self.code = None
        self.ready = False
        self.launched += 1


class FakeCluster:
    zookeeper = None

    def __init__(self):
        self.brokers = {number: FakeBroker(number) for number in (1, 2, 3)}


class TestWatch:
    def watch(self, *, restart):
        self.cluster = FakeCluster()
        self.told = []
        self.now = 100.0
        return Watch(self.cluster, restart=restart, tell=self.told.append, clock=lambda: self.now)

    def test_death_is_told_once_and_the_others_go_on(self):
        watch = self.watch(restart=False)
        watch.look()
        self.cluster.brokers[2].code = -signal.SIGKILL
        watch.look()
        watch.look()
        assert self.told == [
            "broker 2 was ended by SIGKILL; the others go on; its log: broker-2.log"
        ]
        assert self.cluster.brokers[2].launched == 0

    def test_last_death_ends_the_command(self):
        watch = self.watch(restart=False)
        for broker in self.cluster.brokers.values():
            broker.code = 1
        with pytest.raises(click.ClickException, match="no broker is left"):
            watch.look()

    def test_with_restart_it_is_started_again_and_its_return_is_told(self):
        watch = self.watch(restart=True)
        broker = self.cluster.brokers[1]
        broker.code = 1
        watch.look()
        watch.look()
        assert broker.launched == 1
        assert len(self.told) == 1
        broker.ready = True
        watch.look()
        assert self.told[1:] == ["broker 1 serves again"]

    def test_one_that_ends_again_and_again_is_started_once_a_second(self):
        watch = self.watch(restart=True)
        broker = self.cluster.brokers[1]
        for _ in range(20):
            broker.code = 1
            watch.look()
            self.now += 0.1
        assert broker.launched == 2


@pytest.mark.parametrize(("brokers", "expected"), [(1, "1"), (2, "2"), (5, "2")])
def test_two_brokers_have_what_was_acknowledged_where_there_are_two(brokers, expected):
    assert _kept_by_two(brokers) == {"min.insync.replicas": expected}


def test_ending_is_told_in_words():
    assert _ending(3) == "ended with code 3"
    assert _ending(-15) == "was ended by SIGTERM"
    assert _ending(-63) == "was ended by signal 63"


class Running:
    """A `kafkalite cluster` as a process, and what it said when it was ready."""

    def __init__(self, process):
        self.process = process
        line = process.stdout.readline()
        match = READY.fullmatch(line)
        assert match, line + process.stderr.read()
        self.bootstrap, self.zookeeper, self.data = match.groups()

    def client(self):
        return Client(self.bootstrap, timeout_ms=20_000)

    def pids(self):
        """Return the processes that the command has started, by what their log is called."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_text().split("\0")
                for word in words:
                    match = re.fullmatch(
                        rf"{self.data}/(broker-\d|zookeeper)\S*(properties|cfg)", word
                    )
                    if match:
                        found[match[1]] = int(folder.name)
        return found


def write_everywhere(client, topic):
    """Write a record to each partition, acknowledged by all in-sync replicas."""
    producer = Producer(client, topic)
    for partition in range(producer.partition_count):
        producer.send(b"value", partition=partition)
    producer.flush()


def in_sync(client, topic):
    (found,) = client.fetch_metadata([topic]).topics
    return [set(partition.isr_nodes) for partition in found.partitions]


@contextlib.contextmanager
def started(folder, *arguments):
    process = subprocess.Popen(
        [sys.executable, "-m", "kafkalite", "cluster", "--data-dir", str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Running(process)
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            process.kill()
            process.stdout.close()
            process.stderr.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
class TestLife:
    def test_stops_in_order_and_goes_on_with_the_same_brokers(self, tmp_path):
        with started(tmp_path, "--listen", "127.0.0.1:0") as first:
            with first.client() as client:
                assert {broker.node_id for broker in client.metadata().brokers} == {1, 2, 3}
                admin.create_topic(client, "kept", partitions=2)
            assert sorted(first.pids()) == ["broker-1", "broker-2", "broker-3", "zookeeper"]
            first.process.send_signal(signal.SIGINT)
            assert first.process.wait(30) == 0
            assert first.process.stderr.read() == ""
            assert first.pids() == {}
        with started(tmp_path) as second:
            assert second.bootstrap == first.bootstrap
            with second.client() as client:
                assert len(client.topic("kept").partitions) == 2
        assert (tmp_path / ".gitignore").exists()

    def test_faults_and_the_clock_of_all_brokers_take_one_command(self, tmp_path, capsys):
        def kafkalite(*words):
            assert run([*words, "--http", url]) == 0
            return capsys.readouterr().out

        with started(tmp_path, "--listen", "127.0.0.1:0", "--brokers", "2") as cluster:
            _, second = json.loads((tmp_path / "cluster.json").read_text())["http_ports"]
            url = f"http://127.0.0.1:{second}"
            kafkalite("faults", "add", "api=Produce", "topic=t", "broker=all", "disconnect=true")
            listed = kafkalite("faults", "list", "--broker", "all").splitlines()
            assert [line[:10] for line in listed] == ["broker 1: ", "broker 2: "]
            with cluster.client() as client:
                admin.create_topic(client, "t", partitions=2)
            assert kafkalite("faults", "clear", "--broker", "all").count("never fired") == 2
            assert kafkalite("faults", "list", "--broker", "all") == ""
            advanced = kafkalite("clock", "advance", "2h", "--broker", "all")
            assert advanced.count("+7200 s") == 2

    def test_dead_broker_is_told_and_brought_back(self, tmp_path):
        with started(tmp_path, "--listen", "0", "--restart") as cluster:
            pid = cluster.pids()["broker-2"]
            os.kill(pid, signal.SIGKILL)
            told = cluster.process.stderr
            assert told.readline().startswith("kafkalite: broker 2 was ended by SIGKILL; the oth")
            assert told.readline() == "kafkalite: broker 2 serves again\n"
            assert cluster.pids()["broker-2"] != pid

    def test_without_restart_deaths_are_told_and_the_rest_go_on(self, tmp_path):
        arguments = ["--listen", "0", "--set", "zookeeper.session.timeout.ms=2000"]
        with started(tmp_path, *arguments) as cluster:
            with cluster.client() as client:
                admin.create_topic(client, "orders", partitions=3)
                write_everywhere(client, "orders")
            told = cluster.process.stderr
            os.kill(cluster.pids()["broker-2"], signal.SIGKILL)
            assert told.readline() == (
                "kafkalite: broker 2 was ended by SIGKILL; the others go on; "
                f"its log: {tmp_path}/broker-2.log\n"
            )
            with cluster.client() as client:
                # The others lead everything from here on, and 2 is out of each ISR.
                assert wait_until_true(lambda: in_sync(client, "orders") == [{1, 3}] * 3, 20)
                write_everywhere(client, "orders")
                os.kill(cluster.pids()["zookeeper"], signal.SIGKILL)
                assert told.readline().startswith("kafkalite: ZooKeeper was ended by SIGKILL; ")
                write_everywhere(client, "orders")
            assert sorted(cluster.pids()) == ["broker-1", "broker-3"]

    def test_zookeeper_of_somebody_else_is_used_and_left_running(self, tmp_path):
        with ZooKeeper() as zookeeper:
            address = f"{zookeeper.connect}/one/of/several"
            arguments = ["--listen", "0", "--brokers", "2", "--zookeeper", address]
            with started(tmp_path, *arguments) as cluster:
                assert cluster.zookeeper == address
                assert sorted(cluster.pids()) == ["broker-1", "broker-2"]
                with cluster.client() as client:
                    admin.create_topic(client, "orders")
                    write_everywhere(client, "orders")
                owned = [path for paths in zookeeper.sessions().values() for path in paths]
                ids = {f"/one/of/several/brokers/ids/{number}" for number in (1, 2)}
                assert ids <= set(owned)
                assert all(path.startswith("/one/of/several/") for path in owned)
                cluster.process.terminate()
                assert cluster.process.wait(30) == 0
            assert zookeeper.is_serving()
            assert wait_until_true(lambda: zookeeper.sessions() == {}, 10)

    def test_nothing_is_left_when_the_command_itself_is_killed(self, tmp_path):
        with started(tmp_path, "--listen", "0", "--brokers", "2") as cluster:
            assert len(cluster.pids()) == 3
            cluster.process.kill()
            assert wait_until_true(lambda: cluster.pids() == {}, 10)

    def test_taken_port_is_told_in_one_line(self, tmp_path):
        with started(tmp_path / "one", "--listen", "0", "--brokers", "1") as cluster:
            taken = cluster.bootstrap
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "kafkalite", "cluster"),
                    *("--data-dir", str(tmp_path / "two"), "--listen", taken),
                ],
                capture_output=True,
                text=True,
                timeout=60,
            )
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert f"cannot listen on {taken}" in done.stderr

    def test_settings_are_those_of_all_brokers(self, tmp_path):
        with started(
            tmp_path, "--listen", "0", "--brokers", "1", "--set", "num.partitions=7"
        ) as one:
            assert json.loads((tmp_path / LAYOUT_FILE).read_text())["zookeeper_port"] > 0
            with one.client() as client:
                admin.create_topic(client, "wide")
                assert len(client.topic("wide").partitions) == 7
                settings = admin.describe_configs(client, admin.ResourceType.BROKER, "1")
                told = {setting.name: setting.value for setting in settings}
                assert told["min.insync.replicas"] == "1"
