"""Effects that groups want done by others (`Result.effects`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID


@dataclass(slots=True, frozen=True)
class ResolvePatterns:
    """Somebody is to find the topics of a consumer group's patterns.

    Attributes:
        principal, host: who must be allowed to see the topics, and from where.
    """

    group_id: str
    patterns: tuple[str, ...]
    principal: str
    host: str


@dataclass(slots=True, frozen=True)
class InitializeStates:
    """Share partitions are to be initialised at share coordinators; also an answer.

    Attributes:
        state_epoch: the group's epoch.
        start_offsets: by topic id and partition.
    """

    group_id: str
    state_epoch: int
    start_offsets: Mapping[tuple[UUID, int], int] = field(hash=False)
