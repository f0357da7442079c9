"""Parts of a shard for each kind of group, imported when there is work (decision 0134)."""

from kafkalite.group.classic.part import CLASSIC
from kafkalite.group.kinds import GroupKind
from kafkalite.group.part import Part


def part_for(kind: GroupKind) -> Part:
    """Return what is done for groups of a kind."""
    match kind:
        case GroupKind.CLASSIC:
            return CLASSIC
        case GroupKind.CONSUMER:
            from kafkalite.group.consumer.part import CONSUMER

            return CONSUMER
        case GroupKind.SHARE:
            from kafkalite.group.share.part import SHARE

            return SHARE
        case GroupKind.STREAMS:
            from kafkalite.group.streams.part import STREAMS

            return STREAMS
