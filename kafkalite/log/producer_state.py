"""State of a log's idempotent and transactional producers (Kafka's ProducerStateManager).

Pure: fed with each batch that was appended or replayed, asked before each batch that a client wants
to append. Snapshots are the bytes of Kafka's `<offset>.snapshot` files.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from crc32c import crc32c

from kafkalite.log.transaction_index import AbortedTransaction
from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import (
    CONTROL,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    EndMarker,
)

BATCHES_REMEMBERED = 5
"""As many as a client may have in flight with idempotence on."""

DOUBTED_MAX = 1_000
"""Producers that began in the middle and were refused; the oldest is forgotten for another."""

DOUBTS = 2
"""How often the same batch is refused because its producer begins with it. Fewer than the three
times that sarama tries again unless told otherwise."""

NO_OFFSET = -1
_SEQUENCE_RANGE = 1 << 31
_NO_COORDINATOR_EPOCH = -1

_SNAPSHOT_VERSION = 1
_SNAPSHOT_HEADER = Struct(">hIi")
_SNAPSHOT_ENTRY = Struct(">qhiqiqiq")
_CRC_START = 6
"""Version and CRC themselves are not covered."""

_EARLIER_HEADER = Struct(">8si")
_EARLIER_MAGIC = b"+batches"
_EARLIER_ENTRY = Struct(">qiiqqq")
"""Behind the entries of Kafka's format stand the batches before each producer's last one, oldest
first. Kafka's CRC covers all of the file, and its readers end with the entries (rule 232)."""


class AppendedBatch(NamedTuple):
    """One of a producer's last batches; sequences and offsets are inclusive at both ends."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


@dataclass(slots=True)
class ProducerState:
    """State of one producer id.

    Attributes:
        producer_id: assigned by the broker.
        epoch: latest seen; a producer with an older one is a zombie.
        coordinator_epoch: of the latest marker, -1 if there was none.
        last_timestamp: ms, of the latest batch or marker.
        transaction_first_offset: of the open transaction, -1 if none is open.
        batches: the last BATCHES_REMEMBERED of this epoch, oldest first. In a snapshot that
            Kafka has written there is only the last one.
    """

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = _NO_COORDINATOR_EPOCH
    last_timestamp: int = NO_TIMESTAMP
    transaction_first_offset: int = NO_OFFSET
    batches: list[AppendedBatch] = field(default_factory=list)

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record in this epoch, -1 if there is none."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """Offset of the last record (no marker) in this epoch, -1 if there is none."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET


@dataclass(slots=True)
class _Doubt:
    """A producer that no batch is known of, and that did not begin with sequence 0.

    Attributes:
        epoch, sequence: of its earliest batch so far.
        refusals: of that batch.
    """

    epoch: int
    sequence: int
    refusals: int = 0


