"""The pages of Kafka 4.3's documentation on the groups of Kafka 4, walked from top to bottom.

Each command and setting that a page names is tried as it stands there, with Kafka's own tools, and
shows what the page says. Of the tool for streams groups that is in `test_streams`.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
import uuid
from typing import TYPE_CHECKING

import confluent_kafka
import pytest

from compat_tests.apache_kafka import KAFKA_4, java_command, run_tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.compat, pytest.mark.slow]

PATIENCE_S = 120

BROKER_SETTINGS = {
    "consumer": (
        "group.consumer.heartbeat.interval.ms",
        "group.consumer.session.timeout.ms",
        "group.consumer.assignors",
        "group.coordinator.rebalance.protocols",
    ),
    "streams": (
        "group.streams.session.timeout.ms",
        "group.streams.min.session.timeout.ms",
        "group.streams.max.session.timeout.ms",
        "group.streams.heartbeat.interval.ms",
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
        "group.streams.max.size",
        "group.streams.num.standby.replicas",
        "group.streams.max.standby.replicas",
        "group.streams.initial.rebalance.delay.ms",
    ),
    "share": (
        "group.share.delivery.count.limit",
        "group.share.record.lock.duration.ms",
        "group.share.partition.max.record.locks",
        "group.share.session.timeout.ms",
        "group.share.heartbeat.interval.ms",
        "group.share.max.size",
    ),
}
"""What the pages name, and is to be had by `kafka-configs --describe`."""

GROUP_SETTINGS = {
    "streams.session.timeout.ms": "50000",
    "streams.heartbeat.interval.ms": "6000",
    "streams.num.standby.replicas": "1",
    "streams.initial.rebalance.delay.ms": "10",
    "consumer.session.timeout.ms": "50000",
    "consumer.heartbeat.interval.ms": "6000",
    "share.auto.offset.reset": "earliest",
    "share.isolation.level": "read_committed",
    "share.session.timeout.ms": "50000",
    "share.heartbeat.interval.ms": "6000",
    "share.record.lock.duration.ms": "20000",
}


class Page:
    """The tools, a topic of one partition with ten records, and fresh names of groups."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self.topic = self.name("topic")
        self.run("kafka-topics", "--create", "--topic", self.topic, "--partitions", "1")
        self.write(10)

    def name(self, what: str) -> str:
        return f"my-{what}-{uuid.uuid4().hex[:8]}"

    def run(self, tool: str, *arguments: str, stdin: str = "", check: bool = True) -> str:
        where = ("--bootstrap-server", self.bootstrap)
        done = run_tool(
            KAFKA_4, tool, *where, *arguments, stdin=stdin, timeout=PATIENCE_S, check=check
        )
        return done.stdout + ("" if check else done.stderr)

    def write(self, count: int) -> None:
        lines = "".join(f"value-{number}\n" for number in range(count))
        self.run("kafka-console-producer", "--topic", self.topic, stdin=lines)

    def read(self, group: str, protocol: str, count: int) -> None:
        setting = ("--command-property", f"group.protocol={protocol}", "--max-messages", str(count))
        choice = ("--topic", self.topic, "--group", group, "--from-beginning")
        out = self.run("kafka-console-consumer", *choice, *setting, "--timeout-ms", "60000")
        assert out.count("value-") == count, out

    def type_of(self, group: str) -> tuple[str, ...]:
        """Return type and protocol as `kafka-groups` lists them."""
        found = re.search(
            rf"^{group}\s+(\S+)\s+(\S+)\s*$", self.run("kafka-groups", "--list"), re.MULTILINE
        )
        assert found, group
        return found.groups()

    @contextlib.contextmanager
    def background(self, tool: str, *arguments: str) -> Iterator[None]:
        """A tool at work meanwhile."""
        command = java_command(KAFKA_4, tool, "--bootstrap-server", self.bootstrap, *arguments)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)

    def wait(self, pattern: str, *command: str) -> str:
        """Run a command until what it prints has the pattern."""
        end_s = time.monotonic() + PATIENCE_S
        while True:
            out = self.run(*command)
            if re.search(pattern, out):
                return out
            assert time.monotonic() < end_s, (command, out)


