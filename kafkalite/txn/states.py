"""The states of a transaction, what each answers to every API, and which may follow which.

The checks of identity come before the state is looked at: an unknown transactional id, or another
producer id than the current one, is INVALID_PRODUCER_ID_MAPPING, and another epoch than the current
one PRODUCER_FENCED (rules 104, 106). What stands below is said to the producer that passes them.

"V1" and "V2" are the transaction protocols of KIP-98 and KIP-890: EndTxn up to v4, and from v5 on.
In V2 every transaction has an epoch of its own, so that a retried EndTxn comes with the epoch
before the current one: "retry" below.
"""

from enum import IntEnum


class TransactionState(IntEnum):
    """State of a transaction; the values are those in the log (rule 102)."""

    EMPTY = 0
    """The producer has its id and epoch; nothing was added yet.

    InitProducerId: the next epoch; stays. AddPartitionsToTxn, AddOffsetsToTxn: ONGOING.
    Verification of a partition: TRANSACTION_ABORTABLE. EndTxn V1: INVALID_TXN_STATE. EndTxn V2:
    commit is INVALID_TXN_STATE, abort leads to PREPARE_ABORT, a retry is PRODUCER_FENCED.

    Exits: ONGOING; PREPARE_ABORT by a V2 abort; DEAD after `transactional.id.expiration.ms`.
    """

    ONGOING = 1
    """Partitions were added; records may be written to them.

    InitProducerId: the producer of before is fenced and its transaction aborted, the caller is told
    CONCURRENT_TRANSACTIONS and comes again. AddPartitionsToTxn, AddOffsetsToTxn: more partitions;
    those that are there already cost nothing. Verification: NONE or TRANSACTION_ABORTABLE by
    partition. EndTxn: PREPARE_COMMIT or PREPARE_ABORT; in V2 a retry is PRODUCER_FENCED.

    Invariant: the timer of the transaction's timeout is set. Exits: PREPARE_COMMIT by EndTxn;
    PREPARE_ABORT by EndTxn, InitProducerId or the timer.
    """

    PREPARE_COMMIT = 2
    """It is decided that the transaction commits; its markers are being written.

    InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, verification: CONCURRENT_TRANSACTIONS.
    EndTxn: CONCURRENT_TRANSACTIONS for a commit (in V2: for its retry), INVALID_TXN_STATE for an
    abort. In V2 the end of the next transaction, with the current epoch: CONCURRENT_TRANSACTIONS.

    Once all markers are written the transaction answers as COMPLETE_COMMIT does, though the log
    may not say so yet. Exit: COMPLETE_COMMIT.
    """

    PREPARE_ABORT = 3
    """As PREPARE_COMMIT, with the roles of commit and abort exchanged. Exit: COMPLETE_ABORT."""

    COMPLETE_COMMIT = 4
    """Committed, and every partition knows.

    InitProducerId: the next epoch, EMPTY. AddPartitionsToTxn, AddOffsetsToTxn: ONGOING with the
    partitions given. Verification: TRANSACTION_ABORTABLE. EndTxn V1: NONE for a commit,
    INVALID_TXN_STATE for an abort. EndTxn V2: a retried commit is NONE, with the epoch to go on
    with; a retried abort and a new commit are INVALID_TXN_STATE; a new abort leads to
    PREPARE_ABORT.

    Exits: EMPTY, ONGOING, PREPARE_ABORT; DEAD after `transactional.id.expiration.ms`.
    """

    COMPLETE_ABORT = 5
    """Aborted, and every partition knows.

    As COMPLETE_COMMIT, with the roles exchanged, but that EndTxn V2 with a new abort is
    PREPARE_ABORT here too.
    """

    DEAD = 6
    """There is no such transactional id any more: a tombstone in the log, nothing in memory.

    InitProducerId: a new producer id. DescribeTransactions: TRANSACTIONAL_ID_NOT_FOUND. Everything
    else: INVALID_PRODUCER_ID_MAPPING.
    """

    PREPARE_EPOCH_FENCE = 7
    """Never entered: Kafka's note to itself between fencing a producer and PREPARE_ABORT, which
    are one step here. A name that ListTransactions may filter by."""

    @property
    def label(self) -> str:
        """The name that ListTransactions and DescribeTransactions show."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided, and not everybody knows."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_complete(self) -> bool:
        """Whether everybody knows the outcome."""
        return self in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


_BETWEEN = frozenset(
    {
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    }
)

LEGAL_PREDECESSORS: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: _BETWEEN,
    TransactionState.ONGOING: _BETWEEN | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: _BETWEEN | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: _BETWEEN,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset(),
}
"""Who may come before. A transactional id that is not known begins with EMPTY."""
