# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class DescribeDelegationTokenOwner(Structure):
    principal_type: str
    principal_name: str
    def __init__(
        self,
        *,
        principal_type: str = ...,
        principal_name: str = ...,
    ) -> None: ...

class DescribeDelegationTokenRequest(Structure):
    owners: list[DescribeDelegationTokenOwner] | None
    def __init__(
        self,
        *,
        owners: list[DescribeDelegationTokenOwner] | None = ...,
    ) -> None: ...

class DescribedDelegationTokenRenewer(Structure):
    principal_type: str
    principal_name: str
    def __init__(
        self,
        *,
        principal_type: str = ...,
        principal_name: str = ...,
    ) -> None: ...

class DescribedDelegationToken(Structure):
    principal_type: str
    principal_name: str
    token_requester_principal_type: str
    token_requester_principal_name: str
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int
    token_id: str
    hmac: bytes
    renewers: list[DescribedDelegationTokenRenewer]
    def __init__(
        self,
        *,
        principal_type: str = ...,
        principal_name: str = ...,
        token_requester_principal_type: str = ...,
        token_requester_principal_name: str = ...,
        issue_timestamp: int = ...,
        expiry_timestamp: int = ...,
        max_timestamp: int = ...,
        token_id: str = ...,
        hmac: bytes = ...,
        renewers: list[DescribedDelegationTokenRenewer] = ...,
    ) -> None: ...

class DescribeDelegationTokenResponse(Structure):
    error_code: int
    tokens: list[DescribedDelegationToken]
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        tokens: list[DescribedDelegationToken] = ...,
        throttle_time_ms: int = ...,
    ) -> None: ...

DESCRIBE_DELEGATION_TOKEN: Api[DescribeDelegationTokenRequest, DescribeDelegationTokenResponse]
