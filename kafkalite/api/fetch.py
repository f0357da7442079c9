"""Fetch (key 1), versions 4-18: bytes of the log, as they lie on disk.

v7: incremental sessions (KIP-227). v9: CurrentLeaderEpoch (KIP-320). v10: zstd (KIP-110).
v11: rack of the consumer (KIP-392). v12: LastFetchedEpoch, DivergingEpoch (KIP-595).
v13: topic IDs (KIP-516). v15: ReplicaState (KIP-903). v16: NodeEndpoints (KIP-951).
v17: directory IDs (KIP-853). v18: HighWatermark (KIP-1166).

Followers fetch as consumers do, but up to the log end, and what they ask for tells what they have.
"""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.current_leader import CurrentLeaders
from kafkalite.api.fetch_reader import FetchReader, reader_of
from kafkalite.api.fetch_session import CachedPartition, FetchPlan
from kafkalite.api.handler import Handler
from kafkalite.api.parts import PART_MAX
from kafkalite.api.preferred_read_replica import preferred_replica
from kafkalite.api.quotas import fetch_max_bytes
from kafkalite.deferred import DelayedOperation
from kafkalite.isr.partition import Partition
from kafkalite.isr.partition_read import PartitionRead
from kafkalite.isr.recovering import LogEnd
from kafkalite.isr.state import IsrMember
from kafkalite.isr.traffic import TopicTraffic
from kafkalite.log.region import FileRegion
from kafkalite.security.acls import Operation, ResourceType
from kafkalite.types import TopicPartition, mypyc_attr
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.fetch import (
    FETCH,
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

if TYPE_CHECKING:
    from kafkalite.deferred import Deferred
    from kafkalite.isr.watchers import Watcher

FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_SESSIONS = 7
FIRST_VERSION_WITH_CURRENT_LEADER = 12

MOVED_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
HIGH_WATERMARK_UPDATE_MS = 50
"""A follower hears of another high watermark after this time at most. At once would be a second
Fetch for each append that is replicated; under load records are on their way much sooner."""

Results = list[tuple[CachedPartition, PartitionData]]


def handle(request: FetchRequest, context: RequestContext) -> "FetchResponse | Deferred[Any]":
    """Answer at once if there is enough to send, else when there is (rule 70)."""
    context.is_consumer = True
    reader = reader_of(request, context)
    plan = context.services.fetch_sessions.plan(
        request,
        by_topic_id=context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS,
        now_ms=context.now_ms,
    )
    if plan.is_wide:
        answer = _of_many(plan, request, reader, context)
        if answer is not None:
            return answer
    if reader.is_follower:
        note_progress(plan.partitions, reader, context)
    results, is_urgent, size, _ = read(
        plan.partitions, reader, context, bytes_max(request, reader, context)
    )
    if is_urgent or size >= request.min_bytes or request.max_wait_ms <= 0 or not plan.partitions:
        return _response(plan, results, reader, context)
    delayed = DelayedFetch(plan, request, reader, context, results)
    delayed.watch(range(len(results)))
    return delayed


def _handle_large(request: FetchRequest, context: RequestContext) -> "Deferred[Any]":
    """Answer a request that takes many bytes to name its partitions."""
    from kafkalite.api.large_fetch import LargeFetch

    context.is_consumer = True
    return LargeFetch(request, reader_of(request, context), context)


def _of_many(
    plan: FetchPlan, request: FetchRequest, reader: FetchReader, context: RequestContext
) -> "FetchResponse | Deferred[Any] | None":
    """Answer a request for many partitions; None if it is answered like any other."""
    from kafkalite.api.large_fetch import answer_of_many

    return answer_of_many(plan, request, reader, context, part_max=PART_MAX)


def refuse(request: FetchRequest, error: KafkaError, context: RequestContext) -> FetchResponse:
    """Answer an error at the top level, or for each partition before v7."""
    if context.api_version >= FIRST_VERSION_WITH_SESSIONS:
        return FetchResponse(error_code=error.code)
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[failed_partition(p.partition, error.code) for p in topic.partitions],
            )
            for topic in request.topics
        ]
    )


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedFetch(DelayedOperation[Any]):
    """A fetch that waits for min_bytes (rule 71): how many there are, kept up to date.

    Only what moved is looked at again, so that a fetch of a thousand partitions costs no more at
    each append to one of them than a fetch of that one.
    """

    __slots__ = (
        "_context",
        "_is_urgent",
        "_moved",
        "_plan",
        "_reader",
        "_request",
        "_results",
        "_size",
        "_watched",
    )

    def __init__(
        self,
        plan: FetchPlan,
        request: FetchRequest,
        reader: FetchReader,
        context: RequestContext,
        results: Results,
    ) -> None:
        super().__init__(request.max_wait_ms)
        self._plan = plan
        self._request = request
        self._reader = reader
        self._context = context
        self._results = results
        self._size = sum(len(data.records or b"") for _, data in results)
        self._is_urgent = False
        """Something happened that the client must hear of at once."""
        self._moved: dict[int, None] = {}
        self._watched: list[tuple[Partition, Watcher, Watcher | None] | None]
        self._watched = [None] * len(results)

    def complete(self) -> FetchResponse | None:
        """Return the response if enough is there, something failed, or it is late."""
        moved, self._moved = self._moved, {}
        self.read_again(moved)
        if not self.is_enough:
            self.watch(moved)
            return None
        self.close()
        results, reader, context = self._results, self._reader, self._context
        if len(moved) != 1 or not self.is_all_of(*moved):
            remaining = bytes_max(self._request, reader, context)
            results, *_ = read(self._plan.partitions, reader, context, remaining)
        return _response(self._plan, results, reader, context)

    def close(self) -> None:
        """Watch nothing any more."""
        self.unwatch(range(len(self._watched)))

    def watch(self, indexes: Iterable[int]) -> None:
        """Watch some partitions of the plan."""
        for index in indexes:
            self._watch(index, self._plan.partitions[index])

    def unwatch(self, indexes: Iterable[int]) -> None:
        """Watch some partitions no more."""
        for index in indexes:
            self._unwatch(index)

    @property
    def is_enough(self) -> bool:
        """Whether it is to be answered now."""
        return self._is_urgent or self._size >= self._request.min_bytes or self.is_late

    def read_again(self, indexes: Iterable[int]) -> None:
        """Look at what moved."""
        for index in indexes:
            self._read_again(index)

    def _read_again(self, index: int) -> None:
        cached, before = self._results[index]
        data, respond_immediately = _read_one(
            cached, self._reader, self._context, max_bytes=cached.max_bytes, min_one_batch=True
        )
        self._results[index] = (cached, data)
        self._size += len(data.records or b"") - len(before.records or b"")
        self._is_urgent = self._is_urgent or respond_immediately

    def is_all_of(self, index: int) -> bool:
        """Whether this partition, read just now, has all that would be returned."""
        return (
            len(self._results[index][1].records or b"") == self._size
            and self._size <= bytes_max(self._request, self._reader, self._context)
            and not self._reader.is_follower  # it is to hear of the others' high watermarks
        )

    def _watch(self, index: int, cached: CachedPartition) -> None:
        """Watch the partition that is meant now: its topic may have been made anew."""
        partition = find(cached, self._reader, self._context)
        watched = self._watched[index]
        if watched is not None and watched[0] is not partition:
            self._unwatch(index)
            watched = None
        if watched is None and partition is not None:
            on_move, on_progress = partial(self._on_move, index), None
            if not self._reader.is_follower:
                partition.watch(on_move)
            else:
                partition.watch_appends(on_move)
                if cached.known_high_watermark < cached.fetch_offset:
                    on_progress = partial(self._on_progress, partition, cached)
                    partition.watch(on_progress)
                    on_progress()
            self._watched[index] = (partition, on_move, on_progress)

    def _unwatch(self, index: int) -> None:
        watched, self._watched[index] = self._watched[index], None
        if watched is not None:
            partition, on_move, on_progress = watched
            partition.unwatch(on_move)
            if on_progress is not None:
                partition.unwatch(on_progress)

    def _on_progress(self, partition: Partition, cached: CachedPartition) -> None:
        """Answer sooner where a follower should know the high watermark."""
        if min(partition.high_watermark, cached.fetch_offset) > cached.known_high_watermark:
            soon_s = trio.current_time() + HIGH_WATERMARK_UPDATE_MS / 1_000
            if soon_s < self.deadline_s:
                self.deadline_s = soon_s
                self.on_change()

    def _on_move(self, index: int) -> None:
        self._moved[index] = None
        self.on_change()


