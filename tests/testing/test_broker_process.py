"""A broker as a process: the same identity over all its runs."""

import pytest

from kafkalite.client import admin
from kafkalite.client.cluster import Client
from kafkalite.testing.broker_process import BrokerProcess
from kafkalite.testing.processes import ProcessError, unused_port

pytestmark = pytest.mark.slow


@pytest.fixture
def make(tmp_path):
    made = []

    def make(**settings):
        broker = BrokerProcess(
            7,
            directory=tmp_path,
            host="127.0.0.1",
            port=unused_port(),
            peer_port=unused_port(),
            settings={"kafkalite.profile": "test", **settings},
        )
        made.append(broker)
        return broker

    yield make
    for broker in made:
        if broker.is_running:
            broker.kill()


def names(broker):
    with Client(broker.bootstrap, timeout_ms=5000) as client:
        return [topic.name for topic in client.fetch_metadata(None).topics]


def test_same_data_and_address_after_a_kill_and_a_clean_stop(make):
    broker = make()
    broker.launch()
    broker.wait_ready()
    with Client(broker.bootstrap) as client:
        assert [one.node_id for one in client.metadata().brokers] == [7]
        admin.create_topic(client, "kept", replication_factor=1)
    broker.kill()
    assert broker.exit_code == -9
    broker.launch()
    broker.wait_ready()
    assert names(broker) == ["kept"]
    assert broker.stop() == 0
    assert "not running" in repr(broker)
    broker.launch()
    broker.wait_ready()
    assert names(broker) == ["kept"]
    with pytest.raises(RuntimeError, match="runs already"):
        broker.launch()


def test_refusal_to_start_is_told_with_its_log(make):
    broker = make(**{"num.partitions": "none"})
    broker.launch()
    with pytest.raises(ProcessError, match="broker 7 ended with code 1") as caught:
        broker.wait_ready()
    assert "num.partitions" in caught.value.tail


def test_variables_of_the_tests_environment_are_not_for_the_broker(make, monkeypatch):
    monkeypatch.setenv("KAFKA_NODE_ID", "none")
    broker = make()
    broker.launch()
    broker.wait_ready()


def test_one_never_started_has_no_process(make):
    broker = make()
    assert not broker.is_running
    with pytest.raises(RuntimeError, match="was not started"):
        broker.kill()
