"""`kafkalite tap`, `top` and `doctor` on a broker, and the packets and lines they write."""

import json
import logging
import struct
import subprocess
import sys
import threading
import time

import pytest

from kafkalite import Broker
from kafkalite.cli.logs import JsonFormatter
from kafkalite.cli.top import picture
from kafkalite.client.admin import create_topic
from kafkalite.client.cluster import Client
from kafkalite.client.groups import commit_offsets
from kafkalite.types import TopicPartition


@pytest.fixture(scope="module")
def broker():
    with Broker(http=True) as broker:
        yield broker


def run(*arguments):
    """Exit code, output and errors of a command."""
    command = [sys.executable, "-m", "kafkalite", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


class Asking:
    """Creates topics until it is told to stop: something to tap."""

    def __init__(self, broker):
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, args=[broker.bootstrap])

    def run(self, bootstrap):
        with Client(bootstrap, client_id="asking") as client:
            number = 0
            while not self.stop.wait(0.1):
                number += 1
                create_topic(client, f"made-{time.monotonic_ns()}")

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


@pytest.mark.slow
class TestTap:
    def test_prints_requests_as_they_come(self, broker):
        options = ["--http", broker.http_url, "--api", "CreateTopics", "--count", "2"]
        with Asking(broker):
            code, output, errors = run("tap", *options)
        assert (code, errors) == (0, "")
        lines = output.splitlines()
        assert len(lines) == 2
        assert all("CREATE_TOPICS" in line and "asking@" in line for line in lines)

    def test_prints_whole_messages_as_json(self, broker):
        options = ["--http", broker.http_url, "--client-id", "asking", "--json", "--count", "1"]
        with Asking(broker):
            _, output, _ = run("tap", *options)
        found = json.loads(output)
        assert "request" in found
        assert "response" in found

    def test_writes_packets(self, broker, tmp_path):
        file = tmp_path / "x.pcap"
        options = ["--http", broker.http_url, "--api", "CreateTopics", "--count", "1"]
        with Asking(broker):
            code, _, errors = run("tap", *options, "--pcap", str(file))
        assert code == 0, errors
        data = file.read_bytes()
        assert struct.unpack_from("<I", data)[0] == 0xA1B2C3D4
        position, payloads = 24, []
        while position < len(data):
            _, _, size, whole = struct.unpack_from("<IIII", data, position)
            packet = data[position + 16 : position + 16 + size]
            assert size == whole == struct.unpack_from(">H", packet, 2)[0]
            payloads.append(packet[40:])
            position += 16 + size
        assert position == len(data)
        request, answer = (payload for payload in payloads if payload)
        assert struct.unpack_from(">ih", request) == (len(request) - 4, 19)
        assert struct.unpack_from(">i", answer)[0] == len(answer) - 4
        assert b"made-" in request

    def test_says_why_it_cannot(self):
        code, _, errors = run("tap", "--http", "http://127.0.0.1:9")
        assert code == 1
        assert "is --http right?" in errors

    def test_top_shows_topics_and_groups(self, broker):
        broker.create_topic("shown")
        options = ["--http", broker.http_url, "--count", "2", "--interval", "0.5"]
        code, output, errors = run("top", *options)
        assert code == 0, errors
        assert "TOPIC" in output
        assert "GROUP" in output


@pytest.mark.slow
class TestDoctor:
    def test_finds_nothing_where_nothing_is_wrong(self):
        with Broker() as broker:
            assert run("doctor", "-b", broker.bootstrap)[:2] == (0, "nothing is wrong\n")

    def test_finds_an_address_that_nobody_reaches(self):
        config = {"advertised.listeners": "PLAINTEXT://nobody.invalid:9092"}
        with Broker(config=config) as broker:
            code, output, _ = run("doctor", "-b", f"127.0.0.1:{broker_port(broker)}")
        assert code == 1
        assert "nobody.invalid:9092, a name unknown here" in output
        assert "advertised.listeners" in output

    def test_finds_a_group_that_nobody_reads_for(self):
        with Broker() as broker:
            broker.create_topic("left")
            broker.produce("left", b"x")
            with Client(broker.bootstrap) as client:
                commit_offsets(client, "gone", {TopicPartition("left", 0): 0})
            code, output, _ = run("doctor", "-b", broker.bootstrap, "--json")
        assert code == 0
        (finding,) = json.loads(output)
        assert finding["what"] == "group 'gone' has no members, and 1 records to read"

    def test_finds_a_clock_that_is_off(self):
        with Broker() as broker:
            broker.clock.advance(600)
            code, output, _ = run("doctor", "-b", broker.bootstrap)
        assert code == 0
        assert "the controller's clock is 600 s ahead of this machine's" in output

    def test_finds_records_of_the_future(self):
        with Broker() as broker:
            broker.create_topic("late")
            broker.produce("late", b"x", timestamp_ms=int((time.time() + 1_000) * 1_000))
            code, output, _ = run("doctor", "-b", broker.bootstrap)
        assert code == 0
        assert "1 partitions have records of the future" in output
        assert "late-0" in output


def broker_port(broker):
    """The port that it listens on, whatever it tells clients."""
    return next(iter(broker.server._ports.values()))


def test_the_busiest_and_the_furthest_behind_come_first():
    topics = [{"name": n, "records": 5, "partitions": 1} for n in ("a", "b")]
    groups = [{"group_id": g, "lag": lag, "state": "Stable"} for g, lag in (("x", 1), ("y", 2))]
    lines = picture(topics, groups, {"b": 3.0}).splitlines()
    assert [line.split()[0] for line in lines if line] == ["TOPIC", "b", "a", "GROUP", "y", "x"]


def test_log_lines_are_json():
    record = logging.LogRecord("kafkalite.x", logging.INFO, "f", 1, "took %d ms", (5,), None)
    record.api = "FETCH"
    line = json.loads(JsonFormatter().format(record))
    assert line.pop("ts").endswith("Z")
    assert line == {"level": "INFO", "logger": "kafkalite.x", "msg": "took 5 ms", "api": "FETCH"}