def note_progress(
    partitions: Iterable[CachedPartition], reader: FetchReader, context: RequestContext
) -> None:
    """Record each follower's fetch offset as the end of its log (rule 163).

    Skipped where the offset is out of range or the epochs diverge, which the read reports.
    """
    now_ms = context.services.clock.real_monotonic_ms()
    for cached in partitions:
        cached.refusal = None
        try:
            partition = _partition(cached, reader, context)
            partition.check_leader_epoch(cached.current_leader_epoch)
            offset, epoch = cached.fetch_offset, cached.last_fetched_epoch
            if not partition.log_start_offset <= offset <= partition.log_end_offset:
                continue
            if epoch >= 0 and partition.diverging_epoch(offset, epoch) is not None:
                continue
            partition.on_follower_fetch(
                reader.replica_id, reader.broker_epoch, offset, cached.log_start_offset, now_ms
            )
        except KafkaError as error:
            cached.refusal = error.code
            if context.services.replicas.recoveries:
                _tell_recovering(cached, reader, context)


def _tell_recovering(cached: CachedPartition, reader: FetchReader, context: RequestContext) -> None:
    """Let a leader that may lack records know what the follower has (rule 234)."""
    topic = context.services.metadata.image.topic_names.get(cached.topic_id, cached.topic)
    context.services.replicas.on_follower_ahead(
        TopicPartition(topic, cached.partition),
        cached.current_leader_epoch,
        IsrMember(reader.replica_id, reader.broker_epoch),
        LogEnd(cached.last_fetched_epoch, cached.fetch_offset),
    )


