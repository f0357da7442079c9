"""State that simulated clients share: what they did, when they stop, and what is retried."""

from dataclasses import dataclass, field
from random import Random
from typing import Final

import trio

from kafkalite.sim.invariants import InvariantBroken
from kafkalite.testing.history import History
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode

RETRIED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.INVALID_REPLICATION_FACTOR,  # not all brokers are there yet
    }
)
"""Errors after which a client asks again, as those of Kafka do."""

Holder = tuple[str, tuple[str, int] | None, float]
"""Member id, address of the coordinator, virtual time."""


@dataclass(slots=True)
class Workload:
    """Work that the clients of one run do and did.

    Attributes:
        history: writes and reads.
        places: partitions that are written to and read.
        stopping: set when nothing new is to be begun.
        holders: which member has a partition, or its task, by whose word, and how long at least.
        commits: the latest committed offset that was acknowledged, by group and partition.
        committed_at: virtual time of that answer.
        counts: what happened how often.
    """

    random: Random
    history: History
    places: list[TopicPartition]
    transactional_places: list[TopicPartition]
    stopping: trio.Event = field(default_factory=trio.Event)
    commits: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    committed_at: dict[tuple[str, TopicPartition], float] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    owners: dict[tuple[str, int, TopicPartition], str] = field(default_factory=dict)
    holders: dict[tuple[str, TopicPartition], Holder] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    _values: int = 0

    def next_value(self, producer: str) -> str:
        """Return a value that was never used."""
        self._values += 1
        return f"{producer}-{self._values}"

    def count(self, what: str, times: int = 1) -> None:
        """Note that something happened."""
        self.counts[what] = self.counts.get(what, 0) + times

    async def pause(self, least_s: float = 0.05, most_s: float = 0.3) -> None:
        """Wait for a moment."""
        await trio.sleep(self.random.uniform(least_s, most_s))

    def on_epoch(self, group: str, epoch: int, member: str, assigned: list[TopicPartition]) -> None:
        """Check a member of a consumer group: no partition has two members in one epoch."""
        for place in assigned:
            owner = self.owners.setdefault((group, epoch, place), member)
            if owner != member:
                raise InvariantBroken(
                    f"group {group}, epoch {epoch}: {place} belongs to {owner} and {member}"
                )

    def on_synced(
        self, group: str, generation: int, member: str, owned: list[TopicPartition]
    ) -> None:
        """Check a member's assignment: no generation twice, no partition with two members."""
        known = self.generations.get(group, -1)
        if generation < known:
            raise InvariantBroken(f"group {group}: generation {generation} after {known}")
        self.generations[group] = generation
        self.on_epoch(group, generation, member, owned)

    def on_owned(
        self,
        group: str,
        member: str,
        active: list[TopicPartition],
        *,
        coordinator: tuple[str, int] | None,
        until: float,
    ) -> None:
        """Check what a member has: no partition, or active task of it, has two at a time.

        Only what one broker says is compared: who does not know yet that it is no coordinator any
        more answers heartbeats that write nothing, as Kafka's does, but no commits.

        Args:
            group: its group.
            member: its member id.
            active: partitions that it has, or whose tasks are active in it, from now on.
            coordinator: who says so.
            until: virtual time in seconds until which the coordinator cannot have removed it; if
                that is over, what it has may be another's by right.
        """
        now = trio.current_time()
        if until <= now:
            self.release(group, member)
            return
        for place in active:
            owner, said_by, owned_until = self.holders.get((group, place), (member, None, 0.0))
            if owner != member and said_by == coordinator and now < owned_until:
                raise InvariantBroken(
                    f"group {group}: {place} is active in {owner} and in {member}"
                )
        self.release(group, member)
        holder = (member, coordinator, until)
        self.holders.update(((group, place), holder) for place in active)
        self.count(f"{group}: owned", len(active))

    def release(self, group: str, member: str) -> None:
        """Note that a member has nothing."""
        for key, holder in [*self.holders.items()]:
            if holder[0] == member and key[0] == group:
                del self.holders[key]

    def on_committed(
        self, group: str, place: TopicPartition, offset: int, *, asked_at: float
    ) -> None:
        """Check an acknowledged commit: members only ever go on from what was committed.

        Args:
            group: that has the offset.
            place: its partition.
            offset: that was committed.
            asked_at: virtual time of the request; others may have committed since.
        """
        key = (group, place)
        known, known_at = self.commits.get(key, 0), self.committed_at.get(key, 0.0)
        if offset < known and asked_at > known_at:
            raise InvariantBroken(
                f"group {group}: {known} was committed for {place}, then {offset}"
            )
        if offset > known:
            self.commits[key] = offset
            self.committed_at[key] = trio.current_time()
        self.count("offsets")

    def on_fetched_offset(
        self, group: str, place: TopicPartition, at_least: int, offset: int
    ) -> None:
        """Check that a committed offset was not lost."""
        if offset < at_least:
            raise InvariantBroken(
                f"group {group}: {at_least} was committed for {place}, and {offset} is there"
            )
