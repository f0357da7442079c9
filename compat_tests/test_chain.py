"""Thousands of transactions of a chain of workers, under faults: nothing lost, twice, swapped."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from compat_tests.chain.proxy import CuttingProxy
from compat_tests.chain.run import END, Chain, Fault
from compat_tests.streams.brokers import restartable_broker
from compat_tests.streams.clusters import proxied_cluster
from compat_tests.streams.output import Tail

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.xdist_group("streams"),
]

FAULTS = (
    Fault.WORKER_KILLED,
    Fault.BROKER_KILLED,
    Fault.CONNECTIONS_CUT,
    Fault.WORKER_PAUSED,
    Fault.WORKER_KILLED,
    Fault.CONNECTIONS_CUT,
    Fault.BROKER_KILLED,
    Fault.WORKER_KILLED,
)
CLUSTER_FAULTS = (
    Fault.BROKER_KILLED,
    Fault.WORKER_KILLED,
    Fault.CONNECTIONS_CUT,
    Fault.BROKER_KILLED,
)
RECORDS_PER_S = 500
CLUSTER_RECORDS_PER_S = 60
"""A transaction of a few records has a dozen writes, each of which three brokers store."""
#: Through the whole chain before each fault.
RECORDS_BETWEEN_FAULTS = 400
CLUSTER_RECORDS_BETWEEN_FAULTS = 80
WAIT_S = 240


def test_every_record_goes_through_once_and_in_order(tmp_path: Path) -> None:
    """Stage one speaks the first transaction protocol, stage two the second."""
    numbers = random.Random()
    with (
        CuttingProxy() as proxy,
        restartable_broker(tmp_path, advertised_port=proxy.port) as broker,
    ):
        proxy.upstream_port = broker.port
        chain = Chain(broker, proxy, workers_per_stage=2, records_per_s=RECORDS_PER_S)
        with chain, Tail(proxy.bootstrap, [END]) as tail:
            for fault in FAULTS:
                if fault is not Fault.BROKER_KILLED or broker.may_be_killed:
                    more = RECORDS_BETWEEN_FAULTS + numbers.randrange(100)
                    chain.read_more(tail, more, WAIT_S)
                    chain.strike(fault, numbers)
            chain.finish(tail, WAIT_S)
        print(chain.summary())


def test_every_record_goes_through_a_cluster_that_loses_brokers(tmp_path: Path) -> None:
    """Coordinators and leaders are on different brokers, and move."""
    numbers = random.Random()
    with proxied_cluster(tmp_path) as (cluster, proxies):
        chain = Chain(cluster, proxies, workers_per_stage=2, records_per_s=CLUSTER_RECORDS_PER_S)
        with chain, Tail(proxies.bootstrap, [END]) as tail:
            for fault in CLUSTER_FAULTS:
                chain.read_more(tail, CLUSTER_RECORDS_BETWEEN_FAULTS, WAIT_S)
                chain.strike(fault, numbers)
            chain.finish(tail, WAIT_S)
        print(chain.summary())
