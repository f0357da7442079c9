"""State of one `__consumer_offsets` partition: groups of all kinds, and offsets."""

from typing import TYPE_CHECKING

from kafkalite.coordinator.shard import Now, Result, Timers
from kafkalite.group.kinds import Group, GroupKind
from kafkalite.group.metadata import GroupMetadata
from kafkalite.group.offsets import OffsetStore
from kafkalite.group.settings import GroupSettings
from kafkalite.group.step import Step, TimerKey
from kafkalite.group.subscribers import Subscribers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class ShardState:
    """Groups, offsets and timers that the parts of a shard share.

    Attributes:
        groups: of all kinds, by their ids.
        metadata: what there is of topics and settings; to be read only.
        subscribers: which groups want to hear of which topics; kept by the groups' own replay.
        classic_protocols: `Part.classic_protocol` of each kind of group that there is work for.
    """

    def __init__(self, settings: GroupSettings, metadata: GroupMetadata | None = None) -> None:
        self.settings = settings
        self.metadata = GroupMetadata() if metadata is None else metadata
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.subscribers = Subscribers()
        self.timers: Timers[TimerKey] = Timers()
        self.classic_protocols: dict[GroupKind, Mapping[type, Callable[..., Result]]] = {}

    def step(self, now: Now) -> Step:
        """Return what collects the consequences of an event."""
        return Step(now, self.settings, self.timers)

    def remove(self, group: Group) -> None:
        """Forget a group, and its timers; its offsets stay."""
        assert self.groups[group.group_id] is group
        del self.groups[group.group_id]
        for key in group.timers():
            self.timers.cancel(key)
