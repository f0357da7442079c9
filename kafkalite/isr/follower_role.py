"""The role of a follower: its log is a copy, and its leader says what is committed.

What to fetch and when to cut is decided elsewhere (`follower`, `fetcher`); here it is done. It
refuses what only a leader does.
"""

from typing import TYPE_CHECKING

from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from uuid import UUID

    from kafkalite.isr.pending_acks import PendingAck
    from kafkalite.log.log import Log
    from kafkalite.log.state import AppendInfo
    from kafkalite.log.validate import AppendOrigin, CheckedBatch

NO_LEADER = -1


class FollowerRole:
    """A replica that does not lead.

    Invariant: log_start_offset <= high_watermark <= log_end_offset, once it was told.

    Attributes:
        leader_id: broker to fetch from, NO_LEADER if there is none.
        high_watermark: as far as is known here; lags the leader's by a fetch (rule 169).
    """

    __slots__ = ("_log", "high_watermark", "leader_id")

    def __init__(self, log: "Log", *, leader_id: int, high_watermark: int) -> None:
        self._log = log
        self.leader_id = leader_id
        self.high_watermark = min(max(high_watermark, log.log_start_offset), log.log_end_offset)

    # --- Following -------------------------------------------------------------------------------

    def append_as_follower(
        self, records: bytearray | memoryview, *, leader_epoch: int
    ) -> "AppendInfo | None":
        """Write batches as the leader sent them; None if there was no whole one.

        Raises:
            KafkaError: as `Log.append_as_follower`.
        """
        return self._log.append_as_follower(records, leader_epoch=leader_epoch)

    def truncate_to(self, offset: int) -> None:
        """Cut off everything from `offset` on.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        self._log.truncate_to(offset)
        self.high_watermark = min(self.high_watermark, self._log.log_end_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the log is empty and begins at `offset`.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        self._log.truncate_fully_and_start_at(offset)
        self.high_watermark = offset

    def advance(self, leader_high_watermark: int, leader_log_start_offset: int) -> bool:
        """Take over the leader's bounds as far as the log reaches; return whether one moved.

        Neither goes back: what was committed once is.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        log = self._log
        moved = False
        high_watermark = min(leader_high_watermark, log.log_end_offset)
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            moved = True
        start_offset = min(leader_log_start_offset, self.high_watermark)
        if start_offset > log.log_start_offset:
            log.delete_records_before(start_offset)
            moved = True
        return moved

    # --- As a leader is asked --------------------------------------------------------------------

    def append(
        self,
        records: "bytearray | memoryview | CheckedBatch",
        *,
        leader_epoch: int,
        now_ms: int,
        origin: "AppendOrigin",
        all_acks: bool,
    ) -> "AppendInfo":
        """Refuse it. Raises KafkaError: NOT_LEADER_OR_FOLLOWER."""
        del records, leader_epoch, now_ms, origin, all_acks
        raise not_leader(self._log.topic_partition, self.leader_id)

    def add_ack_waiter(self, waiter: "PendingAck") -> None:
        """End it: nothing is acknowledged here."""
        waiter.outcome = ErrorCode.NOT_LEADER_OR_FOLLOWER
        waiter.on_done(waiter)

    def cancel_wait(self, waiter: "PendingAck") -> None:
        """Do nothing: nobody waits."""

    def on_follower_fetch(
        self, replica_id: int, broker_epoch: int, offset: int, log_start_offset: int, now_ms: int
    ) -> None:
        """Refuse it. Raises KafkaError: NOT_LEADER_OR_FOLLOWER."""
        del replica_id, broker_epoch, offset, log_start_offset, now_ms
        raise not_leader(self._log.topic_partition, self.leader_id)

    def tick(self, now_ms: int) -> None:
        """Do nothing: nobody waits."""

    def end(self) -> None:
        """Follow nobody: this replica is going away."""
        self.leader_id = NO_LEADER


def not_leader(name: object, leader_id: int) -> KafkaError:
    """Return what a client is told that came to the wrong replica."""
    whose = f"broker {leader_id} leads it" if leader_id != NO_LEADER else "it has no leader"
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{name} is not led here: {whose}")


def unknown_id(topic_id: "UUID") -> KafkaError:
    """Return what a client is told that names a topic by an id that none has."""
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the ID {topic_id}")


def offline(name: object, why: str | None) -> KafkaError:
    """Return what a client is told of a replica whose log was given up."""
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} is offline: {why}")
