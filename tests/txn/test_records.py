"""Transactions in Kafka's bytes: `__transaction_state` keys and values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.txn.records import TransactionRecordCodec
from kafkalite.txn.states import TransactionState
from kafkalite.txn.transactions import V1, V2, Transaction
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.stored.transaction_log import (
    TRANSACTION_LOG_VALUE,
    PartitionsSchema,
    TransactionLogValue,
)

CODEC = TransactionRecordCodec()

NUMBERS = st.integers(-1, 2**63 - 1)
TRANSACTIONS = st.builds(
    Transaction,
    transactional_id=st.text(max_size=20),
    producer_id=NUMBERS,
    producer_epoch=st.integers(-1, 2**15 - 1),
    timeout_ms=st.integers(0, 2**31 - 1),
    last_update_timestamp_ms=NUMBERS,
    state=st.sampled_from([s for s in TransactionState if s is not TransactionState.EMPTY]),
    partitions=st.dictionaries(
        st.builds(TopicPartition, st.sampled_from(["a", "topic"]), st.integers(0, 2**31 - 1)),
        st.none(),
        max_size=5,
    ),
    start_timestamp_ms=NUMBERS,
    previous_producer_id=NUMBERS,
    next_producer_id=NUMBERS,
    client_version=st.sampled_from([V1, V2]),
)


def transaction(**changes):
    values = {
        "transactional_id": "tx",
        "producer_id": 1000,
        "producer_epoch": 3,
        "timeout_ms": 60_000,
        "last_update_timestamp_ms": 0x1122,
        "state": TransactionState.ONGOING,
        "partitions": {TopicPartition("a", 1): None, TopicPartition("a", 2): None},
        "start_timestamp_ms": 0x1111,
    } | changes
    return Transaction(**values)


def test_key_is_a_version_and_the_transactional_id():
    key, _ = CODEC.encode(StoredRecord("tx", transaction()))
    assert key == bytes.fromhex("0000 0002") + b"tx"


def test_value_has_the_layout_of_kafka_4():
    """Version 1, flexible; what is at its default is left out of the tags."""
    _, value = CODEC.encode(StoredRecord("tx", transaction()))
    assert value == (
        bytes.fromhex("0001 00000000000003e8 0003 0000ea60 01")
        + bytes.fromhex("02 02")
        + b"a"
        + bytes.fromhex("03 00000001 00000002 00")
        + bytes.fromhex("0000000000001122 0000000000001111 00")
    )


def test_fields_of_later_protocols_are_tags():
    _, value = CODEC.encode(
        StoredRecord(
            "tx",
            transaction(
                partitions={}, previous_producer_id=999, next_producer_id=1001, client_version=V2
            ),
        )
    )
    tags = bytes.fromhex("03 0008 00000000000003e7 0108 00000000000003e9 0202 0002")
    assert value.endswith(tags)


def test_empty_transaction_has_no_list_of_partitions():
    empty = transaction(state=TransactionState.EMPTY, partitions={})
    _, value = CODEC.encode(StoredRecord("tx", empty))
    assert TRANSACTION_LOG_VALUE.decode_versioned(value)[1].transaction_partitions is None
    assert CODEC.decode(*CODEC.encode(StoredRecord("tx", empty))).value == empty


def test_tombstone_has_no_value():
    key, value = CODEC.encode(StoredRecord("tx", None))
    assert value is None
    assert CODEC.decode(key, None) == StoredRecord("tx", None)


def test_values_of_brokers_before_kip_890_are_read():
    stored = TransactionLogValue(
        producer_id=7,
        producer_epoch=1,
        transaction_timeout_ms=5,
        transaction_status=2,
        transaction_partitions=[PartitionsSchema(topic="a", partition_ids=[0, 3])],
    )
    key, _ = CODEC.encode(StoredRecord("tx", None))
    read = CODEC.decode(key, TRANSACTION_LOG_VALUE.encode_versioned(0, stored)).value
    assert read.state is TransactionState.PREPARE_COMMIT
    assert [*read.partitions] == [("a", 0), ("a", 3)]
    assert (read.previous_producer_id, read.next_producer_id, read.client_version) == (-1, -1, V1)


@given(TRANSACTIONS)
def test_transaction_survives_being_stored(value):
    record = StoredRecord(value.transactional_id, value)
    assert CODEC.decode(*CODEC.encode(record)) == record


def test_unknown_kind_of_key_is_skipped():
    assert CODEC.decode(bytes.fromhex("0001 0002") + b"tx", b"") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0", None),
        (bytes.fromhex("0000 0005") + b"tx", None),
        (bytes.fromhex("0000 0002") + b"tx", b""),
        (bytes.fromhex("0000 0002") + b"tx", bytes.fromhex("0002")),
        (bytes.fromhex("0000 0002") + b"tx", bytes.fromhex("0001 00000000000003e8 0003")),
    ],
)
def test_bytes_that_are_no_record_are_told(key, value):
    with pytest.raises(MalformedMessage):
        CODEC.decode(key, value)


def test_state_that_does_not_exist_is_told():
    key, value = CODEC.encode(StoredRecord("tx", transaction(partitions={})))
    with pytest.raises(MalformedMessage, match="tx in state 9"):
        CODEC.decode(key, value[:16] + b"\x09" + value[17:])
