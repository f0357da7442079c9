"""Whether a consumer group has room for one more member."""

from typing import TYPE_CHECKING

from kafkalite.group.consumer.group import ConsumerGroup
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.group.shard_state import ShardState


def check_room(shard: "ShardState", group: ConsumerGroup, member_id: str) -> None:
    """Refuse a member that is one too many.

    Raises:
        KafkaError: GROUP_MAX_SIZE_REACHED.
    """
    size_max = shard.settings.consumer_group_max_size
    if len(group.members) >= size_max and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {size_max} members.",
        )
