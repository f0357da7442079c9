# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class Listener(Structure):
    name: str
    host: str
    port: int
    def __init__(
        self,
        *,
        name: str = ...,
        host: str = ...,
        port: int = ...,
    ) -> None: ...

class AddRaftVoterRequest(Structure):
    cluster_id: str | None
    timeout_ms: int
    voter_id: int
    voter_directory_id: UUID
    listeners: list[Listener]
    ack_when_committed: bool
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        timeout_ms: int = ...,
        voter_id: int = ...,
        voter_directory_id: UUID = ...,
        listeners: list[Listener] = ...,
        ack_when_committed: bool = ...,
    ) -> None: ...

class AddRaftVoterResponse(Structure):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

ADD_RAFT_VOTER: Api[AddRaftVoterRequest, AddRaftVoterResponse]
