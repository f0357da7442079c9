"""Start and end of a leader's log, asked by a follower that is out of its range (rule 172)."""

from typing import TYPE_CHECKING, Final

from kafkalite.isr.partition_read import EARLIEST_TIMESTAMP
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

FETCH_CHANNEL: Final = "fetch"


async def fetch_leader_offsets(
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
    end = OffsetForLeaderPartition(
        partition=index, current_leader_epoch=leader_epoch, leader_epoch=leader_epoch
    )
    ends = await peers.request(
        broker_id,
        OFFSET_FOR_LEADER_EPOCH,
        OffsetForLeaderEpochRequest(
            replica_id=replica_id, topics=[OffsetForLeaderTopic(topic=name, partitions=[end])]
        ),
        timeout_ms=timeout_ms,
        channel=FETCH_CHANNEL,
    )
    start = ListOffsetsPartition(
        partition_index=index, current_leader_epoch=leader_epoch, timestamp=EARLIEST_TIMESTAMP
    )
    starts = await peers.request(
        broker_id,
        LIST_OFFSETS,
        ListOffsetsRequest(
            replica_id=replica_id, topics=[ListOffsetsTopic(name=name, partitions=[start])]
        ),
        timeout_ms=timeout_ms,
        channel=FETCH_CHANNEL,
    )
    return (
        _only([(p.error_code, p.offset) for topic in starts.topics for p in topic.partitions]),
        # The leader's own epoch ends where its log does.
        _only([(p.error_code, p.end_offset) for topic in ends.topics for p in topic.partitions]),
    )


def _only(answers: list[tuple[int, int]]) -> int:
    code, offset = answers[0] if len(answers) == 1 else (ErrorCode.UNKNOWN_SERVER_ERROR, -1)
    if code or offset < 0:
        code = ErrorCode(code) if code else ErrorCode.OFFSET_NOT_AVAILABLE
        raise KafkaError(code, "its leader does not tell where its log begins and ends")
    return offset
