"""One Streams application under load while it and its broker are killed."""

from __future__ import annotations

import shutil
import time
import uuid
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Self

from compat_tests.streams.application import Application, Updates, expected_updates
from compat_tests.streams.clusters import RestartableCluster, Role
from compat_tests.streams.output import ANSWER_S, Tail, first_difference
from compat_tests.streams.source import create_topics

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from compat_tests.streams.brokers import RestartableBroker

#: A transaction of a killed instance is in the way for no longer than this.
STREAMS_SETTINGS = {
    "producer.transaction.timeout.ms": "3000",
    "commit.interval.ms": "100",
    "num.stream.threads": "2",
    "replication.factor": "-1",
    # A dead connection is found dead at once, not after the default's backoff of up to a second.
    "reconnect.backoff.max.ms": "200",
}

#: The partitions of a killed instance are given to others after its session. With the protocol of
#: Streams' own it is for the broker to say how long that is (`BROKER_SETTINGS`).
PROTOCOL_SETTINGS = {
    "classic": {"consumer.session.timeout.ms": "1500", "consumer.heartbeat.interval.ms": "300"},
    "streams": {"group.protocol": "streams"},
}

#: How long a pause is: longer than a session and a transaction, so that others take the place.
PAUSE_S = 4.5


class Fault(Enum):
    """What may happen to an application."""

    APPLICATION_KILLED = "application killed"
    STATE_LOST = "application killed, its state lost"
    APPLICATION_PAUSED = "application paused until it is a zombie"
    BROKER_KILLED = "broker killed"
    BOTH_KILLED = "application and broker killed"
    # Only of a cluster.
    LEADER_KILLED = "leader of the output killed"
    GROUP_COORDINATOR_KILLED = "group coordinator killed"
    TRANSACTION_COORDINATOR_KILLED = "transaction coordinator killed"
    BROKER_STOPPED = "broker stopped cleanly"
    ALL_BROKERS_KILLED = "all brokers killed at once"


#: Those that end an instance of it.
APPLICATION_FAULTS = (Fault.APPLICATION_KILLED, Fault.STATE_LOST, Fault.BOTH_KILLED)

#: Those that another broker must take over from.
ROLES = {
    Fault.LEADER_KILLED: Role.LEADER,
    Fault.GROUP_COORDINATOR_KILLED: Role.GROUP_COORDINATOR,
    Fault.TRANSACTION_COORDINATOR_KILLED: Role.TRANSACTION_COORDINATOR,
}


@dataclass(kw_only=True)
class Run:
    """One application with topics of its own, over one source."""

    version: str
    broker: RestartableBroker
    folder: Path
    source: str
    instances: int = 1
    protocol: str = "classic"
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.id = f"words-{uuid.uuid4().hex[:8]}"
        self.counts, self.chains = f"{self.id}-counts", f"{self.id}-chains"
        create_topics(self.broker.bootstrap, self.counts, self.chains, partitions=2)
        self.applications = [
            Application(
                self.version,
                self.broker.bootstrap,
                self.id,
                (self.source, self.counts, self.chains),
                self.folder / f"{self.id}-{number}",
                {**STREAMS_SETTINGS, **PROTOCOL_SETTINGS[self.protocol], **self.settings},
            )
            for number in range(self.instances)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for application in self.applications:
            application.kill()
        if error is not None:
            error.add_note(f"the applications' logs:\n{self.log_text()}")

    def start(self) -> None:
        """Start all instances."""
        for application in self.applications:
            application.start()

    def strike(self, fault: Fault, numbers: random.Random) -> None:
        """Let a fault happen to one of the instances, or to the broker, and start it again."""
        application = numbers.choice(self.applications)
        if fault is Fault.APPLICATION_PAUSED:
            application.pause()
            time.sleep(PAUSE_S)
            application.go_on()
            return
        hits_application = fault in APPLICATION_FAULTS
        if hits_application:
            application.kill()
        if fault is Fault.STATE_LOST:
            shutil.rmtree(application.state_dir)
        if fault not in (Fault.APPLICATION_KILLED, Fault.STATE_LOST):
            self._strike_broker(fault)
            time.sleep(numbers.uniform(0, self.broker.away_s_max))
            self.broker.start()
        if hits_application:
            application.start()

    def kill_holder(self, role: Role) -> int:
        """Kill the broker that has a role; return its id once another one has the role."""
        assert isinstance(self.broker, RestartableCluster)
        return self.broker.kill_holder(role, self.id, self.counts)

    def _strike_broker(self, fault: Fault) -> None:
        if fault in (Fault.BROKER_KILLED, Fault.BOTH_KILLED):
            self.broker.kill()
        elif fault in ROLES:
            self.kill_holder(ROLES[fault])
        else:
            assert isinstance(self.broker, RestartableCluster)
            if fault is Fault.BROKER_STOPPED:
                self.broker.stop()
            else:
                assert fault is Fault.ALL_BROKERS_KILLED
                self.broker.kill_all()

    def log_text(self) -> str:
        """Return the end of what each instance wrote."""
        return "\n".join(application.log_text() for application in self.applications)

    def tail(self) -> Tail:
        """Return a reader of the two outputs, from their beginning."""
        return Tail(self.broker.bootstrap, [self.counts, self.chains])

    def finish(
        self, tail: Tail, lines: list[tuple[str, str]], timeout: float
    ) -> tuple[Updates, Updates]:
        """Read to the end of the output, stop the application, and judge what it committed.

        Returns:
            The updates of counts and of chains, by key.

        Raises:
            AssertionError: the output is not what the lines lead to, with the first difference.
        """
        expected = expected_updates(lines)
        total = sum(len(updates) for kind in expected for updates in kind.values())
        try:
            tail.read_until(lambda: tail.count >= total, f"{self.id}: {total} updates", timeout)
        except AssertionError as missing:
            missing.add_note(self._differences(tail, expected))
            raise
        for application in self.applications:
            application.stop()
        with self.tail() as again:
            # Who reads along, before and after a restart of the broker, sees what others see later.
            for reader in (tail, again):
                reader.read_to_end(ANSWER_S)
                differences = self._differences(reader, expected)
                assert not differences, differences
            return again.updates[self.counts], again.updates[self.chains]

    def _differences(self, reader: Tail, expected: tuple[Updates, Updates]) -> str:
        found = (reader.updates[self.counts], reader.updates[self.chains])
        pairs = zip(("counts", "chains"), expected, found, strict=True)
        told = [(name, first_difference(wanted, got)) for name, wanted, got in pairs]
        return "\n".join(f"{name}: {text}" for name, text in told if text is not None)
