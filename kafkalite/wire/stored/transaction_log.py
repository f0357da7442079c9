"""The state of a transactional id in `__transaction_state` (KIP-98, KIP-360, KIP-890)."""

from kafkalite.wire.codec import Codec
from kafkalite.wire.primitives import Int8, Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, String, nullable, since, structure, tagged

TransactionLogKey = structure(
    "TransactionLogKey",
    "transactional_id" / String,
)

PartitionsSchema = structure(
    "PartitionsSchema",
    "topic" / String,
    "partition_ids" / ArrayOf(Int32),
)

TransactionLogValue = structure(
    "TransactionLogValue",
    "producer_id" / Int64,
    "previous_producer_id" / since(1, tagged(0, Int64, default=-1)),
    "next_producer_id" / since(1, tagged(1, Int64, default=-1)),
    "producer_epoch" / Int16,
    "next_producer_epoch" / since(1, tagged(3, Int16, default=-1)),
    "transaction_timeout_ms" / Int32,
    "transaction_status" / Int8,
    "transaction_partitions" / nullable(ArrayOf(PartitionsSchema)),
    "transaction_last_update_timestamp_ms" / Int64,
    "transaction_start_timestamp_ms" / Int64,
    "client_transaction_version" / since(1, tagged(2, Int16)),
)

TRANSACTION_LOG_KEY = Codec(TransactionLogKey, versions=(0, 0), flexible_from=None)
TRANSACTION_LOG_VALUE = Codec(TransactionLogValue, versions=(0, 1), flexible_from=1)
