"""Events of consumer groups, and effects they ask of others."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafkalite.group.consumer.records import Resolution
from kafkalite.group.kinds import EventOfKind, GroupKind
from kafkalite.wire.messages.consumer_group_describe import DescribedGroup
from kafkalite.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


@dataclass(slots=True)
class ConsumerHeartbeat(EventOfKind[ConsumerGroupHeartbeatResponse]):
    """A ConsumerGroupHeartbeat request whose form was checked, and what it needs from outside.

    Attributes:
        new_member_id: a new id, for clients of v0 that have none.
        principal: the client's, who may see the topics that its pattern finds.
    """

    kind = GroupKind.CONSUMER

    request: ConsumerGroupHeartbeatRequest
    client_id: str
    client_host: str
    new_member_id: str
    principal: str


@dataclass(slots=True)
class DescribeConsumerGroup(EventOfKind[DescribedGroup]):
    """One group of a ConsumerGroupDescribe request; answered with a DescribedGroup."""

    kind = GroupKind.CONSUMER

    group_id: str


@dataclass(slots=True)
class PatternsResolved(EventOfKind[None]):
    """The topics of patterns were found."""

    kind = GroupKind.CONSUMER

    group_id: str
    resolutions: Mapping[str, Resolution]
