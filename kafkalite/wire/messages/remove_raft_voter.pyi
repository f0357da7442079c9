# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class RemoveRaftVoterRequest(Structure):
    cluster_id: str | None
    voter_id: int
    voter_directory_id: UUID
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        voter_id: int = ...,
        voter_directory_id: UUID = ...,
    ) -> None: ...

class RemoveRaftVoterResponse(Structure):
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

REMOVE_RAFT_VOTER: Api[RemoveRaftVoterRequest, RemoveRaftVoterResponse]
