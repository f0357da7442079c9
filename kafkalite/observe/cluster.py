"""A cluster as the HTTP API sees it: something that answers Kafka's requests.

Two answer them: the broker that this runs in (`inside.InsideCluster`), and a client of any Kafka
(`kafkalite.console`).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

import trio

from kafkalite.log.region import FileRegion
from kafkalite.types import TopicPartition
from kafkalite.wire.api import Api
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafkalite.wire.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkalite.wire.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kafkalite.wire.schema import Structure

if TYPE_CHECKING:
    from kafkalite.registry.lookup import SchemaLookup

Request = TypeVar("Request", bound=Structure)
Response = TypeVar("Response", bound=Structure)
Answer = TypeVar("Answer")

EARLIEST: Final = -2
LATEST: Final = -1
GROUP_COORDINATOR: Final = 0
TRANSACTION_COORDINATOR: Final = 1

PARTITIONS_AT_ONCE: Final = 500
"""Partitions in one ListOffsets request."""

TOPICS_AT_ONCE: Final = 50
"""Topics in one Metadata or DescribeConfigs request: about a millisecond of a broker's time."""

SETTLE_S: Final = 5.0
PAUSE_S: Final = 0.05
"""How long leaders and coordinators are waited for, and between two tries."""

RETRIABLE: Final = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
    }
)


class Cluster(Protocol):
    """Answers requests.

    Attributes:
        can_write: requests that change something are let through.
        schemas: of keys and values; None without a schema registry.
    """

    can_write: bool
    schemas: "SchemaLookup | None"

    async def ask(
        self, api: Api[Request, Response], message: Request, *, broker: int | None = None
    ) -> Response:
        """Ask a broker by its id, or any, and return the answer.

        Raises:
            KafkaError: the request was refused as a whole, or nobody answers.
        """
        ...

    async def ask_controller(self, api: Api[Request, Response], message: Request) -> Response:
        """Ask the broker that takes administrative requests. Raises as `ask`."""
        ...

    async def topic_names(self) -> list[str]:
        """Return the names of all topics, sorted."""
        ...

    async def supports(self, api: Api[Any, Any]) -> bool:
        """Whether brokers and this have a version in common."""
        ...


async def retry(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Return what `ask` returns, asking again for a while where leaders or coordinators move.

    Only refusals that did nothing are asked again.
    """
    end_s = trio.current_time() + SETTLE_S
    while True:
        try:
            return await ask()
        except KafkaError as error:
            if error.code not in RETRIABLE or trio.current_time() >= end_s:
                raise
        await trio.sleep(PAUSE_S)


@dataclass(slots=True, frozen=True, kw_only=True)
class PartitionView:
    """One partition, as Metadata has it; a leader of -1 is none."""

    index: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    offline: Sequence[int]


@dataclass(slots=True, frozen=True, kw_only=True)
class TopicView:
    """One topic, as Metadata has it, its partitions in ascending order."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: Sequence[PartitionView]


def check(code: int, message: str | None = None) -> None:
    """Raise the error that a field of an answer holds, if it holds one."""
    if code == ErrorCode.NONE:
        return
    try:
        raise KafkaError(ErrorCode(code), message or "")
    except ValueError:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"error code {code}") from None


async def metadata(cluster: Cluster, topics: Sequence[str] | None) -> MetadataResponse:
    """Return the brokers and some topics, of which none is created."""
    wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    return await cluster.ask(METADATA, request)


async def broker_ids(cluster: Cluster) -> list[int]:
    """Return the ids of the living brokers, ascending."""
    return sorted(broker.node_id for broker in (await metadata(cluster, [])).brokers)


async def topics(cluster: Cluster, names: Sequence[str]) -> list[TopicView]:
    """Return topics by name, those that do not exist left out."""
    found: list[TopicView] = []
    for start in range(0, len(names), TOPICS_AT_ONCE):
        answer = await metadata(cluster, names[start : start + TOPICS_AT_ONCE])
        found += [_topic_view(each) for each in answer.topics if not _is_unknown(each)]
        await trio.lowlevel.checkpoint()
    return found


