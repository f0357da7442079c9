"""Groups of all kinds: who is in them, what they were assigned, how far they are behind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import trio

from kafkalite.client.groups import read_assignment
from kafkalite.observe.cluster import (
    EARLIEST,
    LATEST,
    PAUSE_S,
    Cluster,
    FoundOffset,
    TopicView,
    broker_ids,
    check,
    coordinator,
    list_offsets,
    topics,
)
from kafkalite.types import TopicPartition
from kafkalite.wire.api import ApiKey
from kafkalite.wire.apis import APIS
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafkalite.wire.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from kafkalite.wire.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
)

CLASSIC: Final = "classic"
CONSUMER_PROTOCOL: Final = "consumer"

DESCRIBES: Final = {
    "consumer": ApiKey.CONSUMER_GROUP_DESCRIBE,
    "share": ApiKey.SHARE_GROUP_DESCRIBE,
    "streams": ApiKey.STREAMS_GROUP_DESCRIBE,
}
"""What describes the groups of each type but the classic one (KIP-848, KIP-932, KIP-1071)."""

SETTLED: Final = "Stable"
GONE: Final = "Dead"


@dataclass(slots=True, frozen=True, kw_only=True)
class MemberView:
    """One member; what it was assigned by topic."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: Mapping[str, list[int]] = field(default_factory=dict)
    epoch: int | None = None
    subscribed: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return it as the API tells it."""
        return {
            "member_id": self.member_id,
            "instance_id": self.instance_id,
            "client_id": self.client_id,
            "host": self.client_host,
            "epoch": self.epoch,
            "subscribed": self.subscribed,
            "assignment": [
                {"topic": topic, "partitions": sorted(indexes)}
                for topic, indexes in sorted(self.assignment.items())
            ],
        }


@dataclass(slots=True, frozen=True, kw_only=True)
class GroupView:
    """One group as its coordinator describes it."""

    group_id: str
    type: str
    state: str
    protocol: str
    assignor: str
    members: list[MemberView]
    coordinator: int
    epoch: int | None = None

    @property
    def is_settled(self) -> bool:
        """Whether all members have what they are to have."""
        return self.state == SETTLED


async def list_groups(cluster: Cluster) -> list[dict[str, Any]]:
    """Return id, type, state and protocol of all groups, by id."""
    found: dict[str, dict[str, Any]] = {}
    for broker in await broker_ids(cluster):
        try:
            answer = await cluster.ask(LIST_GROUPS, ListGroupsRequest(), broker=broker)
        except KafkaError:
            continue
        if answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            continue
        check(answer.error_code, "list of groups")
        for group in answer.groups:
            found[group.group_id] = {
                "group_id": group.group_id,
                "type": (group.group_type or CLASSIC).lower(),
                "state": group.group_state,
                "protocol": group.protocol_type,
                "coordinator": broker,
            }
    return [found[name] for name in sorted(found)]


async def group_type(cluster: Cluster, group_id: str, broker: int) -> str:
    """Return the type of a group; a classic one where nobody says."""
    answer = await cluster.ask(LIST_GROUPS, ListGroupsRequest(), broker=broker)
    for group in answer.groups:
        if group.group_id == group_id:
            return (group.group_type or CLASSIC).lower()
    return CLASSIC


async def describe_group(cluster: Cluster, group_id: str) -> GroupView:
    """Return a group.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND, or nobody coordinates it.
    """
    broker = await coordinator(cluster, group_id)
    kind = await group_type(cluster, group_id, broker)
    api: Any = APIS.get(DESCRIBES[kind]) if kind in DESCRIBES else None
    if api is None:
        return await _describe_classic(cluster, group_id, broker)
    request = api.request.record(group_ids=[group_id])
    answer = await cluster.ask(api, request, broker=broker)
    (group,) = answer.groups
    check(group.error_code, group.error_message or f"group {group_id!r}")
    return GroupView(
        group_id=group_id,
        type=kind,
        state=group.group_state,
        protocol=kind,
        assignor=getattr(group, "assignor_name", ""),
        members=[_member(member) for member in group.members],
        coordinator=broker,
        epoch=group.group_epoch,
    )


def _member(member: Any) -> MemberView:
    return MemberView(
        member_id=member.member_id,
        instance_id=getattr(member, "instance_id", None),
        client_id=member.client_id,
        client_host=member.client_host,
        assignment=_assignment(getattr(member, "assignment", None)),
        epoch=member.member_epoch,
        subscribed=list(getattr(member, "subscribed_topic_names", None) or []),
    )


def _assignment(assignment: Any) -> dict[str, list[int]]:
    """Return partitions by topic, for streams groups tasks by subtopology."""
    found: dict[str, list[int]] = {}
    for each in getattr(assignment, "topic_partitions", None) or []:
        found.setdefault(each.topic_name, []).extend(each.partitions)
    for each in getattr(assignment, "active_tasks", None) or []:
        found.setdefault(f"subtopology {each.subtopology_id}", []).extend(each.partitions)
    return found


async def _describe_classic(cluster: Cluster, group_id: str, broker: int) -> GroupView:
    request = DescribeGroupsRequest(groups=[group_id])
    answer = await cluster.ask(DESCRIBE_GROUPS, request, broker=broker)
    (group,) = answer.groups
    check(group.error_code, f"group {group_id!r}")
    if group.group_state == GONE:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
    members = []
    for member in group.members:
        assignment: dict[str, list[int]] = {}
        if group.protocol_type == CONSUMER_PROTOCOL:
            for place in read_assignment(member.member_assignment):
                assignment.setdefault(place.topic, []).append(place.partition)
        members.append(
            MemberView(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                assignment=assignment,
            )
        )
    return GroupView(
        group_id=group_id,
        type=CLASSIC,
        state=group.group_state,
        protocol=group.protocol_type,
        assignor=group.protocol_data,
        members=members,
        coordinator=broker,
    )


@dataclass(slots=True, frozen=True)
class Committed:
    """Committed offset of a group for one partition."""

    offset: int
    metadata: str


async def committed_offsets(
    cluster: Cluster, group_id: str, broker: int | None = None
) -> dict[TopicPartition, Committed]:
    """Return all that a group has committed."""
    if broker is None:
        broker = await coordinator(cluster, group_id)
    request = OffsetFetchRequest(group_id=group_id, topics=None)
    answer = await cluster.ask(OFFSET_FETCH, request, broker=broker)
    check(answer.error_code, f"group {group_id!r}")
    found: dict[TopicPartition, Committed] = {}
    for topic in answer.topics:
        for each in topic.partitions:
            if each.error_code == ErrorCode.NONE and each.committed_offset >= 0:
                place = TopicPartition(topic.name, each.partition_index)
                found[place] = Committed(each.committed_offset, each.metadata or "")
    return found


@dataclass(slots=True, frozen=True, kw_only=True)
class PartitionLag:
    """How far a group is behind in one partition; None where it cannot be known."""

    place: TopicPartition
    committed: int | None
    start: int | None
    end: int | None
    metadata: str = ""

    @property
    def lag(self) -> int | None:
        """Records that are there and not committed."""
        if self.committed is None or self.end is None:
            return None
        return max(0, self.end - max(self.committed, self.start or 0))


async def lags(
    cluster: Cluster, group: GroupView, committed: Mapping[TopicPartition, Committed]
) -> list[PartitionLag]:
    """Return the lag in all partitions that a group committed for, or was assigned."""
    places = set(committed)
    for member in group.members:
        for name, indexes in member.assignment.items():
            places.update(TopicPartition(name, index) for index in indexes)
    views = await topics(cluster, sorted({place.topic for place in places}))
    starts, ends = await bounds(cluster, views)
    return [
        PartitionLag(
            place=place,
            committed=committed[place].offset if place in committed else None,
            metadata=committed[place].metadata if place in committed else "",
            start=starts[place].offset if place in starts else None,
            end=ends[place].offset if place in ends else None,
        )
        for place in sorted(places)
    ]


async def bounds(
    cluster: Cluster, views: list[TopicView]
) -> tuple[dict[TopicPartition, FoundOffset], dict[TopicPartition, FoundOffset]]:
    """Return the first offset and the end (high watermark) of all partitions of topics."""
    return (
        await list_offsets(cluster, views, EARLIEST),
        await list_offsets(cluster, views, LATEST),
    )


async def wait_settled(cluster: Cluster, group_id: str, member_count: int | None) -> GroupView:
    """Return a group when it is stable, with so many members (one at least if None).

    Has no deadline: the caller sets it.
    """
    while True:
        try:
            group = await describe_group(cluster, group_id)
        except KafkaError:
            pass
        else:
            count = len(group.members)
            if group.is_settled and (count == member_count or (member_count is None and count)):
                return group
        await trio.sleep(PAUSE_S)
