"""`kafkalite serve --processes`: one command, several brokers, one lifetime."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalite.cli.client_config import client_config
from kafkalite.cli.processes import count_of
from kafkalite.cli.serve import serve
from kafkalite.testing import Broker
from kafkalite.testing.processes import wait_until_true

pytestmark = pytest.mark.slow


@pytest.fixture
def group(tmp_path):
    """Two processes: their folder, the process that started them, and the ready line."""
    command = [sys.executable, "-m", "kafkalite", "serve", "--processes", "2", "--profile", "dev"]
    options = [
        "--listen",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
        "--data-dir",
        str(tmp_path / "d"),
    ]
    errors = (tmp_path / "errors").open("w+")
    process = subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1
    )
    line = process.stdout.readline()
    yield tmp_path / "d", process, line
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    process.stdout.close()
    errors.close()


def process_of(folder, number):
    """The process id of a broker, by its command line."""
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"{folder}/broker-{number}.properties".encode() in words:
            return int(entry)
    return None


def settings_of(client):
    """A client's settings: those given, or those for these addresses."""
    return client if isinstance(client, dict) else {"bootstrap.servers": client}


def leaders(client, topic):
    found = AdminClient(settings_of(client)).list_topics(topic, timeout=30)
    return {index: each.leader for index, each in found.topics[topic].partitions.items()}


def create(bootstrap, topic, partitions):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(60)


def produce(client, topic, values, partitions):
    failed = []
    producer = Producer(settings_of(client) | {"enable.idempotence": True})
    for value in values:
        producer.produce(
            topic,
            str(value),
            partition=value % partitions,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(90) == 0
    assert failed == []


def consume(client, topic, count):
    consumer = Consumer(settings_of(client) | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values = []

    def is_there():
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.append(int(message.value()))
        return len(values) >= count

    assert wait_until_true(is_there, 60), f"{len(values)} of {count}"
    consumer.close()
    return sorted(values)


def test_a_killed_process_comes_back_with_everything(group):
    folder, _, line = group
    told = re.fullmatch(
        r"kafkalite ready: bootstrap=(\S+) profile=dev http=http://\S+ processes=2 data=(\S+)\n",
        line,
    )
    assert told, line
    bootstrap = told[1]
    assert told[2] == str(folder)
    create(bootstrap, "t", 4)
    assert sorted(leaders(bootstrap, "t").values()) == [1, 1, 2, 2]
    produce(bootstrap, "t", range(100), 4)
    for number in (2, 1):
        victim = process_of(folder, number)
        os.kill(victim, signal.SIGKILL)
        produce(bootstrap, "t", range(number * 100, number * 100 + 100), 4)
        assert process_of(folder, number) not in (victim, None)
    create(bootstrap, "later", 2)
    assert consume(bootstrap, "t", 300) == list(range(300))


def test_a_broker_in_a_test_has_others_beside_it():
    with Broker(processes=2) as broker:
        assert len(broker.bootstrap.split(",")) == 2
        create(broker.bootstrap, "t", 2)
        assert sorted(leaders(broker.bootstrap, "t").values()) == [1, 2]
        produce(broker.bootstrap, "t", range(20), 2)
        assert consume(broker.bootstrap, "t", 20) == list(range(20))


def test_a_broker_in_a_test_has_others_with_tls_and_users_beside_it():
    with Broker(processes=2, tls=True, users={"ann": "secret"}) as broker:
        create(broker.bootstrap, "t", 2)
        settings = broker.client_settings(user="ann")
        produce(settings, "t", range(20), 2)
        assert consume(settings, "t", 20) == list(range(20))


def test_processes_are_secured_by_one_switch(tmp_path):
    command = [sys.executable, "-m", "kafkalite", "serve", "--processes", "2", "--secure"]
    options = ["--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "d"), "--http", "off"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        told = re.fullmatch(
            r"kafkalite ready: bootstrap=(\S+) secure=(\S+) profile=dev processes=2 data=\S+\n",
            process.stdout.readline(),
        )
        assert told
        run = CliRunner().invoke(
            client_config, ["librdkafka", "--data-dir", str(tmp_path / "d")], catch_exceptions=False
        )
        settings = dict(
            line.split("=", 1) for line in run.output.splitlines() if line[:1] not in ("", "#")
        )
        assert settings["bootstrap.servers"] == told[2]
        create(told[1], "t", 4)
        assert sorted(leaders(settings, "t").values()) == [1, 1, 2, 2]
        produce(settings, "t", range(20), 4)
        assert consume(settings, "t", 20) == list(range(20))
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--processes", "none"], "1 to 64, or auto"),
        (["--processes", "2", "--kafka-log-lines"], "--processes goes with neither"),
        (
            [
                "--processes",
                "3",
                "--listen",
                "127.0.0.1:9092",
                "--secure",
                "--secure-listen",
                ":9094",
            ],
            "3 processes take the ports 9092 to 9094, and another listener begins with 9094",
        ),
        (["--processes", "2", "--set", "log.dirs=a,b"], "takes one data directory"),
    ],
)
def test_what_does_not_go_together_is_said(tmp_path, options, words):
    folder = [] if "--set" in options else ["--data-dir", str(tmp_path / "d")]
    result = CliRunner().invoke(serve, [*folder, *options])
    assert result.exit_code
    assert words in " ".join(result.output.split())


def test_data_of_a_single_broker_are_left_alone(tmp_path):
    (tmp_path / "meta.properties").write_text("version=0\nnode.id=1\n")
    result = CliRunner().invoke(serve, ["--data-dir", str(tmp_path), "--processes", "2"])
    assert "holds the data of a single broker" in result.output


def test_data_of_several_processes_are_not_those_of_one(tmp_path):
    """Its folder broker-1 would be taken for a partition of a topic `broker`."""
    (tmp_path / "cluster.id").write_text("x")
    result = CliRunner().invoke(serve, ["--data-dir", str(tmp_path), "--profile", "dev"])
    assert "holds the data of several brokers" in result.output


def test_fewer_processes_than_there_are_are_refused(tmp_path):
    for number in (1, 2, 3):
        (tmp_path / f"broker-{number}").mkdir()
        (tmp_path / f"broker-{number}" / "meta.properties").touch()
    result = CliRunner().invoke(serve, ["--data-dir", str(tmp_path), "--processes", "2"])
    assert "holds the data of 3 processes" in result.output


def test_auto_means_a_process_for_each_core():
    assert count_of("auto") == len(os.sched_getaffinity(0))
    assert count_of(None) == 1
    assert count_of("3") == 3
