"""Shards of `__transaction_state` for the runtime; the rest is imported with a shard."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from kafkalite.coordinator.shard import Event
from kafkalite.types import TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    from kafkalite.coordinator.shard import RecordCodec
    from kafkalite.txn.settings import TransactionSettings
    from kafkalite.txn.shard import TransactionShard


class TransactionShards:
    """A `coordinator.shard.ShardKind`."""

    topic = TRANSACTION_STATE_TOPIC

    def __init__(self, settings: "TransactionSettings") -> None:
        self.settings = settings

    @cached_property
    def codec(self) -> "RecordCodec":
        """Codec of the topic's records."""
        from kafkalite.txn.records import TransactionRecordCodec

        return TransactionRecordCodec()

    def new_shard(self, partition: int) -> "TransactionShard":
        """Return the empty shard of a partition."""
        from kafkalite.txn.shard import TransactionShard

        return TransactionShard(self.settings, partition)

    def event_for_disconnect(self, connection_id: int) -> Event[object] | None:
        """Return None: a producer's transaction outlives its connection."""
        del connection_id
        return None

    def event_for_changed_topics(self, topics: Iterable[str]) -> Event[object] | None:
        """Return None: transactions do not care how topics are cut."""
        del topics
        return None

    def event_for_deleted_topics(self, topics: Iterable[str]) -> Event[object] | None:
        """Return None: partitions that are gone are left out when the markers are written."""
        del topics
        return None
