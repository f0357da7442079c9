"""One classic group: its members, and what they have agreed on. After Kafka's ClassicGroup.

This is the group as the protocol sees it; who may do what when is decided in `join`, `rebalance`,
`sync` and `membership`, which alone change it, besides `restore`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.classic.states import LEGAL_PREDECESSORS, GroupState
from kafkalite.group.classic.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from kafkalite.group.kinds import ANY_PARTITION, Committer, GroupKind, PartitionCheck
from kafkalite.group.offsets import CommittedOffset
from kafkalite.group.transition import TimerKey, TimerKind
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember
from kafkalite.wire.messages.list_groups import ListedGroup
from kafkalite.wire.stored.group_metadata import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

if TYPE_CHECKING:
    from kafkalite.coordinator.shard import Ticket

NO_CONNECTION = -1
NO_TIMESTAMP = -1

Protocols = tuple[tuple[str, bytes], ...]
"""(name, metadata) by the member's preference, most wanted first."""


@dataclass(slots=True)
class Member:
    """One client of a group. Static if it has a `group_instance_id` (KIP-345)."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    """Added but never answered: it does not know its id yet, so it cannot heartbeat (rule 136)."""
    connection_id: int = NO_CONNECTION
    """Where its last JoinGroup came from."""

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return what the member said about a protocol that it supports; b"" without one."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""

    def vote(self, candidates: set[str]) -> str:
        """Return the candidate that the member likes best."""
        return next(name for name, _ in self.protocols if name in candidates)


class ClassicGroup:
    """Members, generation and tickets of one group.

    Hard state, which `restore` sets from the log: generation, protocol, leader, assignments, and
    EMPTY or STABLE. Soft state, lost with the broker: everything about a rebalance under way.

    Invariants: a ticket belongs to a member; sync tickets exist only in COMPLETING_REBALANCE, join
    tickets only in PREPARING_REBALANCE; the leader is a member; EMPTY means no members.
    """

    __slots__ = (
        "_supported",
        "generation",
        "group_id",
        "hands_sessions_on",
        "initial_delay_ms",
        "initial_remaining_ms",
        "is_initial_rebalance",
        "join_tickets",
        "leader_id",
        "members",
        "new_member_added",
        "pending_joins",
        "pending_syncs",
        "protocol_name",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
        "sync_tickets",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_timestamp_ms = NO_TIMESTAMP
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self.subscribed_topics: frozenset[str] | None = None
        self.pending_joins: dict[str, int] = {}
        """Ids handed out with MEMBER_ID_REQUIRED, and the connections they went to (KIP-394)."""
        self.join_tickets: dict[str, Ticket] = {}
        self.sync_tickets: dict[str, Ticket] = {}
        self.pending_syncs: dict[str, None] = {}
        """Members that were told the generation and have not asked for their assignment."""
        self.is_initial_rebalance = False
        self.new_member_added = False
        self.initial_delay_ms = 0
        self.initial_remaining_ms = 0
        self.hands_sessions_on = False
        """It is about to be a consumer group, in which its members' sessions go on."""
        self._supported: dict[str, int] = {}

    # --- What is asked of groups of every kind --------------------------------------------------

    @property
    def kind(self) -> GroupKind:
        """Kind of the group."""
        return GroupKind.CLASSIC

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return self.state is GroupState.EMPTY

    @property
    def state_name(self) -> str:
        """Its state as ListGroups shows it."""
        return self.state.value

    @property
    def vanishes(self) -> bool:
        """Whether it goes when it is empty and nothing is committed: not if somebody is to join."""
        return not self.pending_joins

    def listed(self) -> ListedGroup:
        """Return its line in ListGroups."""
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type or "",
            group_state=self.state_name,
            group_type=self.kind.value,
        )

    def check_commit(self, committer: Committer) -> PartitionCheck:
        """Refuse a commit by rules 145 and 146, in a transaction by rule 119.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
                REBALANCE_IN_PROGRESS.
        """
        says_nothing = not committer.member_id and committer.group_instance_id is None
        if committer.epoch < 0 and self.state is GroupState.EMPTY:
            return ANY_PARTITION
        if committer.epoch < 0 and says_nothing:
            if committer.in_transaction:
                return ANY_PARTITION
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"group {self.group_id} has members: only they may commit its offsets",
            )
        self.check_member(committer.member_id, committer.group_instance_id)
        if committer.epoch != self.generation:
            raise KafkaError(
                ErrorCode.ILLEGAL_GENERATION,
                f"group {self.group_id} is at generation {self.generation}, the commit at "
                f"{committer.epoch}",
            )
        if self.state is GroupState.COMPLETING_REBALANCE and not committer.in_transaction:
            raise KafkaError(
                ErrorCode.REBALANCE_IN_PROGRESS,
                f"group {self.group_id} has not assigned its partitions yet",
            )
        return ANY_PARTITION

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Let everybody fetch: members of classic groups do not say who they are."""

    def check_delete(self) -> None:
        """Refuse to delete a group with members.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        if self.state is not GroupState.EMPTY:
            raise self._has_members()

    def check_delete_offsets(self) -> None:
        """Refuse to delete offsets of members that do not say what they use.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        if self.state is not GroupState.EMPTY and not self.uses_consumer_protocol:
            raise self._has_members()

    def retention_start(self, committed: CommittedOffset) -> int | None:
        """Return the wall time from which retention counts; None while it does not (rule 151)."""
        if self.protocol_type is None:
            return committed.commit_timestamp_ms  # a client that assigns partitions itself
        if self.state is GroupState.EMPTY:
            # Since the last member left; records before v2 do not say when that was.
            since_ms = self.state_timestamp_ms
            return committed.commit_timestamp_ms if since_ms == NO_TIMESTAMP else since_ms
        if self.state is GroupState.STABLE and self.subscribed_topics is not None:
            return committed.commit_timestamp_ms  # of a topic that the group has stopped reading
        return None

    def tombstones(self) -> list[StoredRecord]:
        """Return the record that removes the group."""
        return [StoredRecord(GroupMetadataKey(group=self.group_id), None)]

    def timers(self) -> Iterable[TimerKey]:
        """Return the keys of all timers that it may have."""
        sessions = () if self.hands_sessions_on else self.members
        for member_id in (*sessions, *self.pending_joins):
            yield (TimerKind.SESSION, self.group_id, member_id)
        yield (TimerKind.JOIN, self.group_id, "")
        yield (TimerKind.SYNC, self.group_id, "")

    def on_topics_changed(self) -> None:
        """Do nothing: members look for themselves."""

    # --- What others ask ------------------------------------------------------------------------

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether the members are consumers (and not, say, Connect workers)."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def has_all_joined(self) -> bool:
        """Whether nobody is left to wait for in the join phase (rule 132)."""
        return len(self.join_tickets) == len(self.members) and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that a member asks for."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether the group reads a topic; yes if that cannot be told of a consumer group."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols has one in common with all others (rule 130)."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and protocols)
        everybody = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._supported.get(name, 0) == everybody for name, _ in protocols
        )

    def check_member(self, member_id: str, group_instance_id: str | None) -> Member:
        """Return the member that a request comes from.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another process has taken over
                the static member's place (KIP-345).
        """
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is not None and current != member_id:
                raise KafkaError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"group {self.group_id}: instance {group_instance_id} is now {current}",
                )
            if current is None:
                raise self._unknown(member_id)
        member = self.members.get(member_id)
        if member is None:
            raise self._unknown(member_id)
        return member

    def select_protocol(self) -> str:
        """Return the protocol with most votes among those that all support (rule 133).

        Of equals, the one that got its first vote first.
        """
        everybody = len(self.members)
        candidates = {name for name, count in self._supported.items() if count == everybody}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def members_for_leader(self) -> list[JoinGroupResponseMember]:
        """Return what the leader needs for the assignment."""
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self.members.values()
        ]

    def to_stored(
        self, *, assignments: dict[str, bytes] | None, now_wall_ms: int
    ) -> GroupMetadataValue:
        """Return the group for the log, with the given assignments, or those the members have."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp=now_wall_ms,
            members=[
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol_name),
                    assignment=(
                        member.assignment
                        if assignments is None
                        else assignments.get(member.member_id, b"")
                    ),
                )
                for member in self.members.values()
            ],
        )

    # --- What the protocol does -----------------------------------------------------------------

    def transition_to(self, state: GroupState, *, now_wall_ms: int) -> None:
        """Enter `state`."""
        assert self.state in LEGAL_PREDECESSORS[state], f"{self.state} -> {state}"
        self.state = state
        self.state_timestamp_ms = now_wall_ms

    def add(self, member: Member, protocol_type: str) -> None:
        """Add a member, the first of which leads and determines the protocol type (rule 133)."""
        assert member.member_id not in self.members
        if not self.members:
            self.protocol_type = protocol_type
        assert protocol_type == self.protocol_type
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        self.members[member.member_id] = member
        self._count(member, 1)
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.pending_joins.pop(member.member_id, None)

    def remove(self, member_id: str) -> Member:
        """Remove a member, whose tickets have been answered; another one leads if it did."""
        assert member_id not in self.join_tickets
        assert member_id not in self.sync_tickets
        member = self.members.pop(member_id)
        self._count(member, -1)
        if member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        self.pending_syncs.pop(member_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        return member

    def replace(self, old_id: str, member: Member) -> None:
        """Put `member` in the place of the static member `old_id` (rule 143).

        Place in line, assignment and leadership are inherited.
        """
        assert old_id not in self.join_tickets
        assert old_id not in self.sync_tickets
        old = self.members[old_id]
        assert member.group_instance_id is not None
        assert old.group_instance_id == member.group_instance_id
        self._count(old, -1)
        self._count(member, 1)
        self.members = {
            (member.member_id if key == old_id else key): (member if key == old_id else value)
            for key, value in self.members.items()
        }
        self.static_members[member.group_instance_id] = member.member_id
        if old_id in self.pending_syncs:
            del self.pending_syncs[old_id]
            self.pending_syncs[member.member_id] = None
        if self.leader_id == old_id:
            self.leader_id = member.member_id

    def update_protocols(self, member: Member, protocols: Protocols) -> None:
        """Set what a member supports."""
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader is among those who joined; False if nobody has."""
        if self.leader_id in self.join_tickets:
            return True
        for member_id in self.members:
            if member_id in self.join_tickets:
                self.leader_id = member_id
                return True
        return False

    def start_generation(self, *, now_wall_ms: int) -> None:
        """Begin the next generation with the members that there are."""
        self.generation += 1
        self.protocol_name = self.select_protocol()
        self.subscribed_topics = self._read_subscriptions()
        self.transition_to(GroupState.COMPLETING_REBALANCE, now_wall_ms=now_wall_ms)

    # --- Replay ---------------------------------------------------------------------------------

    def restore(self, stored: GroupMetadataValue) -> None:
        """Take over what the log says; members that are known keep their soft state.

        In service this confirms what the members were told; in recovery it is all there is.
        """
        kept = {data.member_id for data in stored.members}
        for member_id in [member_id for member_id in self.members if member_id not in kept]:
            self.remove(member_id)
        self.generation = stored.generation
        self.protocol_type = stored.protocol_type or None
        self.protocol_name = stored.protocol
        for data in stored.members:
            self._restore_member(data)
        self.leader_id = stored.leader
        self.state = GroupState.STABLE if stored.members else GroupState.EMPTY
        self.state_timestamp_ms = stored.current_state_timestamp
        self.subscribed_topics = self._read_subscriptions()

    def _restore_member(self, data: MemberMetadata) -> None:
        protocols = ((self.protocol_name or "", data.subscription),)
        # A v0 record has no rebalance timeout; the session timeout served as one then.
        has_timeout = data.rebalance_timeout != -1
        rebalance_timeout_ms = data.rebalance_timeout if has_timeout else data.session_timeout
        member = self.members.get(data.member_id)
        if member is None:
            member = Member(
                member_id=data.member_id,
                group_instance_id=data.group_instance_id,
                client_id=data.client_id,
                client_host=data.client_host,
                rebalance_timeout_ms=rebalance_timeout_ms,
                session_timeout_ms=data.session_timeout,
                protocols=protocols,
            )
            self.add(member, self.protocol_type or "")
        else:
            # In service this is what it said itself, with protocols that the log does not keep.
            if member.metadata(self.protocol_name) != data.subscription:
                self.update_protocols(member, protocols)
            member.rebalance_timeout_ms = rebalance_timeout_ms
            member.session_timeout_ms = data.session_timeout
        member.assignment = data.assignment

    def _read_subscriptions(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol or (self.members and self.protocol_name is None):
            return None
        topics: set[str] = set()
        for member in self.members.values():
            found = subscribed_topics(member.metadata(self.protocol_name))
            if found is None:
                return None
            topics |= found
        return frozenset(topics)

    def _count(self, member: Member, change: int) -> None:
        # A name said twice counts once.
        for name in dict(member.protocols):
            count = self._supported.get(name, 0) + change
            if count:
                self._supported[name] = count
            else:
                del self._supported[name]

    def _has_members(self) -> KafkaError:
        return KafkaError(ErrorCode.NON_EMPTY_GROUP, f"group {self.group_id} has members")

    def _unknown(self, member_id: str) -> KafkaError:
        return KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"group {self.group_id} has no member {member_id!r}"
        )


def protocols_of(offered: Iterable[JoinGroupRequestProtocol]) -> Protocols:
    """Return the protocols of a JoinGroup request, copied out of its frame."""
    return tuple((protocol.name, bytes(protocol.metadata)) for protocol in offered)
