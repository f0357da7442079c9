# Written by kafkalite.wire.stubs from the declarations; do not edit.

from uuid import UUID

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class DeleteShareGroupOffsetsRequestTopic(Structure):
    topic_name: str
    def __init__(
        self,
        *,
        topic_name: str = ...,
    ) -> None: ...

class DeleteShareGroupOffsetsRequest(Structure):
    group_id: str
    topics: list[DeleteShareGroupOffsetsRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: list[DeleteShareGroupOffsetsRequestTopic] = ...,
    ) -> None: ...

class DeleteShareGroupOffsetsResponseTopic(Structure):
    topic_name: str
    topic_id: UUID
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        topic_name: str = ...,
        topic_id: UUID = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class DeleteShareGroupOffsetsResponse(Structure):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[DeleteShareGroupOffsetsResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        responses: list[DeleteShareGroupOffsetsResponseTopic] = ...,
    ) -> None: ...

DELETE_SHARE_GROUP_OFFSETS: Api[DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse]
