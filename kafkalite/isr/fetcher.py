"""Copying what others lead: `num.replica.fetchers` tasks for each broker that leads something.

Each task asks its broker for its share of these partitions in one Fetch, does with the answer what
`follower` decides, and asks again: the offsets of the next Fetch are what acknowledges the records
of the one before. In a session (KIP-227) a Fetch says only what is new in it, so that partitions
to which nothing is written cost next to nothing.
"""

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final
from zlib import crc32

import trio

from kafkalite.isr.fetch_session_handler import (
    SESSION_ERRORS,
    Asked,
    FetchSessionHandler,
    Key,
    SessionFetch,
)
from kafkalite.isr.fetch_turns import STEP_MAX, FetchTurns
from kafkalite.isr.follower import (
    PASSING_ERRORS,
    UNKNOWN,
    Action,
    Append,
    Follower,
    ListLeaderOffsets,
    Nothing,
    Position,
    RestartAt,
    TruncateTo,
    slices,
)
from kafkalite.isr.leader_offsets import FETCH_CHANNEL, fetch_leader_offsets
from kafkalite.isr.throttle import FollowerThrottle
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

if TYPE_CHECKING:
    from uuid import UUID

    from kafkalite.clock import Clock
    from kafkalite.config import BrokerConfig
    from kafkalite.isr.partition import Partition
    from kafkalite.isr.replicas import ReplicaManager
    from kafkalite.meta.image import Image
    from kafkalite.meta.peers import Peers
    from kafkalite.types import TopicPartition

logger = logging.getLogger("kafkalite.isr")

SLICE_BYTES: Final = 1024 * 1024
"""Appended without letting others have their turn: about a millisecond."""

FETCH_AGE_MIN_MS: Final = 20
"""A Fetch under way this long brings nothing at present, and is given up when there is something
else to ask for. A younger one may bring much."""

GIVE_UP_MAX: Final = 1_000
"""A Fetch for more partitions is not given up: to open its session again would cost more than what
is new here gains. It is answered after replica.fetch.wait.max.ms at the latest."""

RETRY_MIN_MS: Final = 50
"""After the first failure in a row to reach a broker; doubles up to replica.fetch.backoff.ms."""

THROTTLE_CHECK_MS: Final = 100
"""A partition that has used up what it may have is looked at again after this."""


@dataclass(slots=True, eq=False)
class _Followed:
    """One partition that a task copies."""

    partition: "Partition"
    core: Follower
    fetched: Position = field(default_factory=lambda: Position(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN))
    """What the Fetch under way said."""

    @property
    def position(self) -> Position:
        return Position(*self.partition.fetch_position())


