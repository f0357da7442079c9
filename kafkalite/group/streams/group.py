"""One streams group: its topology, its members, and the tasks that they have and are to have.

After Kafka's StreamsGroup. Hard state is what `replay` of `part` sets; `heartbeat` decides.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from kafkalite.group.kinds import ANY_PARTITION, Committer, GroupKind, PartitionCheck
from kafkalite.group.streams.internal_topics import ConfiguredTopology
from kafkalite.group.streams.member import StreamsMember, TaskHolders
from kafkalite.group.streams.records import group_tombstones
from kafkalite.group.streams.tasks import NO_TASKS, TaskId, Tasks
from kafkalite.group.transition import TimerKey, TimerKind
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from kafkalite.coordinator.shard import StoredRecord
    from kafkalite.group.offsets import CommittedOffset
    from kafkalite.group.streams.topology import Topology
    from kafkalite.wire.messages.streams_group_heartbeat import EndpointToPartitions

PROTOCOL_TYPE = "streams"
FIRST_COMMIT_VERSION = 9
NOT_VALIDATED = -1
INITIAL_EPOCH = 1


@dataclass(slots=True)
class SoftState:
    """State that is lost with this broker, and is found again.

    Attributes:
        configured: the topology under the topics as they were seen last.
        checked_epoch: the group epoch at or after which topics were looked at; None if one that
            the group reads has changed since. Larger than the group's epoch after a refused write,
            and then to be looked at again.
        shutdown_member_id: who wants the whole application to end.
        endpoint_epoch: counts answers that gave tasks to a member with an endpoint.
        endpoints: what was answered of a member's endpoint, by member.
        revoking_since: the epoch of members that were told to give up tasks, when they were.
    """

    configured: ConfiguredTopology | None
    checked_epoch: int | None
    shutdown_member_id: str | None
    endpoint_epoch: int
    endpoints: "dict[str, EndpointToPartitions]"
    revoking_since: dict[str, int]


class StreamsGroup:
    """Members, epochs and tasks of one group; a `group.kinds.Group`.

    Attributes:
        group_epoch: grows when a new target is needed.
        assignment_epoch: the group epoch that the target is for; -1 when the group is to go.
        assignment_timestamp_ms: wall time of the target, 0 if there was none.
        metadata_hash: of the topics that the topology needs, as they were when the epoch grew.
        validated_topology_epoch: of the topology if tasks could be assigned, else -1.
        assignment_configs: what the assignor was told besides.
        targets: by member; one may be gone.
    """

    kind = GroupKind.STREAMS
    vanishes = True

    __slots__ = (
        "assignment_configs",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "group_epoch",
        "group_id",
        "holders",
        "members",
        "metadata_hash",
        "soft",
        "targets",
        "topology",
        "validated_topology_epoch",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = NOT_VALIDATED
        self.assignment_epoch = INITIAL_EPOCH
        self.assignment_timestamp_ms = 0
        self.assignment_configs: Mapping[str, str] = {}
        self.topology: Topology | None = None
        self.members: dict[str, StreamsMember] = {}
        self.targets: dict[str, Tasks] = {}
        self.holders = TaskHolders()
        self.soft = SoftState(None, None, None, 0, {}, {})

    # --- Changed by replay ----------------------------------------------------------------------

    def put_member(self, member: StreamsMember) -> None:
        """Add a member, or replace what it was."""
        before = self.members.get(member.member_id)
        if before is not None:
            self.holders.remove(before)
        self.holders.add(member)
        self.members[member.member_id] = member
        self.soft.endpoints.pop(member.member_id, None)

    def remove_member(self, member_id: str) -> None:
        """Remove a member; with the last one the wish to end the application is forgotten."""
        self.holders.remove(self.members.pop(member_id))
        self.soft.endpoints.pop(member_id, None)
        self.soft.revoking_since.pop(member_id, None)
        if not self.members:
            self.soft.shutdown_member_id = None

    # --- What is so -----------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    @property
    def state_name(self) -> str:
        """Its state: what is first found out of this list."""
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return "NotReady"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def is_topics_check_due(self) -> bool:
        """Whether topics have to be looked at: one may be another than before."""
        checked = self.soft.checked_epoch
        return checked is None or self.group_epoch < checked

    def member(self, member_id: str) -> StreamsMember:
        """Return a member.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID.
        """
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def target(self, member_id: str) -> Tasks:
        """Return a member's target; nothing if it has none."""
        return self.targets.get(member_id, NO_TASKS)

    def configure(self, configured: ConfiguredTopology) -> None:
        """Take note of what the topology is under the topics of now."""
        self.soft.configured = configured
        self.soft.endpoints.clear()

    # --- What the shard asks of all groups ------------------------------------------------------

    def listed(self) -> ListedGroup:
        """Return its line in ListGroups."""
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=PROTOCOL_TYPE,
            group_state=self.state_name,
            group_type=self.kind.value,
        )

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a subtopology reads the topic, and there is a member to do it."""
        return (
            bool(self.members)
            and self.topology is not None
            and topic in self.topology.subtopology_of
        )

    def check_commit(self, committer: Committer) -> PartitionCheck:
        """Refuse a commit, or say of which partitions it may be."""
        epoch = committer.epoch
        if epoch < 0 and not self.members:
            return ANY_PARTITION
        if committer.in_transaction and committer.says_nothing:
            return ANY_PARTITION
        member = self.member(committer.member_id)
        if not committer.in_transaction and committer.api_version < FIRST_COMMIT_VERSION:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the streams group "
                "protocol",
            )
        if epoch == member.member_epoch:
            return ANY_PARTITION
        if epoch > member.member_epoch:
            raise _stale(
                f"Received member epoch {epoch} is newer than current member epoch "
                f"{member.member_epoch}.",
                in_transaction=committer.in_transaction,
            )
        return self._check_of_older_epoch(member, committer)

    def _check_of_older_epoch(self, member: StreamsMember, committer: Committer) -> PartitionCheck:
        """Return what lets a member commit for tasks that it has had since that epoch."""
        topology, epoch = self.topology, committer.epoch
        stale = partial(_stale, in_transaction=committer.in_transaction)
        if topology is None:
            raise stale("Topology is not available for offset commit validation.")
        held = {**member.pending_revocation.active, **member.assigned.active}
        sources = topology.subtopology_of

        def check(topic: str, topic_id: UUID, partition: int) -> None:
            del topic_id
            name = sources.get(topic)
            if name is None:
                raise stale(f"Topic {topic} is not in the topology.")
            since = held.get(TaskId(name, partition))
            if since is None:
                raise stale(
                    f"Task {name}-{partition} is not assigned or pending revocation for member."
                )
            if epoch < since:
                raise stale(
                    f"Received member epoch {epoch} is older than assignment epoch {since} for "
                    f"task {name}-{partition}."
                )

        return check

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse a fetch by somebody who is no member, or of another epoch."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _stale(
                f"The received member epoch {member_epoch} does not match the expected member "
                f"epoch {member.member_epoch}."
            )

    def check_delete(self) -> None:
        """Refuse to delete a group with members."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"group {self.group_id} has members")

    def check_delete_offsets(self) -> None:
        """Refuse nothing: what topics it reads is known."""

    def retention_start(self, committed: "CommittedOffset") -> int | None:
        """Return when the offset was committed: nobody reads its topic."""
        return committed.commit_timestamp_ms

    def tombstones(self) -> "list[StoredRecord]":
        """Return the records that remove the group, in their order."""
        return group_tombstones(self.group_id, self.members)

    def timers(self) -> Iterable[TimerKey]:
        """Return the keys of all timers that it may have."""
        group_id = self.group_id
        yield TimerKind.INITIAL_REBALANCE, group_id, ""
        for member_id in self.members:
            yield from member_timers(group_id, member_id)

    def on_topics_changed(self) -> None:
        """Have topics looked at with the next heartbeat."""
        self.soft.checked_epoch = None
        self.soft.endpoints.clear()


def member_timers(group_id: str, member_id: str) -> Iterable[TimerKey]:
    """Return the keys of a member's timers."""
    yield TimerKind.SESSION, group_id, member_id
    yield TimerKind.REBALANCE, group_id, member_id


def _stale(message: str, *, in_transaction: bool = False) -> KafkaError:
    """Return the refusal of another epoch, in a word that transactional clients know."""
    code = ErrorCode.ILLEGAL_GENERATION if in_transaction else ErrorCode.STALE_MEMBER_EPOCH
    return KafkaError(code, message)