def bytes_max(request: FetchRequest, reader: FetchReader, context: RequestContext) -> int:
    """Return how many bytes of records the answer may have, but for one batch."""
    if reader.is_follower:
        return min(request.max_bytes, context.services.fetch_max_bytes)
    return fetch_max_bytes(request.max_bytes, context)


def read(
    partitions: Iterable[CachedPartition],
    reader: FetchReader,
    context: RequestContext,
    remaining: int,
    size: int = 0,
) -> tuple[Results, bool, int, int]:
    """Read partitions in their order within the byte limits (rules 68-69).

    Args:
        partitions: of a plan, or a part of them.
        reader: that fetches.
        context: of its request.
        remaining: bytes that may still be returned.
        size: bytes that are to be returned of the partitions before.

    Returns:
        The results, whether the client must hear of any of them at once, and the next `size` and
        `remaining`.
    """
    urgent = False
    results: Results = []
    for cached in partitions:
        data, respond_immediately = _read_one(
            cached,
            reader,
            context,
            max_bytes=max(0, min(cached.max_bytes, remaining)),
            min_one_batch=size == 0,
        )
        urgent = urgent or respond_immediately
        count = len(data.records or b"")
        size += count
        remaining -= count
        has_more = respond_immediately and not count and isinstance(data.records, FileRegion)
        if has_more and size and remaining <= cached.max_bytes:
            remaining = 0  # a batch does not fit: to look for smaller ones costs too much
        results.append((cached, data))
    return results, urgent, size, remaining


def _read_one(
    cached: CachedPartition,
    reader: FetchReader,
    context: RequestContext,
    *,
    max_bytes: int,
    min_one_batch: bool,
) -> tuple[PartitionData, bool]:
    """Return what there is of one partition, and whether the client must hear of it at once.

    That is so for an error (rule 70), and where more is there than can be returned: to wait for
    what does not fit would only slow a client down that lags behind. Kafka counts such a partition
    as full, and waits for the others.
    """
    replicas = context.services.replicas
    is_throttled = False
    try:
        partition = _partition(cached, reader, context)
        partition.check_leader_epoch(cached.current_leader_epoch)
        cached.traffic = partition.traffic
        if reader.is_follower:
            if cached.refusal is not None:
                return failed_partition(cached.partition, cached.refusal), True
            now_ms = context.services.clock.monotonic_ms()
            is_throttled = replicas.throttle.applies_to(partition, reader.replica_id, now_ms)
        read = partition.read(
            cached.fetch_offset,
            max_bytes=0 if is_throttled else max_bytes,
            min_one_batch=min_one_batch and not is_throttled,
            isolation=reader.isolation,
            last_fetched_epoch=cached.last_fetched_epoch,
            as_replica=reader.is_follower,
        )
        if reader.rack:
            nearer = preferred_replica(partition, cached.fetch_offset, reader.rack, context)
            if nearer is not None:
                read.region = None
                data = _partition_data(cached.partition, read)
                data.preferred_read_replica = nearer
                return data, True
    except KafkaError as error:
        if cached.traffic is not None:
            cached.traffic.failed_fetch_requests += 1
        code = error.code
        if code is ErrorCode.KAFKA_STORAGE_ERROR and context.api_version <= 5:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return failed_partition(cached.partition, code), True
    respond_immediately = (read.has_more and not is_throttled) or read.diverging is not None
    return _partition_data(cached.partition, read), respond_immediately


