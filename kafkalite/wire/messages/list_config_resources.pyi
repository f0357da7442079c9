# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class ListConfigResourcesRequest(Structure):
    resource_types: list[int]
    def __init__(
        self,
        *,
        resource_types: list[int] = ...,
    ) -> None: ...

class ConfigResource(Structure):
    resource_name: str
    resource_type: int
    def __init__(
        self,
        *,
        resource_name: str = ...,
        resource_type: int = ...,
    ) -> None: ...

class ListConfigResourcesResponse(Structure):
    throttle_time_ms: int
    error_code: int
    config_resources: list[ConfigResource]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        config_resources: list[ConfigResource] = ...,
    ) -> None: ...

LIST_CONFIG_RESOURCES: Api[ListConfigResourcesRequest, ListConfigResourcesResponse]
