"""Shards of `__consumer_offsets` for the runtime; the rest is imported with a shard."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from kafkalite.coordinator.shard import Event
from kafkalite.group.metadata import GroupMetadata
from kafkalite.types import CONSUMER_OFFSETS_TOPIC

if TYPE_CHECKING:
    from kafkalite.coordinator.shard import RecordCodec
    from kafkalite.group.settings import GroupSettings
    from kafkalite.group.shard import GroupShard


class GroupShards:
    """A `coordinator.shard.ShardKind`."""

    topic = CONSUMER_OFFSETS_TOPIC

    def __init__(self, settings: "GroupSettings", metadata: GroupMetadata | None = None) -> None:
        self.settings = settings
        self.metadata = GroupMetadata() if metadata is None else metadata

    @cached_property
    def codec(self) -> "RecordCodec":
        """Codec of the topic's records."""
        from kafkalite.group.records import GroupRecordCodec

        return GroupRecordCodec()

    def new_shard(self, partition: int) -> "GroupShard":
        """Return the empty shard of a partition."""
        from kafkalite.group.shard import GroupShard

        del partition
        return GroupShard(self.settings, self.metadata)

    def event_for_disconnect(self, connection_id: int) -> Event[object] | None:
        """Return what a shard is told of a client's end, if members are to go with it."""
        if not self.settings.evict_on_disconnect:
            return None
        from kafkalite.group.classic.part import ConnectionClosed

        return ConnectionClosed(connection_id)

    def event_for_deleted_topics(self, topics: Iterable[str]) -> Event[object] | None:
        """Return what a shard is told of deleted topics."""
        from kafkalite.group.shard import TopicsDeleted

        return TopicsDeleted(frozenset(topics))

    def event_for_changed_topics(self, topics: Iterable[str]) -> Event[object] | None:
        """Return what a shard is told of topics that are others than before."""
        from kafkalite.group.shard import TopicsChanged

        return TopicsChanged(frozenset(topics))
