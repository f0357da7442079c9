"""What a person does with Kafka's command-line tools, each run as a process of its own."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import Consumer

from compat_tests.apache_kafka import is_4, run_tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(slots=True, kw_only=True)
class ToolBench:
    """A version of the tools, a broker, a folder for files, and fresh names."""

    version: str
    bootstrap: str
    folder: Path

    def run(self, tool: str, *arguments: str, stdin: str | None = None) -> str:
        """Run a tool with ``--bootstrap-server`` and return what it prints on stdout."""
        where = ("--bootstrap-server", self.bootstrap)
        return run_tool(self.version, tool, *where, *arguments, stdin=stdin).stdout

    def refused(self, tool: str, *arguments: str) -> str:
        """Run a tool that must fail and return both of its outputs."""
        where = ("--bootstrap-server", self.bootstrap)
        done = run_tool(self.version, tool, *where, *arguments, check=False)
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr

    def name(self) -> str:
        """Return a name that nothing has."""
        return f"tools-{self.version}-{uuid.uuid4().hex[:10]}"

    def topic(self, partitions: int = 1) -> str:
        """Create a topic of a fresh name."""
        topic = self.name()
        count = str(partitions)
        self.run("kafka-topics", "--create", "--topic", topic, "--partitions", count)
        return topic

    def produce_lines(self, topic: str, count: int) -> None:
        """Write ``k<i>:v<i>`` lines with the console producer."""
        lines = "".join(f"k{i}:v{i}\n" for i in range(count))
        reader = "--reader-property" if is_4(self.version) else "--property"
        split = (reader, "parse.key=true", reader, "key.separator=:")
        codec = ("--compression-codec", "zstd")
        self.run("kafka-console-producer", "--topic", topic, *split, *codec, stdin=lines)


@dataclass(frozen=True, kw_only=True)
class ToolScenario:
    """One row of the tools' matrix."""

    title: str
    run: Callable[[ToolBench], None]

    @property
    def id(self) -> str:
        """The part of a test's id that names the scenario."""
        return "-".join(re.findall(r"\w+", self.title))


TOOL_SCENARIOS: list[ToolScenario] = []


def tools(title: str) -> Callable[[Callable[[ToolBench], None]], Callable[[ToolBench], None]]:
    """Register a function as a scenario of the tools."""

    def register(function: Callable[[ToolBench], None]) -> Callable[[ToolBench], None]:
        TOOL_SCENARIOS.append(ToolScenario(title=title, run=function))
        return function

    return register


@tools("kafka-topics: create, list, describe, alter, delete")
def topics(bench: ToolBench) -> None:
    topic = bench.name()
    config = ("--config", "retention.ms=98765")
    created = bench.run("kafka-topics", "--create", "--topic", topic, "--partitions", "2", *config)
    assert f"Created topic {topic}." in created
    again = bench.refused("kafka-topics", "--create", "--topic", topic)
    assert "already exists" in again
    assert topic in bench.run("kafka-topics", "--list").split()
    bench.run("kafka-topics", "--alter", "--topic", topic, "--partitions", "3")
    described = bench.run("kafka-topics", "--describe", "--topic", topic)
    assert "PartitionCount: 3" in described
    assert "retention.ms=98765" in described
    assert re.findall(r"Partition: (\d)\tLeader: (\d+)\tReplicas: \d+\tIsr: \d+", described)
    bench.run("kafka-topics", "--delete", "--topic", topic)
    assert "does not exist" in bench.refused("kafka-topics", "--describe", "--topic", topic)


@tools("kafka-console-producer, kafka-console-consumer")
def console(bench: ToolBench) -> None:
    topic = bench.topic()
    bench.produce_lines(topic, 20)
    formatter = "--formatter-property" if is_4(bench.version) else "--property"
    show = (formatter, "print.key=true", formatter, "print.offset=true")
    everything = ("--topic", topic, "--from-beginning", "--max-messages", "20")
    out = bench.run("kafka-console-consumer", *everything, *show)
    assert out.splitlines() == [f"Offset:{i}\tk{i}\tv{i}" for i in range(20)]
    where = ("--partition", "0", "--offset", "15", "--max-messages", "5")
    out = bench.run("kafka-console-consumer", "--topic", topic, *where)
    assert out.splitlines() == [f"v{i}" for i in range(15, 20)]


