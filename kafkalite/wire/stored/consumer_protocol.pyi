# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.codec import Codec
from kafkalite.wire.schema import Structure

class TopicPartition(Structure):
    topic: str
    partitions: list[int]
    def __init__(
        self,
        *,
        topic: str = ...,
        partitions: list[int] = ...,
    ) -> None: ...

class ConsumerProtocolSubscription(Structure):
    topics: list[str]
    user_data: bytes | None
    owned_partitions: list[TopicPartition]
    generation_id: int
    rack_id: str | None
    def __init__(
        self,
        *,
        topics: list[str] = ...,
        user_data: bytes | None = ...,
        owned_partitions: list[TopicPartition] = ...,
        generation_id: int = ...,
        rack_id: str | None = ...,
    ) -> None: ...

class ConsumerProtocolAssignment(Structure):
    assigned_partitions: list[TopicPartition]
    user_data: bytes | None
    def __init__(
        self,
        *,
        assigned_partitions: list[TopicPartition] = ...,
        user_data: bytes | None = ...,
    ) -> None: ...

SUBSCRIPTION: Codec[ConsumerProtocolSubscription]
ASSIGNMENT: Codec[ConsumerProtocolAssignment]
