"""Events of a transaction shard, and effects it wants done elsewhere."""

from dataclasses import dataclass
from enum import Enum
from re import Pattern
from typing import TYPE_CHECKING, Final

from kafkalite.coordinator.shard import Event
from kafkalite.txn.states import TransactionState
from kafkalite.txn.transactions import ProducerIdentity
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkalite.wire.messages import describe_transactions, list_transactions  # noqa: F401

Codes = dict[TopicPartition, ErrorCode]
"""What became of each partition."""


class Answer(Enum):
    """Answers that are no data."""

    PRODUCER_ID_NEEDED = "producer id needed"
    """Nothing was done: ask again with a producer id that was never used."""


PRODUCER_ID_NEEDED: Final = Answer.PRODUCER_ID_NEEDED


@dataclass(slots=True)
class InitProducer(Event[ProducerIdentity | Answer]):
    """Give a transactional id to a producer; answered with its identity or PRODUCER_ID_NEEDED.

    Attributes:
        expected: what the producer was so far, None if it is a new one.
        new_producer_id: to be used if one is needed.
    """

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdentity | None = None
    new_producer_id: int | None = None


@dataclass(slots=True)
class AddPartitions(Event[Codes | None]):
    """Make partitions part of the transaction; answered with None."""

    transactional_id: str
    producer: ProducerIdentity
    partitions: list[TopicPartition]
    client_version: int


@dataclass(slots=True)
class VerifyPartitions(Event[Codes | None]):
    """Say which partitions are part of the open transaction; answered with a code for each."""

    transactional_id: str
    producer: ProducerIdentity
    partitions: list[TopicPartition]


@dataclass(slots=True)
class EndTransaction(Event[ProducerIdentity | Answer]):
    """Commit or abort; answered with the identity to go on with, or PRODUCER_ID_NEEDED."""

    transactional_id: str
    producer: ProducerIdentity
    committed: bool
    client_version: int
    new_producer_id: int | None = None


@dataclass(slots=True)
class MarkersWritten(Event[None]):
    """Every partition has its marker of the transaction of `producer`; answered with None."""

    transactional_id: str
    producer: ProducerIdentity


@dataclass(slots=True)
class DescribeTransaction(Event["describe_transactions.TransactionState"]):
    """Answered with a DescribeTransactions TransactionState."""

    transactional_id: str


@dataclass(slots=True)
class ListTransactions(Event["list[list_transactions.TransactionState]"]):
    """Answered with ListTransactions TransactionStates; an empty filter lets everything pass.

    Attributes:
        longer_than_ms: only transactions open for longer; negative lets everything pass.
        pattern: matches whole transactional ids.
    """

    states: frozenset[TransactionState] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    longer_than_ms: int = -1
    pattern: Pattern[str] | None = None


@dataclass(slots=True)
class SendMarkers:
    """An effect: write the markers of a transaction whose outcome is committed.

    Attributes:
        shard: partition of `__transaction_state` that decided it.
        producer: what the markers say; in V2 the epoch is that of the next transaction.
        client_version: V1 or V2, see `transactions`.
        is_again: some of the markers may have been written before.
    """

    transactional_id: str
    shard: int
    producer: ProducerIdentity
    committed: bool
    partitions: list[TopicPartition]
    client_version: int
    is_again: bool = False
