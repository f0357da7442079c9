"""Committed offsets of all groups of one shard (rules 119, 120, 147-152, 157).

After Kafka's OffsetMetadataManager. All of it is hard state: the store changes in `replay` and
`replay_marker` alone; the other methods look, and bring forth records.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from kafkalite.coordinator.shard import NO_PRODUCER_ID, StoredRecord
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.offset_fetch import (
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kafkalite.wire.stored.offset_commit import OffsetCommitKey, OffsetCommitValue

NO_OFFSET = -1
NO_EXPIRY = -1


@dataclass(slots=True)
class CommittedOffset:
    """One offset as it was committed; times are wall clock milliseconds."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    """When a client's own retention ends (OffsetCommit v2-4); -1: the broker's retention holds."""
    record_offset: int
    """Place of its record in `__consumer_offsets`: of two commits the later one counts."""
    topic_id: UUID = ZERO_UUID
    """The topic that it was committed for; zero where the record does not say."""


PartitionOffsets = dict[int, CommittedOffset]


class OffsetStore:
    """Offsets by group, topic and partition; those of open transactions apart from the rest."""

    __slots__ = ("_committed", "_open_transactions", "_pending")

    def __init__(self) -> None:
        self._committed: dict[str, dict[str, PartitionOffsets]] = {}
        self._pending: dict[int, dict[tuple[str, str, int], CommittedOffset]] = {}
        self._open_transactions: dict[str, dict[int, None]] = {}
        """Producers with pending offsets, by group."""

    # --- Replay ---------------------------------------------------------------------------------

    def replay(self, record: StoredRecord, key: OffsetCommitKey) -> None:
        """Take over a commit or a tombstone."""
        value = record.value
        if value is None:
            self._remove(key.group, key.topic, key.partition)
            return
        assert isinstance(value, OffsetCommitValue)
        committed = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            record.offset,
            value.topic_id,
        )
        if record.producer_id == NO_PRODUCER_ID:
            self._put(key.group, key.topic, key.partition, committed)
            return
        pending = self._pending.setdefault(record.producer_id, {})
        pending[key.group, key.topic, key.partition] = committed
        self._open_transactions.setdefault(key.group, {})[record.producer_id] = None

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Make a transaction's offsets visible, or forget them (rule 119).

        An offset that was committed after it without a transaction stays: the later record wins,
        as it would after compaction.
        """
        pending = self._pending.pop(producer_id, {})
        for (group_id, topic, partition), offset in pending.items():
            self._close_transaction(group_id, producer_id)
            existing = self.get(group_id, topic, partition)
            is_newer = existing is None or offset.record_offset > existing.record_offset
            if committed and is_newer:
                self._put(group_id, topic, partition, offset)

    # --- Look-up --------------------------------------------------------------------------------

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return the committed offset; None if there is none."""
        return self._committed.get(group_id, {}).get(topic, {}).get(partition)

    def topics(self, group_id: str) -> dict[str, PartitionOffsets]:
        """Return the group's offsets by topic and partition."""
        return self._committed.get(group_id, {})

    def group_ids(self) -> Iterable[str]:
        """Return the groups that have offsets, committed or pending."""
        return {**self._committed, **self._open_transactions}

    def has_open_transactions(self, group_id: str) -> bool:
        """Whether offsets of the group are part of a transaction under way."""
        return group_id in self._open_transactions

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction may yet change the offset (rule 120)."""
        return any(
            (group_id, topic, partition) in self._pending[producer_id]
            for producer_id in self._open_transactions.get(group_id, ())
        )

    # --- Fetch ----------------------------------------------------------------------------------

    def fetch(
        self,
        group_id: str,
        topics: Iterable[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None,
        *,
        require_stable: bool,
    ) -> OffsetFetchResponseGroup:
        """Answer OffsetFetch for one group; topics None means all that it has (rule 150)."""
        if topics is None:
            wanted = [
                (name, ZERO_UUID, list(offsets)) for name, offsets in self.topics(group_id).items()
            ]
        else:
            wanted = [(topic.name, _topic_id(topic), topic.partition_indexes) for topic in topics]
        unstable = require_stable and group_id in self._open_transactions
        by_topic = self.topics(group_id)
        answer = OffsetFetchResponseGroup(group_id=group_id)
        for name, topic_id, indexes in wanted:
            offsets = by_topic.get(name, {})
            answer.topics.append(
                OffsetFetchResponseTopics(
                    name=name,
                    topic_id=topic_id,
                    partitions=[
                        _unstable_partition(index)
                        if unstable and self.is_pending(group_id, name, index)
                        else _fetched_partition(index, offsets.get(index), topic_id)
                        for index in indexes
                    ],
                )
            )
        return answer

    # --- Records --------------------------------------------------------------------------------

    def tombstones(self, group_id: str) -> list[StoredRecord]:
        """Return the records that remove all offsets of a group, pending ones too."""
        found = {
            (topic, partition): None
            for topic, offsets in self.topics(group_id).items()
            for partition in offsets
        }
        for producer_id in self._open_transactions.get(group_id, ()):
            for group, topic, partition in self._pending[producer_id]:
                if group == group_id:
                    found[topic, partition] = None
        return [tombstone(group_id, topic, partition) for topic, partition in found]

    def tombstones_for_topics(self, deleted: frozenset[str]) -> list[StoredRecord]:
        """Return the records that remove the offsets of deleted topics (rule 152)."""
        found: dict[tuple[str, str, int], None] = {}
        for group_id, by_topic in self._committed.items():
            for topic in deleted & by_topic.keys():
                found.update(((group_id, topic, index), None) for index in by_topic[topic])
        for pending in self._pending.values():
            found.update((key, None) for key in pending if key[1] in deleted)
        return [tombstone(*key) for key in found]

    def tombstone_if_any(self, group_id: str, topic: str, partition: int) -> Iterator[StoredRecord]:
        """Yield the record that removes an offset, committed or pending, if there is one."""
        is_there = self.get(group_id, topic, partition) is not None
        if is_there or self.is_pending(group_id, topic, partition):
            yield tombstone(group_id, topic, partition)

    # --- Internals ------------------------------------------------------------------------------

    def _put(self, group_id: str, topic: str, partition: int, offset: CommittedOffset) -> None:
        by_topic = self._committed.get(group_id)
        if by_topic is None:
            by_topic = self._committed[group_id] = {}
        offsets = by_topic.get(topic)
        if offsets is None:
            offsets = by_topic[topic] = {}
        offsets[partition] = offset

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        by_topic = self._committed.get(group_id, {})
        offsets = by_topic.get(topic, {})
        offsets.pop(partition, None)
        if not offsets:
            by_topic.pop(topic, None)
        if not by_topic:
            self._committed.pop(group_id, None)
        for producer_id in [*self._open_transactions.get(group_id, ())]:
            pending = self._pending[producer_id]
            pending.pop((group_id, topic, partition), None)
            if all(key[0] != group_id for key in pending):
                self._close_transaction(group_id, producer_id)

    def _close_transaction(self, group_id: str, producer_id: int) -> None:
        producers = self._open_transactions.get(group_id, {})
        producers.pop(producer_id, None)
        if not producers:
            self._open_transactions.pop(group_id, None)


def tombstone(group_id: str, topic: str, partition: int) -> StoredRecord:
    """Return the record that removes one offset."""
    return StoredRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


def _topic_id(topic: OffsetFetchRequestTopic | OffsetFetchRequestTopics) -> UUID:
    return topic.topic_id if isinstance(topic, OffsetFetchRequestTopics) else ZERO_UUID


def _fetched_partition(
    index: int, committed: CommittedOffset | None, topic_id: UUID
) -> OffsetFetchResponsePartitions:
    # Who asks by id wants nothing of a topic that had the name before.
    is_another = (
        committed is not None
        and committed.topic_id != topic_id
        and ZERO_UUID not in (committed.topic_id, topic_id)
    )
    if committed is None or is_another:
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=NO_OFFSET, metadata=""
        )
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _unstable_partition(index: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=NO_OFFSET,
        metadata="",
        error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
    )
