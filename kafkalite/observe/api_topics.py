"""The API's topics: list, describe, create, change, delete, and their settings."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from kafkalite.http.routing import HttpError, HttpRequest, Route
from kafkalite.http.slices import Slices
from kafkalite.observe.answers import Routes, field
from kafkalite.observe.cluster import (
    TOPICS_AT_ONCE,
    Cluster,
    TopicView,
    check,
    list_offsets,
    topic,
    topics,
)
from kafkalite.observe.groups import bounds
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkalite.wire.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkalite.wire.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from kafkalite.wire.messages.describe_log_dirs import (
    DESCRIBE_LOG_DIRS,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from kafkalite.wire.messages.elect_leaders import (
    ELECT_LEADERS,
    ElectLeadersRequest,
    TopicPartitions,
)

TIMEOUT_MS = 30_000
BY_BROKER = -1
"""Partition count and replication factor that leave the choice to the broker (KIP-464)."""


class TopicRoutes:
    """Answers about topics."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def routes(self) -> list[Route]:
        """Return what is answered."""
        add = Routes(self._cluster)
        add.get("/topics", self._list)
        add.write("POST", "/topics", self._create)
        add.get("/topics/{topic}", self._describe)
        add.write("DELETE", "/topics/{topic}", self._delete)
        add.get("/topics/{topic}/partitions", self._partitions)
        add.write("POST", "/topics/{topic}/partitions", self._add_partitions)
        add.write("POST", "/topics/{topic}/empty", self._empty)
        add.write("POST", "/topics/{topic}/elect", self._elect)
        return add.list

    async def _list(self, request: HttpRequest) -> dict[str, Any]:
        names = await self._cluster.topic_names()
        wanted = request.text("search").lower()
        with_internal = request.flag("internal")
        names = [
            name
            for name in names
            if wanted in name.lower() and (with_internal or not name.startswith("__"))
        ]
        limit = request.number("limit", 10_000, low=1, high=100_000)
        views = await topics(self._cluster, names[:limit])
        starts, ends = await bounds(self._cluster, views)
        sizes = await self._sizes(views)
        slices = Slices()
        found = []
        for view in views:
            found.append(_summary(view, starts, ends, sizes))
            await slices.breathe()
        return {"count": len(names), "topics": found}

    async def _describe(self, request: HttpRequest) -> dict[str, Any]:
        view = await topic(self._cluster, request.parameters["topic"])
        starts, ends = await bounds(self._cluster, [view])
        found = _summary(view, starts, ends, await self._sizes([view]))
        found["topic_id"] = view.topic_id if UUID(view.topic_id).int else None
        return found

    async def _partitions(self, request: HttpRequest) -> dict[str, Any]:
        view = await topic(self._cluster, request.parameters["topic"])
        starts, ends = await bounds(self._cluster, [view])
        stable = await list_offsets(self._cluster, [view], -1, read_committed=True)
        sizes = await self._sizes([view])
        partitions = []
        for each in view.partitions:
            place = TopicPartition(view.name, each.index)
            start, end, lso = starts.get(place), ends.get(place), stable.get(place)
            partitions.append(
                {
                    "partition": each.index,
                    "leader": each.leader,
                    "leader_epoch": each.leader_epoch,
                    "replicas": list(each.replicas),
                    "isr": list(each.isr),
                    "offline": list(each.offline),
                    "start": None if start is None else start.offset,
                    "high_watermark": None if end is None else end.offset,
                    "last_stable_offset": None if lso is None else lso.offset,
                    "bytes": sizes.get(place),
                }
            )
        return {"topic": view.name, "partitions": partitions}

    async def _sizes(self, views: Iterable[TopicView]) -> dict[TopicPartition, int]:
        """Return the bytes of each partition on its leader's disk, where that is told."""
        if not await self._cluster.supports(DESCRIBE_LOG_DIRS):
            return {}
        found: dict[TopicPartition, int] = {}
        listed = list(views)
        leaders = {each.leader for view in listed for each in view.partitions if each.leader >= 0}
        for leader in sorted(leaders):
            for start in range(0, len(listed), TOPICS_AT_ONCE):
                wanted = [
                    DescribableLogDirTopic(
                        topic=view.name,
                        partitions=[p.index for p in view.partitions if p.leader == leader],
                    )
                    for view in listed[start : start + TOPICS_AT_ONCE]
                ]
                try:
                    answer = await self._cluster.ask(
                        DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=wanted), broker=leader
                    )
                except KafkaError:
                    break
                for directory in answer.results:
                    for each in directory.topics:
                        for partition in each.partitions:
                            place = TopicPartition(each.name, partition.partition_index)
                            found[place] = partition.partition_size
        return found

    async def _create(self, request: HttpRequest) -> dict[str, Any]:
        body = request.json()
        name = field(body, "name", str)
        configs = field(body, "configs", dict, {})
        message = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=field(body, "partitions", int, BY_BROKER),
                    replication_factor=field(body, "replication_factor", int, BY_BROKER),
                    configs=[
                        CreatableTopicConfig(name=str(key), value=str(value))
                        for key, value in configs.items()
                    ],
                )
            ],
            timeout_ms=TIMEOUT_MS,
            validate_only=field(body, "dry_run", bool, False),
        )
        (result,) = (await self._cluster.ask_controller(CREATE_TOPICS, message)).topics
        check(result.error_code, result.error_message)
        return {"topic": name}

    async def _delete(self, request: HttpRequest) -> dict[str, Any]:
        name = request.parameters["topic"]
        message = DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS)
        (result,) = (await self._cluster.ask_controller(DELETE_TOPICS, message)).responses
        check(result.error_code, result.error_message)
        return {"topic": name}

    async def _add_partitions(self, request: HttpRequest) -> dict[str, Any]:
        name = request.parameters["topic"]
        count = field(request.json(), "count", int)
        message = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)],
            timeout_ms=TIMEOUT_MS,
        )
        (result,) = (await self._cluster.ask_controller(CREATE_PARTITIONS, message)).results
        check(result.error_code, result.error_message)
        return {"topic": name, "partitions": count}

    async def _empty(self, request: HttpRequest) -> dict[str, Any]:
        """Delete all records, or those before an offset of a partition."""
        view = await topic(self._cluster, request.parameters["topic"])
        body = request.json()
        before = field(body, "before", dict, None)
        begins: dict[str, int] = {}
        for each in view.partitions:
            offset = -1 if before is None else before.get(str(each.index))
            if offset is None:
                continue
            if not isinstance(offset, int):
                raise HttpError(400, "before holds offsets by partition")
            message = DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name=view.name,
                        partitions=[
                            DeleteRecordsPartition(partition_index=each.index, offset=offset)
                        ],
                    )
                ],
                timeout_ms=TIMEOUT_MS,
            )
            answer = await self._cluster.ask(DELETE_RECORDS, message, broker=each.leader)
            (result,) = answer.topics[0].partitions
            check(result.error_code, f"{view.name}-{each.index}: is its cleanup.policy delete?")
            begins[str(each.index)] = result.low_watermark
        return {"topic": view.name, "start": begins}

    async def _elect(self, request: HttpRequest) -> dict[str, Any]:
        """Let the first replica of each partition lead."""
        view = await topic(self._cluster, request.parameters["topic"])
        message = ElectLeadersRequest(
            election_type=0,
            topic_partitions=[
                TopicPartitions(
                    topic=view.name, partitions=[each.index for each in view.partitions]
                )
            ],
            timeout_ms=TIMEOUT_MS,
        )
        answer = await self._cluster.ask_controller(ELECT_LEADERS, message)
        check(answer.error_code)
        elected = [
            result.partition_id
            for each in answer.replica_election_results
            for result in each.partition_result
            if result.error_code == ErrorCode.NONE
        ]
        return {"topic": view.name, "elected": elected}


def _summary(
    view: TopicView,
    starts: dict[TopicPartition, Any],
    ends: dict[TopicPartition, Any],
    sizes: dict[TopicPartition, int],
) -> dict[str, Any]:
    records = size = 0
    for each in view.partitions:
        place = TopicPartition(view.name, each.index)
        if place in starts and place in ends:
            records += max(0, ends[place].offset - starts[place].offset)
        size += sizes.get(place, 0)
    return {
        "name": view.name,
        "internal": view.is_internal,
        "partitions": len(view.partitions),
        "replication_factor": max((len(each.replicas) for each in view.partitions), default=0),
        "records": records,
        "bytes": size if sizes else None,
        "without_leader": sum(each.leader < 0 for each in view.partitions),
        "under_replicated": sum(len(each.isr) < len(each.replicas) for each in view.partitions),
    }
