"""Level 1: roles of partitions and controllers over a list of messages, thousands of runs a minute.

After Kafka's RaftEventSimulationTest: one seeded queue of events drives everything; invariants are
checked as it goes, and when all faults have healed, that everyone agrees and nothing is lost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from kafkalite.isr.partition import Partition
from kafkalite.log_config import LogConfig
from kafkalite.meta.changes import TopicCreated
from kafkalite.meta.image import NO_LEADER, Image, PartitionImage
from kafkalite.sim.envelope import Envelope, shrinking_places
from kafkalite.sim.events import EventQueue
from kafkalite.sim.faults import Faults
from kafkalite.sim.invariants import InvariantBroken, Invariants
from kafkalite.sim.model_messages import STORE, Beat, Call
from kafkalite.sim.model_node import Node
from kafkalite.sim.model_store import ModelStore
from kafkalite.sim.traces import Trace
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkalite.meta.changes import Change
    from kafkalite.sim.model_log import Entry, ModelLog

TOPIC: Final = "t"
DELAY_MS: Final = (1, 8)
OVERTAKEN_MS: Final = (10, 120)
SLOW_MS: Final = (20, 80)
SESSION_TIMEOUT_MS: Final = 300
EXPIRY_CHECK_MS: Final = 40
OCCASION_MS: Final = 50
FAULTY_MS: Final = 2_500
"""How long faults happen; then everything heals."""
BUSY_MS: Final = 3_500
"""How long clients produce."""
END_MS: Final = 4_500
"""By then all replicas must be in sync again, and equal."""
CLIENTS: Final = 2
CLIENT_PAUSE_MS: Final = (2, 25)
CLIENT_TIMEOUT_MS: Final = 300
FAULT_LASTS_MS: Final = (30, 900)
REBALANCE_MS: Final = 700


@dataclass(slots=True)
class Outcome:
    """Result of a run."""

    seed: int
    digest: str = ""
    events: int = 0
    acknowledged: int = 0
    committed: int = 0
    faults: dict[str, int] = field(default_factory=dict)


class World:
    """Brokers, the store, clients, and what stands between them."""

    topic = TOPIC

    def __init__(self, seed: int, faults: Faults | None, trace: Trace) -> None:
        self.random = Random(seed)
        self.trace = trace
        self.faults = Faults.of(self.random) if faults is None else faults
        self.invariants = Invariants()
        self.envelope = Envelope()
        self.queue = EventQueue()
        self.outcome = Outcome(seed)
        random = self.random
        self.sync_chance = random.choice((0.02, 0.2, 0.6))
        self.reassigning = random.choice((0.0, 0.0, 0.5))
        self.min_isr = random.choice((1, 2, 2, 2))
        count = random.choice((3, 3, 4))
        self.config = LogConfig(min_insync_replicas=self.min_isr)
        self.nodes: dict[int, Node] = {}
        self._incarnation = 0
        self._logs: dict[int, dict[TopicPartition, ModelLog]] = {}
        self._checkpoints: dict[int, dict[TopicPartition, int]] = {}
        self._blocked: dict[tuple[int, int], int] = {}
        self._slow: dict[tuple[int, int], int] = {}
        self._last_ms: dict[tuple[int, int], int] = {}
        self._value = 0
        self._checked: dict[tuple[int, TopicPartition], int] = {}
        self._acknowledged: list[tuple[TopicPartition, int, int]] = []
        self._is_faulty = True
        self.store = ModelStore(
            _first_image(random, count, partitions=random.choice((1, 2))),
            session_timeout_ms=SESSION_TIMEOUT_MS,
            takes_over=random.random() < self.faults.takeover,
            on_commit=self._on_commit,
            on_sessions=self._tell_controller,
        )
        for broker_id in range(1, count + 1):
            self._logs[broker_id] = {}
            self._checkpoints[broker_id] = {}
            self._start(broker_id)
        self.queue.after(EXPIRY_CHECK_MS, self._expire)
        self.queue.after(OCCASION_MS, self._occasion)
        self.queue.after(REBALANCE_MS, self._rebalance)
        for _ in range(CLIENTS):
            self.queue.after(random.randint(*CLIENT_PAUSE_MS), self._produce)

    @property
    def now_ms(self) -> int:
        """The time."""
        return self.queue.now_ms

    # --- Running ---------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Run to the end.

        Raises:
            InvariantBroken: something is wrong.
        """
        while self.queue.run_next(FAULTY_MS):
            pass
        self._heal()
        while self.queue.run_next(END_MS):
            pass
        self._validate()
        outcome = self.outcome
        outcome.events = self.queue.count
        outcome.acknowledged = len(self._acknowledged)
        outcome.committed = sum(map(len, self.invariants.committed.values()))
        outcome.digest = self.trace.digest()
        return outcome

    def _heal(self) -> None:
        self._is_faulty = False
        self._blocked.clear()
        self._slow.clear()
        for broker_id, node in list(self.nodes.items()):
            node.paused_until_ms = 0
            if not node.is_alive:
                self._start(broker_id)

    def _validate(self) -> None:
        """Check that all replicas agree, and that what was acknowledged is there."""
        for index, state in enumerate(self.store.image.topics[TOPIC].partitions):
            place = TopicPartition(TOPIC, index)
            if state.leader == NO_LEADER or set(state.isr) != set(state.replicas):
                raise InvariantBroken(f"{place} did not heal: {state}")
            logs = [self._logs[broker_id][place].entries for broker_id in state.replicas]
            if any(entries != logs[0] for entries in logs):
                raise InvariantBroken(f"{place}: replicas differ: {list(map(len, logs))} records")
            committed = self.invariants.committed.get(place, [])
            if logs[0][: len(committed)] != committed:
                raise InvariantBroken(f"{place}: committed records are gone")
            high_watermark = self.nodes[state.leader].partitions[place].high_watermark
            if high_watermark < len(logs[0]):
                raise InvariantBroken(f"{place}: high watermark {high_watermark} is stuck")
        for place, offset, value in self._acknowledged:
            entries = self._logs[self.store.image.topics[TOPIC].partitions[place.partition].leader][
                place
            ].entries
            if offset >= len(entries) or entries[offset].value != value:
                raise InvariantBroken(f"{place}: {value} was acknowledged at {offset} and is lost")

    # --- Messages --------------------------------------------------------------------------------

    def local(
        self, node: Node, delay_ms: int, function: Callable[..., object], *arguments: Any
    ) -> None:
        """Let a node do something later, if it still lives."""
        self.queue.after(delay_ms, self._run_local, node, function, arguments)

    def _run_local(
        self, node: Node, function: Callable[..., object], arguments: tuple[Any, ...]
    ) -> None:
        if not node.is_alive:
            return
        if node.paused_until_ms > self.now_ms:
            self.queue.at(node.paused_until_ms, self._run_local, node, function, arguments)
            return
        function(*arguments)

    def ask(self, call: Call, target: int, method: str, argument: Any, timeout_ms: int) -> None:
        """Send a request."""
        self._send(call.source, target, self._receive, target, method, call, argument)
        self.queue.after(timeout_ms, self._time_out, call)

    def answer(self, source: int, call: Call, answer: Any) -> None:
        """Send an answer."""
        self._send(source, call.source, self._receive_answer, call, answer)

    def _send(
        self, source: int, target: int, function: Callable[..., object], *arguments: Any
    ) -> None:
        random = self.random
        link = (source, target)
        delay_ms = random.randint(*DELAY_MS)
        if self._is_faulty and source != target:
            if random.random() < self.faults.drop:
                return
            if link in self._slow:
                delay_ms += random.randint(*SLOW_MS)
            if random.random() < self.faults.reorder:
                delay_ms += random.randint(*OVERTAKEN_MS)
        at_ms = self.now_ms + delay_ms
        if STORE in link:
            # One connection, in order, as ZooKeeper has it.
            at_ms = self._last_ms[link] = max(at_ms, self._last_ms.get(link, 0))
        self.queue.at(at_ms, self._arrive, link, function, arguments)

    def _arrive(
        self, link: tuple[int, int], function: Callable[..., object], arguments: tuple[Any, ...]
    ) -> None:
        if link not in self._blocked:
            function(*arguments)

    def _receive(self, target: int, method: str, call: Call, argument: Any) -> None:
        if target == STORE:
            self._serve(method, call, argument)
            return
        node = self.nodes[target]
        if self.trace.is_on:
            self.trace.note(f"{self.now_ms} {call.source} > {target} {method} {argument}")
        self._run_local(node, getattr(node, method), (call, argument))

    def _receive_answer(self, call: Call, answer: Any) -> None:
        node = self.nodes.get(call.source)
        if call.is_done or (node is not None and node.incarnation != call.incarnation):
            return
        call.is_done = True
        if self.trace.is_on:
            self.trace.note(f"{self.now_ms} {call.source} < {answer}")
        if node is None:
            call.on_answer(answer)
        else:
            self._run_local(node, call.on_answer, (answer,))

    def _time_out(self, call: Call) -> None:
        node = self.nodes.get(call.source)
        if call.is_done or (node is not None and node.incarnation != call.incarnation):
            return
        call.is_done = True
        if node is None:
            call.on_timeout()
        else:
            self._run_local(node, call.on_timeout, ())

    # --- The store -------------------------------------------------------------------------------

    def _serve(self, method: str, call: Call, argument: Any) -> None:
        store, broker_id = self.store, call.source
        answer: Any
        match method:
            case "register":
                answer = store.register(broker_id, call.incarnation, self.now_ms)
            case "heartbeat":
                is_live = store.heartbeat(broker_id, argument, self.now_ms)
                is_controller = store.controller_id == broker_id
                answer = Beat(
                    is_live,
                    store.image.version,
                    store.controller_id,
                    store.controller_epoch,
                    store.live() if is_controller else None,
                )
            case "campaign":
                answer = store.campaign(broker_id, argument)
            case "load":
                answer = store.image
            case _:
                controller_epoch, version, changes = argument
                answer = store.commit(controller_epoch, version, changes)
        if self.trace.is_on:
            self.trace.note(f"{self.now_ms} {broker_id} > store {method} {argument}: {answer}")
        self.answer(STORE, call, answer)

    def _on_commit(self, before: Image, after: Image, changes: "Sequence[Change]") -> None:
        image = before
        for change in changes:
            step = image.apply([change])
            self.invariants.on_metadata(image, step)
            image = step
        self.envelope.on_commit(after, self.store.live())
        for broker_id in self.store.sessions:
            self._send(
                STORE,
                broker_id,
                self._notify,
                broker_id,
                "on_committed",
                (after.version, changes),
            )

    def _tell_controller(self) -> None:
        controller_id = self.store.controller_id
        if controller_id in self.nodes:
            self._send(
                STORE, controller_id, self._notify, controller_id, "on_sessions", self.store.live()
            )

    def _notify(self, broker_id: int, method: str, argument: Any) -> None:
        node = self.nodes[broker_id]
        self._run_local(node, getattr(node, method), (argument,))

    def _expire(self) -> None:
        self.queue.after(EXPIRY_CHECK_MS, self._expire)
        self.store.expire(self.now_ms)

    def _rebalance(self) -> None:
        self.queue.after(REBALANCE_MS, self._rebalance)
        for node in list(self.nodes.values()):
            self.local(node, 0, node.rebalance)
        if self._is_faulty and self.random.random() < self.reassigning:
            index = self.random.randrange(len(self.store.image.topics[TOPIC].partitions))
            replicas = self.random.choice((self.random.sample(list(self.nodes), 3), None))
            for node in list(self.nodes.values()):
                self.local(node, 0, node.reassign, index, replicas)

    # --- Clients ---------------------------------------------------------------------------------

    def _produce(self) -> None:
        if self.now_ms >= BUSY_MS:
            return
        random = self.random
        pause_ms = random.randint(*CLIENT_PAUSE_MS)
        topic = self.store.image.topics[TOPIC]
        place = TopicPartition(TOPIC, random.randrange(len(topic.partitions)))
        asked = self.nodes[random.choice(list(self.nodes))]
        state = asked.image.partition(*place)
        if state is None or state.leader == NO_LEADER:
            self.queue.after(pause_ms, self._produce)
            return
        values = []
        for _ in range(random.randint(1, 3)):
            self._value += 1
            values.append(self._value)
        all_acks = random.random() < 0.9

        def on_answer(answer: int | ErrorCode) -> None:
            if all_acks and not isinstance(answer, ErrorCode):
                self._acknowledged += [
                    (place, answer + index, value) for index, value in enumerate(values)
                ]
            self.queue.after(pause_ms, self._produce)

        call = Call(-1, 0, on_answer, lambda: self.queue.after(pause_ms, self._produce))
        self.ask(call, state.leader, "on_produce", (place, values, all_acks), CLIENT_TIMEOUT_MS)

    # --- Invariants ------------------------------------------------------------------------------

    def on_lead(self, node: Node, partition: Partition) -> None:
        """Check a node that leads."""
        self.invariants.on_lead(partition.topic_partition, node.broker_id, partition.leader_epoch)
        self.check(node, partition)

    def check(self, node: Node, partition: Partition) -> None:
        """Check a replica after it did something."""
        place = partition.topic_partition
        if node.partitions.get(place) is not partition:
            return  # it was moved to another broker
        high_watermark = partition.high_watermark
        self.invariants.on_bounds(
            place,
            log_start_offset=partition.log_start_offset,
            last_stable_offset=partition.last_stable_offset,
            high_watermark=high_watermark,
            log_end_offset=partition.log_end_offset,
        )
        if partition.is_leader:
            self.invariants.on_high_watermark(
                place, node.broker_id, partition.leader_epoch, high_watermark
            )
        key = (node.incarnation, place)
        checked = self._checked.get(key, 0)
        if high_watermark > checked:
            entries: list[Entry] = node.logs[place].entries
            for offset in range(checked, high_watermark):
                self.invariants.on_committed(place, offset, entries[offset])
        self._checked[key] = high_watermark

    # --- Faults ----------------------------------------------------------------------------------

    def _start(self, broker_id: int) -> None:
        self._incarnation += 1
        node = self.nodes[broker_id] = Node(
            self,
            broker_id,
            self._incarnation,
            self._logs[broker_id],
            self._checkpoints[broker_id],
            self.config,
        )
        for log in self._logs[broker_id].values():
            log.recover()
        node.start()

    def _count(self, fault: str, detail: object) -> None:
        self.outcome.faults[fault] = self.outcome.faults.get(fault, 0) + 1
        self.trace.note(f"{self.now_ms} FAULT {fault} {detail}")

    def _healthy(self) -> set[int]:
        """Return the brokers that run, reach the store, and are known in their present epoch."""
        healthy = set()
        for broker_id, session in self.store.sessions.items():
            node = self.nodes[broker_id]
            known = self.store.image.brokers.get(broker_id)
            if (
                node.is_alive
                and node.incarnation == session.incarnation
                and node.paused_until_ms <= self.now_ms
                and (broker_id, STORE) not in self._blocked
                and (STORE, broker_id) not in self._blocked
                and known is not None
                and known.broker_epoch == session.broker_epoch
            ):
                healthy.add(broker_id)
        return healthy

    def _occasion(self) -> None:
        """Let something go wrong, perhaps."""
        if not self._is_faulty:
            return
        self.queue.after(OCCASION_MS, self._occasion)
        for fault in ("power_loss", "crash", "pause", "session_loss", "controller_loss"):
            if self.random.random() < getattr(self.faults, fault):
                self._strike(fault)
        if self.random.random() < self.faults.partition:
            self._cut_off()
        if self.random.random() < self.faults.slow_link:
            link = tuple(self.random.sample([STORE, *self.nodes], 2))
            self._count("slow_link", link)
            self._mark(self._slow, [(link[0], link[1])])

    def _strike(self, fault: str) -> None:
        spared = self.envelope.spared(self.store.image)
        targets = [
            broker_id
            for broker_id, node in self.nodes.items()
            if node.is_alive and broker_id not in spared
        ]
        if fault == "controller_loss":
            targets = [each for each in targets if each == self.store.controller_id]
        if fault == "power_loss":
            healthy = self._healthy()
            shrinking = shrinking_places(
                partition
                for node in self.nodes.values()
                if node.is_alive
                for partition in node.partitions.values()
            )
            targets = [
                each
                for each in targets
                if self.envelope.allows_power_loss(
                    each, self.store.image, healthy, shrinking=shrinking
                )
            ]
        if not targets:
            return
        broker_id = self.random.choice(targets)
        lasts_ms = self.random.randint(*FAULT_LASTS_MS)
        self._count(fault, f"{broker_id} for {lasts_ms}")
        match fault:
            case "pause":
                self.nodes[broker_id].paused_until_ms = self.now_ms + lasts_ms
            case "session_loss":
                self.store.end_session(broker_id)
            case "controller_loss":
                self._mark(self._blocked, [(broker_id, STORE), (STORE, broker_id)], lasts_ms)
            case _:
                self._crash(broker_id, lasts_ms, loses_data=fault == "power_loss")

    def _crash(self, broker_id: int, lasts_ms: int, *, loses_data: bool) -> None:
        self.nodes[broker_id].is_alive = False
        if loses_data:
            self.envelope.on_power_loss(broker_id, self.store.image, self.store.live())
            for log in self._logs[broker_id].values():
                log.lose_unsynced(self.random)
        self.queue.after(lasts_ms, self._restart, broker_id, self.nodes[broker_id])

    def _restart(self, broker_id: int, crashed: Node) -> None:
        if self.nodes[broker_id] is crashed:
            self._start(broker_id)

    def _cut_off(self) -> None:
        """Cut some hosts off from the others, one way or both."""
        spared = self.envelope.spared(self.store.image)
        hosts = [STORE, *self.nodes]
        movable = [each for each in self.nodes if each not in spared]
        if not movable:
            return
        some = self.random.sample(movable, self.random.randint(1, len(movable)))
        others = [each for each in hosts if each not in some]
        if self.random.random() < 0.5:
            others = self.random.sample(others, self.random.randint(1, len(others)))
        links = [(one, other) for one in some for other in others if self._may_cut(other, spared)]
        way = self.random.choice(("both", "in", "out"))
        back = [(other, one) for one, other in links]
        chosen = {"both": links + back, "in": back, "out": links}[way]
        self._count("partition", chosen)
        self._mark(self._blocked, chosen)

    def _may_cut(self, other: int, spared: set[int]) -> bool:
        """Leave those alone on whom everything depends at present."""
        return other == STORE or other not in spared

    def _mark(
        self,
        marks: dict[tuple[int, int], int],
        links: Sequence[tuple[int, int]],
        lasts_ms: int | None = None,
    ) -> None:
        until_ms = self.now_ms + (lasts_ms or self.random.randint(*FAULT_LASTS_MS))
        for link in links:
            marks[link] = max(until_ms, marks.get(link, 0))
        self.queue.at(until_ms, self._unmark, marks)

    def _unmark(self, marks: dict[tuple[int, int], int]) -> None:
        for link, until_ms in list(marks.items()):
            if until_ms <= self.now_ms:
                del marks[link]


def _first_image(random: Random, brokers: int, *, partitions: int) -> Image:
    states = []
    for _ in range(partitions):
        replicas = tuple(random.sample(range(1, brokers + 1), 3))
        states.append(PartitionImage(replicas, replicas, replicas[0]))
    created = TopicCreated(name=TOPIC, topic_id=UUID(int=1), partitions=tuple(states))
    return Image().apply([created])


def run(seed: int, faults: Faults | None = None, trace: Trace | None = None) -> Outcome:
    """Run one seed; nothing is traced unless `trace` is given.

    Raises:
        InvariantBroken: something is wrong; other errors are bugs, too.
    """
    return World(seed, faults, trace or Trace(is_on=False)).run()