class ProducerStates:
    """All producers of one log, and its open transactions.

    Attributes:
        awaits_replication: whether a transaction stays unstable until its marker is below the high
            watermark. To be set where the log has followers; then `first_unstable_offset_below`
            must be asked, or decided transactions pile up.
        has_whole_history: whether each producer that ever wrote to the log is known. To be set
            where a log is empty and new; unset here as soon as one is forgotten.
    """

    __slots__ = (
        "_decided",
        "_doubted",
        "_open",
        "_producers",
        "awaits_replication",
        "has_whole_history",
    )

    def __init__(self) -> None:
        self.awaits_replication = False
        self.has_whole_history = False
        # By producer id. Invariant: none that is known.
        self._doubted: dict[int, _Doubt] = {}
        self._producers: dict[int, ProducerState] = {}
        # First offset -> producer id. Appends make first offsets ascend, and so the first key is
        # the oldest: Invariant: keys ascend in the order of insertion.
        self._open: dict[int, int] = {}
        # First offset -> last offset (the marker's) of transactions that are decided here, while
        # the high watermark may still be below the marker.
        self._decided: dict[int, int] = {}

    # --- Asking ----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[ProducerState]:
        return iter(self._producers.values())

    def get(self, producer_id: int) -> ProducerState | None:
        """Return what is known of a producer, None if nothing."""
        return self._producers.get(producer_id)

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the oldest open transaction, None if none is open (rule 115)."""
        return next(iter(self._open), None)

    def first_unstable_offset_below(self, high_watermark: int) -> int | None:
        """Return the first offset that is undecided to readers below `high_watermark`, if any.

        A transaction whose marker is not yet below the (exclusive) watermark may lose it with the
        leader, so it counts as open.
        """
        decided = self._decided
        for first_offset in [at for at, last in decided.items() if last < high_watermark]:
            del decided[first_offset]
        return min((*decided, *([next(iter(self._open))] if self._open else ())), default=None)

    def check(
        self,
        header: BatchHeader,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        marker: EndMarker | None = None,
        verified: bool = True,
    ) -> AppendedBatch | None:
        """Refuse a batch that may not be appended next; return the original of a duplicate.

        Call only for batches with a producer id. Nothing is changed.

        Args:
            header: of the batch; its base offset does not matter.
            origin: sequences are checked for CLIENT alone; REPLICATION is never refused.
            marker: what a control batch says.
            verified: whether the coordinator vouches for the transaction (KIP-890). Matters to
                the first batch of a transaction only.

        Raises:
            KafkaError: OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE,
                TRANSACTION_COORDINATOR_FENCED (rules 56-61, 112-114); NOT_ENOUGH_REPLICAS, on
                which all clients try again in order (rule 230).
        """
        state = self._producers.get(header.producer_id)
        if origin is not AppendOrigin.CLIENT:
            if origin is AppendOrigin.COORDINATOR:
                self._check_epochs(header, state, marker, verified=verified)
            return None
        if (
            state is not None
            and state.epoch == header.producer_epoch
            and state.batches
            and header.base_sequence != state.batches[-1].last_sequence + 1
        ):
            last_sequence = header.last_sequence
            for batch in state.batches:
                if (
                    batch.last_sequence == last_sequence
                    and batch.first_sequence == header.base_sequence
                ):
                    return batch
        self._check_epochs(header, state, marker, verified=verified)
        if state is not None:
            _check_sequence(header, state)
        elif self.has_whole_history and header.base_sequence > 0:
            self._check_first(header)
        return None

    def _check_first(self, header: BatchHeader) -> None:
        """Refuse a producer's first batch if others of it must have been before (rule 230).

        A producer that knows of nothing before comes with the same batch again, and again, and is
        believed then: it wrote to a topic of this name that was deleted.
        """
        doubt = self._doubted.get(header.producer_id)
        sequence = header.base_sequence
        if (
            doubt is None
            or doubt.epoch != header.producer_epoch
            or is_before(sequence, doubt.sequence)
        ):
            self._doubted.pop(header.producer_id, None)
            doubt = self._doubted[header.producer_id] = _Doubt(header.producer_epoch, sequence)
            if len(self._doubted) > DOUBTED_MAX:
                del self._doubted[next(iter(self._doubted))]
        if sequence == doubt.sequence:
            if doubt.refusals == DOUBTS:
                return
            doubt.refusals += 1
        raise KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"producer {header.producer_id} begins with sequence {sequence}; the log has all that "
            "was ever written to it, so what comes before must be under way",
        )

    # --- Telling ---------------------------------------------------------------------------------

    def update(
        self, header: BatchHeader, *, base_offset: int, marker: EndMarker | None = None
    ) -> AbortedTransaction | None:
        """Take note of a batch that was appended (or is replayed); return what it aborted.

        Args:
            header: of a batch with a producer id.
            base_offset: that the batch has in the log, whatever `header` says.
            marker: what a control batch says, None if it is empty or of another kind.

        Returns:
            The entry for the transaction index of the segment that holds the batch, if this is
            an abort marker that ends an open transaction (rules 116-117).
        """
        producer_id = header.producer_id
        state = self._producers.get(producer_id)
        if self._doubted:
            self._doubted.pop(producer_id, None)
        if header.attributes & CONTROL:
            if marker is None:
                return None
            state = state or self._new(producer_id)
            return self._end_transaction(header, state, base_offset, marker)
        if state is None:
            state = self._new(producer_id)
        last_offset = base_offset + header.last_offset_delta
        batches = state.batches
        if state.epoch != header.producer_epoch:
            state.epoch = header.producer_epoch
            batches.clear()
        elif len(batches) == BATCHES_REMEMBERED:
            del batches[0]
        batches.append(
            AppendedBatch(
                header.base_sequence,
                header.last_sequence,
                base_offset,
                last_offset,
                header.max_timestamp,
            )
        )
        state.last_timestamp = header.max_timestamp
        if header.attributes & TRANSACTIONAL and state.transaction_first_offset < 0:
            state.transaction_first_offset = base_offset
            self._open[base_offset] = producer_id
        return None

    def remove_expired(self, now_ms: int, *, expiration_ms: int) -> int:
        """Forget producers that were silent for `expiration_ms`; return how many (rule 62).

        Never one with an open transaction.
        """
        latest = now_ms - expiration_ms
        expired = [
            state.producer_id
            for state in self._producers.values()
            if state.transaction_first_offset < 0 and state.last_timestamp <= latest
        ]
        for producer_id in expired:
            del self._producers[producer_id]
            self.has_whole_history = False
        return len(expired)

    def look_for_gaps(self, batches: Iterable[tuple[int, BatchHeader]], next_offset: int) -> None:
        """Do not take producers for new whose batches compaction has removed at the leader."""
        for _, header in batches:
            if header.base_offset != next_offset:
                self.has_whole_history = False
            next_offset = header.next_offset

    def clear(self) -> None:
        """Forget everything, before a snapshot is loaded and the rest of the log replayed."""
        self.has_whole_history = False
        self._producers.clear()
        self._open.clear()
        self._decided.clear()

    # --- Snapshots -------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the content of a `.snapshot` file for the log end offset of now (rule 232)."""
        entries = b"".join(
            _SNAPSHOT_ENTRY.pack(
                state.producer_id,
                state.epoch,
                state.last_sequence,
                state.last_offset,
                _offset_delta(state),
                state.last_timestamp,
                state.coordinator_epoch,
                state.transaction_first_offset,
            )
            for state in self._producers.values()
        )
        earlier = [
            _EARLIER_ENTRY.pack(state.producer_id, *batch)
            for state in self._producers.values()
            for batch in state.batches[:-1]
        ]
        if earlier:
            entries += _EARLIER_HEADER.pack(_EARLIER_MAGIC, len(earlier)) + b"".join(earlier)
        count = len(self._producers)
        crc = crc32c(entries, crc32c(count.to_bytes(4, "big")))
        return _SNAPSHOT_HEADER.pack(_SNAPSHOT_VERSION, crc, count) + entries

    def load(self, snapshot: bytes) -> None:
        """Replace everything by what a `.snapshot` file says.

        Raises:
            KafkaError: CORRUPT_MESSAGE if it is damaged or of another version; then nothing is
                changed.
        """
        states = read_snapshot(snapshot)
        self.clear()
        self._producers = {state.producer_id: state for state in states}
        self._open = {
            state.transaction_first_offset: state.producer_id
            for state in sorted(states, key=_transaction_first_offset)
            if state.transaction_first_offset >= 0
        }

    # --- Inside ----------------------------------------------------------------------------------

    def _new(self, producer_id: int) -> ProducerState:
        state = self._producers[producer_id] = ProducerState(producer_id)
        return state

    def _check_epochs(
        self,
        header: BatchHeader,
        state: ProducerState | None,
        marker: EndMarker | None,
        *,
        verified: bool,
    ) -> None:
        in_transaction = state is not None and state.transaction_first_offset >= 0
        is_control = header.attributes & CONTROL
        is_transactional = header.attributes & TRANSACTIONAL
        if is_transactional and not (in_transaction or verified or is_control):
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has no transaction that includes this partition",
            )
        if state is None:
            return
        if header.producer_epoch < state.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {header.producer_epoch} of producer {header.producer_id} is older than "
                f"{state.epoch}, the last one seen",
            )
        if marker is not None and marker.coordinator_epoch < state.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"marker for producer {header.producer_id} is of coordinator epoch "
                f"{marker.coordinator_epoch}, older than {state.coordinator_epoch}",
            )
        if in_transaction and not is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has an open transaction since offset "
                f"{state.transaction_first_offset}, and sent a batch outside of it",
            )

    def _end_transaction(
        self, header: BatchHeader, state: ProducerState, offset: int, marker: EndMarker
    ) -> AbortedTransaction | None:
        first_offset = state.transaction_first_offset
        if state.epoch != header.producer_epoch:
            state.epoch = header.producer_epoch
            state.batches.clear()
        state.coordinator_epoch = marker.coordinator_epoch
        state.last_timestamp = header.max_timestamp
        state.transaction_first_offset = NO_OFFSET
        if first_offset < 0:
            return None  # an empty transaction leaves no trace (rule 117)
        del self._open[first_offset]
        if self.awaits_replication:
            self._decided[first_offset] = offset
        if marker.is_commit:
            return None
        stable = self.first_unstable_offset
        return AbortedTransaction(
            state.producer_id, first_offset, offset, offset + 1 if stable is None else stable
        )