@tools("kafka-consumer-groups: list, describe, reset, delete")
def consumer_groups(bench: ToolBench) -> None:
    topic, group = bench.topic(partitions=2), bench.name()
    bench.produce_lines(topic, 20)
    reading = ("--group", group, "--from-beginning", "--max-messages", "20")
    out = bench.run("kafka-console-consumer", "--topic", topic, *reading)
    assert sorted(out.split()) == sorted(f"v{i}" for i in range(20))
    tool, of_group = "kafka-consumer-groups", ("--group", group)
    assert group in bench.run(tool, "--list").split()
    state = bench.run(tool, "--describe", *of_group, "--state")
    assert re.search(rf"{group}\s.*\sEmpty\s+0", state), state
    assert [lag for *_, lag in _offsets(bench, group, topic)] == [0, 0]
    bench.run(tool, *of_group, "--topic", topic, "--reset-offsets", "--to-earliest", "--execute")
    rows = _offsets(bench, group, topic)
    assert [offset for offset, _, _ in rows] == [0, 0]
    assert sum(lag for *_, lag in rows) == 20
    bench.run(tool, *of_group, "--topic", f"{topic}:0", "--delete-offsets")
    assert len(_offsets(bench, group, topic)) == 1
    assert "successful" in bench.run(tool, "--delete", *of_group)
    assert group not in bench.run(tool, "--list").split()


@tools("kafka-consumer-groups: a group whose broker assigns")
def groups_of_the_consumer_protocol(bench: ToolBench) -> None:
    topic, group = bench.topic(partitions=2), bench.name()
    bench.produce_lines(topic, 20)
    config = {
        "bootstrap.servers": bench.bootstrap,
        "group.id": group,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "client.id": "watched",
    }
    tool, of_group = "kafka-consumer-groups", ("--group", group)
    consumer = Consumer(config)
    try:
        consumer.subscribe([topic])
        read = 0
        while read < 20:
            read += len(consumer.consume(20, timeout=1))
        consumer.commit(asynchronous=False)
        state = bench.run(tool, "--describe", *of_group, "--state")
        assert re.search(rf"{group}\s.*\suniform\s+Stable\s.*\b1\b", state), state
        members = bench.run(tool, "--describe", *of_group, "--members", "--verbose")
        # 3.9 shows partitions without their topic.
        shown = topic if is_4(bench.version) else r"\(0,1\)"
        assert re.search(rf"{group}\s.*\swatched\s.*{shown}", members), members
        assert [lag for *_, lag in _offsets(bench, group, topic)] == [0, 0]
    finally:
        consumer.close()
    state = bench.run(tool, "--describe", *of_group, "--state")
    assert re.search(rf"{group}\s.*\sEmpty\s", state), state
    bench.run(tool, *of_group, "--topic", topic, "--reset-offsets", "--to-earliest", "--execute")
    assert sum(lag for *_, lag in _offsets(bench, group, topic)) == 20
    assert "successful" in bench.run(tool, "--delete", *of_group)


def _offsets(bench: ToolBench, group: str, topic: str) -> list[tuple[int, int, int]]:
    """Return (offset, end, lag) of each partition that the group committed."""
    described = bench.run("kafka-consumer-groups", "--describe", "--group", group)
    rows = re.findall(rf"{topic}\s+\d+\s+(\d+)\s+(\d+)\s+(\d+)", described)
    return [(int(offset), int(end), int(lag)) for offset, end, lag in rows]


@tools("kafka-configs: topic and broker")
def configs(bench: ToolBench) -> None:
    topic = bench.topic()
    tool, entity = "kafka-configs", ("--entity-type", "topics", "--entity-name", topic)
    bench.run(tool, *entity, "--alter", "--add-config", "retention.ms=4321,segment.bytes=1500000")
    described = bench.run(tool, *entity, "--describe")
    assert "retention.ms=4321" in described
    assert "synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=4321" in described
    bench.run(tool, *entity, "--alter", "--delete-config", "retention.ms")
    described = bench.run(tool, *entity, "--describe")
    assert "retention.ms=4321" not in described
    assert "segment.bytes=1500000" in described
    refused = bench.refused(tool, *entity, "--alter", "--add-config", "retention.ms=soon")
    assert "InvalidConfigurationException" in refused
    broker = ("--entity-type", "brokers", "--entity-name", _broker_id(bench), "--describe", "--all")
    assert "log.segment.bytes=1073741824" in bench.run(tool, *broker)


def _broker_id(bench: ToolBench) -> str:
    found = re.search(r"\(id: (\d+) ", bench.run("kafka-broker-api-versions"))
    assert found is not None
    return found[1]


@tools("kafka-get-offsets, kafka-delete-records")
def offsets_and_delete_records(bench: ToolBench) -> None:
    topic = bench.topic()
    bench.produce_lines(topic, 10)
    ask = ("kafka-get-offsets", "--topic", topic, "--time")
    assert bench.run(*ask, "latest").strip() == f"{topic}:0:10"
    listing = bench.folder / "delete.json"
    partition = {"topic": topic, "partition": 0, "offset": 4}
    listing.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    deleted = bench.run("kafka-delete-records", "--offset-json-file", str(listing))
    assert "low_watermark: 4" in deleted
    assert bench.run(*ask, "earliest").strip() == f"{topic}:0:4"
    # The ten lines are one batch of one millisecond or a few; the largest timestamp is in it.
    assert re.fullmatch(rf"{topic}:0:\d", bench.run(*ask, "max-timestamp").strip())


