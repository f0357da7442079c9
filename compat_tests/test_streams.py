"""Kafka Streams with exactly-once processing: killed, with its broker, it commits what it must."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from compat_tests.apache_kafka import KAFKA_3_9, KAFKA_4, run_tool
from compat_tests.streams.brokers import restartable_broker
from compat_tests.streams.clusters import Role, restartable_cluster
from compat_tests.streams.run import Fault, Run
from compat_tests.streams.source import Feeder, create_topics, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: In one worker of pytest-xdist: each is a Java machine and a broker for half a minute.
pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.xdist_group("streams"),
]

FAULTS = (
    Fault.APPLICATION_KILLED,
    Fault.BROKER_KILLED,
    Fault.BOTH_KILLED,
    Fault.BROKER_KILLED,
    Fault.APPLICATION_KILLED,
)
LINES_PER_S = 100
#: Committed before each fault, so that every fault meets an application at work.
UPDATES_BETWEEN_FAULTS = 700
WAIT_S = 60
CLUSTER_SETTINGS = {"producer.transaction.timeout.ms": "10000"}
"""Its default with transactions. A failover takes its time, and a transaction that the coordinator
aborted meanwhile is refused its commit by INVALID_TXN_STATE, of which a thread of Streams dies."""


@pytest.mark.parametrize(
    ("version", "protocol"), [(KAFKA_4, "classic"), (KAFKA_4, "streams"), (KAFKA_3_9, "classic")]
)
def test_output_is_that_of_an_undisturbed_run(version: str, protocol: str, tmp_path: Path) -> None:
    """The text is written while the faults happen, and read once more by a run without any."""
    numbers = random.Random()
    with restartable_broker(tmp_path) as broker:
        create_topics(broker.bootstrap, "lines", partitions=3)
        feeder = Feeder(broker.bootstrap, "lines", LINES_PER_S)
        feeder.start()
        what = {"version": version, "protocol": protocol, "source": "lines"}
        disturbed = Run(broker=broker, folder=tmp_path, **what)
        with disturbed, disturbed.tail() as tail:
            disturbed.start()
            for fault in FAULTS:
                if broker.may_be_killed or fault is Fault.APPLICATION_KILLED:
                    tail.read_more(UPDATES_BETWEEN_FAULTS + numbers.randrange(300), WAIT_S)
                    disturbed.strike(fault, numbers)
            feeder.stop()
            lines = read_lines(broker.bootstrap, "lines")
            updates = disturbed.finish(tail, lines, WAIT_S)
        undisturbed = Run(broker=broker, folder=tmp_path, **what)
        with undisturbed, undisturbed.tail() as tail:
            undisturbed.start()
            assert undisturbed.finish(tail, lines, WAIT_S) == updates
        failures = undisturbed.applications[0].failures
        assert not failures, failures


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_output_is_exact_though_leader_and_coordinators_are_killed(
    protocol: str, tmp_path: Path
) -> None:
    """Each time two brokers go on with what the third was doing, before it comes back."""
    numbers = random.Random()
    with restartable_cluster(tmp_path) as cluster:
        create_topics(cluster.bootstrap, "lines", partitions=3)
        feeder = Feeder(cluster.bootstrap, "lines", LINES_PER_S)
        feeder.start()
        run = Run(
            version=KAFKA_4,
            protocol=protocol,
            broker=cluster,
            folder=tmp_path,
            source="lines",
            settings=CLUSTER_SETTINGS,
        )
        with run, run.tail() as tail:
            run.start()
            for role in Role:
                tail.read_more(UPDATES_BETWEEN_FAULTS, WAIT_S)
                run.kill_holder(role)
                tail.read_more(UPDATES_BETWEEN_FAULTS, WAIT_S)
                cluster.start()
            for fault in (Fault.BROKER_STOPPED, Fault.BOTH_KILLED):
                tail.read_more(UPDATES_BETWEEN_FAULTS, WAIT_S)
                run.strike(fault, numbers)
            feeder.stop()
            run.finish(tail, read_lines(cluster.bootstrap, "lines"), WAIT_S)
        failures = run.applications[0].failures
        assert not failures, failures


def test_the_tool_for_streams_groups_does_all_it_can(tmp_path: Path) -> None:
    """`kafka-streams-groups` looks at an application at work, and at one that has ended."""
    with restartable_broker(tmp_path) as broker:
        create_topics(broker.bootstrap, "lines", partitions=3)
        feeder = Feeder(broker.bootstrap, "lines", LINES_PER_S)
        feeder.start()
        run = Run(
            version=KAFKA_4, protocol="streams", broker=broker, folder=tmp_path, source="lines"
        )

        def tool(*arguments: str) -> str:
            where = ("--bootstrap-server", broker.bootstrap)
            done = run_tool(KAFKA_4, "kafka-streams-groups", *where, *arguments)
            return str(done.stdout)

        group = ("--group", run.id)
        with run, run.tail() as tail:
            run.start()
            tail.read_more(UPDATES_BETWEEN_FAULTS, WAIT_S)
            _look_at_work(tool, run.id, group)
            feeder.stop()
            run.applications[0].stop()
        _end(tool, run.id, group)


def _look_at_work(tool: Callable[..., str], name: str, group: tuple[str, str]) -> None:
    assert tool("--list").split() == [name]
    assert tool("--list", "--state", "stable").split() == ["GROUP", "STATE", name, "Stable"]
    state = tool("--describe", *group, "--state", "--verbose").split()
    assert state[-4] == "Stable"
    assert state[-3] == state[-2]
    assert state[-1] == "2"
    members = tool("--describe", *group, "--members", "--verbose")
    for tasks in ("0:[0,2]; 1:[1];", "0:[1]; 1:[0,2];"):
        assert f"ACTIVE: {tasks} TARGET-ACTIVE: {tasks}" in members
    offsets = tool("--describe", *group, "--offsets")
    assert sum("-repartition" in line for line in offsets.splitlines()) == 3
    assert sum(" lines " in line for line in offsets.splitlines()) == 3
    assert "is not EMPTY" in tool("--delete", *group)


def _end(tool: Callable[..., str], name: str, group: tuple[str, str]) -> None:
    assert "Empty" in tool("--describe", *group, "--state")
    what = ("--to-earliest", "--all-input-topics", "--delete-all-internal-topics")
    rows = [row.split() for row in tool("--reset-offsets", *group, *what, "--execute").splitlines()]
    assert sorted(rows[-3:]) == [[name, "lines", str(number), "0"] for number in range(3)]
    assert tool("--delete-offsets", *group, "--all-input-topics").count("Successful") == 3
    assert "was successful" in tool("--delete", *group)
    assert tool("--list").split() == []
