"""A broker of level 1: the real roles of partitions and the real controller, without the rest.

Partitions are `kafkalite.isr.partition.Partition` on a log in memory; what the shells around them
do (fetching, asking the controller, following the metadata) is done here by messages.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kafkalite.isr.follower import (
    Append,
    Follower,
    ListLeaderOffsets,
    Position,
    RestartAt,
    TruncateTo,
)
from kafkalite.isr.follower_role import NO_LEADER
from kafkalite.isr.leader_role import IsrAccepted, ReplicationContext
from kafkalite.isr.offline import OfflineReplica
from kafkalite.isr.partition import Partition
from kafkalite.isr.partition_read import IsolationLevel
from kafkalite.isr.pending_acks import PendingAck
from kafkalite.isr.recovering import RecoveringLeader
from kafkalite.log_config import LogConfig
from kafkalite.meta.controller import decide
from kafkalite.meta.controller_loop import registrations
from kafkalite.meta.events import (
    AlterPartition,
    ControllerConfig,
    Event,
    FinishReassignments,
    Reassign,
    RebalanceLeaders,
)
from kafkalite.meta.image import BrokerImage, Image, ImageBuilder
from kafkalite.sim.model_log import ModelLog
from kafkalite.sim.model_messages import STORE, Beat, Call, FetchRequest, FetchResponse
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.fetch import EpochEndOffset, PartitionData

if TYPE_CHECKING:
    from kafkalite.isr.state import IsrChange
    from kafkalite.meta.changes import Change
    from kafkalite.sim.level1 import World

HEARTBEAT_MS: Final = 60
TICK_MS: Final = 100
LAG_MS_MAX: Final = 250
FETCH_WAIT_MS: Final = 40
FETCH_TIMEOUT_MS: Final = 150
FETCH_BACKOFF_MS: Final = 15
CONTROL_TIMEOUT_MS: Final = 150
RETRY_MS: Final = 30
BACKOFF_MAX_MS: Final = 100
PRODUCE_TIMEOUT_MS: Final = 200


class Node:
    """One broker, from its start to its crash; what lasts is `logs` and `checkpoint`."""

    def __init__(
        self,
        world: "World",
        broker_id: int,
        incarnation: int,
        logs: dict[TopicPartition, ModelLog],
        checkpoint: dict[TopicPartition, int],
        config: LogConfig,
    ) -> None:
        self.world = world
        self.broker_id = broker_id
        self.incarnation = incarnation
        self.logs = logs
        self.checkpoint = checkpoint
        self.is_alive = True
        self.paused_until_ms = 0
        self.image = Image()
        self.broker_epoch = -1
        self.is_admitted = False
        """Whether the controller has taken note of this process: it may have lost what an earlier
        one had, so what that one led or was in sync for says nothing of this one."""
        self.partitions: dict[TopicPartition, Partition] = {}
        self.controller_id = -1
        self.controller_epoch: int | None = None
        self._config = config
        self._rules = ControllerConfig(
            broker_id=broker_id, listener_names=(), broker_values={}, topic_defaults=config
        )
        self._replication = ReplicationContext(
            broker_id=broker_id,
            lag_ms_max=LAG_MS_MAX,
            is_eligible=self._is_eligible,
            is_alive=lambda other: other in self.image.brokers,
            on_isr_change=self._propose,
        )
        self._followers: dict[TopicPartition, Follower] = {}
        self._fetching: dict[TopicPartition, tuple[int, int]] = {}
        self._parked: dict[TopicPartition, list[tuple[Call, FetchRequest]]] = {}
        self._events: deque[tuple[Event, Call | None]] = deque()
        self._live: Mapping[int, BrokerImage] | None = None
        self._is_busy = False

    def start(self) -> None:
        """Join the cluster."""
        self._register()
        self._later(HEARTBEAT_MS, self._heartbeat)
        self._later(TICK_MS, self._tick)

    # --- Time and messages -----------------------------------------------------------------------

    def _later(self, delay_ms: int, function: Callable[..., object], *arguments: Any) -> None:
        self.world.local(self, delay_ms, function, *arguments)

    def _ask(
        self,
        target: int,
        method: str,
        argument: Any,
        on_answer: Callable[[Any], object],
        on_timeout: Callable[[], object],
        timeout_ms: int = CONTROL_TIMEOUT_MS,
    ) -> None:
        call = Call(self.broker_id, self.incarnation, on_answer, on_timeout)
        self.world.ask(call, target, method, argument, timeout_ms)

    def _answer(self, call: Call, answer: Any) -> None:
        self.world.answer(self.broker_id, call, answer)

    # --- Session ---------------------------------------------------------------------------------

    def _register(self) -> None:
        again = (RETRY_MS, self._register)
        self._ask(
            STORE,
            "register",
            self.incarnation,
            self._on_registered,
            lambda: self._later(*again),
        )

    def _on_registered(self, broker_epoch: int | None) -> None:
        if broker_epoch is None:
            self._later(RETRY_MS, self._register)
            return
        self.broker_epoch = broker_epoch
        self._load()

    def _heartbeat(self) -> None:
        self._later(HEARTBEAT_MS, self._heartbeat)
        if self.broker_epoch != -1:
            self._ask(STORE, "heartbeat", self.broker_epoch, self._on_beat, lambda: None)

    def _on_beat(self, beat: Beat) -> None:
        self.controller_id = beat.controller_id
        if not beat.is_live:
            self.controller_epoch = None
            self.broker_epoch = -1
            self._register()
            return
        if beat.controller_id == -1:
            self._ask(STORE, "campaign", self.broker_epoch, self._on_campaign, lambda: None)
        elif beat.controller_id != self.broker_id:
            self.controller_epoch = None
        elif self.controller_epoch is None:
            self._on_campaign(beat.controller_epoch)  # an answer was lost
        if beat.live is not None:
            self._live = beat.live
        if beat.version > self.image.version:
            self._load()
        self._decide_next()

    def _load(self) -> None:
        self._ask(STORE, "load", None, self._on_loaded, lambda: self._later(RETRY_MS, self._load))

    def _on_loaded(self, image: Image) -> None:
        self._is_busy = False
        if image.version >= self.image.version:
            self.image = image
            self._apply()
        self._decide_next()

    def on_committed(self, commit: "tuple[int, Sequence[Change]]") -> None:
        """Take a commit that the store tells of."""
        version, changes = commit
        if version == self.image.version + 1:
            self.image = self.image.apply(changes)
            self._apply()
        elif version > self.image.version:
            self._load()

    # --- Roles -----------------------------------------------------------------------------------

    def _apply(self) -> None:
        known = self.image.brokers.get(self.broker_id)
        if known is not None and known.broker_epoch == self.broker_epoch:
            self.is_admitted = True
        for topic in self.image.topics.values():
            for index, state in enumerate(topic.partitions):
                place = TopicPartition(topic.name, index)
                if self.broker_id not in state.replicas:
                    self._drop(place)
                    continue
                partition = self.partitions.get(place) or self._open(place)
                if state.leader != self.broker_id:
                    partition.become_follower(state)
                    self._follow(partition)
                elif self.is_admitted:
                    partition.become_leader(state, now_ms=self.world.now_ms)
                    if partition.leader_epoch == state.leader_epoch:
                        self.world.on_lead(self, partition)

    def _drop(self, place: TopicPartition) -> None:
        """Delete a replica that was moved to another broker."""
        partition = self.partitions.get(place)
        if partition is not None:
            partition.close()
            del self.partitions[place]
        self._fetching.pop(place, None)
        self.checkpoint.pop(place, None)
        self.logs.pop(place, None)

    def _open(self, place: TopicPartition) -> Partition:
        log = self.logs.get(place)
        if log is None:
            log = self.logs[place] = ModelLog(place, self._config, self.world.invariants.on_write)
        partition = Partition(log, leader_epoch=-1, replication=self._replication)  # type: ignore[arg-type]
        partition.begin_as_follower(high_watermark=self.checkpoint.get(place, 0))
        self.partitions[place] = partition
        self._parked[place] = []
        partition.watch(lambda: self._flush(place))
        partition.watch_appends(lambda: self._flush(place))
        return partition

    def _is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        if broker is None or broker.shutting_down:
            return False
        return broker_epoch == -1 or broker.broker_epoch in (-1, broker_epoch)

    def _tick(self) -> None:
        self._later(TICK_MS, self._tick)
        for place, partition in self.partitions.items():
            partition.tick(self.world.now_ms)
            self.checkpoint[place] = partition.high_watermark
            if self.world.random.random() < self.world.sync_chance:
                self.logs[place].sync()

    # --- Following -------------------------------------------------------------------------------

    def _follow(self, partition: Partition) -> None:
        """Fetch from the leader, in one chain of requests for each leadership."""
        leadership = (partition.leader_id, partition.leader_epoch)
        if self._fetching.get(partition.topic_partition) == leadership:
            return
        self._fetching[partition.topic_partition] = leadership
        follower = Follower(backoff_max_ms=BACKOFF_MAX_MS)
        self._followers[partition.topic_partition] = follower
        position = Position(*partition.fetch_position())
        action = follower.begin(position, high_watermark=partition.high_watermark)
        if action is not None:
            partition.truncate_to(action.offset)
        self._fetch(partition, leadership)

    def _fetch(self, partition: Partition, leadership: tuple[int, int]) -> None:
        place = partition.topic_partition
        if self._fetching.get(place) != leadership or self.partitions.get(place) is not partition:
            return
        if partition.is_leader or partition.leader_id == NO_LEADER:
            del self._fetching[place]
            return
        follower = self._followers[place]
        if follower.is_paused:
            del self._fetching[place]
            return
        if self.broker_epoch == -1 or not follower.may_fetch(self.world.now_ms):
            self._later(FETCH_BACKOFF_MS, self._fetch, partition, leadership)
            return
        position = Position(*partition.fetch_position())
        request = FetchRequest(place, self.broker_id, self.broker_epoch, *position)

        def on_answer(response: FetchResponse) -> None:
            if self.partitions.get(place) is not partition:
                return
            try:
                self._on_fetched(partition, follower, position, response)
            except KafkaError:
                follower.on_failure(self.world.now_ms)
            self.world.check(self, partition)
            self._fetch(partition, leadership)

        self._ask(
            leadership[0],
            "on_fetch",
            request,
            on_answer,
            lambda: self._later(FETCH_BACKOFF_MS, self._fetch, partition, leadership),
            FETCH_TIMEOUT_MS,
        )

    def _on_fetched(
        self, partition: Partition, follower: Follower, fetched: Position, response: FetchResponse
    ) -> None:
        """Do what the follower says about an answer; offsets of the leader come with errors."""
        current = Position(*partition.fetch_position())
        epoch, end_offset = response.diverging or (-1, -1)
        answer = PartitionData(
            error_code=response.error,
            high_watermark=response.high_watermark,
            log_start_offset=response.log_start_offset,
            diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end_offset),
            records=b"",
        )
        now_ms = self.world.now_ms
        action = follower.on_answer(
            fetched, current, answer, end_offset_for=partition.log.end_offset_for, now_ms=now_ms
        )
        if isinstance(action, ListLeaderOffsets):
            action = follower.on_bounds(
                current,
                leader_start_offset=response.log_start_offset,
                leader_end_offset=response.high_watermark,
                now_ms=now_ms,
            )
        match action:
            case Append():
                region = response.region
                assert region is not None
                if region.entries:
                    partition.append_as_follower(region, leader_epoch=fetched.leader_epoch)  # type: ignore[arg-type]
                partition.advance_follower(action.high_watermark, action.log_start_offset)
                follower.on_appended(
                    Position(*partition.fetch_position()),
                    leader_high_watermark=action.high_watermark,
                )
            case TruncateTo():
                partition.truncate_to(action.offset)
            case RestartAt():
                partition.truncate_fully_and_start_at(action.offset)

    # --- Leading ---------------------------------------------------------------------------------

    def on_fetch(self, call: Call, request: FetchRequest) -> None:
        """Answer a follower: at once if there is something new, else a little later."""
        partition = self.partitions.get(request.topic_partition)
        if partition is None:
            self._answer(call, FetchResponse(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            return
        before = partition.high_watermark
        response = self._read(partition, request, is_first=True)
        self.world.check(self, partition)
        is_empty = response.region is not None and not response.region.entries
        if is_empty and response.error is ErrorCode.NONE and partition.high_watermark == before:
            self._parked[request.topic_partition].append((call, request))
            self._later(FETCH_WAIT_MS, self._unpark, call, request)
        else:
            self._answer(call, response)

    def _read(
        self, partition: Partition, request: FetchRequest, *, is_first: bool
    ) -> FetchResponse:
        try:
            if not partition.is_leader:
                return FetchResponse(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
            partition.check_leader_epoch(request.leader_epoch)
            read = partition.read(
                request.offset,
                max_bytes=1,
                min_one_batch=True,
                isolation=IsolationLevel.READ_UNCOMMITTED,
                last_fetched_epoch=request.last_fetched_epoch,
                as_replica=True,
            )
            if read.diverging is None and is_first:
                partition.on_follower_fetch(
                    request.replica_id,
                    request.broker_epoch,
                    request.offset,
                    request.log_start_offset,
                    self.world.now_ms,
                )
        except KafkaError as error:
            return FetchResponse(error=error.code, high_watermark=partition.log_end_offset)
        return FetchResponse(
            region=read.region,  # type: ignore[arg-type]
            high_watermark=partition.high_watermark,
            log_start_offset=partition.log_start_offset,
            diverging=read.diverging,
        )

    def _flush(self, place: TopicPartition) -> None:
        """Answer those who wait for something new."""
        parked, self._parked[place] = self._parked[place], []
        for call, request in parked:
            self._answer(call, self._read(self.partitions[place], request, is_first=False))

    def _unpark(self, call: Call, request: FetchRequest) -> None:
        parked = self._parked[request.topic_partition]
        if (call, request) in parked:
            parked.remove((call, request))
            partition = self.partitions[request.topic_partition]
            self._answer(call, self._read(partition, request, is_first=False))

    def on_produce(self, call: Call, request: tuple[TopicPartition, Sequence[int], bool]) -> None:
        """Append, and answer with the offset of the first record, or an error."""
        place, values, all_acks = request
        partition = self.partitions.get(place)
        try:
            if partition is None or not partition.is_leader:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "")
            info = partition.append(values, now_ms=self.world.now_ms, all_acks=all_acks)  # type: ignore[arg-type]
        except KafkaError as error:
            self._answer(call, error.code)
            return
        self.world.check(self, partition)
        if not all_acks:
            self._answer(call, info.first_offset)
            return

        def on_done(waiter: PendingAck) -> None:
            is_done = waiter.outcome is ErrorCode.NONE
            self._answer(call, info.first_offset if is_done else waiter.outcome)

        deadline_ms = self.world.now_ms + PRODUCE_TIMEOUT_MS
        partition.add_ack_waiter(PendingAck(info.last_offset + 1, deadline_ms, on_done))

    def _propose(self, partition: Partition | OfflineReplica | RecoveringLeader) -> None:
        """Ask the controller for another ISR (in a moment: the caller is not done)."""
        assert isinstance(partition, Partition)  # no model of a log is ever offline
        self._later(0, self._ask_controller, partition)

    def _ask_controller(self, partition: Partition) -> None:
        proposal = partition.take_isr_change()
        if proposal is None:
            return
        place = partition.topic_partition
        event = AlterPartition(
            broker_id=self.broker_id,
            broker_epoch=self.broker_epoch,
            topic_id=self.image.topics[place.topic].topic_id,
            index=place.partition,
            leader_epoch=proposal.leader_epoch,
            partition_epoch=proposal.partition_epoch,
            new_isr=[(member.broker_id, member.broker_epoch) for member in proposal.isr],
        )
        if self.controller_id == -1:
            self._later(RETRY_MS, self._on_isr_answer, partition, proposal, _NOT_ASKED)
            return
        self._ask(
            self.controller_id,
            "on_alter_partition",
            event,
            lambda answer: self._later(
                RETRY_MS if answer in _RETRIABLE else 0,
                self._on_isr_answer,
                partition,
                proposal,
                answer,
            ),
            lambda: self._on_isr_answer(partition, proposal, ErrorCode.NETWORK_EXCEPTION),
        )

    def _on_isr_answer(
        self, partition: Partition, proposal: "IsrChange", answer: IsrAccepted | ErrorCode
    ) -> None:
        partition.on_isr_answer(proposal, answer)
        self.world.check(self, partition)

    # --- Controller ------------------------------------------------------------------------------

    @property
    def is_controller(self) -> bool:
        """Whether it takes itself for the controller."""
        return self.controller_epoch is not None

    def _on_campaign(self, controller_epoch: int | None) -> None:
        if controller_epoch is None:
            return
        self.controller_epoch = controller_epoch
        self.controller_id = self.broker_id
        self._live = None  # of an earlier leadership
        self._events.append((FinishReassignments(), None))
        self._is_busy = True
        self._load()

    def on_sessions(self, live: Mapping[int, BrokerImage]) -> None:
        """Take note of who lives; the store tells the controller."""
        self._live = live
        self._decide_next()

    def on_alter_partition(self, call: Call, event: AlterPartition) -> None:
        """Take what a leader asks for."""
        if not self.is_controller:
            self._answer(call, ErrorCode.NOT_CONTROLLER)
            return
        self._events.append((event, call))
        self._decide_next()

    def rebalance(self) -> None:
        """Lead partitions back to their preferred replicas, if this is the controller."""
        if self.is_controller:
            self._events.append((RebalanceLeaders(imbalance_percentage=0), None))
            self._decide_next()

    def reassign(self, index: int, replicas: Sequence[int] | None) -> None:
        """Begin or cancel an exchange of replicas, if this is the controller."""
        if self.is_controller:
            event = Reassign(topic=self.world.topic, index=index, replicas=replicas)
            self._events.append((event, None))
            self._decide_next()

    def _decide_next(self) -> None:
        """Decide what is due, and commit it; one commit at a time."""
        if not self.is_controller:
            while self._events:
                self._refuse(self._events.popleft()[1], ErrorCode.NOT_CONTROLLER)
        if self._is_busy or not self.is_controller:
            return
        live = self._live or {}
        due = registrations(self.image, live) if live else ()
        events: list[tuple[Event, Call | None]] = [(event, None) for event in due]
        if not events and self._events:
            events = [self._events.popleft()]
        if not events:
            return
        rules, builder = replace(self._rules, live=live), ImageBuilder(self.image)
        changes: list[Change] = []
        waiting: list[tuple[Event, Call]] = []
        for event, call in events:
            try:
                decided = decide(event, builder.image, rules)
            except KafkaError as error:
                self._refuse(call, error.code)
                continue
            for change in decided:
                change.apply_to(builder)
            changes += decided
            if call is not None:
                waiting.append((event, call))
        if not changes:
            self._accept(waiting)
            self._later(RETRY_MS, self._decide_next)
            return
        self._is_busy = True
        version = self.image.version
        self._ask(
            STORE,
            "commit",
            (self.controller_epoch, version, changes),
            lambda done: self._on_commit_answer(version, changes, waiting, done=done),
            lambda: self._on_commit_unknown(waiting),
        )

    def _on_commit_answer(
        self,
        version: int,
        changes: "Sequence[Change]",
        waiting: list[tuple[Event, Call]],
        *,
        done: bool,
    ) -> None:
        self._is_busy = False
        if not done:
            # Another controller rules, or this one missed a commit; either way it looks again, and
            # hears from the store who rules.
            self._on_commit_unknown(waiting)
            return
        if self.image.version == version:
            self.image = self.image.apply(changes)
            self._apply()
        self._accept(waiting)
        self._decide_next()

    def _on_commit_unknown(self, waiting: list[tuple[Event, Call]]) -> None:
        for _, call in waiting:
            self._refuse(call, ErrorCode.NOT_CONTROLLER)
        self._is_busy = True
        self._load()

    def _accept(self, waiting: list[tuple[Event, Call]]) -> None:
        for event, call in waiting:
            assert isinstance(event, AlterPartition)
            state = self.image.topics[self.world.topic].partitions[event.index]
            accepted = IsrAccepted(
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                isr=state.isr,
            )
            self._answer(call, accepted)

    def _refuse(self, call: Call | None, code: ErrorCode) -> None:
        if call is not None:
            self._answer(call, code)


_NOT_ASKED: Final = ErrorCode.NOT_CONTROLLER
_RETRIABLE: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION)
