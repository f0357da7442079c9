"""ShareFetch (key 78), versions 1-2: records of share groups, each locked for one member.

KIP-932. v2: acquire mode (KIP-1206) and renewed locks (KIP-1222).

Rules 405-412. Records are handed out in whole batches of the log, as bytes of its files; who
consumes filters by AcquiredRecords what it was not given.

A client that is throttled gets what was acquired for it all the same: Kafka keeps it back, and
locked until the locks end.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from kafkalite.api.current_leader import CurrentLeaders
from kafkalite.api.handler import Handler
from kafkalite.api.quotas import fetch_max_bytes
from kafkalite.api.share_acknowledge import (
    MOVED_LEADER,
    Acknowledged,
    acknowledge,
    check_enabled,
    check_member,
    release_session,
)
from kafkalite.api.share_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    CachedSharePartition,
    SessionKey,
    ShareSession,
    TopicIdPartition,
    next_epoch,
)
from kafkalite.deferred import DelayedOperation
from kafkalite.isr.partition_read import IsolationLevel, PartitionRead
from kafkalite.log.region import FileRegion
from kafkalite.share.acquisition import AbortedFrom, AcquiredRange, AcquireMode, Wish, acquire
from kafkalite.share.batches import SharePartitionKey
from kafkalite.share.log_batches import PlacedBatch, read_log_batches
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.share_fetch import (
    SHARE_FETCH,
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext
    from kafkalite.deferred import Deferred
    from kafkalite.share.manager import HeldPartition

FIRST_VERSION_WITH_RENEWAL = 2
NOTHING = b""

Results = dict[TopicIdPartition, PartitionData]


@dataclass(slots=True)
class _Read:
    """Result of reading the log for one share partition."""

    held: "HeldPartition"
    fetch_offset: int
    read: PartitionRead | None
    error: KafkaError | None = None

    @property
    def region(self) -> FileRegion | None:
        """The bytes, None where there are none."""
        region = None if self.read is None else self.read.region
        return region if region is not None and len(region) else None


def handle(
    request: ShareFetchRequest, context: "RequestContext"
) -> "ShareFetchResponse | DelayedOperation[Any] | Deferred[Any]":
    """Acknowledge, then acquire: at once if there is enough, else when there is (rule 409)."""
    check_enabled(context)
    key = check_member(request.group_id, request.member_id)
    is_renewal = context.api_version >= FIRST_VERSION_WITH_RENEWAL and request.is_renew_ack
    if is_renewal:
        _check_renewal(request)
    try:
        session = _session(request, key, context)
    except KafkaError as error:
        if error.code is not ErrorCode.SHARE_SESSION_LIMIT_REACHED or request.max_wait_ms <= 0:
            raise
        return _LateRefusal(error, request.max_wait_ms)
    acknowledged = Acknowledged()
    if _acknowledges(request):
        acknowledged = acknowledge(
            key,
            (
                (
                    TopicIdPartition(topic.topic_id, each.partition_index),
                    each.acknowledgement_batches,
                )
                for topic in request.topics
                for each in topic.partitions
            ),
            is_renewal=is_renewal,
            context=context,
        )
    delayed = DelayedShareFetch(
        request, key, session, acknowledged, context, fetches=not is_renewal
    )
    response = delayed.complete()
    if response is not None:
        delayed.close()
        return response
    delayed.watch()
    return delayed


def refuse(
    request: ShareFetchRequest, error: KafkaError, context: "RequestContext"
) -> ShareFetchResponse:
    """Answer the error at the top level."""
    del request, context
    return ShareFetchResponse(error_code=error.code)


def _check_renewal(request: ShareFetchRequest) -> None:
    """Refuse a request that renews locks and fetches (rule 405)."""
    for name in ("max_bytes", "min_bytes", "max_records", "max_wait_ms"):
        if getattr(request, name):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"{name} must be set to 0 if isRenewAck is true."
            )


def _acknowledges(request: ShareFetchRequest) -> bool:
    return any(
        each.acknowledgement_batches for topic in request.topics for each in topic.partitions
    )


def _session(
    request: ShareFetchRequest, key: SessionKey, context: "RequestContext"
) -> ShareSession | None:
    """Return the session that the request opens or goes on with, None if it ends it (rule 406).

    Raises:
        KafkaError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, INVALID_REQUEST,
            SHARE_SESSION_LIMIT_REACHED.
    """
    sessions, epoch = context.services.share_sessions, request.share_session_epoch
    if epoch == FINAL_EPOCH:
        sessions.find(key)
        return None
    names = context.services.metadata.image.topic_names
    named = [
        (TopicIdPartition(topic.topic_id, each.partition_index), names.get(topic.topic_id))
        for topic in request.topics
        for each in topic.partitions
    ]
    if epoch == INITIAL_EPOCH:
        if _acknowledges(request):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "nothing can be acknowledged before a session"
            )
        return sessions.open(key, named, context.connection_id)
    forgotten = [
        TopicIdPartition(topic.topic_id, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    return sessions.resume(key, epoch, named, forgotten)


class _LateRefusal(DelayedOperation[Any]):
    """A refusal that is answered after the time that the request may wait."""

    __slots__ = ("_error",)

    def __init__(self, error: KafkaError, timeout_ms: int) -> None:
        super().__init__(timeout_ms)
        self._error = error

    def complete(self) -> None:
        """Raise the refusal when it is time."""
        if self.is_late:
            raise self._error

    def close(self) -> None:
        """Do nothing: nothing is watched."""


class DelayedShareFetch(DelayedOperation[Any]):
    """A ShareFetch that waits for records, or for what it acknowledges to be written."""

    __slots__ = (
        "_acknowledged",
        "_context",
        "_held",
        "_is_watching",
        "_key",
        "_request",
        "_results",
        "_session",
    )

    def __init__(
        self,
        request: ShareFetchRequest,
        key: SessionKey,
        session: ShareSession | None,
        acknowledged: Acknowledged,
        context: "RequestContext",
        *,
        fetches: bool,
    ) -> None:
        super().__init__(request.max_wait_ms)
        self._request = request
        self._key = key
        self._session = session
        self._acknowledged = acknowledged
        self._context = context
        self._is_watching = False
        self._held: list[tuple[CachedSharePartition, HeldPartition]] = []
        self._results: Results = {}
        """Of the fetch, so far only what is refused; `_is_fetched` when there is nothing to add."""
        if session is None or not fetches:
            self._end_fetch()
        else:
            self._open(session)

    def complete(self) -> ShareFetchResponse | None:
        """Return the response if records were acquired or cannot be, and all is written."""
        if self.deadline_s != inf:
            results = self._fetch()
            if results is None:
                return None
            self._results.update(results)
            self._end_fetch()
        if not self._acknowledged.is_done:
            return None
        self.close()
        return self._respond()

    def watch(self) -> None:
        """Be told of what may complete it."""
        self._is_watching = True
        self._acknowledged.watch(self._changed)
        for _, held in self._held:
            held.watchers[self._changed] = None
            held.partition.watch(self._changed)

    def close(self) -> None:
        """Watch nothing any more."""
        if not self._is_watching:
            return
        self._is_watching = False
        for _, held in self._held:
            held.watchers.pop(self._changed, None)
            held.partition.unwatch(self._changed)

    def _changed(self) -> None:
        self.on_change()

    def _end_fetch(self) -> None:
        """There is nothing more to wait for but writes, which take as long as they take."""
        self.deadline_s = inf

    # --- Which share partitions -----------------------------------------------------------------

    def _open(self, session: ShareSession) -> None:
        """Look up what the session has, and have it loaded if need be."""
        context = self._context
        image = context.services.metadata.image
        found: list[CachedSharePartition] = []
        for cached in session.partitions.values():
            topic = image.topic_by_id(cached.key.topic_id)
            if topic is None and cached.topic is None:
                self._refuse(cached, ErrorCode.UNKNOWN_TOPIC_ID, "there is no such topic")
            elif topic is not None and not _may_read(topic.name, context):
                self._refuse(cached, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "")
            elif topic is None or not 0 <= cached.key.partition < len(topic.partitions):
                self._refuse(
                    cached, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition"
                )
            else:
                found.append(cached)
        epoch = self._request.share_session_epoch
        turn = epoch % len(found) if found and epoch > 0 else 0
        for cached in (*found[turn:], *found[:turn]):
            try:
                partition = context.services.replicas.partition_by_id(*cached.key)
            except KafkaError as error:
                self._refuse(cached, error.code, error.message)
                continue
            if self._request.max_records > 0 and self._request.max_bytes > 0:
                share_key = SharePartitionKey(self._key.group_id, *cached.key)
                held = context.services.share.partitions.open(share_key, partition)
                self._held.append((cached, held))

    def _refuse(self, cached: CachedSharePartition, code: ErrorCode, message: str) -> None:
        data = PartitionData(partition_index=cached.key.partition, records=NOTHING)
        data.error_code = code
        data.error_message = message or None
        self._results[cached.key] = data

    # --- Fetching -------------------------------------------------------------------------------

    def _fetch(self) -> Results | None:
        """Acquire if there is enough, something failed, or it is late; None while there is not."""
        respond_immediately = not self._held or self._request.min_bytes <= 0 or self.is_late
        ready: list[tuple[CachedSharePartition, HeldPartition]] = []
        for cached, held in self._held:
            if held.failure is not None:
                self._refuse(cached, held.failure.code, held.failure.message)
                respond_immediately = True
            elif held.is_active and held.core.may_acquire():
                ready.append((cached, held))
        remaining = fetch_max_bytes(self._request.max_bytes, self._context)
        reads: list[tuple[CachedSharePartition, _Read]] = []
        size = 0
        for cached, held in ready:
            read = self._read(held, len(ready), is_first=not size)
            reads.append((cached, read))
            size += len(read.region or NOTHING)
        respond_immediately = respond_immediately or any(
            read.error is not None for _, read in reads
        )
        if not respond_immediately and size < min(self._request.min_bytes, remaining):
            return None
        results: Results = {}
        left = self._request.max_records
        for cached, read in reads:
            data, count = self._acquire(cached, read, left)
            left -= count
            results[cached.key] = data
        return results

    def _read(self, held: "HeldPartition", count: int, *, is_first: bool) -> _Read:
        """Return what the log has at the next offset, within a share of the request's bytes."""
        services = self._context.services
        config = services.group_configs(self._key.group_id)
        fetch_offset = held.core.next_fetch_offset()
        max_bytes = fetch_max_bytes(self._request.max_bytes, self._context) // count
        try:
            read = held.partition.read(
                fetch_offset,
                max_bytes=max_bytes,
                min_one_batch=is_first,
                isolation=IsolationLevel[config.share_isolation_level.upper()],
            )
        except KafkaError as error:
            return _Read(held, fetch_offset, None, error)
        return _Read(held, fetch_offset, read)

    def _acquire(
        self, cached: CachedSharePartition, read: _Read, max_records: int
    ) -> tuple[PartitionData, int]:
        """Lock what was read for the member; return the answer, and how many records it has."""
        data = PartitionData(partition_index=cached.key.partition, records=NOTHING)
        held = read.held
        if read.error is not None:
            if read.error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                held.core.on_log_start(held.partition.log_start_offset)  # rule 402
            else:
                data.error_code = read.error.code
                data.error_message = read.error.message or None
            return data, 0
        region = read.region
        if region is None or max_records <= 0:
            return data, 0
        core = held.core
        reach = max(core.end_offset, read.fetch_offset) + max_records
        try:
            batches = read_log_batches(region, until_offset=reach)
        except OSError:
            data.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            return data, 0
        assert read.read is not None
        acquired = acquire(
            core,
            Wish(
                member_id=self._key.member_id,
                mode=_mode(self._request.share_acquire_mode),
                max_records=max_records,
                batch_size=self._request.batch_size,
            ),
            fetch_offset=read.fetch_offset,
            log_batches=[each.batch for each in batches],
            aborted=[
                AbortedFrom(each.producer_id, each.first_offset) for each in read.read.aborted or ()
            ],
            now_ms=self._context.services.clock.monotonic_ms(),
        )
        self._context.services.share.partitions.keep_time(held)
        if acquired.ranges:
            data.records = _sliced(region, batches, acquired.ranges)
            data.acquired_records = [
                AcquiredRecords(
                    first_offset=each.first_offset,
                    last_offset=each.last_offset,
                    delivery_count=each.delivery_count,
                )
                for each in acquired.ranges
            ]
        return data, acquired.count

    # --- Answering ------------------------------------------------------------------------------

    def _respond(self) -> ShareFetchResponse:
        request, context, session = self._request, self._context, self._session
        if session is not None and request.share_session_epoch != INITIAL_EPOCH:
            if session.epoch != next_epoch(request.share_session_epoch):
                raise KafkaError(
                    ErrorCode.INVALID_SHARE_SESSION_EPOCH, "a later request was answered before"
                )
            self._results = dict(_news(session, self._results))
        leaders = CurrentLeaders(context)
        for place, data in self._results.items():
            if data.error_code in MOVED_LEADER:
                leader = leaders.of(None, *place)
                if leader is not None:
                    data.current_leader = LeaderIdAndEpoch(
                        leader_id=leader[0], leader_epoch=leader[1]
                    )
        for place, error in self._acknowledged.results():
            entry = self._results.get(place)
            if entry is None:
                entry = PartitionData(partition_index=place.partition, records=NOTHING)
                self._results[place] = entry
            if error is not None:
                entry.acknowledge_error_code = error.code
                entry.acknowledge_error_message = error.message or None
        if request.share_session_epoch == FINAL_EPOCH:
            release_session(self._key, context)
        topics: dict[Any, ShareFetchableTopicResponse] = {}
        for place, data in self._results.items():
            topic = topics.setdefault(
                place.topic_id, ShareFetchableTopicResponse(topic_id=place.topic_id)
            )
            topic.partitions.append(data)
        config = context.services.group_configs(self._key.group_id)
        return ShareFetchResponse(
            error_code=ErrorCode.NONE,
            acquisition_lock_timeout_ms=config.share_record_lock_duration_ms,
            responses=[*topics.values()],
            node_endpoints=[
                NodeEndpoint(node_id=each.node_id, host=each.host, port=each.port, rack=each.rack)
                for each in leaders.endpoints()
            ],
        )


