"""Kafka Streams with exactly-once processing, whose commits are lost after they were applied.

The same faults that Apache's own tests make by a proxy before the broker (KAFKA-21074), made here
by the broker: the output must be that of a run without any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.apache_kafka import KAFKA_4
from compat_tests.streams.brokers import BROKER_SETTINGS
from compat_tests.streams.run import Run
from compat_tests.streams.source import Feeder, create_topics, read_lines
from kafkalite.testing import Broker

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.xdist_group("streams")]

SETTINGS = {**BROKER_SETTINGS, "kafkalite.group.evict.on.disconnect": "false"}
FAULTS = (
    {"api": "EndTxn", "lose_reply": True, "times": 2},
    {"api": "EndTxn", "error": "COORDINATOR_NOT_AVAILABLE", "applied": True, "once": True},
    {"api": "TxnOffsetCommit", "lose_reply": True, "once": True},
    {"api": "Produce", "lose_reply": True, "times": 2},
    {"api": "EndTxn", "disconnect": True, "once": True},
    {"api": "EndTxn", "move_coordinator": True, "once": True},
)
UPDATES_BETWEEN_FAULTS = 200
LINES_PER_S = 80
WAIT_S = 60


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_output_is_exact_though_commits_are_lost(protocol: str, tmp_path: Path) -> None:
    with Broker(config=SETTINGS) as broker:
        create_topics(broker.bootstrap, "lines", partitions=3)
        feeder = Feeder(broker.bootstrap, "lines", LINES_PER_S)
        feeder.start()
        what = {"version": KAFKA_4, "protocol": protocol, "source": "lines"}
        run = Run(broker=broker, folder=tmp_path, **what)
        with run, run.tail() as tail:
            run.start()
            for said in FAULTS:
                tail.read_more(UPDATES_BETWEEN_FAULTS, WAIT_S)
                rule = broker.faults.add(said)
                hits = said.get("times", 1)
                assert broker.faults.wait_hits(rule, hits, WAIT_S), said
            feeder.stop()
            run.finish(tail, read_lines(broker.bootstrap, "lines"), WAIT_S)
        failures = run.applications[0].failures
        assert not failures, failures


PATIENCE = {"request.timeout.ms": "2000"}


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_output_is_exact_though_an_instance_gets_no_answers(protocol: str, tmp_path: Path) -> None:
    """It hears nothing until others have its tasks, and comes back as a zombie."""
    with Broker(config=SETTINGS) as broker:
        create_topics(broker.bootstrap, "lines", partitions=3)
        feeder = Feeder(broker.bootstrap, "lines", LINES_PER_S)
        feeder.start()
        what = {"version": KAFKA_4, "protocol": protocol, "source": "lines"}
        run = Run(broker=broker, folder=tmp_path, instances=2, settings=PATIENCE, **what)
        with run, run.tail() as tail:
            run.start()
            tail.read_more(UPDATES_BETWEEN_FAULTS, WAIT_S)
            process = _a_process(broker, run.id)
            with broker.faults.on(client_id=f"{run.id}-{process}-*").blackhole() as rule:
                rule.wait(hits=4, timeout_s=WAIT_S)
                tail.read_more(UPDATES_BETWEEN_FAULTS, WAIT_S)
            tail.read_more(UPDATES_BETWEEN_FAULTS, WAIT_S)
            feeder.stop()
            run.finish(tail, read_lines(broker.bootstrap, "lines"), WAIT_S)


def _a_process(broker: Broker, application_id: str) -> str:
    """Return what the client ids of one instance have in common: the process's UUID."""
    ends = ("-StreamThread-1-producer", "-StreamThread-2-producer")
    for request in broker.requests("Produce"):
        if request.client_id.startswith(application_id) and request.client_id.endswith(ends):
            return request.client_id.removeprefix(f"{application_id}-").partition("-StreamThread")[
                0
            ]
    raise AssertionError("nobody has produced")
