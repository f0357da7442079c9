"""Share groups (KIP-932): Apache's share consumer, its tools, franz-go, and Apache's answers."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.apache_kafka import KAFKA_4, ApacheBroker, run_tool
from compat_tests.share.chain import run_chain
from compat_tests.share.transcript import SETTINGS, play
from compat_tests.share.worker import GoWorker, Worker
from kafkalite.coordinator.records import decode_batch
from kafkalite.group.records import GroupRecordCodec
from kafkalite.group.settings import GroupSettings
from kafkalite.group.shard import GroupShard
from kafkalite.group.share.group import ShareGroup, TopicState
from kafkalite.share.batches import RecordState, SharePartitionKey
from kafkalite.share.records import ShareStateCodec
from kafkalite.share.settings import ShareCoordinatorSettings
from kafkalite.share.shards import ShareStateShards
from kafkalite.testing import Broker
from kafkalite.wire.records import iterate_batches
from tests.share.probe import Probe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kafkalite.coordinator.shard import RecordCodec
    from kafkalite.share.shard import ShareStateShard

pytestmark = [pytest.mark.compat, pytest.mark.slow, pytest.mark.xdist_group("share")]

COUNT = 300


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of this project, whose folder is `broker.data`."""
    folder = tmp_path_factory.mktemp("share")
    with Broker(config={"group.share.assignment.interval.ms": 0}, data_dir=folder) as running:
        yield running


def fill(broker: Broker, topic: str) -> None:
    """Make a topic of three partitions with numbered records."""
    broker.create_topic(topic, partitions=3)
    for number in range(COUNT):
        broker.produce(topic, value=str(number).encode(), partition=number % 3)


def begin_at_start(port: int, group: str) -> None:
    probe = Probe(port, group=group)
    probe.set_group(share_auto_offset_reset="earliest")
    probe.client.close()


@pytest.mark.parametrize("kind", [Worker, GoWorker], ids=["Java-4.3.1", "franz-go-1.22.2"])
def test_workers_share_a_queue(kind: type[Worker], broker: Broker) -> None:
    """Each record is accepted once; what is released comes again with a higher count."""
    topic = group = f"queue-{uuid.uuid4().hex[:8]}"
    fill(broker, topic)
    begin_at_start(broker.port, group)
    workers = [
        kind(broker.bootstrap, group, topic, mode="releasing"),
        kind(broker.bootstrap, group, topic),
    ]
    for worker in workers:
        worker.wait()
    accepted = [
        (each.partition, each.offset) for worker in workers for each in worker.said("accepted")
    ]
    assert len(accepted) == len(set(accepted)) == COUNT
    released = {(each.partition, each.offset) for each in workers[0].said("released")}
    again = {
        (each.partition, each.offset)
        for worker in workers
        for each in worker.said("got")
        if each.count > 1
    }
    assert again == released
    broker.wait_acknowledged(group, topic)


def test_implicit_acknowledgement_by_polling(broker: Broker) -> None:
    topic = group = f"implicit-{uuid.uuid4().hex[:8]}"
    fill(broker, topic)
    begin_at_start(broker.port, group)
    worker = Worker(broker.bootstrap, group, topic, mode="implicit")
    worker.wait()
    assert len(worker.said("got")) == COUNT
    broker.wait_acknowledged(group, topic)


def test_tools(broker: Broker) -> None:
    """Console and verifiable share consumers, and kafka-share-groups whole."""
    topic = group = f"tools-{uuid.uuid4().hex[:8]}"
    fill(broker, topic)
    begin_at_start(broker.port, group)

    def tool(name: str, *arguments: str) -> str:
        where = ("--bootstrap-server", broker.bootstrap)
        return str(run_tool(KAFKA_4, name, *where, *arguments, timeout=120).stdout)

    printed = tool(
        "kafka-console-share-consumer",
        *("--topic", topic, "--group", group, "--max-messages", "100", "--timeout-ms", "30000"),
    )
    assert len(printed.split()) == 100
    verified = tool(
        "kafka-verifiable-share-consumer",
        *("--topic", topic, "--group-id", group, "--max-messages", "100"),
    )
    assert '"name":"offsets_acknowledged"' in verified
    assert group in tool("kafka-share-groups", "--list").split()
    described = tool("kafka-share-groups", "--describe", "--group", group)
    lags = [line.split()[-1] for line in described.splitlines() if line.startswith(group)]
    assert len(lags) == 3
    assert sum(map(int, lags)) <= COUNT - 200
    state = tool("kafka-share-groups", "--describe", "--group", group, "--state")
    assert "Empty" in state
    choice = ("--group", group, "--topic", topic)
    tool("kafka-share-groups", "--reset-offsets", *choice, "--to-earliest", "--execute")
    described = tool("kafka-share-groups", "--describe", "--group", group)
    rows = [line.split() for line in described.splitlines() if line.startswith(group)]
    assert [row[3:5] for row in rows] == [["0", "100"]] * 3
    tool("kafka-share-groups", "--delete-offsets", *choice)
    tool("kafka-share-groups", "--delete", "--group", group)
    assert group not in tool("kafka-share-groups", "--list").split()


