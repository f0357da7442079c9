"""Any Kafka over a client: which questions are asked once more."""

import time

import pytest
import trio

from kafkalite.client.cluster import Client
from kafkalite.client.errors import ClientError
from kafkalite.console.wire import WireCluster
from kafkalite.observe.cluster import topic
from kafkalite.observe.records import ends_of, read_forward, read_newest
from kafkalite.observe.search import parse_filter
from kafkalite.testing import Broker
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.log.log_kit import batch
from tests.quota.scenarios import Asker


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


@pytest.mark.slow
@pytest.mark.parametrize("how", ["forward", "newest"])
def test_a_throttled_search_passes_over_nothing(how):
    """An answer that is held back has no records (rule 561), which is not the end of them."""
    settings = {"quota.window.num": 2, "quota.window.size.seconds": 1}
    with Broker(config=settings) as broker:
        broker.create_topic("t")
        for number in range(10):
            broker.produce("t", b"%d " % number + bytes(20_000))
        with Asker(broker, "admin") as admin:
            admin.set_quota({"client-id": "console"}, consumer_byte_rate=100_000)

        async def search(cluster):
            view = await topic(cluster, "t")
            starts, ends = await ends_of(cluster, view, [0])
            options = {"limit": 100, "wanted": parse_filter("")}
            if how == "newest":
                return await read_newest(cluster, view, starts, ends, **options)
            cursor, found = starts, []
            while cursor != ends:
                piece = await read_forward(cluster, view, cursor, ends, **options)
                cursor, found = piece.cursor, found + piece.messages
            piece.messages = found
            return piece

        began_s = time.monotonic()
        with Client(broker.bootstrap, client_id="console") as client:
            reading = trio.run(search, WireCluster(client, can_write=False))
        assert sorted(each["offset"] for each in reading.messages) == [*range(10)]
        assert time.monotonic() - began_s > 0.5, "it was not throttled"
