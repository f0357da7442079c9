# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.codec import Codec
from kafkalite.wire.schema import Structure

class OffsetCommitKey(Structure):
    group: str
    topic: str
    partition: int
    def __init__(
        self,
        *,
        group: str = ...,
        topic: str = ...,
        partition: int = ...,
    ) -> None: ...

class OffsetCommitValue(Structure):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: UUID
    def __init__(
        self,
        *,
        offset: int = ...,
        leader_epoch: int = ...,
        metadata: str = ...,
        commit_timestamp: int = ...,
        expire_timestamp: int = ...,
        topic_id: UUID = ...,
    ) -> None: ...

OFFSET_COMMIT_KEY: Codec[OffsetCommitKey]
OFFSET_COMMIT_VALUE: Codec[OffsetCommitValue]
