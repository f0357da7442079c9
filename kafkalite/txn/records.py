"""Between transactions and the bytes in `__transaction_state`.

Written as Kafka 4 does with transaction.version 1 and later; read in all versions.
"""

import struct

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.txn.states import TransactionState
from kafkalite.txn.transactions import Transaction
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.stored.transaction_log import (
    TRANSACTION_LOG_KEY,
    TRANSACTION_LOG_VALUE,
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

KEY_VERSION = 0
VALUE_VERSION = 1

_TYPE = struct.Struct(">h")


class TransactionRecordCodec:
    """Kafka's record format; a record's key is the transactional id, its value a Transaction."""

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]:
        """Return key and value."""
        assert isinstance(record.key, str)
        key = TRANSACTION_LOG_KEY.encode_versioned(
            KEY_VERSION, TransactionLogKey(transactional_id=record.key)
        )
        if record.value is None:
            return key, None
        assert isinstance(record.value, Transaction)
        value = to_stored(record.value)
        return key, TRANSACTION_LOG_VALUE.encode_versioned(VALUE_VERSION, value)

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None:
        """Return the record; None for a kind of key that is not known here.

        Raises:
            MalformedMessage: bytes that are no such record.
        """
        if len(key) < _TYPE.size:
            raise MalformedMessage(f"record key of {len(key)} bytes has no type")
        if _TYPE.unpack_from(key)[0] != KEY_VERSION:
            return None
        transactional_id = TRANSACTION_LOG_KEY.decode_versioned(key)[1].transactional_id
        if value is None:
            return StoredRecord(transactional_id, None)
        _, stored = TRANSACTION_LOG_VALUE.decode_versioned(value)
        return StoredRecord(transactional_id, from_stored(transactional_id, stored))


def to_stored(transaction: Transaction) -> TransactionLogValue:
    """Return what is written of a transaction."""
    by_topic: dict[str, list[int]] = {}
    for topic, index in transaction.partitions:
        by_topic.setdefault(topic, []).append(index)
    partitions = [
        PartitionsSchema(topic=topic, partition_ids=indexes) for topic, indexes in by_topic.items()
    ]
    # As Kafka writes it: where nothing can be part of a transaction yet, there is no list at all.
    is_empty = transaction.state is TransactionState.EMPTY
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.value,
        transaction_partitions=None if is_empty else partitions,
        transaction_last_update_timestamp_ms=transaction.last_update_timestamp_ms,
        transaction_start_timestamp_ms=transaction.start_timestamp_ms,
        client_transaction_version=transaction.client_version,
    )


def from_stored(transactional_id: str, stored: TransactionLogValue) -> Transaction:
    """Return the transaction that was written.

    Raises:
        MalformedMessage: its state is not one.
    """
    try:
        state = TransactionState(stored.transaction_status)
    except ValueError:
        raise MalformedMessage(
            f"transactional id {transactional_id} in state {stored.transaction_status}"
        ) from None
    return Transaction(
        transactional_id=transactional_id,
        producer_id=stored.producer_id,
        producer_epoch=stored.producer_epoch,
        timeout_ms=stored.transaction_timeout_ms,
        last_update_timestamp_ms=stored.transaction_last_update_timestamp_ms,
        state=state,
        partitions={
            TopicPartition(entry.topic, index): None
            for entry in stored.transaction_partitions or ()
            for index in entry.partition_ids
        },
        start_timestamp_ms=stored.transaction_start_timestamp_ms,
        previous_producer_id=stored.previous_producer_id,
        next_producer_id=stored.next_producer_id,
        client_version=stored.client_transaction_version,
    )
