"""How long everybody else waits while one client asks for very much.

A bystander in a process of its own asks one small question after another, and tells the longest
that an answer took. Every load is one request that is allowed, or that a broker has to refuse.
"""

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection as Pipe

from benchmarks.process import RawClient, frame_of, running
from benchmarks.result import Result
from kafkalite.wire.compression import Codec
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from kafkalite.wire.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from kafkalite.wire.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from kafkalite.wire.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.records import Record, build_batch

TARGET_MS = 20
ASKED_S = 60

Address = tuple[str, int]
Load = Callable[[str], bytes]
"""Makes a frame; its topics are named after a tag."""


def create(count: int, partitions: int, *, prefix: str) -> bytes:
    """CreateTopics."""
    topics = [
        CreatableTopic(name=f"{prefix}{i}", num_partitions=partitions, replication_factor=1)
        for i in range(count)
    ]
    return frame_of(CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics, timeout_ms=ASKED_S * 1000))


def delete(count: int, *, prefix: str) -> bytes:
    """DeleteTopics."""
    topics = [DeleteTopicState(name=f"{prefix}{i}") for i in range(count)]
    return frame_of(DELETE_TOPICS, 6, DeleteTopicsRequest(topics=topics, timeout_ms=ASKED_S * 1000))


def metadata(count: int, *, auto_create: bool) -> bytes:
    """Metadata of topics that are not there."""
    topics = [MetadataRequestTopic(name=f"unknown{i}") for i in range(count)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=auto_create)
    return frame_of(METADATA, 9, request)


def all_metadata() -> bytes:
    """Metadata of all topics."""
    return frame_of(METADATA, 9, MetadataRequest(topics=None))


def fetch(count: int) -> bytes:
    """Fetch of one topic."""
    partitions = [
        FetchPartition(partition=i, fetch_offset=0, partition_max_bytes=1) for i in range(count)
    ]
    topics = [FetchTopic(topic="many0", partitions=partitions)]
    return frame_of(FETCH, 11, FetchRequest(max_wait_ms=0, max_bytes=1, topics=topics))


def commit(count: int) -> bytes:
    """OffsetCommit of one topic."""
    partitions = [
        OffsetCommitRequestPartition(partition_index=i, committed_offset=0) for i in range(count)
    ]
    topics = [OffsetCommitRequestTopic(name="many0", partitions=partitions)]
    return frame_of(OFFSET_COMMIT, 8, OffsetCommitRequest(group_id="g", topics=topics))


def tags(count: int) -> bytes:
    """ApiVersions with a tag section of so many unknown tags."""
    frame = bytearray(frame_of(API_VERSIONS, 3, ApiVersionsRequest()))
    assert frame[-1] == 0
    del frame[-1]
    number = count
    while number > 127:
        frame.append(number & 127 | 128)
        number >>= 7
    frame.append(number)
    frame += bytes((100, 0)) * count
    frame[:4] = (len(frame) - 4).to_bytes(4, "big")
    return bytes(frame)


def bomb(size_bytes: int) -> bytes:
    """Produce of one batch that grows a hundred thousand times when it is opened."""
    return produce(build_batch([Record(0, 0, b"", bytes(size_bytes), [])], codec=Codec.ZSTD))


def small_records(count: int) -> bytes:
    """Produce of one batch of the smallest records."""
    return produce(build_batch([Record(i, 0, b"", b"", []) for i in range(count)]))


def produce(batch: bytes | bytearray) -> bytes:
    """Produce to a compacted topic, whose records are looked at in any case."""
    data = [PartitionProduceData(index=0, records=batch)]
    topics = [TopicProduceData(name="compacted0", partition_data=data)]
    request = ProduceRequest(acks=-1, timeout_ms=ASKED_S * 1000, topic_data=topics)
    return frame_of(PRODUCE, 9, request)


LOADS: dict[str, Load] = {
    "CreateTopics, 1 x 1,000 partitions": lambda tag: create(1, 1_000, prefix=f"wide{tag}"),
    "CreateTopics, 1,000 x 1": lambda tag: create(1_000, 1, prefix=f"few{tag}"),
    "CreateTopics, 10,000 x 1,000": lambda tag: create(10_000, 1_000, prefix=f"too-many{tag}"),
    "Metadata, all topics": lambda tag: all_metadata(),
    "Metadata, 50,000 unknown names": lambda tag: metadata(50_000, auto_create=False),
    "Metadata, 100,000 to be created": lambda tag: metadata(100_000, auto_create=True),
    "Fetch, 200,000 partitions": lambda tag: fetch(200_000),
    "OffsetCommit, 200,000 partitions": lambda tag: commit(200_000),
    "ApiVersions, 500,000 tags": lambda tag: tags(500_000),
    "Produce, 100,000 records in a batch": lambda tag: small_records(100_000),
    "Produce, 5 kB that become 200 MB": lambda tag: bomb(200_000_000),
    "DeleteTopics, 1 x 1,000 partitions": lambda tag: delete(1, prefix=f"wide{tag}"),
    "DeleteTopics, 1,000 x 1": lambda tag: delete(1_000, prefix=f"few{tag}"),
}
"""Frames by name, in this order: the last delete what the first have made under the same tag."""


def longest_turns() -> list[Result]:
    """The longest wait of a bystander under each load."""
    results = []
    with running("--set", "log.cleanup.policy=compact") as broker:
        prepare(broker.address)
        for name in LOADS:
            wait_ms, answer_ms = wait_beside(broker.address, name, tag="")
            results.append(
                Result(
                    what=f"longest wait beside: {name}",
                    value=wait_ms,
                    unit="ms",
                    target=TARGET_MS,
                    note=f"answered in {answer_ms:,.0f} ms",
                )
            )
    return results


def prepare(address: Address) -> None:
    """Make the topics and the coordinator that loads ask for, unless they are there."""
    for frame in (
        create(1, 1, prefix="compacted"),
        create(1, 1_000, prefix="many"),
        frame_of(FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g")),
    ):
        ask(address, frame)
    time.sleep(3)  # the coordinator loads


def wait_beside(address: Address, name: str, *, tag: str) -> tuple[float, float]:
    """Return (longest wait of a bystander, time until the load was answered), in ms."""
    frame = LOADS[name](tag)
    with bystander(address) as longest_ms:
        began = time.perf_counter()
        ask(address, frame)
        took = time.perf_counter() - began
        time.sleep(0.5)  # what goes on after the answer
    return longest_ms[0], took * 1000


def ask(address: Address, frame: bytes) -> None:
    """Send a request and wait for the answer, or the end of the connection."""
    client = RawClient(address, frame)
    with contextlib.suppress(AssertionError, OSError):
        client.ask()
    client.close()


@contextlib.contextmanager
def bystander(address: Address) -> Iterator[list[float]]:
    """Have somebody ask small questions meanwhile; the list has the longest wait in ms after."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_stand_by, args=(address, theirs))
    process.start()
    ours.recv()
    longest_ms: list[float] = []
    try:
        yield longest_ms
    finally:
        ours.send(None)
        longest_ms.append(ours.recv())
        process.join()


def _stand_by(address: Address, pipe: Pipe) -> None:
    client = RawClient(address)
    client.ask()
    pipe.send(None)
    longest = 0.0
    while not pipe.poll():
        began = time.perf_counter()
        client.ask()
        longest = max(longest, time.perf_counter() - began)
        time.sleep(0.0005)
    pipe.send(longest * 1000)
    client.close()
