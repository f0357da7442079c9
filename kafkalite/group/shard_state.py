"""State of one `__consumer_offsets` partition: groups of all kinds, and offsets."""

from typing import TYPE_CHECKING

from kafkalite.coordinator.shard import Now, Result, Timers
from kafkalite.group.kinds import Group, GroupKind
from kafkalite.group.metadata import GroupMetadata
from kafkalite.group.new_target import SLICE_PAUSE_MS
from kafkalite.group.offsets import OffsetStore
from kafkalite.group.settings import GroupSettings
from kafkalite.group.subscribers import Subscribers
from kafkalite.group.transition import TimerKey, TimerKind, Transition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafkalite.group.new_target import NewTarget


class ShardState:
    """Groups, offsets and timers that the parts of a shard share.

    Attributes:
        groups: of all kinds, by their ids.
        metadata: what there is of topics and settings; to be read only.
        subscribers: which groups want to hear of which topics; kept by the groups' own replay.
        classic_protocols: `Part.classic_protocol` of each kind of group that there is work for.
        new_targets: of groups for which one turn is too short; None where it is not begun yet.
    """

    def __init__(self, settings: GroupSettings, metadata: GroupMetadata | None = None) -> None:
        self.settings = settings
        self.metadata = GroupMetadata() if metadata is None else metadata
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.subscribers = Subscribers()
        self.timers: Timers[TimerKey] = Timers()
        self.classic_protocols: dict[GroupKind, Mapping[type, Callable[..., Result]]] = {}
        self.new_targets: dict[str, NewTarget | None] = {}

    def transition(self, now: Now) -> Transition:
        """Return what collects the consequences of an event."""
        return Transition(now, self.settings, self.timers)

    def compute_later(self, transition: Transition, group_id: str) -> None:
        """Have a group's target computed in slices, beginning with what this event leaves.

        No other target may be computed while the group is in `new_targets`.
        """
        self.new_targets[group_id] = None
        transition.schedule((TimerKind.TARGET, group_id, ""), SLICE_PAUSE_MS)

    def remove(self, group: Group) -> None:
        """Forget a group, and its timers; its offsets stay."""
        assert self.groups[group.group_id] is group
        del self.groups[group.group_id]
        for key in group.timers():
            self.timers.cancel(key)
