"""Order among a producer's batches while one of them was refused for a passing reason.

Pure: what was refused and what comes next is told by who answers producers.
"""

from struct import Struct
from typing import NamedTuple
from uuid import UUID

from kafkalite.log.producer_state import ProducerState, is_before
from kafkalite.wire.errors import ErrorCode, KafkaError

_SEQUENCE_POSITION = 43
_SEQUENCE = Struct(">qhi")

PASSING = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
"""Refusals after which producers send the same batch again."""

Place = tuple[str | UUID, int]
"""A partition as requests name it: by the topic's name or its id, and the index."""


class BatchSequence(NamedTuple):
    """Producer of a batch, and its first sequence."""

    producer_id: int
    epoch: int
    sequence: int


class _Refused(NamedTuple):
    """The earliest of a producer's batches that were refused.

    Attributes:
        epoch, sequence: of the batch; `sequence` is its first.
        noted_ms: when it was refused last.
        patience: refusals of its successors that are left.
    """

    epoch: int
    sequence: int
    noted_ms: int
    patience: int


class SequenceHold:
    """Batches that were refused for the time being, so that none of their successors overtakes.

    Idempotent producers have several batches under way. If the first finds a partition that this
    broker does not know yet, or does not lead yet, or that has a full disk, too few replicas in
    sync, or a transaction that cannot be verified, and the second finds it well, the second must
    not be taken. A log that does not know the producer takes any first sequence (rule 58); the
    first batch would then be refused for good, and librdkafka counts it as delivered, since its
    successor was. A log that knows the producer would answer OUT_OF_ORDER_SEQUENCE_NUMBER, on which
    librdkafka goes on in another epoch, and may write twice what is under way. So successors are
    told NOT_ENOUGH_REPLICAS, on which every client sends all of them again, in order (rule 231).

    After Kafka's VerificationStateEntry, which does that for the first batches of transactions.
    """

    MAX = 10_000
    """Entries kept; they are few and short-lived, unless producers go away just then."""

    PATIENCE = 100
    """Successors that are refused. Should the batch have been given up, the log then decides."""

    KEPT_MS = 300_000
    """How long after its last refusal a batch is waited for: as long as librdkafka holds one."""

    def __init__(self) -> None:
        self.first_refused: dict[tuple[Place, int], _Refused] = {}

    def __len__(self) -> int:
        return len(self.first_refused)

    def note(self, place: Place, batch: BatchSequence, now_ms: int) -> None:
        """Take note of a batch that will come again."""
        key = place, batch.producer_id
        known = self.first_refused.pop(key, None)
        sequence = batch.sequence
        if (
            known is not None
            and known.epoch == batch.epoch
            and now_ms - known.noted_ms <= self.KEPT_MS
            and is_before(known.sequence, sequence)
        ):
            self.first_refused[key] = known
            return
        self.first_refused[key] = _Refused(batch.epoch, sequence, now_ms, self.PATIENCE)
        if len(self.first_refused) > self.MAX:
            del self.first_refused[next(iter(self.first_refused))]

    def check(
        self, place: Place, batch: BatchSequence, state: ProducerState | None, now_ms: int
    ) -> None:
        """Refuse a batch that would overtake another.

        Args:
            place: as in `note`.
            batch: that comes.
            state: what the log knows of its producer.
            now_ms: monotonic.

        Raises:
            KafkaError: NOT_ENOUGH_REPLICAS.
        """
        key = place, batch.producer_id
        refused = self.first_refused.get(key)
        if refused is None:
            return
        if (
            refused.epoch != batch.epoch
            or refused.sequence == batch.sequence  # here it is
            or not refused.patience
            or now_ms - refused.noted_ms > self.KEPT_MS
            or _has(state, refused)
        ):
            del self.first_refused[key]
            return
        if is_before(batch.sequence, refused.sequence):
            return
        self.first_refused[key] = refused._replace(patience=refused.patience - 1)
        name, index = place
        raise KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"{name}-{index}: sequence {refused.sequence} of producer {batch.producer_id} was "
            f"refused, and has to come before {batch.sequence}",
        )

    def forget(self, place: Place, producer_id: int) -> None:
        """Expect nothing any more: the producer's transaction has ended on the partition."""
        self.first_refused.pop((place, producer_id), None)


def sequence_of(batch: object) -> BatchSequence | None:
    """Return who wrote a batch; None if it has no sequence, or is too short for a batch."""
    if not isinstance(batch, memoryview | bytearray):
        return None
    if len(batch) < _SEQUENCE_POSITION + _SEQUENCE.size:
        return None
    found = BatchSequence(*_SEQUENCE.unpack_from(batch, _SEQUENCE_POSITION))
    return found if found.producer_id >= 0 and found.sequence >= 0 else None


def _has(state: ProducerState | None, refused: _Refused) -> bool:
    """Whether the log has a batch by now that was refused here: another leader took it."""
    if state is None or state.epoch < refused.epoch:
        return False
    if state.epoch > refused.epoch:
        return True
    return bool(state.batches) and not is_before(state.last_sequence, refused.sequence)