def is_before(sequence: int, other: int) -> bool:
    """Whether a sequence comes before another; they wrap (rule 57)."""
    return 0 < (other - sequence) % _SEQUENCE_RANGE < _SEQUENCE_RANGE // 2


def read_snapshot(snapshot: bytes) -> list[ProducerState]:
    """Return the producers of a `.snapshot` file.

    Raises:
        KafkaError: CORRUPT_MESSAGE if it is damaged or of another version.
    """
    try:
        version, crc, count = _SNAPSHOT_HEADER.unpack_from(snapshot)
        if version != _SNAPSHOT_VERSION:
            raise _corrupt(f"has version {version} instead of {_SNAPSHOT_VERSION}")
        if crc32c(memoryview(snapshot)[_CRC_START:]) != crc:
            raise _corrupt(f"does not match its CRC {crc:#010x}")
        end = _SNAPSHOT_HEADER.size + count * _SNAPSHOT_ENTRY.size
        if not _SNAPSHOT_HEADER.size <= end <= len(snapshot):
            raise _corrupt(f"has no {count} entries in its {len(snapshot)} bytes")
        entries = _SNAPSHOT_ENTRY.iter_unpack(memoryview(snapshot)[_SNAPSHOT_HEADER.size : end])
        earlier = _read_earlier(memoryview(snapshot)[end:])
    except StructError as error:
        raise _corrupt("is cut off") from error
    states = []
    for (
        producer_id,
        epoch,
        last_sequence,
        last_offset,
        offset_delta,
        timestamp,
        coordinator_epoch,
        transaction_first_offset,
    ) in entries:
        state = ProducerState(
            producer_id, epoch, coordinator_epoch, timestamp, max(transaction_first_offset, -1)
        )
        if last_offset >= 0:
            first_sequence = (last_sequence - offset_delta) % _SEQUENCE_RANGE
            first_offset = last_offset - offset_delta
            state.batches += earlier.get(producer_id, [])[-BATCHES_REMEMBERED + 1 :]
            state.batches.append(
                AppendedBatch(first_sequence, last_sequence, first_offset, last_offset, timestamp)
            )
        states.append(state)
    return states


