"""Input and output of server-side assignors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from kafkalite.group.slices import Sliced

Assignment = Mapping[UUID, Sequence[int]]
"""Partitions by topic. The order of topics and partitions is that in which Kafka's assignors would
walk through them (`group/java_order.py`)."""


def partition_count(assignment: Assignment) -> int:
    """Return how many partitions there are in an assignment, of all topics."""
    return sum(map(len, assignment.values()))


@dataclass(slots=True)
class MemberSpec:
    """One member: what it reads, and what it was to have until now.

    Attributes:
        topic_ids: of topics that there are, each once.
        assigned: its last target.
    """

    member_id: str
    instance_id: str | None
    topic_ids: Sequence[UUID]
    assigned: Assignment


@dataclass(slots=True)
class GroupSpec:
    """A group.

    Attributes:
        members: in the order in which they are in the group.
        is_homogeneous: all members read the same topics.
        partition_counts: of all topics that anybody reads.
    """

    members: Sequence[MemberSpec]
    is_homogeneous: bool
    partition_counts: Mapping[UUID, int]


class Assignor(Protocol):
    """A server-side assignor, which hands the turn back now and then."""

    def __call__(self, group: GroupSpec) -> Sliced[dict[str, dict[UUID, list[int]]]]:
        """Return who is to have which partitions: an entry for each member, with no empty topics.

        A member's topics and partitions are in the order in which they were given to it.
        """
        ...
