# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.codec import Codec
from kafkalite.wire.schema import Structure

class TransactionLogKey(Structure):
    transactional_id: str
    def __init__(
        self,
        *,
        transactional_id: str = ...,
    ) -> None: ...

class PartitionsSchema(Structure):
    topic: str
    partition_ids: list[int]
    def __init__(
        self,
        *,
        topic: str = ...,
        partition_ids: list[int] = ...,
    ) -> None: ...

class TransactionLogValue(Structure):
    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    next_producer_epoch: int
    transaction_timeout_ms: int
    transaction_status: int
    transaction_partitions: list[PartitionsSchema] | None
    transaction_last_update_timestamp_ms: int
    transaction_start_timestamp_ms: int
    client_transaction_version: int
    def __init__(
        self,
        *,
        producer_id: int = ...,
        previous_producer_id: int = ...,
        next_producer_id: int = ...,
        producer_epoch: int = ...,
        next_producer_epoch: int = ...,
        transaction_timeout_ms: int = ...,
        transaction_status: int = ...,
        transaction_partitions: list[PartitionsSchema] | None = ...,
        transaction_last_update_timestamp_ms: int = ...,
        transaction_start_timestamp_ms: int = ...,
        client_transaction_version: int = ...,
    ) -> None: ...

TRANSACTION_LOG_KEY: Codec[TransactionLogKey]
TRANSACTION_LOG_VALUE: Codec[TransactionLogValue]
