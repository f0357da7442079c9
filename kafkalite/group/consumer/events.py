"""What happens to consumer groups, and what they want of others."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafkalite.group.consumer.group import Resolution
from kafkalite.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


@dataclass(slots=True)
class ConsumerHeartbeat:
    """A ConsumerGroupHeartbeat request whose form was checked, and what it needs from outside.

    Attributes:
        new_member_id: a new id, for clients of v0 that have none.
        principal: the client's, who may see the topics that its pattern finds.
    """

    request: ConsumerGroupHeartbeatRequest
    client_id: str
    client_host: str
    new_member_id: str
    principal: str


@dataclass(slots=True)
class DescribeConsumerGroup:
    """One group of a ConsumerGroupDescribe request; answered with a DescribedGroup."""

    group_id: str


@dataclass(slots=True, frozen=True)
class ResolvePatterns:
    """An effect: somebody is to find the topics of a group's patterns.

    Attributes:
        principal, host: who must be allowed to see the topics, and from where.
    """

    group_id: str
    patterns: tuple[str, ...]
    principal: str
    host: str


@dataclass(slots=True)
class PatternsResolved:
    """The topics of patterns were found."""

    group_id: str
    resolutions: Mapping[str, Resolution]
