"""`kafkalite export --layout kcat` writes what kcat itself prints, and each reads the other's."""

from __future__ import annotations

import json
import subprocess

import pytest

from compat_tests.toolchains import find_program
from kafkalite.cli.main import run
from kafkalite.client.cluster import Client
from kafkalite.client.producer import Producer
from kafkalite.testing import Broker

pytestmark = [pytest.mark.compat, pytest.mark.slow]

RECORDS = [
    (b"k", b"text", ()),
    (None, b'{"a": [1, "\xc3\xa9\xe2\x82\xac"]}', ()),
    (b"k", None, ()),
    (b"", b'quotes " and \\ and\nlines\tand \x01', ()),
    (b"k", b"headers", (("a", b"1"), ("a", b"2"), ("none", None))),
]


@pytest.fixture
def kcat():
    return find_program("kcat")


@pytest.fixture
def broker():
    with Broker() as broker:
        broker.create_topic("orders")
        with Client(broker.bootstrap) as client:
            producer = Producer(client, "orders")
            for number, (key, value, headers) in enumerate(RECORDS):
                at_ms = 1_700_000_000_000 + number
                producer.send(value, key=key, headers=headers, timestamp_ms=at_ms)
            producer.flush()
        yield broker


def printed(kcat, broker, topic):
    """Return what `kcat -J` prints of a topic, without who answered."""
    command = [kcat, "-b", broker.bootstrap, "-C", "-J", "-e", "-q", "-t", topic]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    lines = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert all(line.pop("broker") is not None for line in lines)
    return lines


def exported(broker, topic, capsys):
    assert run(["export", "-b", broker.bootstrap, topic, "--layout", "kcat"]) == 0
    return capsys.readouterr().out


def test_the_layout_is_what_kcat_prints(kcat, broker, capsys):
    lines = [json.loads(line) for line in exported(broker, "orders", capsys).splitlines()]
    assert lines == printed(kcat, broker, "orders")
    assert len(lines) == len(RECORDS)
    assert [[*line] for line in lines] == [[*line] for line in printed(kcat, broker, "orders")]


def test_what_was_exported_and_what_kcat_prints_are_the_same_to_import(
    kcat, broker, capsys, tmp_path
):
    ours, theirs = tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"
    ours.write_text(exported(broker, "orders", capsys))
    theirs.write_text("".join(json.dumps(line) + "\n" for line in printed(kcat, broker, "orders")))
    for file in (ours, theirs):
        with Broker() as other:
            assert run(["import", "-b", other.bootstrap, str(file)]) == 0
            capsys.readouterr()
            assert printed(kcat, other, "orders") == printed(kcat, broker, "orders")
