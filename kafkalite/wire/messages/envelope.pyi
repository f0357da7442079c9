# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class EnvelopeRequest(Structure):
    request_data: bytes
    request_principal: bytes | None
    client_host_address: bytes
    def __init__(
        self,
        *,
        request_data: bytes = ...,
        request_principal: bytes | None = ...,
        client_host_address: bytes = ...,
    ) -> None: ...

class EnvelopeResponse(Structure):
    response_data: bytes | None
    error_code: int
    def __init__(
        self,
        *,
        response_data: bytes | None = ...,
        error_code: int = ...,
    ) -> None: ...

ENVELOPE: Api[EnvelopeRequest, EnvelopeResponse]
