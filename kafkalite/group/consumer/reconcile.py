"""A member's next step towards its target; after Kafka's CurrentAssignmentBuilder (KIP-848).

A member first gives up what the target takes from it, and keeps its epoch until it says that it
has; then it moves to the target's epoch and gets what nobody else has. So no partition has two
owners.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from kafkalite.group.consumer.member import (
    ConsumerMember,
    Epochs,
    MemberState,
    Target,
    owns_any,
)
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.consumer_group_heartbeat import TopicPartitions

FREE = -1


@dataclass(slots=True, frozen=True, kw_only=True)
class Surroundings:
    """Facts, besides the member itself, on which its next step depends.

    Attributes:
        target_epoch: of the target.
        target: what the member is to have.
        subscribed: ids of the topics that it reads; what it has of others is taken from it.
        has_subscription_changed: whether that became so in this very request.
        owned: what the client says that it has; None if it does not say.
        partition_epoch: gives the epoch of whoever has a partition, FREE if nobody has.
    """

    target_epoch: int
    target: Target
    subscribed: frozenset[UUID]
    has_subscription_changed: bool
    owned: list[TopicPartitions] | None
    partition_epoch: Callable[[UUID, int], int]


def reconcile(member: ConsumerMember, around: Surroundings) -> ConsumerMember:
    """Return the member after its next step; the same object if there is none.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH, the member is in a state that only a later broker knows and
            must begin again with nothing.
    """
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch != around.target_epoch:
                return _next(member, around, member.member_epoch)
            return _shrunk(member, around) if around.has_subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS:
            if not owns_any(around.owned, member.revoking):
                return _next(member, around, member.member_epoch)
            return _shrunk(member, around) if around.has_subscription_changed else member
        case MemberState.UNRELEASED_PARTITIONS:
            return _next(member, around, member.member_epoch)
        case _:
            if around.owned is None or around.owned:
                raise KafkaError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    f"member {member.member_id} is in an unknown state: it must abandon all its "
                    "partitions and rejoin",
                )
            return _next(member, around, around.target_epoch)


def _shrunk(member: ConsumerMember, around: Surroundings) -> ConsumerMember:
    """Take from a member the topics that it no longer reads, though its target may have them."""
    gone = {
        topic_id: partitions
        for topic_id, partitions in member.assigned.items()
        if topic_id not in around.subscribed
    }
    if not gone:
        return member
    kept = {
        topic_id: partitions
        for topic_id, partitions in member.assigned.items()
        if topic_id in around.subscribed
    }
    revoking: dict[UUID, Mapping[int, int]] = dict(member.revoking)
    for topic_id, partitions in gone.items():
        revoking[topic_id] = {**revoking.get(topic_id, {}), **partitions}
    if owns_any(around.owned, revoking):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_member_epoch=member.member_epoch,
            assigned=kept,
            revoking=revoking,
        )
    return replace(member, previous_member_epoch=member.member_epoch, assigned=kept)


def _next(member: ConsumerMember, around: Surroundings, epoch: int) -> ConsumerMember:
    """Return the member on its way to the target, at `epoch` while it has to give something up."""
    kept: dict[UUID, Mapping[int, int]] = {}
    revoking: dict[UUID, Mapping[int, int]] = {}
    added: dict[UUID, list[int]] = {}
    waits = False
    for topic_id in {**around.target, **member.assigned}:
        wanted = around.target.get(topic_id, ()) if topic_id in around.subscribed else ()
        has = member.assigned.get(topic_id, {})
        wants = {*wanted}
        keeps = {partition: since for partition, since in has.items() if partition in wants}
        if keeps:
            kept[topic_id] = keeps
        if len(keeps) < len(has):
            revoking[topic_id] = {p: since for p, since in has.items() if p not in wants}
        missing = [partition for partition in wanted if partition not in has]
        if missing:
            own = member.revoking.get(topic_id, {})
            # What it is itself about to give up is no other member's.
            free = [
                partition
                for partition in missing
                if partition in own or around.partition_epoch(topic_id, partition) == FREE
            ]
            waits = waits or len(free) < len(missing)
            if free:
                added[topic_id] = free
    if revoking and owns_any(around.owned, revoking):
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, epoch, kept, revoking)
    for topic_id, partitions in added.items():
        since = dict.fromkeys(partitions, around.target_epoch)
        kept[topic_id] = {**kept.get(topic_id, {}), **since}
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return _moved(member, state, around.target_epoch, kept, {})


def _moved(
    member: ConsumerMember, state: MemberState, epoch: int, assigned: Epochs, revoking: Epochs
) -> ConsumerMember:
    return replace(
        member,
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        revoking=revoking,
    )
