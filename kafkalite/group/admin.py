"""Operators' requests to a group coordinator: describe, list, delete (rules 153, 154, 157)."""

from dataclasses import dataclass

from kafkalite.coordinator.shard import Event, StoredRecord
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.classic.states import GroupState
from kafkalite.group.kinds import Group, GroupKind
from kafkalite.group.offsets import OffsetStore
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.delete_groups import DeletableGroupResult
from kafkalite.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from kafkalite.wire.messages.list_groups import ListedGroup, ListGroupsRequest
from kafkalite.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 6

Groups = dict[str, Group]


@dataclass(slots=True)
class DescribeGroup(Event[DescribedGroup]):
    """One group of a DescribeGroups request; answered with a DescribedGroup."""

    group_id: str
    api_version: int


@dataclass(slots=True)
class ListGroups(Event[list[ListedGroup]]):
    """A ListGroups request, about the groups of one shard."""

    request: ListGroupsRequest


@dataclass(slots=True)
class DeleteOffsets(Event[OffsetDeleteResponse]):
    """An OffsetDelete request whose topics and partitions exist."""

    request: OffsetDeleteRequest


@dataclass(slots=True)
class DeleteGroup(Event[DeletableGroupResult]):
    """One group of a DeleteGroups request; answered with a DeletableGroupResult."""

    group_id: str


@dataclass(slots=True)
class RebalanceGroup(Event[None]):
    """Begin a new round of a group without a change of its members; for tests. Answered None."""

    group_id: str


def describe_group(groups: Groups, group_id: str, api_version: int) -> DescribedGroup:
    """Describe one classic group; metadata of its members only if it is STABLE.

    Groups of other kinds are described by APIs of their own, and unknown here.
    """
    group = groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        unknown = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if api_version >= FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND:
            is_there = group is not None
            unknown.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            unknown.error_message = (
                f"Group {group_id} is not a classic group."
                if is_there
                else f"Group {group_id} not found."
            )
        return unknown
    protocol = (group.protocol_name or "") if group.state is GroupState.STABLE else ""
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol),
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def list_groups(groups: Groups, request: ListGroupsRequest) -> list[ListedGroup]:
    """List groups by state (v4+) and type (v5+), both without regard to case."""
    states = {name.strip().lower() for name in request.states_filter}
    types = {name.strip().lower() for name in request.types_filter}
    kinds = {kind for kind in GroupKind if not types or kind.value in types}
    return [
        group.listed()
        for group in groups.values()
        if group.kind in kinds and (not states or _state_filter(group) in states)
    ]


def _state_filter(group: Group) -> str:
    """Return what a states filter has to say for a group's state (rule 485)."""
    return "not_ready" if group.state_name == "NotReady" else group.state_name.lower()


def delete_group(groups: Groups, offsets: OffsetStore, group_id: str) -> list[StoredRecord]:
    """Return the tombstones of a group without members.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP.
    """
    group = groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")
    group.check_delete()
    return [*offsets.tombstones(group_id), *group.tombstones()]


def delete_offsets(
    groups: Groups, offsets: OffsetStore, request: OffsetDeleteRequest
) -> tuple[list[StoredRecord], OffsetDeleteResponse]:
    """Return the tombstones of single offsets; not of topics that the group reads.

    Raises:
        KafkaError: GROUP_ID_NOT_FOUND; NON_EMPTY_GROUP if the group has members and no way to tell
            what they use.
    """
    group = groups.get(request.group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {request.group_id}")
    group.check_delete_offsets()
    records: list[StoredRecord] = []
    response = OffsetDeleteResponse(error_code=ErrorCode.NONE)
    for topic in request.topics:
        is_in_use = group.is_subscribed_to(topic.name)
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_in_use else ErrorCode.NONE
        indexes = [partition.partition_index for partition in topic.partitions]
        for index in [] if is_in_use else indexes:
            records += offsets.tombstone_if_any(request.group_id, topic.name, index)
        response.topics.append(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(partition_index=index, error_code=code)
                    for index in indexes
                ],
            )
        )
    return records, response
