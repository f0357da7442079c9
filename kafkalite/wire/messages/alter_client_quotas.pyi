# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class EntityData(Structure):
    entity_type: str
    entity_name: str | None
    def __init__(
        self,
        *,
        entity_type: str = ...,
        entity_name: str | None = ...,
    ) -> None: ...

class OpData(Structure):
    key: str
    value: float
    remove: bool
    def __init__(
        self,
        *,
        key: str = ...,
        value: float = ...,
        remove: bool = ...,
    ) -> None: ...

class EntryData(Structure):
    entity: list[EntityData]
    ops: list[OpData]
    def __init__(
        self,
        *,
        entity: list[EntityData] = ...,
        ops: list[OpData] = ...,
    ) -> None: ...

class AlterClientQuotasRequest(Structure):
    entries: list[EntryData]
    validate_only: bool
    def __init__(
        self,
        *,
        entries: list[EntryData] = ...,
        validate_only: bool = ...,
    ) -> None: ...

class EntityResult(Structure):
    entity_type: str
    entity_name: str | None
    def __init__(
        self,
        *,
        entity_type: str = ...,
        entity_name: str | None = ...,
    ) -> None: ...

class EntryResult(Structure):
    error_code: int
    error_message: str | None
    entity: list[EntityResult]
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        entity: list[EntityResult] = ...,
    ) -> None: ...

class AlterClientQuotasResponse(Structure):
    throttle_time_ms: int
    entries: list[EntryResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        entries: list[EntryResult] = ...,
    ) -> None: ...

ALTER_CLIENT_QUOTAS: Api[AlterClientQuotasRequest, AlterClientQuotasResponse]
