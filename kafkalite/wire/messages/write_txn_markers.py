"""WriteTxnMarkers (API key 27), versions 1-2, all flexible.

KIP-98. Sent by a transaction coordinator to partition leaders. Version 0 left Kafka with 4.0
(KIP-896).

v2: transaction_version (KIP-1228).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int8, Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, String, since, structure

WritableTxnMarkerTopic = structure(
    "WritableTxnMarkerTopic",
    "name" / String,
    "partition_indexes" / ArrayOf(Int32),
)

WritableTxnMarker = structure(
    "WritableTxnMarker",
    "producer_id" / Int64,
    "producer_epoch" / Int16,
    "transaction_result" / Bool,
    "topics" / ArrayOf(WritableTxnMarkerTopic),
    "coordinator_epoch" / Int32,
    "transaction_version" / since(2, Int8),
)

WriteTxnMarkersRequest = structure(
    "WriteTxnMarkersRequest",
    "markers" / ArrayOf(WritableTxnMarker),
)

WritableTxnMarkerPartitionResult = structure(
    "WritableTxnMarkerPartitionResult",
    "partition_index" / Int32,
    "error_code" / Int16,
)

WritableTxnMarkerTopicResult = structure(
    "WritableTxnMarkerTopicResult",
    "name" / String,
    "partitions" / ArrayOf(WritableTxnMarkerPartitionResult),
)

WritableTxnMarkerResult = structure(
    "WritableTxnMarkerResult",
    "producer_id" / Int64,
    "topics" / ArrayOf(WritableTxnMarkerTopicResult),
)

WriteTxnMarkersResponse = structure(
    "WriteTxnMarkersResponse",
    "markers" / ArrayOf(WritableTxnMarkerResult),
)

WRITE_TXN_MARKERS = Api(
    ApiKey.WRITE_TXN_MARKERS,
    versions=(1, 2),
    flexible_from=1,
    request=WriteTxnMarkersRequest,
    response=WriteTxnMarkersResponse,
)
