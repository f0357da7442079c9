"""`kafkalite quotas` against a broker."""

import json

import pytest

from kafkalite.cli.main import run
from kafkalite.testing.broker import Broker


@pytest.fixture
def where():
    with Broker() as broker:
        yield ["-b", broker.bootstrap]


def listed(where, capsys):
    capsys.readouterr()
    assert run(["quotas", "list", "--json", *where]) == 0
    return {" ".join(one["entity"]): one["quotas"] for one in json.loads(capsys.readouterr().out)}


def test_quotas_are_set_listed_and_removed(where, capsys):
    rate, percentage = "producer_byte_rate=1e6", "request_percentage=12.5"
    assert run(["quotas", "set", "user:ann", "client:app", rate, percentage, *where]) == 0
    assert run(["quotas", "set", "user:*", "consumer_byte_rate=5000", *where]) == 0
    assert run(["quotas", "set", "ip:::1", "connection_creation_rate=3", *where]) == 0
    assert listed(where, capsys) == {
        "user:ann client:app": {"producer_byte_rate": 1e6, "request_percentage": 12.5},
        "user:*": {"consumer_byte_rate": 5000},
        "ip:::1": {"connection_creation_rate": 3},
    }
    assert run(["quotas", "list", *where]) == 0
    assert "user:ann client:app  producer_byte_rate        1000000" in capsys.readouterr().out
    assert run(["quotas", "remove", "user:ann", "client:app", "request_percentage", *where]) == 0
    assert run(["quotas", "remove", "user:*", *where]) == 0
    assert listed(where, capsys) == {
        "user:ann client:app": {"producer_byte_rate": 1e6},
        "ip:::1": {"connection_creation_rate": 3},
    }
    assert run(["quotas", "remove", "user:*", *where]) == 1
    assert "user:* has no quotas" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["set", "producer_byte_rate=1"], 2, "say whose quotas"),
        (["set", "user:ann"], 2, "say what they may use"),
        (["set", "user:ann", "bytes=1"], 2, "bytes is none of producer_byte_rate"),
        (["set", "user:ann", "producer_byte_rate=many"], 2, "many is no number"),
        (["set", "group:g", "producer_byte_rate=1"], 2, "quotas are of user:NAME"),
        (["remove", "user:ann", "bytes"], 2, "bytes is none of"),
        (["set", "user:ann", "producer_byte_rate=0"], 1, "must be greater than 0"),
        (["set", "ip:here", "connection_creation_rate=1"], 1, "here is no IP address"),
    ],
)
def test_what_cannot_be_is_told(where, capsys, words, code, told):
    assert run(["quotas", *words, *where]) == code
    assert told in capsys.readouterr().err