def _partition(cached: CachedPartition, reader: FetchReader, context: RequestContext) -> Partition:
    """Return the partition that is meant, which must be led here unless the reader may follow.

    Raises:
        KafkaError: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER.
    """
    replicas = context.services.replicas
    if context.services.authorizer is not None:
        _check_may_read(cached, reader, context)
    if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        find_by_id = replicas.replica_by_id if reader.may_follow else replicas.partition_by_id
        return find_by_id(cached.topic_id, cached.partition)
    find_by_name = replicas.replica if reader.may_follow else replicas.partition
    return find_by_name(cached.topic, cached.partition)


def _check_may_read(cached: CachedPartition, reader: FetchReader, context: RequestContext) -> None:
    """Raise KafkaError where the client may not read; a topic that is not there looks the same."""
    authorizer = context.services.authorizer
    assert authorizer is not None
    if reader.is_follower:
        is_allowed = authorizer.allows(context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    else:
        name = cached.topic
        if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            found = context.services.metadata.image.topic_by_id(cached.topic_id)
            if found is None:
                return
            name = found.name
        is_allowed = authorizer.allows(context, Operation.READ, ResourceType.TOPIC, name)
    if not is_allowed:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def find(cached: CachedPartition, reader: FetchReader, context: RequestContext) -> Partition | None:
    """Return the partition that is meant, None if it cannot be read."""
    try:
        return _partition(cached, reader, context)
    except KafkaError:
        return None


def _partition_data(index: int, read: PartitionRead) -> PartitionData:
    data = PartitionData(
        partition_index=index,
        error_code=ErrorCode.NONE,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=None,
        records=read.region if read.region is not None else b"",
    )
    if read.diverging is not None:
        epoch, end_offset = read.diverging
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    if read.aborted is not None:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=a.producer_id, first_offset=a.first_offset)
            for a in read.aborted
        ]
    return data


def failed_partition(index: int, code: ErrorCode) -> PartitionData:
    """Return the answer for a partition that cannot be read."""
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


def _response(
    plan: FetchPlan, results: Results, reader: FetchReader, context: RequestContext
) -> FetchResponse:
    response = FetchResponse(session_id=plan.session_id)
    leaders = add_results(response, plan.select(results), reader, context, None)
    if leaders is not None:
        name_endpoints(response, leaders)
    return response


def add_results(
    response: FetchResponse,
    selected: Results,
    reader: FetchReader,
    context: RequestContext,
    leaders: CurrentLeaders | None,
) -> CurrentLeaders | None:
    """Add what was read to the answer, and count it; return leaders that are to be named."""
    responses = response.responses
    is_follower = reader.is_follower
    for cached, data in selected:
        last = responses[-1] if responses else None
        if last is None or last.topic != cached.topic or last.topic_id != cached.topic_id:
            last = FetchableTopicResponse(
                topic=cached.topic, topic_id=cached.topic_id, partitions=[]
            )
            responses.append(last)
            if cached.traffic is not None:
                cached.traffic.fetch_requests += 1
        last.partitions.append(data)
        if data.error_code in MOVED_LEADER:
            leaders = leaders or CurrentLeaders(context)
            _name_leader(cached, data, leaders, context)
            continue
        traffic, records = cached.traffic, data.records
        if records and traffic is not None:
            if is_follower:
                _count_replicated(cached, traffic, len(records), reader, context)
            else:
                traffic.bytes_out += len(records)
    return leaders


def name_endpoints(response: FetchResponse, leaders: CurrentLeaders) -> None:
    """Tell where the leaders are that were named."""
    response.node_endpoints = [
        NodeEndpoint(node_id=each.node_id, host=each.host, port=each.port, rack=each.rack)
        for each in leaders.endpoints()
    ]


def _count_replicated(
    cached: CachedPartition,
    traffic: TopicTraffic,
    size: int,
    reader: FetchReader,
    context: RequestContext,
) -> None:
    traffic.replication_bytes_out += size
    partition = find(cached, reader, context)
    if partition is not None:
        context.services.replicas.throttle.on_replicated(partition, reader.replica_id, size)


def _name_leader(
    cached: CachedPartition, data: PartitionData, leaders: CurrentLeaders, context: RequestContext
) -> None:
    """Tell who leads what is not led here (KIP-951)."""
    if context.api_version < FIRST_VERSION_WITH_CURRENT_LEADER:
        return
    found = leaders.of(cached.topic, cached.topic_id, cached.partition)
    if found is not None:
        leader_id, leader_epoch = found
        data.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)


HANDLERS = (Handler(FETCH, handle, refuse, handle_large=_handle_large),)
