"""Incremental fetch sessions (KIP-227, rules 83-91): what a short request leaves unsaid.

Pure: time and the first session id come from outside.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.fetch import FetchableTopicResponse, FetchRequest, PartitionData

if TYPE_CHECKING:
    from kafkalite.isr.traffic import TopicTraffic

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
NO_SESSION_ID = 0
EPOCH_MAX = 2**31 - 1

MIN_EVICTION_MS = 120_000
"""A session used within this time is never evicted (Kafka's min.incremental.fetch.session...)."""


WIDE_MIN = 100
"""A session of more partitions is asked what moved in it; fewer are looked at in a millisecond."""


@dataclass(slots=True)
class CachedPartition:
    """One partition of a fetch, with what the client last asked for and was last told."""

    topic: str
    topic_id: UUID
    partition: int
    fetch_offset: int = 0
    max_bytes: int = 0
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    known_high_watermark: int = 2**63 - 1
    """Of a follower (KIP-1166); the largest from everybody who does not tell."""
    told_high_watermark: int = -1
    told_log_start_offset: int = -1
    refusal: ErrorCode | None = None
    """Why the leader does not take notice of this follower's fetch."""
    traffic: "TopicTraffic | None" = None
    """Where what is sent is counted, from the first read on."""

    @property
    def key(self) -> tuple[str, UUID, int]:
        """Identity within a session: by name, or by topic ID with an empty name."""
        return self.topic, self.topic_id, self.partition

    def update_from(self, wanted: "CachedPartition") -> None:
        """Ask from now on for what `wanted` asks for."""
        self.fetch_offset = wanted.fetch_offset
        self.max_bytes = wanted.max_bytes
        self.current_leader_epoch = wanted.current_leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.log_start_offset = wanted.log_start_offset
        self.known_high_watermark = wanted.known_high_watermark

    def has_changed(self, data: PartitionData) -> bool:
        """Tell whether `data` must be part of an incremental answer, and remember it (rule 87)."""
        news = (
            (data.records is not None and len(data.records) > 0)
            or data.high_watermark != self.told_high_watermark
            or data.log_start_offset != self.told_log_start_offset
            or data.error_code != ErrorCode.NONE
            or data.preferred_read_replica != -1
            or data.diverging_epoch.epoch != -1
        )
        # After an error the next good state is news again.
        failed = data.error_code != ErrorCode.NONE
        self.told_high_watermark = -1 if failed else data.high_watermark
        self.told_log_start_offset = data.log_start_offset
        return news


Partitions = dict[tuple[str, UUID, int], CachedPartition]
"""By `CachedPartition.key`."""


class Moves(Protocol):
    """Partitions that the next Fetch of a session looks at; see `session_moves.SessionMoves`."""

    def on_named(self, keys: Iterable[tuple[str, UUID, int]]) -> None:
        """Have partitions looked at that the client names, or that it was not told of."""

    def on_forgotten(self, key: tuple[str, UUID, int]) -> None:
        """Watch no more what left the session."""

    def end_some(self) -> bool:
        """Watch some partitions no more, as the session ended; return whether any are left."""


@dataclass(slots=True)
class FetchSession:
    """Partitions that one client fetches, remembered between its requests (KIP-227)."""

    session_id: int
    by_topic_id: bool
    created_ms: int
    last_used_ms: int
    is_privileged: bool = False
    """Of a follower: consumers do not push it out (KIP-227)."""
    epoch: int = 1
    """Epoch that the next incremental request must carry: 1 to 2147483647, then 1 again."""
    partitions: Partitions = field(default_factory=dict)
    moves: "Moves | None" = None
    """Of a wide session that has been read twice: what the next Fetch has to look at."""

    def ask_for(self, wanted: Partitions) -> None:
        """Take over what an incremental request names."""
        for key, asked in wanted.items():
            self.partitions.setdefault(key, asked).update_from(asked)


@dataclass(slots=True)
class FetchPlan:
    """The full list of partitions that a request asks for.

    `session` is None for a request without one. `incremental` answers leave out what is no news.
    A plan `is_wide` if there are more than WIDE_MIN partitions; where its session knows what moved
    it is to say which of them are looked at.
    """

    partitions: list[CachedPartition]
    session: FetchSession | None = None
    incremental: bool = False
    is_wide: bool = False

    @property
    def session_id(self) -> int:
        """Session id to answer; 0 for none, which every client copes with."""
        return self.session.session_id if self.session is not None else NO_SESSION_ID

    def select(
        self, results: Iterable[tuple[CachedPartition, PartitionData]]
    ) -> list[tuple[CachedPartition, PartitionData]]:
        """Return the results that belong in the answer, and note what the client now knows.

        Partitions that returned data move to the end of the session's order, so that no busy one
        starves the others (rule 88).
        """
        results = list(results)
        if self.session is None:
            return results
        order = self.session.partitions
        selected = []
        for cached, data in results:
            if not cached.has_changed(data) and self.incremental:
                continue
            selected.append((cached, data))
            if data.records is not None and len(data.records) > 0 and cached.key in order:
                order[cached.key] = order.pop(cached.key)
        return selected


class FetchSessions:
    """All fetch sessions of a broker, at most `max_sessions` of them."""

    def __init__(self, *, max_sessions: int, first_id: int) -> None:
        self._max_sessions = max_sessions
        self._next_id = first_id
        self._sessions: dict[int, FetchSession] = {}
        self._ended: list[Moves] = []
        """Of sessions that are gone, with partitions that are watched still."""
        self.evicted_count = 0
        """Sessions that made room for others."""

    def __len__(self) -> int:
        return len(self._sessions)

    def partitions_of(self, session_id: int) -> list[tuple[str, UUID, int]]:
        """Return topic name, topic id and index of what a session fetches; names may be empty."""
        session = self._sessions.get(session_id)
        return [] if session is None else [*session.partitions]

    def forget(self, session_id: int) -> None:
        """End a session that its client was not told of."""
        session = self._sessions.pop(session_id, None)
        if session is not None and session.moves is not None:
            self.end_moves(session)

    def end_moves(self, session: FetchSession) -> None:
        """Look at all partitions of a session from now on, and watch them no more.

        A part of that is done now, and one at each call of `end_some`.
        """
        if session.moves is not None:
            self._ended.append(session.moves)
            session.moves = None
            self.end_some()

    def end_some(self) -> None:
        """Have some partitions watched no more of sessions that are gone."""
        if self._ended and not self._ended[-1].end_some():
            self._ended.pop()

    def not_told(self, session_id: int, topics: Iterable[FetchableTopicResponse]) -> None:
        """Tell again in the next answer of a session what was not sent in this one."""
        session = self._sessions.get(session_id)
        if session is None:
            return
        for topic in topics:
            for data in topic.partitions:
                key = (topic.topic, topic.topic_id, data.partition_index)
                cached = session.partitions.get(key)
                if cached is not None:
                    cached.told_high_watermark = -1
                    if session.moves is not None:
                        session.moves.on_named((key,))

    def plan(self, request: FetchRequest, *, by_topic_id: bool, now_ms: int) -> FetchPlan:
        """Turn a request into the full list of partitions it means.

        Raises:
            KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or
                FETCH_SESSION_TOPIC_ID_ERROR, answered at the top level with no topics.
        """
        if is_full(request):
            return self.full_plan(
                request, requested(request), by_topic_id=by_topic_id, now_ms=now_ms
            )
        session = self.resume(request, by_topic_id=by_topic_id, now_ms=now_ms)
        session.ask_for(requested(request))
        return self.rest_of_plan(session, request)

    def full_plan(
        self, request: FetchRequest, wanted: Partitions, *, by_topic_id: bool, now_ms: int
    ) -> FetchPlan:
        """Return what a full request means, which ends its session and may begin another."""
        ended = self._sessions.pop(request.session_id, None)
        if ended is not None and ended.moves is not None:
            self.end_moves(ended)
        partitions = list(wanted.values())
        is_wide = len(partitions) > WIDE_MIN
        if request.session_epoch == FINAL_EPOCH or not partitions:
            return FetchPlan(partitions, is_wide=is_wide)
        opened = self._open(wanted, by_topic_id, now_ms, is_privileged=_replica_id(request) >= 0)
        return FetchPlan(partitions, session=opened, is_wide=is_wide)

    def rest_of_plan(self, session: FetchSession, request: FetchRequest) -> FetchPlan:
        """Return what a session means once it knows what an incremental request names."""
        if request.forgotten_topics_data:
            self._forget_partitions(session, request)
            if not session.partitions:
                self.forget(session.session_id)
                return FetchPlan([], incremental=True)
        if len(session.partitions) > WIDE_MIN:
            partitions = list(session.partitions.values()) if session.moves is None else []
            return FetchPlan(partitions, session=session, incremental=True, is_wide=True)
        return FetchPlan(list(session.partitions.values()), session=session, incremental=True)

    def _forget_partitions(self, session: FetchSession, request: FetchRequest) -> None:
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                key = (topic.topic, topic.topic_id, index)
                session.partitions.pop(key, None)
                if session.moves is not None:
                    session.moves.on_forgotten(key)
        if len(session.partitions) <= WIDE_MIN:
            self.end_moves(session)

    def resume(self, request: FetchRequest, *, by_topic_id: bool, now_ms: int) -> FetchSession:
        """Return the session of an incremental request. Raises as `plan`."""
        session = self._sessions.get(request.session_id)
        if session is None:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"fetch session {request.session_id}"
            )
        if session.by_topic_id != by_topic_id:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                f"fetch session {session.session_id} was opened "
                f"{'with' if session.by_topic_id else 'without'} topic IDs",
            )
        if request.session_epoch != session.epoch:
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {session.session_id}: got epoch {request.session_epoch}, "
                f"expected {session.epoch}",
            )
        session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        session.last_used_ms = now_ms
        return session

    def _open(
        self,
        partitions: Partitions,
        by_topic_id: bool,
        now_ms: int,
        *,
        is_privileged: bool,
    ) -> FetchSession | None:
        if len(self._sessions) >= self._max_sessions and not self._evict(
            now_ms, for_follower=is_privileged
        ):
            return None
        while self._next_id in self._sessions or self._next_id == NO_SESSION_ID:
            self._next_id = (self._next_id + 1) % 2**31
        session = FetchSession(self._next_id, by_topic_id, now_ms, now_ms, is_privileged)
        self._next_id = (self._next_id + 1) % 2**31
        session.partitions = partitions
        self._sessions[session.session_id] = session
        return session

    def _evict(self, now_ms: int, *, for_follower: bool) -> bool:
        """Drop the session unused for longest, if it may go; tell whether one went.

        It may if it is old enough, or if it is a consumer's and a follower needs the place.
        """
        sessions = self._sessions.values()
        oldest = min(sessions, key=lambda s: s.last_used_ms, default=None)
        if oldest is None or now_ms - oldest.last_used_ms < MIN_EVICTION_MS:
            consumers = (s for s in sessions if for_follower and not s.is_privileged)
            oldest = min(consumers, key=lambda s: s.last_used_ms, default=None)
            if oldest is None:
                return False
        self.forget(oldest.session_id)
        self.evicted_count += 1
        return True


def _replica_id(request: FetchRequest) -> int:
    """Return the follower that fetches, negative for consumers; one of two fields has it."""
    return max(request.replica_id, request.replica_state.replica_id)


def is_full(request: FetchRequest) -> bool:
    """Whether a request names all that it means."""
    return request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH)


def requested(request: FetchRequest) -> Partitions:
    """Return what a request names, by its key."""
    wanted: Partitions = {}
    for topic in request.topics:
        for partition in topic.partitions:
            cached = CachedPartition(
                topic.topic,
                topic.topic_id,
                partition.partition,
                partition.fetch_offset,
                partition.partition_max_bytes,
                partition.current_leader_epoch,
                partition.last_fetched_epoch,
                partition.log_start_offset,
                partition.high_watermark,
            )
            wanted[cached.key] = cached
    return wanted
