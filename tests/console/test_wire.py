"""Any Kafka over a client: which questions are asked once more."""

import pytest
import trio

from kafkalite.client.cluster import Client
from kafkalite.client.errors import ClientError
from kafkalite.console.wire import WireCluster
from kafkalite.testing import Broker
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.log.log_kit import batch


@pytest.fixture
def broker():
    with Broker() as running:
        running.create_topic("t")
        yield running


def ask(broker, api, message):
    with Client(broker.bootstrap, timeout_ms=2_000) as client:
        cluster = WireCluster(client, can_write=True)
        return trio.run(lambda: cluster.ask(api, message))


def test_a_question_whose_answer_is_lost_is_asked_once_more(broker):
    rule = broker.faults.on("Metadata").lose_reply(reset=True).once()
    assert ask(broker, METADATA, MetadataRequest(topics=[])).brokers
    assert rule.hits == 1


def test_records_whose_answer_is_lost_are_not_written_twice(broker):
    broker.faults.on("Produce").lose_reply(reset=True).once()
    data = PartitionProduceData(index=0, records=batch(b"x"))
    topic = TopicProduceData(
        name="t",
        topic_id=broker.server.services.metadata.image.topics["t"].topic_id,
        partition_data=[data],
    )
    with pytest.raises(ClientError):
        ask(broker, PRODUCE, ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[topic]))
    assert len(broker.records("t")) == 1
