# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class AclCreation(Structure):
    resource_type: int
    resource_name: str
    resource_pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        resource_type: int = ...,
        resource_name: str = ...,
        resource_pattern_type: int = ...,
        principal: str = ...,
        host: str = ...,
        operation: int = ...,
        permission_type: int = ...,
    ) -> None: ...

class CreateAclsRequest(Structure):
    creations: list[AclCreation]
    def __init__(
        self,
        *,
        creations: list[AclCreation] = ...,
    ) -> None: ...

class AclCreationResult(Structure):
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class CreateAclsResponse(Structure):
    throttle_time_ms: int
    results: list[AclCreationResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: list[AclCreationResult] = ...,
    ) -> None: ...

CREATE_ACLS: Api[CreateAclsRequest, CreateAclsResponse]
