"""Level 2: whole brokers and clients under a mock clock, with everything around them simulated.

A run has three parts: faults happen while clients work; everything heals while they finish; then
it is checked that replicas agree and that clients were told no lies.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import trio

from kafkalite.sim.audit import Auditor, WatchedEnsemble
from kafkalite.sim.client import Client, Unanswered
from kafkalite.sim.consumer_members import ConsumerMember
from kafkalite.sim.consumers import Member, Reader
from kafkalite.sim.envelope import shrinking_places
from kafkalite.sim.faults import NO_FAULTS, Faults
from kafkalite.sim.growth import GROWN, Grower, PipelinedProducer
from kafkalite.sim.hosts import PORT, Host
from kafkalite.sim.invariants import InvariantBroken, Invariants
from kafkalite.sim.level1 import Outcome
from kafkalite.sim.network import Fabric
from kafkalite.sim.producers import Producer
from kafkalite.sim.runtime import run_deterministically
from kafkalite.sim.settings import CLUSTER_SETTINGS, SETTINGS
from kafkalite.sim.share_members import (
    ACCEPT,
    Ledger,
    ShareMember,
    drain,
    from_the_beginning,
)
from kafkalite.sim.streams_threads import StreamsThread
from kafkalite.sim.traces import Trace
from kafkalite.sim.workload import RETRIED, Workload
from kafkalite.testing.history import History
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from kafkalite.wire.messages.incremental_alter_configs import INCREMENTAL_ALTER_CONFIGS

DELAY_S: Final = (0.0005, 0.01)
SLOW_S: Final = (0.1, 0.6)
SESSION_TIMEOUT_S: Final = 3.0
LOOK_S: Final = 0.1
OCCASION_S: Final = 0.5
STRIKES: Final = 4
"""Chances of `Faults` are those of occasions of level 1; here a run is longer and has fewer."""
FAULTY_S: Final = 20.0
FINISH_S: Final = 60.0
"""Within this time after the last fault everything that was begun has to be done."""
FAULT_LASTS_S: Final = (0.3, 7.0)

CREATE_TOPICS_VERSION: Final = 5
ALTER_CONFIGS_VERSION: Final = 1
CREATE_TIMEOUT_MS: Final = 5_000

PLAIN, TRANSACTIONAL = "plain", "exact"

Grouped = Member | StreamsThread | ConsumerMember | ShareMember


@dataclass(slots=True, frozen=True, kw_only=True)
class Shape:
    """How large a run is.

    Attributes:
        brokers: 1 for a broker that is alone, with metadata in a file of its own.
        faulty_s: virtual seconds in which faults happen.
        grows: whether producers with several batches under way write to partitions that come into
            being meanwhile.
    """

    brokers: int = 3
    grows: bool = False
    faulty_s: float = FAULTY_S


class Simulation:
    """One run."""

    def __init__(self, seed: int, faults: Faults | None, shape: Shape, trace: Trace) -> None:
        self.random = Random(seed)
        self.faults = Faults.of(self.random) if faults is None else faults
        self.shape = shape
        self.trace = trace
        self.outcome = Outcome(seed)
        self.invariants = Invariants()
        self.fabric = Fabric(Random(self.random.random()), DELAY_S, trace)
        self.failures: list[BaseException] = []
        is_cluster = shape.brokers > 1
        self.ensemble = WatchedEnsemble(
            session_timeout_s=SESSION_TIMEOUT_S, delay_s=0.005, invariants=self.invariants
        )
        settings = dict(CLUSTER_SETTINGS if is_cluster else SETTINGS)
        settings["log.flush.interval.messages"] = self.random.choice(("1", "10", "100000"))
        settings["log.segment.bytes"] = self.random.choice(("1048576", "16777216"))
        self.hosts = [
            Host(
                broker_id,
                self.fabric,
                self.ensemble if is_cluster else None,
                settings,
                random=Random(self.random.random()),
                on_failure=self._fail,
            )
            for broker_id in range(1, shape.brokers + 1)
        ]
        self.auditor = Auditor(self.invariants, self.hosts)
        partitions = self.random.choice((1, 2, 3))
        self.work = Workload(
            Random(self.random.random()),
            History(),
            [TopicPartition(PLAIN, index) for index in range(partitions)],
            [TopicPartition(TRANSACTIONAL, index) for index in range(2)],
        )
        self._ledger = Ledger(self._leads, is_exact=self.faults == NO_FAULTS)
        self._nursery: trio.Nursery
        self._isolated: dict[str, float] = {}

    @property
    def is_cluster(self) -> bool:
        """Whether there are several brokers."""
        return len(self.hosts) > 1

    # --- Running ---------------------------------------------------------------------------------

    async def run(self) -> Outcome:
        """Run to the end.

        Raises:
            InvariantBroken: something is wrong; other errors are bugs, too.
        """
        try:
            async with trio.open_nursery() as self._nursery:
                for host in self.hosts:
                    self._nursery.start_soon(host.run)
                self._nursery.start_soon(self._look)
                await self._create_topics()
                await self._work()
                self._nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raise _first(group) from None
        if self.failures:
            raise _first(self.failures[0])
        outcome = self.outcome
        outcome.events = self.trace.count
        outcome.acknowledged = self.work.counts.get("written", 0)
        outcome.committed = self.work.counts.get("read", 0)
        outcome.digest = self.trace.digest()
        return outcome

    async def _work(self) -> None:
        work, random = self.work, self.random
        readers: list[Reader] = [
            Reader(self._client("reader"), work, work.places),
            Reader(self._client("committed"), work, work.transactional_places),
        ]
        producers = [
            Producer(self._client(f"p{index}"), work) for index in range(random.randint(1, 3))
        ]
        producers += [
            Producer(self._client(f"t{index}"), work, transactional_id=f"tx-{index}")
            for index in range(random.randint(0, 2))
        ]
        growers: list[Grower] = []
        if self.shape.grows:
            readers.append(Reader(self._client("grown"), work, list(GROWN)))
            producers += [PipelinedProducer(self._client(f"g{index}"), work) for index in range(2)]
            growers.append(Grower(self._client("grower"), work, len(self.hosts)))
        members = [
            Member(self._client(f"m{index}"), work, "group")
            for index in range(random.randint(0, 3))
        ]
        threads = [
            StreamsThread(
                self._client(f"s{index}"), work, name=f"s{index}", process=f"process-{index // 2}"
            )
            for index in range(random.randint(0, 4))
        ]
        consumers = [
            ConsumerMember(self._client(f"c{index}"), work) for index in range(random.randint(0, 4))
        ]
        sharers = [
            ShareMember(self._client(f"q{index}"), work, self._ledger)
            for index in range(random.randint(0, 3))
        ]
        grouped_clients: list[Grouped] = [*members, *threads, *consumers, *sharers]
        async with trio.open_nursery() as clients:
            for reader in readers:
                clients.start_soon(reader.run)
            grouped = trio.CancelScope()
            clients.start_soon(self._run_members, grouped_clients, grouped)
            async with trio.open_nursery() as writers:
                for producer in producers:
                    writers.start_soon(producer.run)
                for grower in growers:
                    writers.start_soon(grower.run)
                await self._break_things()
                self._heal()
                work.stopping.set()
                # All that was begun is to be done soon.
                writers.start_soon(self._expect, writers, "a producer is stuck")
                while len(writers.child_tasks) > 1:  # noqa: ASYNC110 - tasks end without an event
                    await trio.sleep(0.1)
                writers.cancel_scope.cancel()
            grouped.cancel()
            await self._finish(readers)
            if sharers:
                await self._drain()
            clients.cancel_scope.cancel()

    async def _run_members(self, members: Sequence[Grouped], scope: trio.CancelScope) -> None:
        with scope:
            async with trio.open_nursery() as nursery:
                for member in members:
                    nursery.start_soon(member.run)

    async def _expect(self, nursery: trio.Nursery, what: str) -> None:
        del nursery
        await trio.sleep(FINISH_S)
        raise InvariantBroken(what)

    async def _finish(self, readers: list[Reader]) -> None:
        """Wait until replicas agree and readers are at the end; then check everything."""
        problem = ""
        with trio.move_on_after(FINISH_S) as scope:
            while self.is_cluster:
                problem = self.auditor.unhealed(self.ensemble.image)
                if not problem:
                    break
                await trio.sleep(0.2)
            # Another client than theirs: each asks one thing at a time.
            asker = Reader(self._client("asker"), self.work, [])
            problem = "a reader is behind"
            for reader in readers:
                for place in list(reader.positions):
                    end = await asker.end_of(place)
                    problem = f"a reader is behind in {place}: {end} is the end"
                    while reader.positions[place] < end:  # noqa: ASYNC110 - no event for this
                        await trio.sleep(0.1)
                    self.work.history.complete(*place, end_offset=end)
        if scope.cancelled_caught:
            raise InvariantBroken(f"no rest after {FINISH_S} s: {problem}")
        self.auditor.look()
        if self.is_cluster:
            self.auditor.compare(self.ensemble.image)
        findings = self.work.history.check()
        if findings:
            raise InvariantBroken("; ".join(map(str, findings[:5])))

    def _leads(self, place: TopicPartition, address: tuple[str, int]) -> bool:
        if not self.is_cluster:
            return True
        state = self.ensemble.image.partition(*place)
        leaders = (host.name for host in self.hosts if state and host.broker_id == state.leader)
        return address in [(name, PORT) for name in leaders]

    async def _drain(self) -> None:
        """Have one more member accept all that the share group has not finished with."""
        asker = Reader(self._client("last-asker"), self.work, [])
        ends = {place: await asker.end_of(place) for place in self.work.places}
        last = ShareMember(self._client("last"), self.work, self._ledger, decisions=(ACCEPT,))
        await drain(last, self._ledger, ends, patience_s=FINISH_S)

    async def _look(self) -> None:
        while True:
            await trio.sleep(LOOK_S)
            self.auditor.look()
            if self.failures:
                raise _first(self.failures[0])

    def _fail(self, error: BaseException) -> None:
        self.failures.append(error)

    # --- Clients ---------------------------------------------------------------------------------

    def _client(self, name: str) -> Client:
        addresses = [(host.name, PORT) for host in self.hosts]
        return Client(self.fabric.host(name), name, addresses)

    async def _create_topics(self) -> None:
        client = self._client("admin")
        replication_factor = min(3, len(self.hosts))
        counts = {PLAIN: len(self.work.places), TRANSACTIONAL: len(self.work.transactional_places)}
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name, num_partitions=count, replication_factor=replication_factor
                )
                for name, count in counts.items()
            ],
            timeout_ms=CREATE_TIMEOUT_MS,
        )
        with trio.fail_after(FINISH_S):
            while True:
                with suppress(Unanswered):
                    answer: Any = await client.ask_anyone(
                        CREATE_TOPICS, CREATE_TOPICS_VERSION, request
                    )
                    codes = {ErrorCode(topic.error_code) for topic in answer.topics}
                    if codes <= {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                        break
                    if not codes <= RETRIED | {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                        raise InvariantBroken(f"CreateTopics: {codes}")
                await trio.sleep(0.2)

        with trio.fail_after(FINISH_S):
            while True:
                with suppress(Unanswered):
                    altered: Any = await client.ask_anyone(
                        INCREMENTAL_ALTER_CONFIGS, ALTER_CONFIGS_VERSION, from_the_beginning()
                    )
                    if not altered.responses[0].error_code:
                        return
                await trio.sleep(0.2)

    # --- Faults ----------------------------------------------------------------------------------

    def _count(self, fault: str, detail: object) -> None:
        self.outcome.faults[fault] = self.outcome.faults.get(fault, 0) + 1
        self.trace.note(f"{trio.current_time():.6f} FAULT {fault} {detail}")

    async def _break_things(self) -> None:
        """Let things go wrong for a while."""
        end = trio.current_time() + self.shape.faulty_s
        strikes: dict[str, Callable[[Host], None]] = {
            "crash": lambda host: self._crash(host, loses_data=False),
            "power_loss": lambda host: self._crash(host, loses_data=True),
            "pause": self._isolate,
            "session_loss": self._lose_session,
            "controller_loss": self._lose_controller,
            "partition": self._cut,
            "slow_link": self._slow_down,
            "drop": self._drop,
            "disk_full": self._fill_disk,
            "disk_failure": self._fail_disk,
            "shutdown": self._shut_down,
        }
        while trio.current_time() < end:
            await trio.sleep(self.random.uniform(0, 2 * OCCASION_S))
            for fault, strike in strikes.items():
                chance = min(1.0, STRIKES * getattr(self.faults, fault)) * OCCASION_S
                if fault == "drop":
                    chance = 0.2 if self.faults.drop else 0.0
                if self.random.random() < chance:
                    host = self._target(fault)
                    if host is not None:
                        self._count(fault, host.name)
                        strike(host)

    def _target(self, fault: str) -> Host | None:
        """Return whom a fault may hit now, see `faults`."""
        image = self.ensemble.image
        spared = self.ensemble.envelope.spared(image)
        hosts = [host for host in self.hosts if host.is_up and host.broker_id not in spared]
        if fault == "power_loss":
            healthy = self._healthy()
            shrinking = shrinking_places(
                partition
                for host in self.hosts
                if host.broker is not None
                for partition in host.broker.services.replicas.partitions()
            )
            hosts = [
                host
                for host in hosts
                if self.is_cluster
                and self.ensemble.envelope.allows_power_loss(
                    host.broker_id, image, healthy, shrinking=shrinking
                )
            ]
        if fault in ("pause", "session_loss", "controller_loss") and not self.is_cluster:
            return None
        if fault == "controller_loss":
            hosts = [host for host in hosts if host.broker_id == self.ensemble.controller_id]
        return self.random.choice(hosts) if hosts else None

    def _healthy(self) -> set[int]:
        image, live = self.ensemble.image, self.ensemble.live()
        return {
            host.broker_id
            for host in self.hosts
            if host.is_up  # not being shut down
            and host.broker is not None
            and not host.has_failed_logs()
            and host.name not in self._isolated
            and host.broker_id in live
            and host.broker_id in image.brokers
            and image.brokers[host.broker_id].broker_epoch == live[host.broker_id].broker_epoch
            and host.broker.services.metadata.broker_epoch == live[host.broker_id].broker_epoch
        }

    def _later(self, function: Callable[..., Awaitable[object]], *arguments: Any) -> float:
        """Start what ends a fault after a while; return after how many seconds."""
        lasts_s = self.random.uniform(*FAULT_LASTS_S)
        self._nursery.start_soon(function, lasts_s, *arguments)
        return lasts_s

    def _crash(self, host: Host, *, loses_data: bool) -> None:
        if loses_data:
            ensemble = self.ensemble
            ensemble.envelope.on_power_loss(host.broker_id, ensemble.image, ensemble.live())
        host.crash(loses_data=loses_data)
        self._later(self._restart, host)

    async def _restart(self, after_s: float, host: Host) -> None:
        await trio.sleep(after_s)
        if not host.is_up:
            self._nursery.start_soon(host.run)

    def _shut_down(self, host: Host) -> None:
        if host.broker is not None:
            self._nursery.start_soon(self._stop_and_start, host)

    async def _stop_and_start(self, host: Host) -> None:
        await host.shut_down()
        await trio.sleep(self.random.uniform(*FAULT_LASTS_S))
        if not host.is_up:
            await host.run()

    def _isolate(self, host: Host) -> None:
        """Let a broker be as if it stood still: nothing goes in or out."""
        self._isolated[host.name] = trio.current_time()
        names = self._names()
        links = [(host.name, other) for other in names if other != host.name]
        links += [(other, host.name) for other in names if other != host.name]
        self._block(links)
        if host.store is not None:
            host.store.cut_off()
        self._later(self._end_isolation, host, host.store)

    async def _end_isolation(self, after_s: float, host: Host, store: Any) -> None:
        await trio.sleep(after_s)
        self._isolated.pop(host.name, None)
        if store is not None:
            store.reconnect()

    def _lose_session(self, host: Host) -> None:
        if host.store is not None:
            host.store.expire_session()

    def _lose_controller(self, host: Host) -> None:
        """Part the controller from the store only: it goes on as if it ruled."""
        self._isolated[host.name] = trio.current_time()
        if host.store is not None:
            if self.random.random() < 0.3:
                host.store.lose_next_answer()
            host.store.cut_off()
        self._later(self._end_isolation, host, host.store)

    def _names(self) -> list[str]:
        return [host.name for host in self.hosts]

    def _cut(self, host: Host) -> None:
        """Cut a broker off from some others, one way or both."""
        spared = self.ensemble.envelope.spared(self.ensemble.image)
        others = [
            other.name
            for other in self.hosts
            if other is not host and other.broker_id not in spared
        ]
        if not others:
            return
        others = self.random.sample(others, self.random.randint(1, len(others)))
        there = [(host.name, other) for other in others]
        back = [(other, host.name) for other in others]
        self._block(self.random.choice((there, back, there + back)))

    def _block(self, links: list[tuple[str, str]]) -> None:
        for link in links:
            self.fabric.link(*link).block()
        self._later(self._unblock, links)

    async def _unblock(self, after_s: float, links: list[tuple[str, str]]) -> None:
        await trio.sleep(after_s)
        for link in links:
            self.fabric.link(*link).unblock()

    def _slow_down(self, host: Host) -> None:
        other = self.random.choice(self._names())
        if other != host.name:
            self.fabric.link(host.name, other).delay_s = SLOW_S
            self._later(self._speed_up, host.name, other)

    async def _speed_up(self, after_s: float, one: str, other: str) -> None:
        await trio.sleep(after_s)
        self.fabric.link(one, other).delay_s = DELAY_S

    def _drop(self, host: Host) -> None:
        """Cut all connections of a broker once."""
        self.fabric.cut_all(host.name)

    def _fill_disk(self, host: Host) -> None:
        host.disk.capacity = host.disk.used_bytes() + self.random.randint(0, 10_000)
        self._later(self._empty_disk, host)

    def _fail_disk(self, host: Host) -> None:
        """Let one log, or all of them, take no writes: whoever notices gives them up."""
        host.has_suspect_disk = True
        part = self.random.choice(("", f"/{PLAIN}-0/", "/__consumer_offsets-0/"))
        self._later(self._mend_disk, host.disk.fail(self.random.choice(("append", "sync")), part))

    async def _mend_disk(self, after_s: float, mend: Callable[[], None]) -> None:
        await trio.sleep(after_s)
        mend()

    async def _empty_disk(self, after_s: float, host: Host) -> None:
        await trio.sleep(after_s)
        host.disk.capacity = None

    def _heal(self) -> None:
        """End all faults now."""
        self.trace.note(f"{trio.current_time():.6f} everything heals")
        self.fabric.heal(DELAY_S)
        self._isolated.clear()
        for host in self.hosts:
            host.disk.capacity = None
            host.disk.faults.clear()
            if host.store is not None:
                host.store.reconnect()
            if host.is_up and (host.has_suspect_disk or host.has_failed_logs()):
                self._nursery.start_soon(self._look_after, host)

    async def _look_after(self, host: Host) -> None:
        """Start a broker again whose disk has failed, as somebody has to do for Kafka's, too.

        Whoever does so makes sure that no other replica needs it just then.
        """
        envelope = self.ensemble.envelope
        while host.broker_id in envelope.spared(self.ensemble.image):  # noqa: ASYNC110 - polls
            await trio.sleep(0.2)
        if host.is_up:
            self._crash(host, loses_data=False)


def _first(error: BaseException) -> BaseException:
    """Return the first error of nested groups; what led there stays attached to it."""
    while isinstance(error, BaseExceptionGroup):
        errors = [each for each in error.exceptions if not isinstance(each, trio.Cancelled)]
        error = (errors or list(error.exceptions))[0]
    return error


def run(
    seed: int,
    faults: Faults | None = None,
    trace: Trace | None = None,
    shape: Shape | None = None,
) -> Outcome:
    """Run one seed.

    Raises:
        InvariantBroken: something is wrong; other errors are bugs, too.
    """
    simulation = Simulation(seed, faults, shape or Shape(), trace or Trace())
    return run_deterministically(simulation.run, seed=seed)