async def topic(cluster: Cluster, name: str) -> TopicView:
    """Return one topic.

    Raises:
        KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
    """
    found = await topics(cluster, [name])
    if not found:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return found[0]


def _is_unknown(topic: MetadataResponseTopic) -> bool:
    return topic.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)


def _topic_view(topic: MetadataResponseTopic) -> TopicView:
    return TopicView(
        name=topic.name or "",
        topic_id=str(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=[
            PartitionView(
                index=each.partition_index,
                leader=each.leader_id,
                leader_epoch=each.leader_epoch,
                replicas=list(each.replica_nodes),
                isr=list(each.isr_nodes),
                offline=list(each.offline_replicas),
            )
            for each in sorted(topic.partitions, key=lambda each: each.partition_index)
        ],
    )


@dataclass(slots=True, frozen=True)
class FoundOffset:
    """Answer of ListOffsets; both are -1 where nothing is that young."""

    offset: int
    timestamp: int


async def list_offsets(
    cluster: Cluster,
    views: Iterable[TopicView],
    timestamp: int,
    *,
    read_committed: bool = False,
    partitions: Mapping[str, Iterable[int]] | None = None,
) -> dict[TopicPartition, FoundOffset]:
    """Return the first offset at or after a time (ms), or an end, of each partition.

    Partitions without a leader, or whose leader does not answer, are left out.

    Args:
        cluster: whom to ask.
        views: the topics.
        timestamp: ms since 1970, EARLIEST or LATEST.
        read_committed: LATEST is the last stable offset.
        partitions: only these of a topic; all of a topic that is not named.
    """
    by_leader: dict[int, list[tuple[str, int]]] = {}
    for view in views:
        wanted = None if partitions is None else partitions.get(view.name)
        wanted = None if wanted is None else set(wanted)
        for each in view.partitions:
            if each.leader >= 0 and (wanted is None or each.index in wanted):
                by_leader.setdefault(each.leader, []).append((view.name, each.index))
    found: dict[TopicPartition, FoundOffset] = {}
    for leader, led in by_leader.items():
        for start in range(0, len(led), PARTITIONS_AT_ONCE):
            indexes: dict[str, list[int]] = {}
            for name, index in led[start : start + PARTITIONS_AT_ONCE]:
                indexes.setdefault(name, []).append(index)
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=int(read_committed),
                topics=[
                    ListOffsetsTopic(
                        name=name,
                        partitions=[
                            ListOffsetsPartition(partition_index=index, timestamp=timestamp)
                            for index in own
                        ],
                    )
                    for name, own in indexes.items()
                ],
            )
            try:
                answer = await cluster.ask(LIST_OFFSETS, request, broker=leader)
            except KafkaError:
                continue
            for answered in answer.topics:
                for result in answered.partitions:
                    if result.error_code == ErrorCode.NONE:
                        place = TopicPartition(answered.name, result.partition_index)
                        found[place] = FoundOffset(result.offset, result.timestamp)
            await trio.lowlevel.checkpoint()
    return found


async def coordinator(cluster: Cluster, key: str, kind: int = GROUP_COORDINATOR) -> int:
    """Return the broker that coordinates a group or a transactional id.

    Raises:
        KafkaError: COORDINATOR_NOT_AVAILABLE and others, after a while.
    """
    request = FindCoordinatorRequest(key=key, key_type=kind)
    with trio.move_on_after(SETTLE_S):
        while True:
            answer = await cluster.ask(FIND_COORDINATOR, request)
            if answer.error_code not in RETRIABLE:
                check(answer.error_code, answer.error_message)
                return answer.node_id
            await trio.sleep(PAUSE_S)
    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"nobody coordinates {key!r}")


def records_of(records: object) -> memoryview:
    """Return the bytes of a Fetch answer's records, wherever they are."""
    if isinstance(records, FileRegion):
        return memoryview(records.read())
    return memoryview(cast("bytes", records or b""))
