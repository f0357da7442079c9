# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class ComponentData(Structure):
    entity_type: str
    match_type: int
    match: str | None
    def __init__(
        self,
        *,
        entity_type: str = ...,
        match_type: int = ...,
        match: str | None = ...,
    ) -> None: ...

class DescribeClientQuotasRequest(Structure):
    components: list[ComponentData]
    strict: bool
    def __init__(
        self,
        *,
        components: list[ComponentData] = ...,
        strict: bool = ...,
    ) -> None: ...

class EntityData(Structure):
    entity_type: str
    entity_name: str | None
    def __init__(
        self,
        *,
        entity_type: str = ...,
        entity_name: str | None = ...,
    ) -> None: ...

class ValueData(Structure):
    key: str
    value: float
    def __init__(
        self,
        *,
        key: str = ...,
        value: float = ...,
    ) -> None: ...

class EntryData(Structure):
    entity: list[EntityData]
    values: list[ValueData]
    def __init__(
        self,
        *,
        entity: list[EntityData] = ...,
        values: list[ValueData] = ...,
    ) -> None: ...

class DescribeClientQuotasResponse(Structure):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    entries: list[EntryData] | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        entries: list[EntryData] | None = ...,
    ) -> None: ...

DESCRIBE_CLIENT_QUOTAS: Api[DescribeClientQuotasRequest, DescribeClientQuotasResponse]