@pytest.fixture(scope="module")
def page(compat_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return Page(compat_bootstrap, tmp_path_factory.mktemp("page"))


def test_settings_of_all_pages(page: Page) -> None:
    broker = re.search(r"\(id: (\d+) rack", page.run("kafka-broker-api-versions"))
    assert broker
    of_broker = ("--entity-type", "brokers", "--entity-name", broker[1])
    described = page.run("kafka-configs", "--describe", *of_broker, "--all")
    for names in BROKER_SETTINGS.values():
        for name in names:
            assert re.search(rf"^\s*{re.escape(name)}=\S+", described, re.MULTILINE), name
    protocols = re.search(r"group\.coordinator\.rebalance\.protocols=(\S+)", described)
    assert protocols is None or {"classic", "consumer"} <= set(protocols[1].split(","))

    of_group = ("--entity-type", "groups", "--entity-name", page.name("group"))
    added = ",".join(f"{name}={value}" for name, value in GROUP_SETTINGS.items())
    page.run("kafka-configs", "--alter", *of_group, "--add-config", added)
    described = page.run("kafka-configs", "--describe", *of_group)
    for name, value in GROUP_SETTINGS.items():
        assert f"{name}={value}" in described
    names = ",".join(GROUP_SETTINGS)
    page.run("kafka-configs", "--alter", *of_group, "--delete-config", names)
    described = page.run("kafka-configs", "--describe", *of_group)
    assert not [name for name in GROUP_SETTINGS if f"{name}=" in described]


@pytest.mark.parametrize("feature", ["group", "share", "streams"])
def test_features(page: Page, feature: str) -> None:
    """They are on by default, and can be switched off and on."""

    def level() -> str:
        described = page.run("kafka-features", "describe")
        found = re.search(rf"Feature: {feature}\.version\s.*FinalizedVersionLevel: (\d)", described)
        assert found, described
        return found[1]

    assert level() == "1"
    page.run("kafka-features", "downgrade", "--feature", f"{feature}.version=0")
    assert level() == "0"
    page.run("kafka-features", "upgrade", "--feature", f"{feature}.version=1")
    assert level() == "1"


def test_consumer_rebalance_protocol(page: Page) -> None:
    """Offline conversions keep what was committed; a member may choose the assignor."""
    group = page.name("group")
    page.read(group, "classic", 4)
    assert page.type_of(group)[0] == "Classic"
    page.read(group, "consumer", 3)
    assert page.type_of(group) == ("Consumer", "consumer")
    page.read(group, "classic", 3)
    assert page.type_of(group)[0] == "Classic"
    described = page.run("kafka-consumer-groups", "--describe", "--group", group)
    assert re.search(rf"{page.topic}\s+0\s+10\s+10\s+0\s", described), described

    for assignor, asked in (("uniform", None), ("range", "range")):
        config = {
            "bootstrap.servers": page.bootstrap,
            "group.id": page.name("group"),
            "group.protocol": "consumer",
            **({} if asked is None else {"group.remote.assignor": asked}),
        }
        consumer = confluent_kafka.Consumer(config)
        try:
            consumer.subscribe([page.topic])
            end_s = time.monotonic() + PATIENCE_S
            while not consumer.assignment():
                consumer.poll(0.1)
                assert time.monotonic() < end_s
            of_group = ("--describe", "--group", config["group.id"])
            state = page.run("kafka-consumer-groups", *of_group, "--state")
            assert re.search(rf"\s{assignor}\s+Stable\s.*\b1\b", state), state
        finally:
            consumer.close()


def test_managing_consumer_groups(page: Page) -> None:
    group, other = page.name("group"), page.name("other-group")
    for each in (group, other):
        page.read(each, "consumer", 10)
    tool, of_group = "kafka-consumer-groups", ("--group", group)
    assert {group, other} <= set(page.run(tool, "--list").split())
    member = ("--topic", page.topic, *of_group, "--command-property", "group.protocol=consumer")
    with page.background("kafka-console-consumer", *member):
        members = page.wait(rf"{group}\s+\S+\s+/\S+\s", tool, "--describe", *of_group, "--members")
        assert re.search(r"\s1\s*$", members.rstrip()), members
        verbose = page.run(tool, "--describe", *of_group, "--members", "--verbose")
        assert f"{page.topic}:0" in verbose, verbose
        for option in ((), ("--offsets",)):
            offsets = page.run(tool, "--describe", *of_group, *option)
            assert re.search(rf"{page.topic}\s+0\s+10\s+10\s+0\s+\S+\s+/\S+\s", offsets), offsets
        state = page.run(tool, "--describe", *of_group, "--state")
        assert re.search(r"\suniform\s+Stable\s.*\b1\b", state), state
        refused = page.run(tool, "--delete", *of_group, check=False)
        assert "NotEmpty" in refused or "not empty" in refused.lower(), refused
    page.wait(r"\sEmpty\s", tool, "--describe", *of_group, "--state")

    def reset(*scenario: str) -> str:
        """Return the new offset of a plan, which is carried out with `--execute`."""
        where = () if "--from-file" in scenario else ("--topic", page.topic)
        out = page.run(tool, "--reset-offsets", *of_group, *where, *scenario)
        found = re.search(rf"{page.topic}\s+0\s+(\d+)\s*$", out.rstrip())
        assert found, out
        return found[1]

    assert reset("--to-latest") == "10"
    assert reset("--to-earliest", "--execute") == "0"
    assert reset("--to-offset", "5", "--execute") == "5"
    assert reset("--to-current") == "5"
    assert reset("--shift-by", "-2", "--execute") == "3"
    assert reset("--shift-by", "15") == "10"
    assert reset("--to-datetime", "2020-01-31T23:57:00.000") == "0"
    assert reset("--by-duration", "P0DT1H0M0S") == "0"
    plan = page.run(
        tool, "--reset-offsets", *of_group, "--all-topics", "--to-offset", "7", "--export"
    )
    assert f"{page.topic},0,7" in plan
    file = page.folder / "offsets.csv"
    file.write_text(plan)
    assert reset("--from-file", str(file), "--execute") == "7"
    deleted = page.run(tool, "--delete", *of_group, "--group", other)
    assert "Deletion of requested consumer groups" in deleted
    assert "was successful" in deleted
    assert not {group, other} & set(page.run(tool, "--list").split())


def test_managing_share_groups(page: Page) -> None:
    group = page.name("share-group")
    tool, of_group = "kafka-share-groups", ("--group", group)
    of_entity = ("--entity-type", "groups", "--entity-name", group)
    earliest = "share.auto.offset.reset=earliest"
    page.run("kafka-configs", "--alter", *of_entity, "--add-config", earliest)
    member = ("--topic", page.topic, *of_group)
    with (
        page.background("kafka-console-share-consumer", *member),
        page.background("kafka-console-share-consumer", *member),
    ):
        page.wait(r"\sStable\s+2\s*$", tool, "--describe", *of_group, "--state")
        row = rf"{group}\s+\S+\s+/\S+\s+\S+\s+1\s+{page.topic}:0"
        members = page.wait(row, tool, "--describe", *of_group, "--members")
        assert len(re.findall(row, members)) == 2, "both share the partition"
        # What is finished with at the start moves the start offset with the next write.
        done = rf"{group}\s+{page.topic}\s+0\s+\d+\s+0\s*$"
        page.wait(done, tool, "--describe", *of_group)
        assert re.search(done, page.run(tool, "--describe", *of_group, "--offsets").rstrip())
        assert group in page.run(tool, "--list").split()
        assert page.type_of(group) == ("Share", "share")
        refused = page.run(tool, "--delete", *of_group, check=False)
        assert "was successful" not in refused, refused
    page.wait(r"\sEmpty\s+0\s*$", tool, "--describe", *of_group, "--state")

    def reset(*scenario: str) -> str:
        out = page.run(tool, "--reset-offsets", *of_group, "--topic", page.topic, *scenario)
        found = re.search(rf"{group}\s+{page.topic}\s+0\s+(\d+)\s*$", out.rstrip())
        assert found, out
        return found[1]

    assert reset("--to-earliest", "--dry-run") == "0"
    assert reset("--to-earliest", "--execute") == "0"
    assert reset("--to-datetime", "2020-01-31T23:57:00.000", "--execute") == "0"
    page.wait(rf"{page.topic}\s+0\s+0\s+10\s*$", tool, "--describe", *of_group)
    assert reset("--to-latest", "--execute") == "10"
    deleted = page.run(tool, "--delete-offsets", *of_group, "--topic", page.topic)
    assert re.search(rf"{page.topic}\s+Successful", deleted), deleted
    deleted = page.run(tool, "--delete", *of_group)
    assert f"Deletion of requested share groups ('{group}') was successful." in deleted
    assert group not in page.run(tool, "--list").split()
