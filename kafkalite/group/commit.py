"""OffsetCommit and TxnOffsetCommit: who may commit, and the records of it (rules 119, 145-149)."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from kafkalite.coordinator.shard import Event, StoredRecord
from kafkalite.group.kinds import ANY_PARTITION, Committer, Group, PartitionCheck
from kafkalite.group.offsets import NO_EXPIRY
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkalite.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafkalite.wire.stored.offset_commit import OffsetCommitKey, OffsetCommitValue

DEFAULT_RETENTION_MS = -1
FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 9


@dataclass(slots=True)
class CommitOffsets(Event[OffsetCommitResponse]):
    """An OffsetCommit request whose topics and partitions exist."""

    request: OffsetCommitRequest
    api_version: int


@dataclass(slots=True)
class CommitOffsetsInTransaction(Event[TxnOffsetCommitResponse]):
    """A TxnOffsetCommit request whose topics and partitions exist and whose transaction is open."""

    request: TxnOffsetCommitRequest


def check_commit(
    group: Group | None, request: OffsetCommitRequest, api_version: int
) -> PartitionCheck:
    """Refuse a commit, or return what says of which partitions it may be.

    Raises:
        KafkaError: rules 145 and 146, or what the group's kind has for it.
    """
    epoch = request.generation_id_or_member_epoch
    if group is None:
        if epoch < 0:
            return ANY_PARTITION
        code = (
            ErrorCode.GROUP_ID_NOT_FOUND
            if api_version >= FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND
            else ErrorCode.ILLEGAL_GENERATION
        )
        raise KafkaError(code, f"there is no group {request.group_id}")
    return group.check_commit(
        Committer(
            group_id=request.group_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            epoch=epoch,
            api_version=api_version,
        )
    )


def check_transactional_commit(
    group: Group | None, request: TxnOffsetCommitRequest
) -> PartitionCheck:
    """Check the member where the request names one (v3+, KIP-447); the state does not matter.

    Raises:
        KafkaError: ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID (rule 119).
    """
    epoch = request.generation_id
    if group is None:
        if epoch >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"there is no group {request.group_id}")
        return ANY_PARTITION
    return group.check_commit(
        Committer(
            group_id=request.group_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            epoch=epoch,
            api_version=FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND,
            in_transaction=True,
        )
    )


def commit(
    request: OffsetCommitRequest, *, check: PartitionCheck, now_wall_ms: int, metadata_max: int
) -> tuple[list[StoredRecord], OffsetCommitResponse]:
    """Return the records of a commit and its answer; too long metadata fails its partition only.

    Raises:
        KafkaError: `check` refused a partition, and with it the commit.
    """
    retention_ms = request.retention_time_ms
    expiry_ms = NO_EXPIRY if retention_ms == DEFAULT_RETENTION_MS else now_wall_ms + retention_ms
    group_id = request.group_id
    records = []
    response = OffsetCommitResponse()
    for topic in request.topics:
        name = topic.name
        answers = []
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            index = partition.partition_index
            code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            if len(metadata) <= metadata_max:
                check(name, topic.topic_id, index)
                code = ErrorCode.NONE
                key = OffsetCommitKey(group=group_id, topic=name, partition=index)
                value = OffsetCommitValue(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=metadata,
                    commit_timestamp=now_wall_ms,
                    expire_timestamp=expiry_ms,
                    topic_id=topic.topic_id,
                )
                records.append(StoredRecord(key, value))
            answers.append(OffsetCommitResponsePartition(partition_index=index, error_code=code))
        response.topics.append(
            OffsetCommitResponseTopic(name=name, topic_id=topic.topic_id, partitions=answers)
        )
    return records, response


def commit_in_transaction(
    request: TxnOffsetCommitRequest,
    *,
    check: PartitionCheck,
    topic_id_of: Callable[[str], UUID],
    now_wall_ms: int,
    metadata_max: int,
) -> tuple[list[StoredRecord], TxnOffsetCommitResponse]:
    """Return the records of a transactional commit and its answer.

    Args:
        request: names topics, and has no ids of theirs.
        check: as `check_transactional_commit` returns it.
        topic_id_of: gives a topic's id, ZERO_UUID for one that is not there.
        now_wall_ms: time of the commit.
        metadata_max: characters of a partition's metadata.

    Raises:
        KafkaError: `check` refused a partition, and with it the commit.
    """
    records = []
    response = TxnOffsetCommitResponse()
    for topic in request.topics:
        answer = TxnOffsetCommitResponseTopic(name=topic.name)
        response.topics.append(answer)
        topic_id = topic_id_of(topic.name)
        if topic_id == ZERO_UUID and check is not ANY_PARTITION:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"there is no topic {topic.name}")
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            index = partition.partition_index
            code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            if len(metadata) <= metadata_max:
                check(topic.name, topic_id, index)
                code = ErrorCode.NONE
                key = OffsetCommitKey(group=request.group_id, topic=topic.name, partition=index)
                value = OffsetCommitValue(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=metadata,
                    commit_timestamp=now_wall_ms,
                )
                records.append(StoredRecord(key, value))
            answer.partitions.append(
                TxnOffsetCommitResponsePartition(partition_index=index, error_code=code)
            )
    return records, response
