"""AlterReplicaLogDirs (key 34), versions 1-2: in which directory a replica is to lie (KIP-113).

Not implemented: moving a replica to another directory of its broker. It is refused with
UNSUPPORTED_VERSION, which clients also say of brokers that lack this API. v2: flexible.
"""

import os
from collections.abc import Callable

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.alter_replica_log_dirs import (
    ALTER_REPLICA_LOG_DIRS,
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

FUTURE_DIRECTORY_BYTES_MAX = 255
FUTURE_SUFFIX_BYTES = len(".") + 32 + len("-future")
"""What Kafka appends to the name of the directory that a replica is moved to."""


def handle(
    request: AlterReplicaLogDirsRequest, context: RequestContext
) -> AlterReplicaLogDirsResponse:
    """Answer each partition by itself; of two directories for one the latter counts."""
    return _answer(request, lambda partition, path: _refusal(partition, path, context))


def refuse(
    request: AlterReplicaLogDirsRequest, error: KafkaError, context: RequestContext
) -> AlterReplicaLogDirsResponse:
    """Answer the error for each partition."""
    del context
    return _answer(request, lambda partition, path: error.code)


def _refusal(partition: TopicPartition, path: str, context: RequestContext) -> ErrorCode:
    logs = context.services.logs
    if len(f"{partition.topic}-{partition.partition}") + FUTURE_SUFFIX_BYTES > (
        FUTURE_DIRECTORY_BYTES_MAX
    ):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path not in map(os.path.abspath, logs.paths):
        return ErrorCode.LOG_DIR_NOT_FOUND
    if context.services.metadata.image.partition(*partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    home = logs.path_of(partition)
    if home is None:
        return ErrorCode.REPLICA_NOT_AVAILABLE
    if os.path.abspath(home) == path:
        return ErrorCode.NONE
    return ErrorCode.UNSUPPORTED_VERSION


def _answer(
    request: AlterReplicaLogDirsRequest, code_of: Callable[[TopicPartition, str], ErrorCode]
) -> AlterReplicaLogDirsResponse:
    paths = {
        TopicPartition(topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    topics: dict[str, AlterReplicaLogDirTopicResult] = {}
    for partition, path in paths.items():
        name, index = partition
        topic = topics.setdefault(name, AlterReplicaLogDirTopicResult(topic_name=name))
        topic.partitions.append(
            AlterReplicaLogDirPartitionResult(
                partition_index=index, error_code=code_of(partition, path)
            )
        )
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


HANDLERS = (Handler(ALTER_REPLICA_LOG_DIRS, handle, refuse),)
