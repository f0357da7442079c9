# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class DeleteTopicState(Structure):
    name: str | None
    topic_id: UUID
    def __init__(
        self,
        *,
        name: str | None = ...,
        topic_id: UUID = ...,
    ) -> None: ...

class DeleteTopicsRequest(Structure):
    topics: list[DeleteTopicState]
    topic_names: list[str]
    timeout_ms: int
    def __init__(
        self,
        *,
        topics: list[DeleteTopicState] = ...,
        topic_names: list[str] = ...,
        timeout_ms: int = ...,
    ) -> None: ...

class DeletableTopicResult(Structure):
    name: str | None
    topic_id: UUID
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        name: str | None = ...,
        topic_id: UUID = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class DeleteTopicsResponse(Structure):
    throttle_time_ms: int
    responses: list[DeletableTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        responses: list[DeletableTopicResult] = ...,
    ) -> None: ...

DELETE_TOPICS: Api[DeleteTopicsRequest, DeleteTopicsResponse]
