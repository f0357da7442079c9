"""The text in ZooKeeper's nodes, without a ZooKeeper; what it means is in test_zookeeper.py."""

import json

import pytest

from kafkalite.meta.image import BrokerImage, ConfigResource, PartitionImage, TopicImage
from kafkalite.meta.zookeeper import znodes
from kafkalite.meta.zookeeper.znodes import NotKafka
from tests.meta.meta_kit import topic_id


def test_a_registration_names_the_first_plaintext_listener():
    """Rule 186: for clients older than endpoints."""
    broker = BrokerImage(broker_id=1, endpoints={"S": ("s", 1), "P": ("::1", 2)})
    data = znodes.broker_data(broker, {"S": "SSL", "P": "PLAINTEXT"}, now_ms=5)
    values = json.loads(data)
    assert (values["host"], values["port"]) == ("::1", 2)
    assert values["endpoints"] == ["S://s:1", "P://[::1]:2"]
    assert values["listener_security_protocol_map"] == {"S": "SSL", "P": "PLAINTEXT"}
    assert values["timestamp"] == "5"
    assert "rack" not in values
    again = znodes.read_broker(1, data, broker_epoch=7)
    assert again == BrokerImage(broker_id=1, endpoints=broker.endpoints, broker_epoch=7)


def test_a_registration_without_plaintext_names_no_address():
    broker = BrokerImage(broker_id=1, endpoints={"S": ("s", 1)}, rack="r")
    values = json.loads(znodes.broker_data(broker, {"S": "SSL"}, now_ms=5))
    assert (values["host"], values["port"], values["rack"]) == (None, -1, "r")


def test_a_topic_says_which_replicas_come_and_go():
    """Rule 189."""
    state = PartitionImage((1, 2, 3), (1, 2), 1, 4, 5, adding=(3,), removing=(1,))
    topic = TopicImage(name="t", topic_id=topic_id(1), partitions=(state,))
    data = znodes.topic_data(topic)
    values = json.loads(data)
    assert values["adding_replicas"] == {"0": [3]}
    assert values["removing_replicas"] == {"0": [1]}
    node = znodes.read_topic("t", data)
    path = znodes.state_path("t", 0)
    text = znodes.state_data(state, controller_epoch=9)
    assert json.loads(text)["controller_epoch"] == 9
    assert znodes.read_state(path, text, node.partitions[0], version=5) == state
    assert node.topic_id == topic_id(1)


def test_names_of_nodes():
    """Rule 191."""
    assert znodes.config_path(ConfigResource(4, "")) == "/config/brokers/<default>"
    assert znodes.config_path(ConfigResource(2, "a.b_c-d")) == "/config/topics/a.b_c-d"
    assert znodes.config_path(ConfigResource(32, "a/b")) == "/config/groups/a%2Fb"
    assert znodes.read_config_name("a%2Fb") == "a/b"
    assert znodes.read_config_name("<default>") == ""
    assert znodes.change_path(7) == "/changes/0000000007"


def test_retired_topics_are_in_order():
    nodes = {
        str(topic_id(1)): znodes.retired_data(version=5, place=1),
        str(topic_id(2)): znodes.retired_data(version=4, place=9),
        str(topic_id(3)): znodes.retired_data(version=5, place=0),
    }
    assert znodes.read_retired(nodes) == (topic_id(2), topic_id(3), topic_id(1))


def test_there_are_no_producer_ids_at_first():
    assert znodes.read_next_producer_id(b"") == 0
    assert znodes.read_next_producer_id(znodes.producer_ids_data(1, 0, 1_000)) == 1_000


@pytest.mark.parametrize(
    "read",
    [
        lambda data: znodes.read_broker(1, data, broker_epoch=1),
        znodes.read_controller,
        znodes.read_controller_epoch,
        znodes.read_cluster_id,
        lambda data: znodes.read_changes("/changes/1", data),
        lambda data: znodes.read_topic("t", data),
        lambda data: znodes.read_state("/x", data, PartitionImage((), (), -1), version=1),
        lambda data: znodes.read_config("/x", data),
        znodes.read_next_producer_id,
        lambda data: znodes.read_own_broker("/x", data),
        lambda data: znodes.read_retired({"x": data}),
    ],
)
def test_what_kafka_would_not_write_is_named(read):
    for data in (b"\xff", b"x", b"[]", b'{"config": 1}'):
        with pytest.raises(NotKafka, match=r"^/.* holds b'.*which Apache Kafka 3\.9 would not"):
            read(data)
