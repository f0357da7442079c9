# Written by kafkalite.wire.stubs from the declarations; do not edit.

from kafkalite.wire.api import Api
from kafkalite.wire.schema import Structure

class WritableTxnMarkerTopic(Structure):
    name: str
    partition_indexes: list[int]
    def __init__(
        self,
        *,
        name: str = ...,
        partition_indexes: list[int] = ...,
    ) -> None: ...

class WritableTxnMarker(Structure):
    producer_id: int
    producer_epoch: int
    transaction_result: bool
    topics: list[WritableTxnMarkerTopic]
    coordinator_epoch: int
    transaction_version: int
    def __init__(
        self,
        *,
        producer_id: int = ...,
        producer_epoch: int = ...,
        transaction_result: bool = ...,
        topics: list[WritableTxnMarkerTopic] = ...,
        coordinator_epoch: int = ...,
        transaction_version: int = ...,
    ) -> None: ...

class WriteTxnMarkersRequest(Structure):
    markers: list[WritableTxnMarker]
    def __init__(
        self,
        *,
        markers: list[WritableTxnMarker] = ...,
    ) -> None: ...

class WritableTxnMarkerPartitionResult(Structure):
    partition_index: int
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
    ) -> None: ...

class WritableTxnMarkerTopicResult(Structure):
    name: str
    partitions: list[WritableTxnMarkerPartitionResult]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: list[WritableTxnMarkerPartitionResult] = ...,
    ) -> None: ...

class WritableTxnMarkerResult(Structure):
    producer_id: int
    topics: list[WritableTxnMarkerTopicResult]
    def __init__(
        self,
        *,
        producer_id: int = ...,
        topics: list[WritableTxnMarkerTopicResult] = ...,
    ) -> None: ...

class WriteTxnMarkersResponse(Structure):
    markers: list[WritableTxnMarkerResult]
    def __init__(
        self,
        *,
        markers: list[WritableTxnMarkerResult] = ...,
    ) -> None: ...

WRITE_TXN_MARKERS: Api[WriteTxnMarkersRequest, WriteTxnMarkersResponse]