def _read_earlier(data: memoryview) -> dict[int, list[AppendedBatch]]:
    """Return the batches before the last, by producer; none if Kafka wrote the snapshot."""
    found: dict[int, list[AppendedBatch]] = {}
    if len(data) < _EARLIER_HEADER.size:
        return found
    magic, count = _EARLIER_HEADER.unpack_from(data)
    if magic != _EARLIER_MAGIC:
        return found
    end = _EARLIER_HEADER.size + count * _EARLIER_ENTRY.size
    for producer_id, *batch in _EARLIER_ENTRY.iter_unpack(data[_EARLIER_HEADER.size : end]):
        found.setdefault(producer_id, []).append(AppendedBatch(*batch))
    return found


def _check_sequence(header: BatchHeader, state: ProducerState) -> None:
    """Refuse a gap in a producer's sequences (rules 57 and 59)."""
    sequence = header.base_sequence
    if header.producer_epoch != state.epoch:
        if sequence != 0 and state.epoch != NO_PRODUCER_EPOCH:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} begins epoch {header.producer_epoch} with "
                f"sequence {sequence} instead of 0",
            )
        return
    last_sequence = state.batches[-1].last_sequence if state.batches else NO_SEQUENCE
    if sequence != (last_sequence + 1) % _SEQUENCE_RANGE:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} sent sequence {sequence} after {last_sequence}",
        )


def _offset_delta(state: ProducerState) -> int:
    if not state.batches:
        return 0
    last = state.batches[-1]
    return last.last_offset - last.first_offset


def _transaction_first_offset(state: ProducerState) -> int:
    return state.transaction_first_offset


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"producer state snapshot {message}")
