"""Names for identifiers that cross the layers."""

from typing import TYPE_CHECKING, NamedTuple, NewType
from uuid import UUID

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(**_: object) -> object:
        """Say something about a class to who compiles it; otherwise it means nothing."""
        return lambda compiled: compiled


BrokerId = NewType("BrokerId", int)
ProducerId = NewType("ProducerId", int)

ZERO_UUID = UUID(int=0)
"""Kafka's "no topic ID"."""

CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset(
    {CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC}
)


class TopicPartition(NamedTuple):
    """One partition of one topic; prints as Kafka's logs and directories do (`topic-0`)."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class LogPosition(NamedTuple):
    """An offset with its place on disk, so that a bound becomes a file range without a scan.

    After Kafka's LogOffsetMetadata.
    """

    offset: int
    segment_base_offset: int
    position: int
    """Byte in the segment file at which the batch with `offset` starts, or would start."""
