"""Shards of `__share_group_state` for the runtime; the rest is imported with a shard."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import UUID

from kafkalite.coordinator.shard import Event
from kafkalite.share.settings import ShareCoordinatorSettings
from kafkalite.types import SHARE_GROUP_STATE_TOPIC

if TYPE_CHECKING:
    from kafkalite.coordinator.shard import RecordCodec
    from kafkalite.share.shard import ShareStateShard

PartitionExists = Callable[[UUID, int], bool]


class ShareStateShards:
    """A `coordinator.shard.ShardKind`."""

    topic = SHARE_GROUP_STATE_TOPIC

    def __init__(self, settings: ShareCoordinatorSettings, exists: PartitionExists) -> None:
        """Make the kind.

        Args:
            settings: of the broker.
            exists: whether there is a partition of the topic with an id.
        """
        self.settings = settings
        self._exists = exists

    @cached_property
    def codec(self) -> "RecordCodec":
        """Codec of the topic's records."""
        from kafkalite.share.records import ShareStateCodec

        return ShareStateCodec()

    def new_shard(self, partition: int) -> "ShareStateShard":
        """Return the empty shard of a partition."""
        from kafkalite.share.shard import ShareStateShard

        return ShareStateShard(self.settings, partition, self._exists)

    def event_for_disconnect(self, connection_id: int) -> Event[object] | None:
        """Return None: who asks are brokers."""
        del connection_id
        return None

    def event_for_deleted_topics(self, topics: Iterable[str]) -> Event[object] | None:
        """Return what a shard is told of deleted topics (rule 422)."""
        from kafkalite.share.events import ForgetTopics

        return ForgetTopics(frozenset(topics))

    def event_for_changed_topics(self, topics: Iterable[str]) -> Event[object] | None:
        """Return None: only whether a partition is there matters, and that is asked."""
        del topics
        return None
