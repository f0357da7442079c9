"""Requests of a consumer and what is in the answers."""

from kafkalite.api.fetch import HANDLERS
from kafkalite.meta.events import RegisterBroker
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkalite.wire.records import iterate_batches

(HANDLER,) = HANDLERS


BY_NAME = 12


LATEST = 18


def request(*partitions, topic="t", topic_id=ZERO_UUID, **options):
    """Ask for partitions, each (index, offset) or a FetchPartition."""
    wanted = [
        p
        if isinstance(p, FetchPartition)
        else FetchPartition(partition=p[0], fetch_offset=p[1], partition_max_bytes=1 << 20)
        for p in partitions
    ]
    values = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **options}
    return FetchRequest(
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=wanted)], **values
    )


def limited(index, offset, max_bytes):
    return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)


def answers(response):
    return [data for topic in response.responses for data in topic.partitions]


def fetched(data):
    """Return (base offset, last offset) of each batch."""
    return [(h.base_offset, h.last_offset) for _, h in iterate_batches(bytes(data.records))]


def codes(data):
    return [ErrorCode(each.error_code) for each in data]


async def raise_epochs(kit):
    await kit.metadata.submit(
        RegisterBroker(broker_id=1, endpoints={"PLAINTEXT": ("", 9092)}, restarted=True)
    )