def _news(
    session: ShareSession, results: Results
) -> Iterator[tuple[TopicIdPartition, PartitionData]]:
    """Yield what a later answer of a session has (rule 410).

    Partitions that returned records move to the end of the session's order.
    """
    for place, data in results.items():
        cached = session.partitions.get(place)
        if cached is None:
            yield place, data  # forgotten by the next request, which is waiting already
            continue
        has_records = bool(data.records)
        if not (has_records or cached.must_be_told or data.error_code):
            continue
        cached.must_be_told = data.error_code != ErrorCode.NONE
        if has_records:
            session.partitions[place] = session.partitions.pop(place)
        yield place, data


def _mode(number: int) -> AcquireMode:
    is_exact = number == AcquireMode.RECORD_LIMIT
    return AcquireMode.RECORD_LIMIT if is_exact else AcquireMode.BATCH_OPTIMIZED


def _sliced(
    region: FileRegion, batches: list[PlacedBatch], ranges: list[AcquiredRange]
) -> FileRegion:
    """Return the batches of the log from the first acquired offset to the last."""
    first, last = ranges[0].first_offset, ranges[-1].last_offset
    begin = 0
    for index, placed in enumerate(batches):
        if placed.batch.base_offset <= first:
            begin = index
    end = begin
    for index in range(begin + 1, len(batches)):
        if batches[index].batch.base_offset > last:
            break
        end = index
    start, stop = batches[begin].start, batches[end].end
    return FileRegion(region.file, region.position + start, stop - start, on_error=region.on_error)


def _may_read(topic: str, context: "RequestContext") -> bool:
    authorizer = context.services.authorizer
    return authorizer is None or authorizer.may_read(context, topic)


HANDLERS = (Handler(SHARE_FETCH, handle, refuse),)
