# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class UserName(Structure):
    name: str
    def __init__(
        self,
        *,
        name: str = ...,
    ) -> None: ...

class DescribeUserScramCredentialsRequest(Structure):
    users: list[UserName] | None
    def __init__(
        self,
        *,
        users: list[UserName] | None = ...,
    ) -> None: ...

class CredentialInfo(Structure):
    mechanism: int
    iterations: int
    def __init__(
        self,
        *,
        mechanism: int = ...,
        iterations: int = ...,
    ) -> None: ...

class DescribeUserScramCredentialsResult(Structure):
    user: str
    error_code: int
    error_message: str | None
    credential_infos: list[CredentialInfo]
    def __init__(
        self,
        *,
        user: str = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        credential_infos: list[CredentialInfo] = ...,
    ) -> None: ...

class DescribeUserScramCredentialsResponse(Structure):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[DescribeUserScramCredentialsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        results: list[DescribeUserScramCredentialsResult] = ...,
    ) -> None: ...

DESCRIBE_USER_SCRAM_CREDENTIALS: Api[DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse]
