"""Consumer groups from outside: who is in them, what they have committed."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafkalite.client.cluster import Client
from kafkalite.client.errors import check, error_of
from kafkalite.client.offsets import by_topic
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from kafkalite.wire.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafkalite.wire.messages.list_groups import LIST_GROUPS, ListedGroup, ListGroupsRequest
from kafkalite.wire.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkalite.wire.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)

NO_OFFSET: Final = -1
CONSUMER_PROTOCOL: Final = "consumer"


@dataclass(slots=True, frozen=True)
class GroupMember:
    """One member and what it was assigned."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: list[TopicPartition] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class Group:
    """A group as its coordinator describes it; its state is one of Kafka's names."""

    group_id: str
    state: str
    protocol_type: str
    assignor: str
    members: list[GroupMember]


def list_groups(client: Client) -> list[ListedGroup]:
    """Return the groups of all coordinators, by name; older brokers leave their state empty.

    Raises:
        KafkaError: a coordinator cannot answer.
    """
    groups: dict[str, ListedGroup] = {}
    for connection in client.all_brokers():

        def ask() -> list[ListedGroup]:
            answer = connection.request(LIST_GROUPS, ListGroupsRequest())  # noqa: B023
            check(answer.error_code, "list of groups")
            return answer.groups

        groups |= {group.group_id: group for group in client.retry(ask)}
    return [groups[name] for name in sorted(groups)]


def type_of(client: Client, group_id: str) -> str:
    """Return a group's type (KIP-848), "" if there is no such group or the brokers are older."""
    for listed in list_groups(client):
        if listed.group_id == group_id:
            return str(listed.group_type)
    return ""


def describe_group(client: Client, group_id: str) -> Group:
    """Return a group's state and members.

    A group that the coordinator does not know is `Dead`, as Kafka has it.
    """
    answer = client.ask_coordinator(
        group_id,
        DESCRIBE_GROUPS,
        DescribeGroupsRequest(groups=[group_id]),
        lambda answer: [group.error_code for group in answer.groups],
    )
    (group,) = answer.groups
    check(group.error_code, f"group {group_id!r}")
    return Group(
        group_id,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        [
            GroupMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                read_assignment(member.member_assignment)
                if group.protocol_type == CONSUMER_PROTOCOL
                else [],
            )
            for member in group.members
        ],
    )


def committed_offsets(
    client: Client, group_id: str, partitions: Sequence[TopicPartition] | None = None
) -> dict[TopicPartition, int]:
    """Return the offsets that a group has committed, of all its partitions or those given.

    A partition without one is left out.
    """
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequestTopic(name=name, partition_indexes=[p.partition for p in members])
            for name, members in by_topic(partitions)
        ]
    answer = client.ask_coordinator(
        group_id,
        OFFSET_FETCH,
        OffsetFetchRequest(group_id=group_id, topics=topics),
        lambda answer: [answer.error_code],
    )
    check(answer.error_code, f"group {group_id!r}")
    offsets: dict[TopicPartition, int] = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            place = TopicPartition(topic.name, partition.partition_index)
            check(partition.error_code, f"group {group_id!r}, {place}")
            if partition.committed_offset != NO_OFFSET:
                offsets[place] = partition.committed_offset
    return offsets


def commit_offsets(client: Client, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit offsets for a group that has no members.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID if it has; others.
    """
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=p.partition,
                        committed_offset=offsets[p],
                        committed_metadata="",
                    )
                    for p in members
                ],
            )
            for name, members in by_topic(offsets)
        ],
    )
    answer = client.ask_coordinator(
        group_id,
        OFFSET_COMMIT,
        request,
        lambda answer: [p.error_code for topic in answer.topics for p in topic.partitions],
    )
    for topic in answer.topics:
        for partition in topic.partitions:
            if partition.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                raise KafkaError(
                    ErrorCode.UNKNOWN_MEMBER_ID,
                    f"group {group_id!r} has active members; stop them first",
                )
            check(partition.error_code, f"commit of {topic.name}-{partition.partition_index}")


def delete_groups(client: Client, group_ids: Iterable[str]) -> dict[str, KafkaError | None]:
    """Delete groups, each by itself; return what each one's answer was."""
    results: dict[str, KafkaError | None] = {}
    for group_id in group_ids:
        answer = client.ask_coordinator(
            group_id,
            DELETE_GROUPS,
            DeleteGroupsRequest(groups_names=[group_id]),
            lambda answer: [result.error_code for result in answer.results],
        )
        for result in answer.results:
            results[result.group_id] = error_of(result.error_code, f"group {result.group_id!r}")
    return results


def read_assignment(data: bytes | memoryview) -> list[TopicPartition]:
    """Return the partitions in a member's assignment (Kafka's ConsumerProtocolAssignment).

    What a client wrote in a form of its own is taken as no assignment: this is for display.
    """
    try:
        (topic_count,) = struct.unpack_from(">i", data, 2)
        position = 6
        partitions: list[TopicPartition] = []
        for _ in range(topic_count):
            (length,) = struct.unpack_from(">h", data, position)
            position += 2
            if length < 0:
                return []
            name = bytes(data[position : position + length]).decode()
            position += length
            (count,) = struct.unpack_from(">i", data, position)
            if count * 4 > len(data):
                return []
            indexes = struct.unpack_from(f">{count}i", data, position + 4)
            position += 4 + 4 * count
            partitions += [TopicPartition(name, index) for index in indexes]
    except (struct.error, UnicodeDecodeError):
        return []
    return partitions
