"""Operators' requests about transactions: describe, list (KIP-664, KIP-994, KIP-1152)."""

from kafkalite.txn.events import ListTransactions
from kafkalite.txn.transactions import Transaction
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages import describe_transactions, list_transactions


def describe_transaction(transaction: Transaction) -> describe_transactions.TransactionState:
    """Return all that DescribeTransactions says of a transactional id."""
    by_topic: dict[str, list[int]] = {}
    for topic, index in transaction.partitions:
        by_topic.setdefault(topic, []).append(index)
    return describe_transactions.TransactionState(
        error_code=ErrorCode.NONE,
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.state.label,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_timestamp_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            describe_transactions.TopicData(topic=topic, partitions=indexes)
            for topic, indexes in by_topic.items()
        ],
    )


def list_transaction(transaction: Transaction) -> list_transactions.TransactionState:
    """Return what ListTransactions says of a transactional id."""
    return list_transactions.TransactionState(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state.label,
    )


def is_listed(transaction: Transaction, wanted: ListTransactions, *, now_ms: int) -> bool:
    """Whether every filter of a ListTransactions request lets a transaction pass."""
    if wanted.states and transaction.state not in wanted.states:
        return False
    if wanted.producer_ids and transaction.producer_id not in wanted.producer_ids:
        return False
    if 0 <= wanted.longer_than_ms >= now_ms - transaction.start_timestamp_ms:
        return False
    return (
        wanted.pattern is None or wanted.pattern.fullmatch(transaction.transactional_id) is not None
    )
