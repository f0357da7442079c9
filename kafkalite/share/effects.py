"""Effects that share coordinators want done by others (`Result.effects`)."""

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class PruneLog:
    """Records of a `__share_group_state` partition below an offset say nothing more."""

    partition: int
    before_offset: int
