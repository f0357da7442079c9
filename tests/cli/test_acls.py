"""`kafkalite acls` against a broker with an authorizer, and against one without."""

import json

import pytest

from kafkalite.cli.main import run
from kafkalite.testing.broker import Broker

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def where():
    config = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with Broker(config=config) as broker:
        yield ["-b", broker.bootstrap]


def listed(where, capsys):
    capsys.readouterr()
    assert run(["acls", "list", "--json", *where]) == 0
    return [" ".join(row.values()) for row in json.loads(capsys.readouterr().out)]


def test_rules_are_made_listed_explained_and_taken_back(where, capsys):
    assert run(["acls", "allow", "alice", "read,write", "topic:ord*", "group:g", *where]) == 0
    assert "allow User:alice read topic:ord*" in capsys.readouterr().out
    assert run(["acls", "deny", "*", "delete", "topic:orders", "--host", "10.0.0.1", *where]) == 0
    assert sorted(listed(where, capsys)) == [
        "allow User:alice read group:g *",
        "allow User:alice read topic:ord* *",
        "allow User:alice write group:g *",
        "allow User:alice write topic:ord* *",
        "deny User:* delete topic:orders 10.0.0.1",
    ]
    assert run(["acls", "explain", "alice", "describe", "topic:orders", *where]) == 0
    out = capsys.readouterr().out
    assert "allowed; allowed by a rule: allow User:alice" in out
    assert run(["acls", "explain", "alice", "delete", "topic:orders", *where]) == 1
    assert "denied; no rule about it allows it" in capsys.readouterr().err
    elsewhere = ["--host", "10.0.0.1", *where]
    assert run(["acls", "explain", "alice", "delete", "topic:orders", *elsewhere]) == 1
    assert "denied by a rule: deny User:* delete topic:orders" in capsys.readouterr().err
    assert run(["acls", "remove", "alice", "read,write", "topic:ord*", "group:g", *where]) == 0
    assert run(["acls", "remove", "alice", "read", "topic:ord*", *where]) == 1
    assert listed(where, capsys) == ["deny User:* delete topic:orders 10.0.0.1"]


@pytest.mark.parametrize(
    "words",
    [
        ["allow", "alice", "eat", "topic:x"],
        ["allow", "alice", "read", "x"],
        ["explain", "alice", "read,write", "topic:x"],
    ],
)
def test_what_means_nothing_is_refused(where, capsys, words):
    assert run(["acls", *words, *where]) == 2
    assert capsys.readouterr().err


def test_cluster_without_an_authorizer_says_so(capsys):
    """Rule 219."""
    with Broker() as broker:
        for words in (["list"], ["allow", "alice", "read", "topic:x"]):
            assert run(["acls", *words, "-b", broker.bootstrap]) == 1
            assert "SECURITY_DISABLED" in capsys.readouterr().err
