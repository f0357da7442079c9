"""Faults and clocks of all brokers of a cluster, from Python and over the HTTP port of any."""

import json
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer

from kafkalite.faults.remote import ControlError
from kafkalite.faults.specification import FaultRuleError
from kafkalite.testing import Cluster
from kafkalite.testing.fault_rules import FaultNeverFired

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]


@pytest.fixture(scope="module")
def running():
    with Cluster(2, links=False) as cluster:
        cluster.create_topic("orders", partitions=4)
        yield cluster


@pytest.fixture
def cluster(running):
    yield running
    for rule in running.faults.rules():
        running.faults.remove(rule)
    running.clock.reset()


def send(cluster, count=8):
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "retry.backoff.ms": 10})
    for number in range(count):
        producer.produce("orders", str(number), partition=number % 4)
    return producer.flush(30)


def call(cluster, number, method, path, body=None):
    request = urllib.request.Request(
        f"{cluster.brokers[number].http_url}/api/v1/control{path}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_rule_of_all_brokers_fires_on_each_and_counts_together(cluster):
    rule = cluster.faults.on("Produce", topic="orders").error("NOT_LEADER_OR_FOLLOWER").times(1)
    assert send(cluster) == 0
    rule.wait(hits=2)
    assert rule.hits == 2
    assert rule.matched >= 2
    assert rule.id.count(".") == 2
    with pytest.raises(TimeoutError, match="2 of 3"):
        rule.wait(hits=3, timeout_s=0.05)
    rule.remove()
    assert cluster.faults.rules() == []


def test_a_rule_of_one_broker_is_of_that_alone(cluster):
    rule = cluster.faults(2).on("Produce").error("NOT_LEADER_OR_FOLLOWER").always()
    other = cluster.faults(1).on("Produce").delay(0.001)
    with pytest.raises(FaultRuleError, match="no other process"):
        cluster.faults(2).on("Produce", where=bool).disconnect()
    with pytest.raises(FaultRuleError, match="no API"):
        cluster.faults.on("Prduce").disconnect()
    with pytest.raises(ControlError, match="no broker 9"):
        cluster.faults(9).on("Produce").disconnect()
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "message.timeout.ms": 20_000})
    for number in range(4):
        producer.produce("orders", b"x", partition=number)
    rule.wait()
    rule.remove()
    assert producer.flush(30) == 0
    assert other.hits
    assert rule.id.startswith("2.")


def test_a_rule_is_there_again_after_a_restart(cluster):
    rule = cluster.faults.on("Produce", topic="orders").error("NOT_LEADER_OR_FOLLOWER").times(1)
    cluster.kill(1)
    cluster.restart(1)
    cluster.wait_members()
    cluster.wait_in_sync("orders")
    assert send(cluster) == 0
    rule.wait(hits=1)
    assert len(call(cluster, 1, "GET", "/faults")[1]["faults"]) == 1


def test_what_never_fired_is_told_of_a_cluster_too(cluster):
    cluster.faults.on("Produce", topic="ordres").disconnect()
    cluster.faults.chaos(seed=1, probability=0.001, client_id="nobody")
    disk = cluster.faults.disk_full(topic="orders", times=1)
    send(cluster)
    assert disk.hits >= 1
    with pytest.warns(FaultNeverFired, match="ordres"):
        cluster.faults.clear()
    assert call(cluster, 2, "GET", "/faults")[1] == {"faults": [], "disk_faults": []}


def test_time_passes_on_all_brokers_and_who_is_in_sync_stays(cluster):
    cluster.wait_in_sync("orders")
    cluster.clock.advance(timedelta(hours=3))
    assert cluster.clock.ahead_s == pytest.approx(3 * 3_600, abs=60)
    for broker in (1, 2):
        assert call(cluster, broker, "GET", "/clock")[1]["ahead_s"] > 10_000
    assert all(len(cluster.partition("orders", n).isr_nodes) == 2 for n in range(4))
    with cluster.clock.frozen():
        assert cluster.clock.rate == 0
    cluster.clock.rate = 10
    assert cluster.clock.rate == 10
    cluster.clock.set(datetime(2030, 1, 1, tzinfo=UTC))
    assert cluster.clock.now().year == 2030
    with pytest.raises(ValueError, match="0 seconds or more"):
        cluster.clock.advance(-1)
    assert send(cluster) == 0


def test_any_broker_hands_orders_on_over_http(cluster):
    said = {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER", "times": 1, "broker": "all"}
    status, rule = call(cluster, 1, "POST", "/faults", said)
    assert status == 200
    assert set(rule["brokers"]) == {"1", "2"}
    assert send(cluster) == 0
    status, found = call(cluster, 2, "GET", f"/faults/{rule['id']}?wait_hits=2&timeout_s=20")
    assert (status, found["hits"], found["spent"]) == (200, 2, True)
    assert call(cluster, 2, "GET", f"/faults/{rule['id']}?wait_hits=3&timeout_s=0.01")[0] == 408
    assert call(cluster, 2, "DELETE", f"/faults/{rule['id']}")[1]["hits"] == 2
    status, one = call(cluster, 1, "POST", "/faults", {**said, "broker": 2})
    assert one["id"].startswith("2.")
    found = call(cluster, 1, "GET", "/faults?broker=all")[1]["brokers"]
    assert [len(found[n]["faults"]) for n in "12"] == [0, 1]
    assert call(cluster, 1, "DELETE", "/faults?broker=all")[0] == 200
    status, clocks = call(cluster, 2, "POST", "/clock", {"advance_s": 100, "broker": "all"})
    assert [round(clocks["brokers"][n]["ahead_s"], -2) for n in "12"] == [100, 100]
    status, refused = call(cluster, 2, "POST", "/faults", {**said, "broker": 7})
    assert status == 422
    assert "one of 1, 2" in refused["error"]["message"]
    assert call(cluster, 2, "POST", "/clock", {"warp": 1, "broker": "all"})[0] == 422
