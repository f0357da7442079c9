"""`kafkalite health`: one line and an exit code, for containers."""

import pytest

from kafkalite.cli.main import run
from kafkalite.client.cluster import Client
from kafkalite.testing import Broker
from kafkalite.wire.messages.metadata import MetadataResponse, MetadataResponseBroker


def test_broker_that_serves_is_healthy(capsys):
    with Broker() as broker:
        assert run(["health", "-b", broker.bootstrap]) == 0
    assert capsys.readouterr().out.startswith("ok: brokers 1, controller 1, cluster ")


def test_address_where_nobody_answers_is_not(capsys):
    assert run(["health", "-b", "127.0.0.1:1", "--timeout", "1"]) == 1
    assert "cannot connect to 127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.parametrize("controller", [-1, 3])
def test_cluster_without_a_controller_is_not(controller, monkeypatch, capsys):
    answer = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="h", port=1)], controller_id=controller
    )
    monkeypatch.setattr(Client, "fetch_metadata", lambda self, topics: answer)
    with Broker() as broker:
        assert run(["health", "-b", broker.bootstrap]) == 1
    assert capsys.readouterr().err == "kafkalite: there is no controller; brokers: 1\n"


def test_broker_that_is_not_of_its_cluster_is_not(monkeypatch, capsys):
    others = [MetadataResponseBroker(node_id=number, host="h", port=1) for number in (2, 3)]
    answer = MetadataResponse(brokers=others, controller_id=2)
    monkeypatch.setattr(Client, "fetch_metadata", lambda self, topics: answer)
    with Broker() as broker:
        assert run(["health", "-b", broker.bootstrap]) == 1
    said = capsys.readouterr().err
    assert said == "kafkalite: this broker is not among those of its cluster: 2, 3\n"
