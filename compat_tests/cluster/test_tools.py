"""Apache Kafka's command-line tools for replicated topics, both lines of versions."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.apache_kafka import KAFKA_3_9, KAFKA_4, java_command, run_tool
from compat_tests.kafka_tools.scenarios import ToolBench
from kafkalite.testing import Cluster

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.kafka_dir,
    pytest.mark.xdist_group("compat-cluster"),
]

PARTITION = re.compile(r"Partition: (\d+)\tLeader: (\w+)\tReplicas: ([\d,]+)\tIsr: ([\d,]*)")


class ClusterBench(ToolBench):
    """The tools of one version, and what they say about partitions."""

    def described(self, topic: str) -> dict[int, tuple[int, list[int], set[int]]]:
        """Return (leader, replicas, ISR) of each partition; -1 for no leader."""
        out = self.run("kafka-topics", "--describe", "--topic", topic)
        return {
            int(index): (
                int(leader) if leader.isdigit() else -1,
                [int(one) for one in replicas.split(",")],
                {int(one) for one in isr.split(",") if one},
            )
            for index, leader, replicas, isr in PARTITION.findall(out)
        }

    def assigned(self, *replicas: Sequence[int], more: Sequence[str] = ()) -> str:
        """Create a topic whose partitions are on these brokers."""
        topic = self.name()
        text = ",".join(":".join(map(str, each)) for each in replicas)
        create = ("kafka-topics", "--create", "--topic", topic, "--replica-assignment", text)
        self.run(*create, *more)
        return topic

    def file(self, name: str, content: dict[str, Any]) -> str:
        """Write a JSON file, and return where it is."""
        path = self.folder / name
        path.write_text(json.dumps({"version": 1, **content}))
        return str(path)

    def plan(self, topic: str, replicas: dict[int, list[int]]) -> str:
        """Write a reassignment."""
        moves = [
            {"topic": topic, "partition": index, "replicas": wanted}
            for index, wanted in replicas.items()
        ]
        return self.file("plan.json", {"partitions": moves})

    def reassign(self, action: str, plan: str, *more: str) -> str:
        """Execute, verify or cancel a reassignment."""
        arguments = (f"--{action}", "--reassignment-json-file", plan, *more)
        return self.run("kafka-reassign-partitions", *arguments)

    def fill(self, topic: str, count: int) -> None:
        """Write records of 100 bytes with acks=all."""
        options = ["--topic", topic, "--num-records", str(count), "--record-size", "100"]
        options += ["--throughput", "-1", "--producer-props"]
        options += [f"bootstrap.servers={self.bootstrap}", "acks=all"]
        run_tool(self.version, "kafka-producer-perf-test", *options)


@pytest.fixture(params=[KAFKA_4, KAFKA_3_9])
def bench(request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path) -> ClusterBench:
    """The tools of one version, with the address of all brokers."""
    return ClusterBench(version=request.param, bootstrap=cluster.bootstrap, folder=tmp_path)


def test_topics_are_replicated_as_asked_for(bench: ClusterBench) -> None:
    topic = bench.name()
    create = ("kafka-topics", "--create", "--topic", topic, "--partitions", "3")
    bench.run(*create, "--replication-factor", "3")
    partitions = bench.described(topic)
    assert len(partitions) == 3
    assert {leader for leader, _, _ in partitions.values()} == {1, 2, 3}
    for leader, replicas, isr in partitions.values():
        assert leader == replicas[0]
        assert set(replicas) == isr == {1, 2, 3}
    too_many = ("kafka-topics", "--create", "--topic", bench.name(), "--partitions", "1")
    assert "InvalidReplicationFactor" in bench.refused(*too_many, "--replication-factor", "4")
    chosen = bench.assigned([1, 2], [3, 1])
    assert {i: replicas for i, (_, replicas, _) in bench.described(chosen).items()} == {
        0: [1, 2],
        1: [3, 1],
    }
    bench.run("kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    assert all(len(isr) == 3 for _, _, isr in bench.described(topic).values())


def test_each_partition_is_in_both_racks(tmp_path: Path) -> None:
    racks = {1: "east", 2: "east", 3: "west", 4: "west"}
    with Cluster(
        len(racks), broker_config={n: {"broker.rack": rack} for n, rack in racks.items()}
    ) as cluster:
        bench = ClusterBench(version=KAFKA_4, bootstrap=cluster.bootstrap, folder=tmp_path)
        topic = bench.name()
        create = ("kafka-topics", "--create", "--topic", topic, "--partitions", "12")
        bench.run(*create, "--replication-factor", "2")
        partitions = bench.described(topic)
    assert len(partitions) == 12
    for _, replicas, _ in partitions.values():
        assert {racks[broker] for broker in replicas} == {"east", "west"}
    leaders = [leader for leader, _, _ in partitions.values()]
    assert {leaders.count(broker) for broker in racks} == {3}


def test_partitions_that_miss_a_replica_are_listed(bench: ClusterBench, cluster: Cluster) -> None:
    topic = bench.assigned([3, 1], [2, 1], more=("--config", "min.insync.replicas=2"))
    cluster.stop(3)
    under = bench.run("kafka-topics", "--describe", "--under-replicated-partitions")
    mine = [line for line in under.splitlines() if f"Topic: {topic}\t" in line]
    assert [PARTITION.findall(line)[0][0] for line in mine] == ["0"]
    below = bench.run("kafka-topics", "--describe", "--under-min-isr-partitions")
    mine = [line for line in below.splitlines() if f"Topic: {topic}\t" in line]
    assert [PARTITION.findall(line)[0][0] for line in mine] == ["0"]
    assert bench.described(topic)[0][0] == 1
    cluster.stop(1)
    lost = bench.run("kafka-topics", "--describe", "--unavailable-partitions")
    assert f"Topic: {topic}\tPartition: 0\tLeader: none" in lost
    cluster.restart(1)
    cluster.restart(3)
    cluster.wait_in_sync(topic)
    assert topic not in bench.run("kafka-topics", "--describe", "--under-replicated-partitions")


def test_reassignment_moves_the_records(bench: ClusterBench, cluster: Cluster) -> None:
    topic = bench.assigned([1, 2], [2, 3])
    bench.fill(topic, 2000)
    before = bench.run("kafka-get-offsets", "--topic", topic)
    topics = bench.file("topics.json", {"topics": [{"topic": topic}]})
    generate = ("--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,3")
    proposed = bench.run("kafka-reassign-partitions", *generate)
    assert "Proposed partition reassignment configuration" in proposed
    plan = bench.plan(topic, {0: [3, 1], 1: [1, 3, 2]})
    out = bench.reassign("execute", plan, "--throttle", "10000000")
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1" in out
    cluster.wait_until(
        lambda: (
            sorted(cluster.partition(topic, 0).isr_nodes) == [1, 3]
            and sorted(cluster.partition(topic, 1).isr_nodes) == [1, 2, 3]
        ),
        "the replicas did not move",
    )
    verified = bench.reassign("verify", plan)
    assert f"Reassignment of partition {topic}-0 is completed." in verified
    assert f"Reassignment of partition {topic}-1 is completed." in verified
    assert "Clearing topic-level throttles" in verified
    configs = bench.run("kafka-configs", "--describe", "--topic", topic)
    assert "throttled.replicas" not in configs
    assert bench.described(topic)[1][1] == [1, 3, 2]
    assert bench.run("kafka-get-offsets", "--topic", topic) == before


def test_reassignment_that_is_slow_is_listed_and_cancelled(bench: ClusterBench) -> None:
    topic = bench.assigned([1, 2])
    # Three fetches at least (replica.fetch.max.bytes), the second of them a long time away.
    bench.fill(topic, 25_000)
    plan = bench.plan(topic, {0: [1, 3]})
    bench.reassign("execute", plan, "--throttle", "100")
    listed = bench.run("kafka-reassign-partitions", "--list")
    assert f"{topic}-0: replicas: 1,3,2. adding: 3. removing: 2." in listed
    verified = bench.reassign("verify", plan, "--preserve-throttles")
    assert f"Reassignment of partition {topic}-0 is still in progress" in verified
    assert bench.described(topic)[0][2] == {1, 2}
    cancelled = bench.reassign("cancel", plan)
    assert f"Successfully cancelled partition reassignment for: {topic}-0" in cancelled
    assert bench.described(topic)[0][1] == [1, 2]
    assert "No partition reassignments found." in bench.run("kafka-reassign-partitions", "--list")


def test_preferred_replicas_are_elected_again(bench: ClusterBench, cluster: Cluster) -> None:
    topic = bench.assigned([2, 1, 3])
    cluster.stop(2)
    assert cluster.leader_of(topic) != 2
    cluster.restart(2)
    cluster.wait_in_sync(topic)
    elect = ("kafka-leader-election", "--election-type", "PREFERRED")
    one = (*elect, "--topic", topic, "--partition", "0")
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in (
        bench.run(*one)
    )
    assert bench.described(topic)[0][0] == 2
    assert "Valid replica already elected" in bench.run(*one)
    bench.run(*elect, "--all-topic-partitions")


def test_unclean_election_brings_a_partition_back(bench: ClusterBench, cluster: Cluster) -> None:
    topic = bench.assigned([1, 3])
    cluster.stop(3)
    run = ("--num-records", "10", "--record-size", "10", "--throughput", "-1", "--producer-props")
    where = (f"bootstrap.servers={bench.bootstrap}", "acks=1")
    run_tool(bench.version, "kafka-producer-perf-test", "--topic", topic, *run, *where)
    cluster.kill(1)
    cluster.restart(3)
    cluster.wait_until(lambda: cluster.leader_of(topic) == -1, "there is a leader")
    elect = ("kafka-leader-election", "--topic", topic, "--partition", "0", "--election-type")
    assert "eligible" in bench.refused(*elect, "PREFERRED").lower() or cluster.leader_of(topic) < 0
    assert f"leader election (UNCLEAN) for partitions {topic}-0" in bench.run(*elect, "UNCLEAN")
    assert bench.described(topic)[0][0] == 3
    # What only the other replica had is lost, which is what "unclean" says.
    assert bench.run("kafka-get-offsets", "--topic", topic) == f"{topic}:0:0\n"
    cluster.restart(1)
    cluster.wait_in_sync(topic)


def test_replicas_are_verified(cluster: Cluster, tmp_path: Path) -> None:
    # Kafka 4 has this tool no more. It reads every replica itself, as no consumer may.
    bench = ClusterBench(version=KAFKA_3_9, bootstrap=cluster.bootstrap, folder=tmp_path)
    topic = bench.assigned([1, 2, 3], [2, 3, 1])
    bench.fill(topic, 3000)
    options = ["--broker-list", cluster.bootstrap, "--topics-include", topic, "--time", "-2"]
    command = java_command(KAFKA_3_9, "kafka-replica-verification", *options)
    command += ["--report-interval-ms", "200"]
    found = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tool:
        assert tool.stdout is not None
        for line in tool.stdout:
            found.append(line)
            ends = re.search(r"max lag is 0 for partition \S+ at offset (\d+) among 2", line)
            if (ends and int(ends[1]) > 0) or len(found) > 20:
                break
        tool.kill()
    assert ends, found
    assert not any("different" in line or "doesn't match" in line for line in found), found


def test_versions_of_all_brokers_are_told_alike(bench: ClusterBench) -> None:
    out = bench.run("kafka-broker-api-versions")
    brokers = re.split(r"^(?=\S+:\d+ \(id: )", out, flags=re.MULTILINE)
    told = [one.partition("-> (")[2] for one in brokers if "-> (" in one]
    assert len(told) == 3
    assert told[0] == told[1] == told[2]
    assert "AlterPartitionReassignments(45): 0 to 1" in told[0]
    for between_brokers in ("AlterPartition(56)", "ControlledShutdown(7)", "Envelope(58)"):
        assert f"{between_brokers}: 0" not in told[0]


def test_settings_of_one_broker_and_of_all(bench: ClusterBench, cluster: Cluster) -> None:
    def described(*entity: str) -> str:
        return bench.run("kafka-configs", "--describe", "--entity-type", "brokers", *entity)

    alter = ("kafka-configs", "--alter", "--entity-type", "brokers")
    bench.run(*alter, "--entity-name", "2", "--add-config", "log.retention.ms=7200000")
    assert "log.retention.ms=7200000" in described("--entity-name", "2")
    assert "log.retention.ms=7200000" not in described("--entity-name", "1")
    bench.run(*alter, "--entity-default", "--add-config", "log.segment.bytes=2000000")
    for number in cluster.brokers:
        assert "log.segment.bytes=2000000" in described("--entity-name", str(number), "--all")
    cluster.restart(2)
    assert "log.retention.ms=7200000" in described("--entity-name", "2")
    bench.run(*alter, "--entity-name", "2", "--delete-config", "log.retention.ms")
    bench.run(*alter, "--entity-default", "--delete-config", "log.segment.bytes")
    assert "log.retention.ms=7200000" not in described("--entity-name", "2")


def test_log_directories_of_all_brokers_are_told(bench: ClusterBench) -> None:
    topic = bench.assigned([1, 2, 3])
    bench.fill(topic, 500)
    out = bench.run("kafka-log-dirs", "--describe", "--topic-list", topic)
    told = json.loads(out[out.index("{") :])["brokers"]
    sizes = {
        broker["broker"]: partition["size"]
        for broker in told
        for folder in broker["logDirs"]
        for partition in folder["partitions"]
    }
    assert sorted(sizes) == [1, 2, 3]
    assert len(set(sizes.values())) == 1
    assert sizes[1] > 500 * 100
