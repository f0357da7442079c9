# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.codec import Codec
from kafkalite.wire.schema import Structure

class ShareSnapshotKey(Structure):
    group_id: str
    topic_id: UUID
    partition: int
    def __init__(
        self,
        *,
        group_id: str = ...,
        topic_id: UUID = ...,
        partition: int = ...,
    ) -> None: ...

class StateBatch(Structure):
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int
    def __init__(
        self,
        *,
        first_offset: int = ...,
        last_offset: int = ...,
        delivery_state: int = ...,
        delivery_count: int = ...,
    ) -> None: ...

class ShareSnapshotValue(Structure):
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    state_batches: list[StateBatch]
    def __init__(
        self,
        *,
        snapshot_epoch: int = ...,
        state_epoch: int = ...,
        leader_epoch: int = ...,
        start_offset: int = ...,
        delivery_complete_count: int = ...,
        create_timestamp: int = ...,
        write_timestamp: int = ...,
        state_batches: list[StateBatch] = ...,
    ) -> None: ...

class ShareUpdateKey(Structure):
    group_id: str
    topic_id: UUID
    partition: int
    def __init__(
        self,
        *,
        group_id: str = ...,
        topic_id: UUID = ...,
        partition: int = ...,
    ) -> None: ...

class ShareUpdateValue(Structure):
    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: list[StateBatch]
    def __init__(
        self,
        *,
        snapshot_epoch: int = ...,
        leader_epoch: int = ...,
        start_offset: int = ...,
        delivery_complete_count: int = ...,
        state_batches: list[StateBatch] = ...,
    ) -> None: ...

SHARE_SNAPSHOT_KEY: Codec[ShareSnapshotKey]
SHARE_SNAPSHOT_VALUE: Codec[ShareSnapshotValue]
SHARE_UPDATE_KEY: Codec[ShareUpdateKey]
SHARE_UPDATE_VALUE: Codec[ShareUpdateValue]
