# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class ScramCredentialDeletion(Structure):
    name: str
    mechanism: int
    def __init__(
        self,
        *,
        name: str = ...,
        mechanism: int = ...,
    ) -> None: ...

class ScramCredentialUpsertion(Structure):
    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes
    def __init__(
        self,
        *,
        name: str = ...,
        mechanism: int = ...,
        iterations: int = ...,
        salt: bytes = ...,
        salted_password: bytes = ...,
    ) -> None: ...

class AlterUserScramCredentialsRequest(Structure):
    deletions: list[ScramCredentialDeletion]
    upsertions: list[ScramCredentialUpsertion]
    def __init__(
        self,
        *,
        deletions: list[ScramCredentialDeletion] = ...,
        upsertions: list[ScramCredentialUpsertion] = ...,
    ) -> None: ...

class AlterUserScramCredentialsResult(Structure):
    user: str
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        user: str = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class AlterUserScramCredentialsResponse(Structure):
    throttle_time_ms: int
    results: list[AlterUserScramCredentialsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: list[AlterUserScramCredentialsResult] = ...,
    ) -> None: ...

ALTER_USER_SCRAM_CREDENTIALS: Api[AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse]
