"""What a heartbeat, a commit and a fetch of offsets cost in the coordinator, and how fast it loads.

Run: python benchmarks/groups.py
The log is in memory, so this is the coordinator's own share: deciding, encoding, replaying.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import trio

sys.path.insert(0, str(Path(__file__).parent.parent))

from kafkalite.clock import SystemClock
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.group.classic.join import JoinGroup
from kafkalite.group.commit import CommitOffsets
from kafkalite.group.settings import GroupSettings
from kafkalite.group.shard import FetchOffsets
from kafkalite.group.shards import GroupShards
from kafkalite.types import CONSUMER_OFFSETS_TOPIC
from kafkalite.wire.messages.heartbeat import HeartbeatRequest
from kafkalite.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkalite.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkalite.wire.messages.offset_fetch import OffsetFetchRequestTopics
from kafkalite.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.coordinator.fakes import FakePartition

PARTITIONS = 50
ROUNDS = 20_000
REPLAYED = 50_000


def new_runtime(partitions: dict[int, FakePartition]) -> CoordinatorRuntime:
    """Return a runtime that leads the given partitions."""
    settings = GroupSettings(group_initial_rebalance_delay_ms=0)
    runtime = CoordinatorRuntime([GroupShards(settings)], SystemClock())
    runtime.set_leaderships(CONSUMER_OFFSETS_TOPIC, PARTITIONS, partitions)
    return runtime


def commit_of(member_id: str, generation: int, partitions: int) -> CommitOffsets:
    """Return a commit of offset 1 of so many partitions."""
    request = OffsetCommitRequest(
        group_id="group",
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[
            OffsetCommitRequestTopic(
                name="topic",
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=1, committed_metadata=""
                    )
                    for index in range(partitions)
                ],
            )
        ],
    )
    return CommitOffsets(request, 8)


def join(runtime: CoordinatorRuntime) -> str:
    """Make a stable group of one member; return its id."""
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\1\0\5topic")]
    request = JoinGroupRequest(
        group_id="group",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        protocol_type="consumer",
        protocols=protocols,
    )
    event = JoinGroup(request, 3, "client", "/127.0.0.1", "0")
    member_id: str = runtime.handle(CONSUMER_OFFSETS_TOPIC, "group", event).member_id
    assignments = [SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")]
    sync = SyncGroupRequest(
        group_id="group", generation_id=1, member_id=member_id, assignments=assignments
    )
    runtime.handle(CONSUMER_OFFSETS_TOPIC, "group", sync)
    return member_id


def microseconds(function: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the best of five means."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(rounds // 5):
            function()
        best = min(best, (time.perf_counter() - start) / (rounds // 5))
    return best * 1e6


async def load_rate(partitions: dict[int, FakePartition], records: int) -> float:
    """Return records per second of a runtime that loads what is there."""
    runtime = new_runtime(partitions)
    start = time.perf_counter()
    async with trio.open_nursery() as nursery:
        await nursery.start(runtime.run)
        while runtime.is_loading():
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    return records / (time.perf_counter() - start)


def main() -> None:
    """Print one table."""
    partitions = {
        index: FakePartition(CONSUMER_OFFSETS_TOPIC, index) for index in range(PARTITIONS)
    }
    runtime = new_runtime(partitions)
    member_id = join(runtime)
    beat = HeartbeatRequest(group_id="group", generation_id=1, member_id=member_id)
    wanted = [OffsetFetchRequestTopics(name="topic", partition_indexes=[0])]
    events: dict[str, object] = {
        "Heartbeat": beat,
        "OffsetCommit, 1 partition": commit_of(member_id, 1, 1),
        "OffsetCommit, 10 partitions": commit_of(member_id, 1, 10),
        "OffsetFetch, 1 partition": FetchOffsets("group", wanted, True),
    }
    for name, event in events.items():
        spent = microseconds(lambda e=event: runtime.handle(CONSUMER_OFFSETS_TOPIC, "group", e))
        print(f"{name:30} {spent:8.1f} µs")
    for partition in partitions.values():
        partition.__init__(CONSUMER_OFFSETS_TOPIC, partition.topic_partition.partition)
    writer = new_runtime(partitions)
    for number in range(REPLAYED):
        event = commit_of("", -1, 1)
        event.request.topics[0].partitions[0].partition_index = number % 1000
        writer.handle(CONSUMER_OFFSETS_TOPIC, "group", event)
    rate = trio.run(load_rate, partitions, REPLAYED)
    print(f"{'replay':30} {rate:8.0f} records/s")


if __name__ == "__main__":
    main()
