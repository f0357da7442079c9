"""One member of a consumer group, as the log has it (KIP-848). A value: a change makes another."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from uuid import UUID

from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.consumer_group_heartbeat import TopicPartitions
from kafkalite.wire.stored.consumer_group import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    CurrentTopicPartitions,
)

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
LEAVING_STATIC_EPOCH = -2
"""The epoch of a static member that is away and will come back."""

Epochs = Mapping[UUID, Mapping[int, int]]
"""Partitions of topics, each with the epoch at which the member was given it. Never changed."""

Target = Mapping[UUID, tuple[int, ...]]
"""Partitions of topics that a member is to have. Never changed."""


class MemberState(IntEnum):
    """How far a member is on its way to its target; the values are in the log."""

    STABLE = 0
    """It has what its epoch's target says."""
    UNREVOKED_PARTITIONS = 1
    """It has been told to give partitions up, and has not said that it has."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others have not given up."""
    UNKNOWN = 127
    """Written by a later broker."""


MEMBER_STATES = frozenset(MemberState)


@dataclass(slots=True, frozen=True, kw_only=True)
class ClassicMember:
    """State of a member that speaks the classic protocol.

    Attributes:
        protocols: (name, metadata) by preference.
    """

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(slots=True, frozen=True, kw_only=True)
class ConsumerMember:
    """One member.

    Attributes:
        member_epoch: what it may heartbeat and commit with; 0 while it joins, LEAVING_STATIC_EPOCH
            while a static member is away.
        previous_member_epoch: before the last change, for a client that missed an answer.
        assigned: what it may use.
        revoking: what it was told to give up.
        subscribed_topic_names: sorted, each once.
        subscribed_topic_regex: "" or None without one.
        classic: set if it speaks the classic protocol.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    classic: ClassicMember | None = None
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Epochs = field(default_factory=dict)
    revoking: Epochs = field(default_factory=dict)

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether it speaks the classic protocol."""
        return self.classic is not None

    @property
    def pattern(self) -> str | None:
        """The pattern of topics it is subscribed to; None without one."""
        return self.subscribed_topic_regex or None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether it has all that the target of this epoch gives it."""
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch

    def assignment_epoch(self, topic_id: UUID, partition: int) -> int | None:
        """Return since which epoch it has a partition, given up or not; None if it has not."""
        for epochs in (self.assigned, self.revoking):
            epoch = epochs.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def check_epoch(self, epoch: int, owned: list[TopicPartitions] | None) -> None:
        """Refuse a heartbeat of another epoch than the member's.

        The one before is accepted of a client that owns nothing else than what it is assigned: it
        may have missed the answer that told it the new one.

        Raises:
            KafkaError: FENCED_MEMBER_EPOCH.
        """
        if epoch in (JOINING_EPOCH, self.member_epoch):
            return
        if epoch == self.previous_member_epoch < self.member_epoch and self._has_all(owned):
            return
        than = "greater" if epoch > self.member_epoch else "smaller"
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"member {self.member_id} has a {than} member epoch ({epoch}) than the group "
            f"coordinator knows ({self.member_epoch}): it must abandon all its partitions and "
            "rejoin",
        )

    def metadata_record(self) -> ConsumerGroupMemberMetadataValue:
        """Return what the log has of the member's subscription (record type 5)."""
        classic = self.classic
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=[*self.subscribed_topic_names],
            subscribed_topic_regex=self.subscribed_topic_regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=None
            if classic is None
            else ClassicMemberMetadata(
                session_timeout_ms=classic.session_timeout_ms,
                supported_protocols=[
                    ClassicProtocol(name=name, metadata=metadata)
                    for name, metadata in classic.protocols
                ],
            ),
        )

    def current_record(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        """Return what the log has of the member's epoch and partitions (record type 8)."""
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=self.state,
            assigned_partitions=_stored(self.assigned),
            partitions_pending_revocation=_stored(self.revoking),
        )

    def _has_all(self, owned: list[TopicPartitions] | None) -> bool:
        if owned is None:
            return False
        nothing: Mapping[int, int] = {}
        return all(
            topic.topic_id in self.assigned
            and self.assigned.get(topic.topic_id, nothing).keys() >= {*topic.partitions}
            for topic in owned
        )


def with_metadata(
    member: ConsumerMember, stored: ConsumerGroupMemberMetadataValue
) -> ConsumerMember:
    """Return the member with what a record of type 5 says of it."""
    classic = stored.classic_member_metadata
    return replace(
        member,
        instance_id=stored.instance_id,
        rack_id=stored.rack_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        subscribed_topic_names=tuple(sorted(set(stored.subscribed_topic_names))),
        subscribed_topic_regex=stored.subscribed_topic_regex,
        rebalance_timeout_ms=stored.rebalance_timeout_ms,
        server_assignor=stored.server_assignor,
        classic=None
        if classic is None
        else ClassicMember(
            session_timeout_ms=classic.session_timeout_ms,
            protocols=tuple((each.name, each.metadata) for each in classic.supported_protocols),
        ),
    )


def with_current(
    member: ConsumerMember, stored: ConsumerGroupCurrentMemberAssignmentValue
) -> ConsumerMember:
    """Return the member with what a record of type 8 says of it."""
    is_known = stored.state in MEMBER_STATES
    return replace(
        member,
        member_epoch=stored.member_epoch,
        previous_member_epoch=stored.previous_member_epoch,
        state=MemberState(stored.state) if is_known else MemberState.UNKNOWN,
        assigned=read_epochs(stored.assigned_partitions, stored.member_epoch),
        revoking=read_epochs(stored.partitions_pending_revocation, stored.member_epoch),
    )


def owns_any(owned: list[TopicPartitions] | None, revoking: Epochs) -> bool:
    """Whether a client still has one of these partitions; it may if it does not say."""
    if owned is None:
        return True
    return any(
        partition in revoking.get(topic.topic_id, {})
        for topic in owned
        for partition in topic.partitions
    )


def read_epochs(stored: list[CurrentTopicPartitions], member_epoch: int) -> Epochs:
    """Return partitions with their epochs; where the log has none, the member's, at least 0."""
    since = max(member_epoch, 0)
    found = {}
    for topic in stored:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [since] * len(topic.partitions)
        found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return found


def _stored(epochs: Epochs) -> list[CurrentTopicPartitions]:
    return [
        CurrentTopicPartitions(
            topic_id=topic_id,
            partitions=sorted(partitions),
            assignment_epochs=[partitions[index] for index in sorted(partitions)],
        )
        for topic_id, partitions in epochs.items()
    ]
