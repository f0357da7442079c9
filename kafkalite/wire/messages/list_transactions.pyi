# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class ListTransactionsRequest(Structure):
    state_filters: list[str]
    producer_id_filters: list[int]
    duration_filter: int
    transactional_id_pattern: str | None
    def __init__(
        self,
        *,
        state_filters: list[str] = ...,
        producer_id_filters: list[int] = ...,
        duration_filter: int = ...,
        transactional_id_pattern: str | None = ...,
    ) -> None: ...

class TransactionState(Structure):
    transactional_id: str
    producer_id: int
    transaction_state: str
    def __init__(
        self,
        *,
        transactional_id: str = ...,
        producer_id: int = ...,
        transaction_state: str = ...,
    ) -> None: ...

class ListTransactionsResponse(Structure):
    throttle_time_ms: int
    error_code: int
    unknown_state_filters: list[str]
    transaction_states: list[TransactionState]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        unknown_state_filters: list[str] = ...,
        transaction_states: list[TransactionState] = ...,
    ) -> None: ...

LIST_TRANSACTIONS: Api[ListTransactionsRequest, ListTransactionsResponse]