class ReplicaFetcherManager:
    """All tasks that copy: `num.replica.fetchers` for each leading broker.

    Args:
        replicas: the partitions of this broker, and whom they follow.
        peers: the other brokers.
        config: the broker's settings; those of fetching may change while it runs.
        clock: of which the monotonic time is taken.
        image: gives the metadata, for the settings of topics.
        broker_epoch: gives this broker's present one (KIP-903).
    """

    def __init__(
        self,
        replicas: "ReplicaManager",
        peers: "Peers",
        config: "BrokerConfig",
        clock: "Clock",
        *,
        image: "Callable[[], Image]",
        broker_epoch: Callable[[], int],
    ) -> None:
        self._replicas = replicas
        self._config = config
        self._sources: dict[tuple[int, int], _Source] = {}
        """By broker and number."""
        self._followed: dict[tuple[str, int], tuple[_Source, Key]] = {}
        self._moved = trio.Event()
        self._new_source = partial(
            _Source,
            peers=peers,
            config=config,
            clock=clock,
            throttle=FollowerThrottle(config, image, clock),
            broker_epoch=broker_epoch,
        )

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Copy until cancelled. What a cancelled task has received and not appended is lost."""
        unsubscribe = self._replicas.subscribe_following(self._on_moved)
        try:
            # Its tasks are ended by `_Source.stop`, or with this one.
            async with trio.open_nursery() as nursery:
                task_status.started()
                while True:
                    moved = self._moved = trio.Event()
                    await self._follow(nursery)
                    await moved.wait()
        finally:
            unsubscribe()
            self._sources.clear()
            self._followed.clear()

    def lags(self) -> "Iterator[tuple[TopicPartition, int]]":
        """Yield each partition that is copied, and how many records it lacks of what is committed.

        As of the last answer of its leader.
        """
        for source in self._sources.values():
            yield from source.lags()

    def fetch_rates(self) -> list[float]:
        """Return how often a second each task has asked its broker since the last call."""
        return [source.fetch_rate() for source in self._sources.values()]

    def _on_moved(self) -> None:
        self._moved.set()

    async def _follow(self, nursery: trio.Nursery) -> None:
        """Take up what moved; with a turn for others, as it may be everything."""
        for count, name in enumerate(self._replicas.take_following(), 1):
            partition = self._replicas.followed(name)
            before = self._followed.pop(name, None)
            if partition is not None:
                source = self._source_of(partition, nursery)
                self._followed[name] = (source, source.follow(partition))
            if before is not None and before != self._followed.get(name):
                source, key = before
                source.unfollow(key)
            if not count % STEP_MAX:
                await trio.lowlevel.checkpoint()
        for place in [each for each, source in self._sources.items() if source.is_idle]:
            self._sources.pop(place).stop()

    def _source_of(self, partition: "Partition", nursery: trio.Nursery) -> "_Source":
        place = (
            partition.leader_id,
            _number_of(partition, self._config.int("num.replica.fetchers")),
        )
        source = self._sources.get(place)
        if source is None:
            source = self._sources[place] = self._new_source(*place)
            nursery.start_soon(source.run)
        return source


def _number_of(partition: "Partition", count: int) -> int:
    """Return which of a broker's tasks copies a partition; the same one as long as `count` is."""
    if count == 1:
        return 0
    topic, index = partition.topic_partition
    return (crc32(topic.encode()) + index) % count


