"""What Apache Kafka answers to batches that are none, against the table of the unit tests."""

from __future__ import annotations

import pytest

from compat_tests.apache_kafka import ApacheBroker
from kafkalite.client.admin import create_topic
from kafkalite.client.cluster import Client
from kafkalite.client.connection import Connection
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.log.bad_batches import bad_batches, kafkas_answer

TOPIC = "plain"


@pytest.mark.slow
@pytest.mark.kafka_dir
def test_the_table_has_what_apache_kafka_answers() -> None:
    answers = {}
    with ApacheBroker() as broker:
        with Client(broker.bootstrap) as client:
            create_topic(client, TOPIC)
            client.partitions(TOPIC)
        host, _, port = broker.bootstrap.rpartition(":")
        connection = Connection(host, int(port), client_id="table", timeout_ms=20_000)
        for name, batch in bad_batches().items():
            data = [PartitionProduceData(index=0, records=batch)]
            topics = [TopicProduceData(name=TOPIC, partition_data=data)]
            request = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=topics)
            (answer,) = connection.request(PRODUCE, request).responses[0].partition_responses
            answers[name] = answer.error_code
        connection.close()
    assert answers == {name: kafkas_answer(name) for name in answers}
