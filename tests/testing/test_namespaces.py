"""Cuts in the kernel, between processes that have networks of their own."""

import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from kafkalite.client.cluster import Client
from kafkalite.client.producer import Producer
from kafkalite.registry.client import SchemaRegistryClient
from kafkalite.registry.model import Schema, SchemaType
from kafkalite.testing import Cluster
from kafkalite.testing.namespaces import NamespaceError, Namespaces, why_not
from tests.cluster.audit import check_replicas

REASON = why_not()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(REASON is not None, reason=f"needs root and iproute2: {REASON}"),
    pytest.mark.xdist_group("cluster"),
]

TOPIC = "orders"


def reaches(networks, source, destination):
    """Whether a connection is refused: by the destination, where nobody listens."""
    connect = "import socket, sys; socket.create_connection((sys.argv[1], 9), 1)"
    command = [sys.executable, "-c", connect, networks.address(destination)]
    done = subprocess.run(
        [*networks.prefix(source), *command], capture_output=True, text=True, check=False
    )
    return "ConnectionRefusedError" in done.stderr


def names():
    return subprocess.run(
        "ip netns list; ip -o link", shell=True, capture_output=True, text=True, check=True
    ).stdout


def test_nodes_reach_each_other_unless_they_are_cut_off():
    with Namespaces(["1", "2", "3"]) as networks:
        assert reaches(networks, "1", "2")
        networks.cut("1", "2")
        networks.cut("3", "2", both_ways=False)
        assert not reaches(networks, "1", "2")
        assert not reaches(networks, "3", "2")
        assert reaches(networks, "1", "3")
        networks.heal("1")
        assert reaches(networks, "1", "2")
        assert not reaches(networks, "3", "2")
        networks.heal()
        assert reaches(networks, "3", "2")
        name = networks.prefix("1")[3].rpartition("-")[0]
        assert name in names()
    assert name not in names()


def test_networks_of_a_process_that_was_killed_are_removed():
    script = (
        "import os; from kafkalite.testing.namespaces import Namespaces;"
        "print(Namespaces(['1']).start().prefix('1')[3], flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    left = done.stdout.strip()
    assert left in names()
    with Namespaces(["1"]):
        assert left.rpartition("-")[0] not in names()


def test_what_the_system_refuses_is_one_line(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert why_not() == "network namespaces need ip and ss (Debian: iproute2)"
    with pytest.raises(NamespaceError):
        Namespaces(["1"]).start()


def write(cluster, value, *, via):
    """Write a record with acks=all to a broker, once it knows that it leads.

    Another may know that sooner; and who led before, cut off or not, would take the record.
    """
    with Client(cluster.brokers[via].bootstrap) as client:

        def leads():
            (partition,) = client.fetch_metadata([TOPIC]).topics[0].partitions
            return partition.leader_id == via

        cluster.wait_until(leads, f"broker {via} does not lead")
        producer = Producer(client, TOPIC, acks=-1)
        producer.send(value, partition=0)
        producer.flush()


def test_cluster_lives_through_cuts(tmp_path):
    settings = {"min.insync.replicas": 2}
    with Cluster(3, namespaces=True, config=settings, data_dir=tmp_path) as cluster:
        cluster.create_topic(TOPIC)
        leader = cluster.leader_of(TOPIC)
        write(cluster, b"1", via=leader)
        cluster.isolate(leader)
        following = cluster.wait_leader(TOPIC, other_than=leader)
        write(cluster, b"2", via=following)
        cluster.heal()
        cluster.wait_in_sync(TOPIC)

        leader = cluster.leader_of(TOPIC)
        follower = next(n for n in cluster.brokers if n != leader)
        cluster.cut(follower, leader, both_ways=False)
        write(cluster, b"3", via=leader)
        cluster.wait_until(
            lambda: follower not in cluster.partition(TOPIC).isr_nodes, "it stays in sync"
        )
        cluster.heal()
        cluster.wait_in_sync(TOPIC)

        assert cluster.disconnect(follower, leader) > 0
        cluster.kill(leader)
        cluster.restart(leader)
        cluster.wait_in_sync(TOPIC)
        with pytest.raises(RuntimeError, match="without links"):
            cluster.delay(follower, leader, 1)
        name = cluster.namespaces.prefix("1")[3].rpartition("-")[0]
    assert name not in names()
    assert check_replicas([broker.data_dir for broker in cluster.brokers.values()]) == []


def test_faults_the_clock_and_the_registry_are_there_too():
    with Cluster(2, namespaces=True, schema_registry=True) as cluster:
        cluster.create_topic(TOPIC, partitions=2, config={"retention.ms": 3_600_000})
        rule = cluster.faults.on("Produce", topic=TOPIC).error("NOT_LEADER_OR_FOLLOWER").times(1)
        with Client(cluster.bootstrap, client_id="tested") as client:
            producer = Producer(client, TOPIC)
            for partition in (0, 1):
                producer.send(b"x", partition=partition)
            producer.flush()  # each leader is asked twice
        assert rule.hits == 2
        before_ms = cluster.clock.now_ms()
        cluster.clock.advance(3_600)
        assert cluster.clock.now_ms() >= before_ms + 3_600_000
        assert "Produce" in cluster.report().requests
        for url in cluster.schema_registry_urls.values():
            schema = Schema(SchemaType.AVRO, '"string"')
            assert SchemaRegistryClient(url).register("s", schema)[0] == 1
        url = cluster.http_urls()[1].partition("/?")[0]
        with pytest.raises(urllib.error.HTTPError, match="401"):  # not without the token
            urllib.request.urlopen(f"{url}/metrics")


def test_zookeeper_elsewhere_would_be_out_of_reach():
    with pytest.raises(ValueError, match="of its own"):
        Cluster(1, namespaces=True, zookeeper="127.0.0.1:1")
