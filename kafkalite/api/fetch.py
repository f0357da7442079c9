"""Fetch (key 1), versions 4-18: bytes of the log, as they lie on disk.

v7: incremental sessions (KIP-227). v9: CurrentLeaderEpoch (KIP-320). v10: zstd (KIP-110).
v11: rack of the consumer (KIP-392). v12: LastFetchedEpoch, DivergingEpoch (KIP-595).
v13: topic IDs (KIP-516). v15: ReplicaState (KIP-903). v16: NodeEndpoints (KIP-951).
v17: directory IDs (KIP-853). v18: HighWatermark (KIP-1166).

Not implemented: preferred read replica (there is one replica), throttling.
"""

from collections.abc import Iterable
from functools import partial

import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.fetch_session import CachedPartition, FetchPlan
from kafkalite.api.handler import Handler, Pending
from kafkalite.isr.partition import IsolationLevel, Partition, PartitionRead
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.fetch import (
    FETCH,
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_ZSTD = 10
FIRST_VERSION_WITH_SESSIONS = 7

Results = list[tuple[CachedPartition, PartitionData]]


def admit(request: FetchRequest, context: RequestContext) -> FetchResponse | Pending:
    """Answer at once if there is enough to send, else when there is (rule 70)."""
    plan = context.services.fetch_sessions.plan(
        request,
        by_topic_id=context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS,
        now_ms=context.now_ms,
    )
    isolation = _isolation(request.isolation_level)
    results, enough = _read(plan, request, isolation, context)
    if enough or request.max_wait_ms <= 0 or not plan.partitions:
        return _response(plan, results)
    return Pending(partial(_wait, plan, request, isolation, context))


def refuse(request: FetchRequest, error: KafkaError, context: RequestContext) -> FetchResponse:
    """Answer an error at the top level, or for each partition before v7."""
    if context.api_version >= FIRST_VERSION_WITH_SESSIONS:
        return FetchResponse(error_code=error.code)
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[_failed(p.partition, error.code) for p in topic.partitions],
            )
            for topic in request.topics
        ]
    )


class _Wakeup:
    """An event that can be used again: set by a partition that moved."""

    __slots__ = ("event",)

    def __init__(self) -> None:
        self.event = trio.Event()

    def set(self) -> None:
        self.event.set()


async def _wait(
    plan: FetchPlan, request: FetchRequest, isolation: IsolationLevel, context: RequestContext
) -> FetchResponse:
    """Wait until min_bytes are there, something fails, or max_wait_ms have passed (rule 71)."""
    wakeup = _Wakeup()
    watched = [p for c in plan.partitions if (p := _find(c, context)) is not None]
    for partition in watched:
        partition.watch(wakeup.set)
    try:
        with trio.move_on_after(request.max_wait_ms / 1000):
            while True:
                await wakeup.event.wait()
                wakeup.event = trio.Event()
                results, enough = _read(plan, request, isolation, context)
                if enough:
                    return _response(plan, results)
    finally:
        for partition in watched:
            partition.unwatch(wakeup.set)
    results, _ = _read(plan, request, isolation, context)
    return _response(plan, results)


def _isolation(level: int) -> IsolationLevel:
    try:
        return IsolationLevel(level)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"isolation level {level}") from None


def _read(
    plan: FetchPlan, request: FetchRequest, isolation: IsolationLevel, context: RequestContext
) -> tuple[Results, bool]:
    """Read every partition of the plan in its order within the byte limits (rules 68-69).

    Returns the results, and whether they may be sent now: enough bytes, or anything that the
    client must hear of at once.
    """
    remaining = min(request.max_bytes, context.services.fetch_max_bytes)
    size = 0
    urgent = False
    results: Results = []
    for cached in plan.partitions:
        try:
            partition = _partition(cached, context)
            partition.check_leader_epoch(cached.current_leader_epoch)
            read = partition.read(
                cached.fetch_offset,
                max_bytes=max(0, min(cached.max_bytes, remaining)),
                min_one_batch=size == 0,
                isolation=isolation,
                last_fetched_epoch=cached.last_fetched_epoch,
            )
        except KafkaError as error:
            code = error.code
            if code is ErrorCode.KAFKA_STORAGE_ERROR and context.api_version <= 5:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            urgent = True
            results.append((cached, _failed(cached.partition, code)))
            continue
        urgent = urgent or read.diverging is not None
        if read.region is not None:
            size += len(read.region)
            remaining -= len(read.region)
        results.append((cached, _partition_data(cached.partition, read)))
    return results, urgent or size >= request.min_bytes


def _partition(cached: CachedPartition, context: RequestContext) -> Partition:
    """Return the partition that is meant, which must be led here.

    Raises:
        KafkaError: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, or
            UNSUPPORTED_COMPRESSION_TYPE for a zstd topic and a client too old for it (rule 80).
    """
    replicas = context.services.replicas
    if cached.topic_id != ZERO_UUID:
        partition = replicas.partition_by_id(cached.topic_id, cached.partition)
    else:
        partition = replicas.partition(cached.topic, cached.partition)
    if (
        context.api_version < FIRST_VERSION_WITH_ZSTD
        and partition.log.config.compression_type == "zstd"
    ):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"{partition.topic_partition} is compressed with zstd, which Fetch has from v10 on",
        )
    return partition


def _find(cached: CachedPartition, context: RequestContext) -> Partition | None:
    try:
        return _partition(cached, context)
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


def _failed(index: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


def _response(
    plan: FetchPlan, results: Iterable[tuple[CachedPartition, PartitionData]]
) -> FetchResponse:
    responses: list[FetchableTopicResponse] = []
    for cached, data in plan.select(results):
        last = responses[-1] if responses else None
        if last is None or last.topic != cached.topic or last.topic_id != cached.topic_id:
            last = FetchableTopicResponse(
                topic=cached.topic, topic_id=cached.topic_id, partitions=[]
            )
            responses.append(last)
        last.partitions.append(data)
    return FetchResponse(session_id=plan.session_id, responses=responses)


HANDLERS = (Handler(FETCH, admit, refuse),)
