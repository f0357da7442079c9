# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.codec import Codec
from kafkalite.wire.schema import Structure

class DefaultPrincipalData(Structure):
    principal_type: str
    principal_name: str
    token_authenticated: bool
    def __init__(
        self,
        *,
        principal_type: str = ...,
        principal_name: str = ...,
        token_authenticated: bool = ...,
    ) -> None: ...

DEFAULT_PRINCIPAL_DATA: Codec[DefaultPrincipalData]
