"""DescribeLogDirs (key 35), versions 1-5: where partitions lie and how large they are (KIP-113).

v2: flexible. v3: top-level error. v4: size and free space of the volume (KIP-827). v5: cordoned
directories (KIP-1066), of which there are none.
"""

import os
from collections.abc import Iterable

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.log.log import Log
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.describe_log_dirs import (
    DESCRIBE_LOG_DIRS,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

UNKNOWN_BYTES = -1


def handle(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    """Answer every directory of this broker, with those of the asked partitions that are in it.

    Null asks for all partitions; what is not here is left out (rule 221). Paths are absolute.
    """
    wanted: set[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    logs = context.services.logs
    by_path: dict[str, list[Log]] = {path: [] for path in logs.paths}
    for log in logs.logs():
        path = logs.path_of(log.topic_partition)
        if path is not None and (wanted is None or log.topic_partition in wanted):
            by_path[path].append(log)
    return DescribeLogDirsResponse(
        results=[_result(path, found, context) for path, found in by_path.items()]
    )


def refuse(
    request: DescribeLogDirsRequest, error: KafkaError, context: RequestContext
) -> DescribeLogDirsResponse:
    """Answer the error."""
    del request, context
    return DescribeLogDirsResponse(error_code=error.code)


def _result(path: str, logs: Iterable[Log], context: RequestContext) -> DescribeLogDirsResult:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for log in sorted(logs, key=lambda log: log.topic_partition):
        topic, index = log.topic_partition
        topics.setdefault(topic, []).append(
            DescribeLogDirsPartition(
                partition_index=index, partition_size=log.size_bytes, offset_lag=_lag(log, context)
            )
        )
    error_code = ErrorCode.NONE
    total_bytes = usable_bytes = UNKNOWN_BYTES
    try:
        total_bytes, usable_bytes = context.services.logs.usage(path)
    except OSError:
        error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return DescribeLogDirsResult(
        error_code=error_code,
        log_dir=os.path.abspath(path),
        topics=[
            DescribeLogDirsTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )


def _lag(log: Log, context: RequestContext) -> int:
    """Return how many committed records the log lacks; a leader lacks none."""
    partition = context.services.replicas.find(log.topic_partition)
    return 0 if partition is None else max(partition.high_watermark - log.log_end_offset, 0)


HANDLERS = (Handler(DESCRIBE_LOG_DIRS, handle, refuse),)