@tools("kafka-producer-perf-test, kafka-consumer-perf-test")
def perf_tests(bench: ToolBench) -> None:
    topic = bench.topic(partitions=3)
    how = ("--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    servers = ("--producer-props", f"bootstrap.servers={bench.bootstrap}")
    done = run_tool(bench.version, "kafka-producer-perf-test", *how, *servers)
    assert "20000 records sent" in done.stdout
    count = ("--num-records" if is_4(bench.version) else "--messages", "20000")
    out = bench.run("kafka-consumer-perf-test", "--topic", topic, *count, "--hide-header")
    assert int(out.strip().splitlines()[-1].split(", ")[4]) >= 20000, out


@tools("kafka-verifiable-producer, kafka-verifiable-consumer")
def verifiable(bench: ToolBench) -> None:
    topic, group = bench.topic(partitions=2), bench.name()
    sending = ("--topic", topic, "--max-messages", "500", "--acks", "-1")
    events = _events(bench.run("kafka-verifiable-producer", *sending))
    assert sum(event["name"] == "producer_send_success" for event in events) == 500
    reading = ("--topic", topic, "--group-id", group, "--max-messages", "500")
    out = bench.run("kafka-verifiable-consumer", *reading, "--reset-policy", "earliest")
    events = _events(out)
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 500
    committed = [event for event in events if event["name"] == "offsets_committed"]
    assert committed
    assert all(event["success"] for event in committed)


def _events(out: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


@tools("kafka-log-dirs, kafka-cluster, kafka-broker-api-versions")
def about_the_cluster(bench: ToolBench) -> None:
    topic = bench.topic()
    bench.produce_lines(topic, 10)
    dirs = bench.run("kafka-log-dirs", "--describe", "--topic-list", topic)
    described = json.loads(next(line for line in dirs.splitlines() if line.startswith("{")))
    (broker,) = described["brokers"]
    (partition,) = broker["logDirs"][0]["partitions"]
    assert partition["partition"] == f"{topic}-0"
    assert partition["size"] > 61
    where = ("--bootstrap-server", bench.bootstrap)
    cluster = run_tool(bench.version, "kafka-cluster", "cluster-id", *where).stdout
    assert re.fullmatch(r"Cluster ID: [\w-]{22}\n", cluster), cluster
    versions = bench.run("kafka-broker-api-versions")
    assert re.search(r"Produce\(0\): \d+ to \d+ \[usable: \d+\]", versions)
    assert "Fetch(1): UNSUPPORTED" not in versions


@tools("kafka-features: describe, downgrade, upgrade")
def features(bench: ToolBench) -> None:
    def level() -> str:
        described = bench.run("kafka-features", "describe")
        found = re.search(
            r"Feature: transaction\.version\s.*FinalizedVersionLevel: (\d+)", described
        )
        assert found, described
        assert "Feature: metadata.version" in described
        return found[1]

    assert level() == "2"
    lower, higher = ("--feature", "transaction.version=1"), ("--feature", "transaction.version=2")
    assert "downgrade" in bench.refused("kafka-features", "upgrade", *lower)
    bench.run("kafka-features", "downgrade", *lower)
    assert level() == "1"
    bench.run("kafka-features", "upgrade", *higher)
    assert level() == "2"
    assert "only supports versions" in bench.refused(
        "kafka-features", "upgrade", "--feature", "transaction.version=9"
    )


@tools("kafka-metadata-quorum: describe")
def metadata_quorum(bench: ToolBench) -> None:
    status = bench.run("kafka-metadata-quorum", "describe", "--status")
    assert re.search(r"ClusterId: +[\w-]{22}\n", status), status
    leader = re.search(r"LeaderId: +(\d+)\n", status)
    assert leader, status
    assert "MaxFollowerLag:         0" in status
    replication = bench.run("kafka-metadata-quorum", "describe", "--replication")
    assert re.search(rf"^{leader[1]}\s.*Leader", replication, re.MULTILINE), replication


@tools("kafka-client-metrics: alter, describe, delete")
def client_metrics(bench: ToolBench) -> None:
    name = bench.name()
    subscribed = ("--metrics", "org.apache.kafka.producer.", "--interval", "30000")
    bench.run("kafka-client-metrics", "--alter", "--name", name, *subscribed)
    assert name in bench.run("kafka-client-metrics", "--list").split()
    described = bench.run("kafka-client-metrics", "--describe", "--name", name)
    assert "interval.ms=30000" in described
    assert "metrics=org.apache.kafka.producer." in described
    bench.run("kafka-client-metrics", "--delete", "--name", name)
    assert name not in bench.run("kafka-client-metrics", "--list").split()


@tools("kafka-cluster: unregister a broker that nobody knows")
def unregister(bench: ToolBench) -> None:
    where = ("--bootstrap-server", bench.bootstrap)
    arguments = ("unregister", *where, "--id", "4711")
    done = run_tool(bench.version, "kafka-cluster", *arguments, check=False)
    assert "4711" in done.stdout + done.stderr
    assert re.search("not registered|not currently registered", done.stdout + done.stderr)