class _Source:
    """A task that copies from one broker, by a connection of its own."""

    def __init__(
        self,
        broker_id: int,
        number: int,
        *,
        peers: "Peers",
        config: "BrokerConfig",
        clock: "Clock",
        throttle: FollowerThrottle,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._broker_id = broker_id
        self._channel = f"{FETCH_CHANNEL}-{number}" if number else FETCH_CHANNEL
        self._peers = peers
        self._config = config
        self._clock = clock
        self._throttle = throttle
        self._broker_epoch = broker_epoch
        self._followed: dict[Key, _Followed] = {}
        """In the order in which they are asked for: what brought records goes to the end, so that
        a Fetch that is full does not always leave out the same ones."""
        self._session = FetchSessionHandler()
        self._turns = FetchTurns()
        self._fetch_count = 0
        self._counted = (0, trio.current_time())
        self._life = trio.CancelScope()
        self._under_way: trio.CancelScope | None = None
        self._asked_at = 0.0
        self._moved = trio.Event()
        self._failures = 0

    # --- What to follow --------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether nothing is to be copied from this broker."""
        return not self._followed

    def follow(self, partition: "Partition") -> Key:
        """Copy a partition; one in a new leader epoch begins anew. Return its key."""
        key = (partition.log.topic_id, partition.topic_partition.partition)
        followed = self._followed.get(key)
        if (
            followed is None
            or followed.partition is not partition
            or followed.core.leader_epoch != partition.leader_epoch
        ):
            self._followed[key] = self._begin(partition)
            self._on_moved(key)
        return key

    def unfollow(self, key: Key) -> None:
        """Copy a partition no more."""
        if self._followed.pop(key, None) is not None:
            self._on_moved(key)

    def _on_moved(self, key: Key) -> None:
        self._turns.touch((key,))
        self._moved.set()
        if self._under_way is not None and len(self._followed) <= GIVE_UP_MAX:
            at = self._asked_at + FETCH_AGE_MIN_MS / 1_000
            self._under_way.deadline = min(self._under_way.deadline, at)

    def stop(self) -> None:
        """End the task: nothing is led by this broker any more."""
        self._followed = {}
        self._life.cancel()

    def lags(self) -> "Iterator[tuple[TopicPartition, int]]":
        """Yield each partition, and how many records it lacks."""
        for followed in self._followed.values():
            if followed.core.lag is not None:
                yield followed.partition.topic_partition, followed.core.lag

    def fetch_rate(self) -> float:
        """Return Fetches a second since the last call."""
        now_s = trio.current_time()
        count, since_s = self._counted
        self._counted = (self._fetch_count, now_s)
        return (self._fetch_count - count) / max(now_s - since_s, 0.001)

    def _begin(self, partition: "Partition") -> _Followed:
        followed = _Followed(
            partition, Follower(backoff_max_ms=self._config.int("replica.fetch.backoff.ms"))
        )
        action = followed.core.begin(followed.position, high_watermark=partition.high_watermark)
        if action is not None:
            self._perform(followed, action)
        return followed

    # --- Asking ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Copy until cancelled or stopped."""
        with self._life:
            while True:
                self._moved = trio.Event()
                now_ms = self._clock.monotonic_ms()
                request, rest_ms = self._next_request(now_ms)
                if request is None:
                    with trio.move_on_after(rest_ms / 1_000):
                        await self._moved.wait()
                    continue
                response = await self._ask(request)
                if response is not None:
                    await self._take(response)

    def _next_request(self, now_ms: int) -> tuple[FetchRequest | None, float]:
        """Return a Fetch for all that may fetch now, None if there is nothing; and until when."""
        config = self._config
        wait_max_ms = config.int("replica.fetch.wait.max.ms")
        rest_ms: float = wait_max_ms
        is_throttled = self._throttle.is_exceeded()
        turns, followed_now = self._turns, self._followed
        # A limit that is used up, or no more, may matter to any of them.
        is_all = self._throttle.is_limited or self._session.is_refused
        keys = (
            turns.take_all(followed_now)
            if is_all
            else turns.take(followed_now, now_ms, every_ms=wait_max_ms)
        )
        wanted: dict[Key, Asked | None] = {}
        for key in keys:
            followed = self._followed.get(key)
            if followed is None or not self._is_current(followed):
                wanted[key] = None
                continue
            pause_ms = self._pause_ms(followed, now_ms, is_throttled=is_throttled)
            if pause_ms is not None:
                wanted[key] = None
                turns.pause(key)
                rest_ms = min(rest_ms, pause_ms)
                continue
            position, partition = followed.position, followed.partition
            wanted[key] = Asked(partition.topic_partition.topic, position, partition.high_watermark)
        if turns.has_more:
            rest_ms = 0
        said = self._session.build(wanted, is_all=is_all)
        if self._session.is_empty:
            self._session.reset()
            return None, rest_ms
        for key, asked in said.asked.items():
            self._followed[key].fetched = asked.position
        return self._request(said, rest_ms), rest_ms

    def _pause_ms(self, followed: _Followed, now_ms: int, *, is_throttled: bool) -> float | None:
        """Return after how long a partition may fetch that may not now; None if it may."""
        core = followed.core
        if not core.may_fetch(now_ms):
            return math.inf if core.is_paused else max(1, core.due_ms - now_ms)
        try:
            followed.partition.check_writable()
        except KafkaError as error:
            self._on_failure(followed, error)
            return math.inf if core.is_paused else max(1, core.due_ms - now_ms)
        return THROTTLE_CHECK_MS if is_throttled and self._is_throttled(followed) else None

    def _is_throttled(self, followed: _Followed) -> bool:
        """Tell whether a limit holds for this partition, should there be one."""
        return not followed.core.is_in_sync and self._throttle.applies_to(
            followed.partition.topic_partition
        )

    def _request(self, said: SessionFetch, max_wait_ms: float) -> FetchRequest:
        config = self._config
        max_bytes = config.int("replica.fetch.max.bytes")
        topics: dict[UUID, FetchTopic] = {}
        for (topic_id, index), asked in said.asked.items():
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic=asked.topic, topic_id=topic_id)
            position = asked.position
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=position.leader_epoch,
                    fetch_offset=position.offset,
                    last_fetched_epoch=position.last_fetched_epoch,
                    log_start_offset=position.log_start_offset,
                    partition_max_bytes=max_bytes,
                    high_watermark=asked.high_watermark,
                )
            )
        forgotten: dict[UUID, ForgottenTopic] = {}
        for topic_id, index in said.forgotten:
            forgotten.setdefault(topic_id, ForgottenTopic(topic_id=topic_id)).partitions.append(
                index
            )
        broker_id = config.node_id
        return FetchRequest(
            replica_id=broker_id,
            replica_state=ReplicaState(replica_id=broker_id, replica_epoch=self._broker_epoch()),
            max_wait_ms=int(max_wait_ms),
            min_bytes=config.int("replica.fetch.min.bytes"),
            max_bytes=config.int("replica.fetch.response.max.bytes"),
            session_id=said.session_id,
            session_epoch=said.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
        )

    def _is_current(self, followed: _Followed) -> bool:
        """Tell whether this is still to be copied from here; if not `follow` is about to say so."""
        partition = followed.partition
        return (
            partition.leader_id == self._broker_id
            and partition.leader_epoch == followed.core.leader_epoch
        )

    async def _ask(self, request: FetchRequest) -> FetchResponse | None:
        """Return the broker's answer, None if there is none or something else is to be asked."""
        self._asked_at = trio.current_time()
        self._fetch_count += 1
        is_known = False
        try:
            with trio.CancelScope() as self._under_way:
                response = await self._peers.request(
                    self._broker_id,
                    FETCH,
                    request,
                    timeout_ms=self._config.int("replica.socket.timeout.ms"),
                    channel=self._channel,
                )
                if response.error_code in SESSION_ERRORS:
                    return None
                if response.error_code:
                    raise KafkaError(ErrorCode(response.error_code), "answer to a Fetch")
                self._session.on_answer(response.session_id)
                is_known = True
                if self._failures:
                    logger.info("broker %d can be followed again", self._broker_id)
                self._failures = 0
                return response
        except KafkaError as error:
            self._under_way = None
            await self._on_unreachable(error)
        finally:
            self._under_way = None
            if not is_known:
                self._session.reset()
            if self._session.is_full:
                self._turns.touch(self._followed)
        return None

    async def _on_unreachable(self, error: KafkaError) -> None:
        level = logging.DEBUG if self._failures else logging.WARNING
        logger.log(level, "broker %d cannot be followed: %s", self._broker_id, error)
        backoff_ms = min(
            RETRY_MIN_MS << min(self._failures, 20), self._config.int("replica.fetch.backoff.ms")
        )
        self._failures += 1
        await trio.sleep(backoff_ms / 1_000)

    # --- Taking answers --------------------------------------------------------------------------

    async def _take(self, response: FetchResponse) -> None:
        """Do what each part of an answer asks for; one that fails does not keep back the others."""
        taken_bytes = taken = 0
        for topic in response.responses:
            for answer in topic.partitions:
                key = (topic.topic_id, answer.partition_index)
                followed = self._followed.get(key)
                if followed is None:
                    continue
                self._turns.touch((key,))
                size = len(answer.records or b"")
                taken_bytes += size
                taken += 1
                if (taken_bytes >= SLICE_BYTES and taken_bytes > size) or taken > STEP_MAX:
                    await trio.lowlevel.checkpoint()
                    taken_bytes, taken = size, 1
                await self._take_one(followed, answer)
                if size and self._followed.get(key) is followed:
                    del self._followed[key]
                    self._followed[key] = followed

    async def _take_one(self, followed: _Followed, answer: PartitionData) -> None:
        action = followed.core.on_answer(
            followed.fetched,
            followed.position,
            answer,
            end_offset_for=followed.partition.log.end_offset_for,
            now_ms=self._clock.monotonic_ms(),
        )
        if isinstance(action, Append):
            await self._append(followed, action)
        elif isinstance(action, ListLeaderOffsets):
            await self._ask_bounds(followed)
        elif isinstance(action, Nothing):
            self._log_refusal(followed, action.code)
        else:
            self._perform(followed, action)

    async def _append(self, followed: _Followed, action: Append) -> None:
        """Append in pieces, between which others have their turn and the leader may change."""
        partition, leader_epoch = followed.partition, followed.fetched.leader_epoch
        remaining = len(action.records)
        if self._is_throttled(followed):
            self._throttle.on_received(remaining)
        try:
            for piece in slices(action.records, SLICE_BYTES) if remaining else ():
                remaining -= len(piece)
                if partition.append_as_follower(piece, leader_epoch=leader_epoch) is None:
                    # A part of a batch, or one of a later epoch (rule 170).
                    followed.core.on_failure(self._clock.monotonic_ms())
                    return
                if remaining:
                    await trio.lowlevel.checkpoint()
            if partition.leader_epoch == leader_epoch:
                partition.advance_follower(action.high_watermark, action.log_start_offset)
        except KafkaError as error:
            self._on_failure(followed, error)
        else:
            followed.core.on_appended(
                followed.position, leader_high_watermark=action.high_watermark
            )

    def _perform(self, followed: _Followed, action: Action) -> None:
        """Cut the log, or begin it anew."""
        partition = followed.partition
        try:
            if isinstance(action, TruncateTo):
                was_committed = action.offset < partition.high_watermark
                logger.log(
                    logging.WARNING if was_committed else logging.INFO,
                    "%s is cut to offset %d in leader epoch %d; it ended at %d, high watermark %d",
                    partition.topic_partition,
                    action.offset,
                    followed.core.leader_epoch,
                    partition.log_end_offset,
                    partition.high_watermark,
                )
                partition.truncate_to(action.offset)
            elif isinstance(action, RestartAt):
                logger.warning(
                    "%s begins anew at offset %d, where its leader's log begins; it ended at %d",
                    partition.topic_partition,
                    action.offset,
                    partition.log_end_offset,
                )
                partition.truncate_fully_and_start_at(action.offset)
        except KafkaError as error:
            self._on_failure(followed, error)

    async def _ask_bounds(self, followed: _Followed) -> None:
        """Find out where the leader's log begins and ends, which has not got what was asked for."""
        fetched = followed.fetched
        try:
            start_offset, end_offset = await fetch_leader_offsets(
                self._peers,
                self._broker_id,
                followed.partition.topic_partition,
                leader_epoch=fetched.leader_epoch,
                replica_id=self._config.node_id,
                timeout_ms=self._config.int("replica.socket.timeout.ms"),
            )
        except KafkaError as error:
            self._on_failure(followed, error)
            return
        current = followed.position
        if current[:3] == fetched[:3]:
            action = followed.core.on_bounds(
                current,
                leader_start_offset=start_offset,
                leader_end_offset=end_offset,
                now_ms=self._clock.monotonic_ms(),
            )
            self._perform(followed, action)

    # --- Failures --------------------------------------------------------------------------------

    def _log_refusal(self, followed: _Followed, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE:
            level = logging.DEBUG if code in PASSING_ERRORS else logging.WARNING
            name = followed.partition.topic_partition
            logger.log(level, "%s: broker %d answers %s", name, self._broker_id, code.name)

    def _on_failure(self, followed: _Followed, error: KafkaError) -> None:
        """Leave a partition alone for a while, or for good if its log is given up.

        A disk that is full takes nothing now and may have room in a moment.
        """
        if not self._is_current(followed):
            return
        name, code = followed.partition.topic_partition, error.code
        if code is ErrorCode.KAFKA_STORAGE_ERROR and followed.partition.log.failure is not None:
            followed.core.pause()
            logger.error("%s is not copied any more: %s", name, error)
            return
        is_known = followed.core.is_failing or code in PASSING_ERRORS
        followed.core.on_failure(self._clock.monotonic_ms())
        level = logging.DEBUG if is_known else logging.ERROR
        logger.log(level, "%s cannot be copied now: %s", name, error)
