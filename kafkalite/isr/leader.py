"""Decisions of the leader of a replicated partition: high watermark, ISR, acknowledgements.

Pure: no log, clock or network. Inputs are `on_*`; each returns whether the high watermark moved.
After Kafka's Partition (rules 163-168, 176).
"""

from collections.abc import Callable, Sequence
from typing import Final

from kafkalite.isr.state import (
    UNKNOWN_BROKER_EPOCH,
    CommittedIsr,
    FollowerProgress,
    IsrChange,
    IsrMember,
    IsrState,
    PendingExpand,
    PendingShrink,
)
from kafkalite.wire.errors import ErrorCode, KafkaError

IsEligible = Callable[[int, int], bool]
"""(broker id, broker epoch it fetched in) -> whether that broker may be in an ISR: it is alive, in
this epoch, and not shutting down (rules 166, 183, KIP-903)."""

FINAL_REFUSALS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""The controller knows something newer, which is on its way here: until it is here, nothing more is
proposed, and the high watermark goes on waiting for the larger set."""

RESETTING_REFUSALS: Final = frozenset(
    {ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA}
)
"""The change was surely not made; the ISR is what it was."""


class Leader:
    """Followers' progress, the ISR and the high watermark of one partition that is led here.

    Invariants: high_watermark <= log_end_offset; high_watermark never falls; it is at most the
    log end of every member of `state.maximal_isr` at the time it moved.

    Args:
        broker_id: of this broker, the leader.
        replicas: brokers that the partition is placed on, this one among them.
        isr: those of them in sync.
        leader_epoch: of this epoch.
        partition_epoch: version of the partition's state.
        log_end_offset: of this broker's log; also the start of the epoch.
        high_watermark: as known so far.
        min_insync_replicas: setting of the topic.
        lag_ms_max: `replica.lag.time.max.ms`.
        is_eligible: see `IsEligible`.
        now_ms: monotonic.
    """

    __slots__ = (
        "_is_lost",
        "_now_ms",
        "_proposal",
        "_resigns",
        "broker_id",
        "epoch_start_offset",
        "followers",
        "high_watermark",
        "is_eligible",
        "lag_ms_max",
        "leader_epoch",
        "log_end_offset",
        "min_insync_replicas",
        "partition_epoch",
        "replicas",
        "state",
    )

    def __init__(
        self,
        broker_id: int,
        *,
        replicas: Sequence[int],
        isr: Sequence[int],
        leader_epoch: int,
        partition_epoch: int,
        log_end_offset: int,
        high_watermark: int,
        min_insync_replicas: int,
        lag_ms_max: int,
        is_eligible: IsEligible,
        now_ms: int,
    ) -> None:
        assert broker_id in replicas
        assert high_watermark <= log_end_offset
        self.broker_id = broker_id
        self.min_insync_replicas = min_insync_replicas
        self.lag_ms_max = lag_ms_max
        self.is_eligible = is_eligible
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.epoch_start_offset = log_end_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = high_watermark
        self.replicas: tuple[int, ...] = ()
        self.followers: dict[int, FollowerProgress] = {}
        self.state: IsrState = CommittedIsr(tuple(isr))
        self._proposal: IsrChange | None = None
        self._resigns = self._is_lost = False
        self._now_ms = now_ms
        self._place(replicas)
        self._begin_epoch()
        self._advance()

    # --- What is so ------------------------------------------------------------------------------

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, as far as there are so many replicas (rule 52)."""
        return min(self.min_insync_replicas, len(self.replicas))

    @property
    def is_under_min_isr(self) -> bool:
        """Whether acks=all cannot be promised."""
        return len(self.state.isr) < self.effective_min_isr

    @property
    def has_proposal(self) -> bool:
        """Whether `take_isr_change` gives something."""
        return self._proposal is not None

    def check_enough_replicas(self) -> None:
        """Refuse an append that all in-sync replicas shall have (rule 52).

        Raises:
            KafkaError: NOT_ENOUGH_REPLICAS.
        """
        if self.is_under_min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.state.isr)} in-sync replicas {list(self.state.isr)}, "
                f"min.insync.replicas is {self.effective_min_isr}",
            )

    def low_watermark(self, log_start_offset: int, is_alive: Callable[[int], bool]) -> int:
        """Return the least log start of all living replicas; -1 if one has not told (rule 35)."""
        others = [f.log_start_offset for f in self.followers.values() if is_alive(f.replica_id)]
        return min(log_start_offset, *others) if others else log_start_offset

    # --- Log and followers -----------------------------------------------------------------------

    def on_append(self, log_end_offset: int) -> bool:
        """Note that the leader's log is longer."""
        self.log_end_offset = log_end_offset
        self._resigns = False
        return self._advance()

    def on_follower_fetch(
        self,
        replica_id: int,
        *,
        offset: int,
        log_start_offset: int,
        broker_epoch: int,
        now_ms: int,
    ) -> bool:
        """Note that a follower has all below `offset`, which it asks for (rules 163-166).

        Not to be called for an offset that is out of range, or of another history than the
        leader's (DivergingEpoch): such a follower has something else below it.

        Raises:
            KafkaError: UNKNOWN_LEADER_EPOCH, it is no replica as far as is known here;
                NOT_LEADER_OR_FOLLOWER, the broker has come back in a later epoch since (KIP-903).
        """
        follower = self.followers.get(replica_id)
        if follower is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"broker {replica_id} is none of the replicas {list(self.replicas)}",
            )
        if broker_epoch != follower.broker_epoch:
            if UNKNOWN_BROKER_EPOCH < broker_epoch < follower.broker_epoch:
                raise KafkaError(
                    ErrorCode.NOT_LEADER_OR_FOLLOWER,
                    f"broker {replica_id} fetches in broker epoch {broker_epoch}, "
                    f"it is at {follower.broker_epoch} already",
                )
            follower.broker_epoch = broker_epoch
        self._now_ms = max(self._now_ms, now_ms)
        before = follower.log_end_offset
        follower.log_start_offset = log_start_offset
        follower.on_fetch(offset=offset, leader_end_offset=self.log_end_offset, now_ms=now_ms)
        if replica_id not in self.state.isr:
            self._consider_expanding(follower)
        return offset != before and self._advance()

    def on_quiet_follower(self, replica_id: int, *, offset: int, now_ms: int) -> None:
        """Note that a follower which had everything before `offset` last asked at `now_ms`.

        That was before there was more. It did not name this partition: its place is as it was.
        """
        follower = self.followers.get(replica_id)
        if follower is None or not follower.log_end_offset == follower.leader_end_offset == offset:
            return
        if follower.fetch_ms is not None and now_ms > follower.fetch_ms:
            follower.on_fetch(offset=offset, leader_end_offset=offset, now_ms=now_ms)

    def on_tick(self, now_ms: int) -> bool:
        """Look for members of the ISR that lag (rule 165); due each half `lag_ms_max`.

        The high watermark may move, too: a replica that it waited for has fallen behind.
        """
        self._now_ms = max(self._now_ms, now_ms)
        if isinstance(self.state, CommittedIsr):
            lagging = tuple(each for each in self.state.isr if self._lags(each))
            if lagging:
                self._propose(PendingShrink(self.state, lagging))
        return self._advance()

    # --- The ISR ---------------------------------------------------------------------------------

    def step_down(self, *, is_lost: bool = True) -> None:
        """Propose an ISR without this broker, which cannot write, so that another member leads.

        Nothing is proposed while this broker is the only member; call again to try again. A
        proposal that is pending is answered first; a successful write meanwhile cancels this.

        Args:
            is_lost: the log cannot even be read. Else this broker only leaves an ISR that is large
                enough without it: what it has counts, and with fewer than `min.insync.replicas`
                others nothing would be acknowledged anyway. One of them may be dead, and nobody
                know it yet.
        """
        self._resigns, self._is_lost = True, is_lost
        if isinstance(self.state, CommittedIsr):
            self._step_down_now(self.state)

    def take_isr_change(self) -> IsrChange | None:
        """Return the change of the ISR that is to be asked for, once; None if there is none."""
        proposal, self._proposal = self._proposal, None
        return proposal

    def on_isr_accepted(
        self, *, leader_epoch: int, partition_epoch: int, isr: Sequence[int]
    ) -> bool:
        """Take the controller's answer: this is the ISR now."""
        if leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return False  # what came since is newer
        if partition_epoch == self.partition_epoch and not isinstance(self.state, CommittedIsr):
            # The metadata were faster, and more has been asked for by now: had that been answered,
            # the state would have a later epoch. The high watermark waits for the larger ISR.
            return False
        return self._commit(isr, partition_epoch)

    def on_isr_rejected(self, proposal: IsrChange, error: ErrorCode) -> bool:
        """Take the controller's refusal of a proposal (rule 176).

        What does not say whether the change was made is asked again, see `take_isr_change`.
        """
        if isinstance(self.state, CommittedIsr) or not self._is_current(proposal):
            return False  # what came since is newer
        if error in RESETTING_REFUSALS:
            is_resignation = self.broker_id not in self.state.proposed_isr
            self.state = self.state.committed
            if is_resignation:
                self._resigns = False  # until it is told again
            elif self._resigns:
                self._step_down_now(self.state)
            return self._advance()
        if error not in FINAL_REFUSALS:
            self._proposal = proposal
        return False

    def on_state(
        self,
        *,
        replicas: Sequence[int],
        isr: Sequence[int],
        leader_epoch: int,
        partition_epoch: int,
        now_ms: int,
    ) -> bool:
        """Take over the partition's state from the metadata, in which this broker still leads.

        A later leader epoch begins another epoch at the log end. Followers keep what they have, but
        for where somebody else may have led in between, and had them cut it off.
        """
        self._now_ms = max(self._now_ms, now_ms)
        if leader_epoch < self.leader_epoch or partition_epoch < self.partition_epoch:
            return False  # an answer of the controller was faster
        if leader_epoch > self.leader_epoch + 1:
            self.replicas, self.followers = (), {}
        self._place(replicas)
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.epoch_start_offset = self.log_end_offset
            self.state = CommittedIsr(tuple(isr))
            self._resigns = False
            self._begin_epoch()
        elif partition_epoch == self.partition_epoch:
            return self._advance()  # known; a proposal may be under way since
        return self._commit(isr, partition_epoch)

    # --- Inside ----------------------------------------------------------------------------------

    def _place(self, replicas: Sequence[int]) -> None:
        if self.replicas == tuple(replicas):
            return
        self.replicas = tuple(replicas)
        known = self.followers
        self.followers = {
            replica: known.get(replica) or FollowerProgress(replica)
            for replica in replicas
            if replica != self.broker_id
        }

    def _begin_epoch(self) -> None:
        for follower in self.followers.values():
            follower.begin_reign(
                leader_end_offset=self.log_end_offset,
                in_sync=follower.replica_id in self.state.isr,
                now_ms=self._now_ms,
            )

    def _commit(self, isr: Sequence[int], partition_epoch: int) -> bool:
        self.partition_epoch = partition_epoch
        self.state = committed = CommittedIsr(tuple(isr))
        self._proposal = None
        if self._resigns:
            self._step_down_now(committed)
        return self._advance()

    def _step_down_now(self, state: CommittedIsr) -> None:
        self._resigns = False
        others = len(state.isr) - 1
        if others >= (1 if self._is_lost else self.effective_min_isr):
            self._propose(PendingShrink(state, (self.broker_id,)))

    def _is_current(self, proposal: IsrChange) -> bool:
        return (
            proposal.leader_epoch == self.leader_epoch
            and proposal.partition_epoch == self.partition_epoch
            and not isinstance(self.state, CommittedIsr)
            and tuple(each.broker_id for each in proposal.isr) == self.state.proposed_isr
        )

    def _lags(self, replica_id: int) -> bool:
        follower = self.followers.get(replica_id)
        return follower is not None and not follower.is_caught_up(
            leader_end_offset=self.log_end_offset,
            now_ms=self._now_ms,
            lag_ms_max=self.lag_ms_max,
        )

    def _consider_expanding(self, follower: FollowerProgress) -> None:
        """Ask for a follower that has caught up to be let in (rule 166)."""
        if (
            isinstance(self.state, CommittedIsr)
            and follower.log_end_offset >= self.high_watermark
            and follower.log_end_offset >= self.epoch_start_offset
            and self.is_eligible(follower.replica_id, follower.broker_epoch)
        ):
            self._propose(PendingExpand(self.state, follower.replica_id))

    def _propose(self, state: PendingExpand | PendingShrink) -> None:
        self.state = state
        followers = self.followers
        self._proposal = IsrChange(
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            isr=tuple(
                IsrMember(
                    member,
                    followers[member].broker_epoch if member in followers else UNKNOWN_BROKER_EPOCH,
                )
                for member in state.proposed_isr
            ),
        )

    def _advance(self) -> bool:
        """Move the high watermark as far as it may (rule 167); return whether it moved.

        It stays while the ISR is too small: what a lone survivor takes on could not be relied on
        once it is passed to others (KAFKA-15583).
        """
        high_watermark = self.high_watermark
        end = self.log_end_offset
        if end <= high_watermark:
            return False
        awaited = self.state.maximal_isr
        for follower in self.followers.values():
            has = follower.log_end_offset
            if has < end and (follower.replica_id in awaited or self._will_join(follower)):
                if has <= high_watermark:
                    return False
                end = has
        if self.is_under_min_isr:
            return False
        self.high_watermark = end
        return True

    def _will_join(self, follower: FollowerProgress) -> bool:
        """Tell whether a follower outside the ISR must be waited for, or it could never catch up.

        A busy partition's high watermark would otherwise always be ahead of it.
        """
        return follower.is_caught_up(
            leader_end_offset=self.log_end_offset,
            now_ms=self._now_ms,
            lag_ms_max=self.lag_ms_max,
        ) and (
            follower.has_fetched and self.is_eligible(follower.replica_id, follower.broker_epoch)
        )
