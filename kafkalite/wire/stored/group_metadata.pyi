# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.codec import Codec
from kafkalite.wire.schema import Structure

class GroupMetadataKey(Structure):
    group: str
    def __init__(
        self,
        *,
        group: str = ...,
    ) -> None: ...

class MemberMetadata(Structure):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: bytes
    assignment: bytes
    def __init__(
        self,
        *,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        client_id: str = ...,
        client_host: str = ...,
        rebalance_timeout: int = ...,
        session_timeout: int = ...,
        subscription: bytes = ...,
        assignment: bytes = ...,
    ) -> None: ...

class GroupMetadataValue(Structure):
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: list[MemberMetadata]
    def __init__(
        self,
        *,
        protocol_type: str = ...,
        generation: int = ...,
        protocol: str | None = ...,
        leader: str | None = ...,
        current_state_timestamp: int = ...,
        members: list[MemberMetadata] = ...,
    ) -> None: ...

GROUP_METADATA_KEY: Codec[GroupMetadataKey]
GROUP_METADATA_VALUE: Codec[GroupMetadataValue]
