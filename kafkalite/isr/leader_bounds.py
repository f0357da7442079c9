"""Where a leader's log begins and ends, asked by a follower that is out of it (rule I172)."""

from typing import TYPE_CHECKING, Final

from kafkalite.isr.reading import EARLIEST_TIMESTAMP
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkalite.wire.messages.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

if TYPE_CHECKING:
    from kafkalite.meta.peers import Peers
    from kafkalite.types import TopicPartition

FETCH_LANE: Final = "fetch"


async def ask_bounds(
    peers: "Peers",
    broker_id: int,
    topic_partition: "TopicPartition",
    *,
    leader_epoch: int,
    replica_id: int,
    timeout_ms: int,
) -> tuple[int, int]:
    """Return (log start offset, log end offset) of the leader, both also beyond what is committed.

    Raises:
        KafkaError: what the leader answers, or `Peers.request` raises.
    """
    name, index = topic_partition
    ends = await peers.request(
        broker_id,
        OFFSET_FOR_LEADER_EPOCH,
        OffsetForLeaderEpochRequest(
            replica_id=replica_id,
            topics=[
                OffsetForLeaderTopic(
                    topic=name,
                    partitions=[
                        OffsetForLeaderPartition(
                            partition=index,
                            current_leader_epoch=leader_epoch,
                            leader_epoch=leader_epoch,
                        )
                    ],
                )
            ],
        ),
        timeout_ms=timeout_ms,
        lane=FETCH_LANE,
    )
    starts = await peers.request(
        broker_id,
        LIST_OFFSETS,
        ListOffsetsRequest(
            replica_id=replica_id,
            topics=[
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=index,
                            current_leader_epoch=leader_epoch,
                            timestamp=EARLIEST_TIMESTAMP,
                        )
                    ],
                )
            ],
        ),
        timeout_ms=timeout_ms,
        lane=FETCH_LANE,
    )
    # The leader's own epoch ends where its log does.
    found = [
        (answer.error_code, answer.end_offset)
        for topic in ends.topics
        for answer in topic.partitions
    ]
    found += [
        (answer.error_code, answer.offset)
        for started in starts.topics
        for answer in started.partitions
    ]
    if len(found) != 2:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{topic_partition}: no bounds")
    for code, offset in found:
        if code or offset < 0:
            raise KafkaError(
                ErrorCode(code) if code else ErrorCode.OFFSET_NOT_AVAILABLE,
                f"{topic_partition}: its leader does not tell its bounds",
            )
    return found[1][1], found[0][1]
