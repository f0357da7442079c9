"""What /metrics tells of a broker's session with a real ZooKeeper."""

import urllib.request

import pytest

import kafkalite
from kafkalite.testing.processes import wait_until_true

pytestmark = pytest.mark.slow

LISTENER = "kafka_server_sessionexpirelistener"
LATENCY = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"


def metrics_of(cluster):
    with urllib.request.urlopen(f"{cluster.http_urls()[1]}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_a_lost_connection_is_counted_and_shown_while_it_lasts():
    with kafkalite.Cluster(1) as cluster:
        before = metrics_of(cluster)
        assert before[f'{LISTENER}_sessionstate{{state="CONNECTED"}}'] == "1"
        assert before[f"{LISTENER}_zookeeperdisconnects_total"] == "0"
        assert int(before[f"{LATENCY}_count"]) > 0
        assert float(before[f"{LATENCY}_sum"]) > 0
        cluster.isolate(1)
        assert wait_until_true(
            lambda: f'{LISTENER}_sessionstate{{state="CONNECTED"}}' not in metrics_of(cluster),
            timeout_s=30,
        )
        cluster.heal(1)
        assert wait_until_true(
            lambda: f'{LISTENER}_sessionstate{{state="CONNECTED"}}' in metrics_of(cluster),
            timeout_s=30,
        )
        after = metrics_of(cluster)
        assert int(after[f"{LISTENER}_zookeeperdisconnects_total"]) >= 1
        assert int(after[f"{LISTENER}_zookeepersyncconnects_total"]) >= 2
