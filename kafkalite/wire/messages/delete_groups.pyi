# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class DeleteGroupsRequest(Structure):
    groups_names: list[str]
    def __init__(
        self,
        *,
        groups_names: list[str] = ...,
    ) -> None: ...

class DeletableGroupResult(Structure):
    group_id: str
    error_code: int
    def __init__(
        self,
        *,
        group_id: str = ...,
        error_code: int = ...,
    ) -> None: ...

class DeleteGroupsResponse(Structure):
    throttle_time_ms: int
    results: list[DeletableGroupResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: list[DeletableGroupResult] = ...,
    ) -> None: ...

DELETE_GROUPS: Api[DeleteGroupsRequest, DeleteGroupsResponse]