def test_answers_are_apaches() -> None:
    """The same requests to both brokers, answered the same but for ids, times and words."""
    with ApacheBroker(config=SETTINGS) as apache:
        theirs = play(apache.port)
    with Broker(config=SETTINGS) as ours:
        answers = play(ours.port)
    assert [name for name, _ in answers] == [name for name, _ in theirs]
    for (name, answer), (_, expected) in zip(answers, theirs, strict=True):
        assert answer == expected, name


def test_logs_are_read_by_the_other(tmp_path: Path) -> None:
    """What kafkalite wrote by kafka-dump-log, what Apache Kafka wrote by kafkalite."""
    with Broker(config=SETTINGS, data_dir=tmp_path / "ours") as broker:
        play(broker.port)
    dumped = _dumped(tmp_path / "ours", "__share_group_state", "--share-group-state-decoder")
    assert '"type":"0"' in dumped
    assert '"type":"1"' in dumped
    assert "deliveryState" in dumped
    groups = _dumped(tmp_path / "ours", "__consumer_offsets", "--offsets-decoder")
    for kind in range(10, 16):
        assert f'"type":"{kind}"' in groups, kind
    with ApacheBroker(config=SETTINGS, data_dir=tmp_path / "theirs") as apache:
        probe = Probe(apache.port, group="g")
        topic_id = probe.create_topic("t")
        probe.produce("t", 20)
        probe.set_group(share_auto_offset_reset="earliest")
        _join(probe, "t")
        probe.fetch(topic_id)
        probe.acknowledge(topic_id, (0, 4, 1), (5, 9, 2), (12, 12, 3))
        probe.client.close()
    states = ShareStateShards(ShareCoordinatorSettings(), lambda _, index: index == 0).new_shard(0)
    _replay(tmp_path / "theirs", "__share_group_state", ShareStateCodec(), states)
    ((key, state),) = states.states.items()
    assert key == SharePartitionKey("g", topic_id, 0)
    given = {
        offset: (RecordState(batch.delivery_state).name, batch.delivery_count)
        for batch in state.batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    assert state.start_offset in (0, 5)
    assert {offset for offset, (name, _) in given.items() if name == "ACKNOWLEDGED"} <= {*range(5)}
    assert [given[offset] for offset in range(5, 10)] == [("AVAILABLE", 1)] * 5
    assert given[12] == ("ARCHIVED", 1)
    groups = GroupShard(GroupSettings())
    _replay(tmp_path / "theirs", "__consumer_offsets", GroupRecordCodec(), groups)
    group = groups.groups["g"]
    assert isinstance(group, ShareGroup)
    assert group.states is not None
    assert group.states.initialized == {topic_id: TopicState("t", (0,))}
    assert [each.assigned for each in group.members.values()] == [{topic_id: (0,)}]


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_workers_and_brokers_lose_and_repeat_nothing(seed: int) -> None:
    happened = run_chain(seed=seed, faults=4)
    assert happened["accepted"] > 500
    assert happened["redelivered"]


def _join(probe: Probe, topic: str) -> None:
    deadline = time.monotonic() + 60
    epoch = 0
    while time.monotonic() < deadline:
        probe.find_coordinator(probe.group, key_type=0)
        answer: Any = probe.heartbeat(epoch, [topic])
        if not answer.error_code:
            epoch = answer.member_epoch
            if answer.assignment.topic_partitions:
                return
        time.sleep(0.2)
    raise AssertionError("nothing was assigned")


def _dumped(folder: Path, topic: str, *options: str) -> str:
    files = [str(path) for path in sorted(folder.glob(f"{topic}-*/*.log")) if path.stat().st_size]
    assert files
    dump = run_tool(KAFKA_4, "kafka-dump-log", "--files", ",".join(files), *options, timeout=120)
    return str(dump.stdout)


def _replay(
    folder: Path, topic: str, codec: RecordCodec, shard: GroupShard | ShareStateShard
) -> None:
    for path in sorted(folder.glob(f"**/{topic}-*/*.log")):
        raw = memoryview(path.read_bytes())
        for position, header in iterate_batches(raw):
            for record in decode_batch(raw[position : position + header.size], codec):
                shard.replay(record)
