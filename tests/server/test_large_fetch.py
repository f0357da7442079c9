"""A Fetch of very many partitions, where requests are watched and clients have quotas."""

import pytest

from kafkalite.testing import Broker
from kafkalite.wire.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from tests.quota.scenarios import Asker

COUNT = 3_000
"""Partitions of a request that is decoded, answered and encoded in steps."""


def fetch(client, topic):
    partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1_000_000)
        for index in range(COUNT)
    ]
    request = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=10**7,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=partitions)],
    )
    return client.ask(FETCH, 12, request)


def records_of(answer):
    partitions = [data for topic in answer.responses for data in topic.partitions]
    assert len(partitions) == COUNT
    return [data.partition_index for data in partitions if data.records]


@pytest.fixture
def broker():
    with Broker(http=True) as running:
        with Asker(running, "admin") as admin:
            admin.create("wide")
            admin.topic_id("wide")
            admin.produce("wide", 1_000)
        yield running


def test_it_is_answered_where_requests_are_watched(broker):
    with Asker(broker, "reader") as client:
        assert records_of(fetch(client, "wide")) == [0]


def test_a_client_that_has_to_wait_gets_no_records_as_with_any_fetch(broker):
    """Rule 561."""
    with Asker(broker, "admin") as admin:
        admin.set_quota({"client-id": "reader"}, consumer_byte_rate=1_000)
    with Asker(broker, "reader") as client:
        answer = fetch(client, "wide")
    assert answer.throttle_time_ms > 0
    assert answer.responses == []
