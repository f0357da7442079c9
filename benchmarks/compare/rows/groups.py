"""Row 13: the groups of Kafka 4: a rebalance, heartbeats of many groups, a queue.

Members are sockets that speak ConsumerGroupHeartbeat, and come again at once instead of after five
seconds: what is measured is the coordinator. The interval between assignments is off for them.
"""

import time
import uuid
from dataclasses import dataclass, field
from functools import partial

from benchmarks.compare import loads
from benchmarks.compare.brokers import BrokerUnderTest
from benchmarks.compare.measure import Case, Metric, Sample
from benchmarks.compare.rows.common import check_stored, fresh_topic
from benchmarks.process import frame_of
from kafkalite.wire.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafkalite.wire.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.raw_client import RawClient

MEMBERS = 50
PARTITIONS = 200
GROUPS = 1_000
HEARTBEAT_VERSION = 1
TIMEOUT_MS = 300_000
REBALANCE_SECONDS = 60
GROUP_RESOURCE, SET = 32, 0
NOT_YET = (14, 15, 16)
"""The coordinator loads, is not available, or elsewhere: so it is when the first group comes."""
CONFIG_SECONDS = 0.5
"""Until a broker knows a group's settings; nothing tells when."""
SHARE_PARTITIONS, SHARE_BATCH, SHARE_RECORDS = 4, 100, 400_000


def groups(factor: float) -> list[Case]:
    """Row 13."""
    less = {"more_is_better": False, "target": 1.0}
    return [
        Case(
            f"{MEMBERS} consumers, {PARTITIONS} partitions",
            (Metric("all join", "ms", **less), Metric("one leaves", "ms", **less)),
            _rebalance,
        ),
        Case(
            f"{GROUPS:,} groups, heartbeats in turn",
            (
                Metric("requests", "requests/s", target=1.0),
                Metric("p99", "ms", more_is_better=False),
            ),
            partial(_heartbeats, seconds=2 * factor),
        ),
        Case(
            "share group, Apache's kafka-share-consumer-perf-test",
            (Metric("throughput", "thousand records/s", target=1.0),),
            partial(_share, records=int(SHARE_RECORDS * factor)),
            warm_up=False,
        ),
    ]


# --- A rebalance ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Member:
    """A connection, and what its member knows."""

    client: RawClient
    group: str
    topic: str
    member_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    epoch: int = 0
    owned: list[TopicPartitions] | None = field(default_factory=list)
    said: bool = False
    """Whether the coordinator was told that it owns just this."""

    def send(self) -> None:
        is_join = self.epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=TIMEOUT_MS if is_join else -1,
            subscribed_topic_names=[self.topic] if is_join else None,
            topic_partitions=None if self.said else self.owned,
        )
        self.said = not is_join
        self.client.send_request(CONSUMER_GROUP_HEARTBEAT, HEARTBEAT_VERSION, request)

    def receive(self) -> None:
        answer = self.client.receive_response(CONSUMER_GROUP_HEARTBEAT, HEARTBEAT_VERSION)
        if answer.error_code in NOT_YET and not self.epoch:
            return  # it joins again
        assert not answer.error_code, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned, self.said = answer.assignment.topic_partitions, False

    def leave(self) -> None:
        self.epoch = -1
        self.said = True
        self.send()
        self.client.receive_response(CONSUMER_GROUP_HEARTBEAT, HEARTBEAT_VERSION)

    @property
    def partitions(self) -> list[int]:
        return [index for topic in self.owned or () for index in topic.partitions]


def _rebalance(broker: BrokerUnderTest, scale: float) -> Sample:
    """Let all members join, then one leave; each time until all partitions have one owner."""
    del scale
    with fresh_topic(broker, PARTITIONS) as topic:
        group = f"rebalanced-{uuid.uuid4()}"
        members = [_Member(RawClient(broker), group, topic) for _ in range(MEMBERS)]
        _set_group(members[0].client, group, "consumer.assignment.interval.ms", "0")
        _wait_coordinator(members[0].client, group)
        cpu, began = time.process_time(), time.perf_counter()
        _settle(members)
        joined = time.perf_counter()
        members[0].leave()
        _settle(members[1:])
        left = time.perf_counter()
        used = time.process_time() - cpu
        for member in members[1:]:
            member.leave()
        for member in members:
            member.client.close()
    values = {"all join": (joined - began) * 1000, "one leaves": (left - joined) * 1000}
    return Sample(values, client_cpu=used)


def _settle(members: list[_Member]) -> None:
    """Heartbeat until the partitions are divided, everybody said so, and epochs are the same."""
    deadline = time.monotonic() + REBALANCE_SECONDS
    while True:
        for member in members:
            member.send()
        for member in members:
            member.receive()
        owned = [index for member in members for index in member.partitions]
        if (
            len(owned) == len(set(owned)) == PARTITIONS
            and len({member.epoch for member in members}) == 1
            and all(member.said for member in members)
        ):
            return
        assert time.monotonic() < deadline, f"{len(owned)} of {PARTITIONS} partitions are owned"


def _wait_coordinator(client: RawClient, group: str) -> None:
    """Have `__consumer_offsets` made, and wait until somebody leads it."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    deadline = time.monotonic() + REBALANCE_SECONDS
    while client.ask(FIND_COORDINATOR, 4, request).coordinators[0].error_code:
        assert time.monotonic() < deadline, "no coordinator"
        time.sleep(0.05)


def _set_group(client: RawClient, group: str, name: str, value: str) -> None:
    resource = AlterConfigsResource(
        resource_type=GROUP_RESOURCE,
        resource_name=group,
        configs=[AlterableConfig(name=name, config_operation=SET, value=value)],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = client.ask(INCREMENTAL_ALTER_CONFIGS, 1, request)
    assert not answer.responses[0].error_code, answer
    time.sleep(CONFIG_SECONDS)


# --- Heartbeats ----------------------------------------------------------------------------------


def _heartbeats(broker: BrokerUnderTest, scale: float, *, seconds: float) -> Sample:
    """One member in each group that says that it is there, over four connections."""
    run = uuid.uuid4()
    with fresh_topic(broker, 1) as topic:
        client = RawClient(broker)
        members = [
            _Member(client, f"beating-{run}-{number}", topic, member_id=f"member-{number}")
            for number in range(GROUPS)
        ]
        _wait_coordinator(client, members[0].group)
        while not all(member.said and member.epoch for member in members):
            for member in members:
                member.send()
                member.receive()
        frames = [_frame(member) for member in members]
        done = loads.send_frames(
            broker.port, frames, connections=4, depth=1, seconds=seconds * scale
        )
        for member in members:
            member.send()
            member.receive()
            member.leave()
        client.close()
    return Sample(
        {"requests": done["answers"] / done["seconds"], "p99": done["p99_us"] / 1000},
        seconds=done["seconds"],
        client_cpu=done["cpu"],
    )


def _frame(member: _Member) -> bytes:
    request = ConsumerGroupHeartbeatRequest(
        group_id=member.group, member_id=member.member_id, member_epoch=member.epoch
    )
    return frame_of(CONSUMER_GROUP_HEARTBEAT, HEARTBEAT_VERSION, request)


# --- A queue -------------------------------------------------------------------------------------


def _share(broker: BrokerUnderTest, scale: float, *, records: int) -> Sample:
    """Consume a topic that was filled before, with implicit acknowledgements."""
    count = int(records * scale) // (SHARE_PARTITIONS * SHARE_BATCH)
    count *= SHARE_PARTITIONS * SHARE_BATCH
    group = f"queue-{uuid.uuid4()}"
    with fresh_topic(broker, SHARE_PARTITIONS) as topic:
        loads.fill_exactly(broker.port, topic, SHARE_PARTITIONS, SHARE_BATCH, count)
        check_stored(broker, topic, SHARE_PARTITIONS, count)
        client = RawClient(broker)
        _set_group(client, group, "share.auto.offset.reset", "earliest")
        client.close()
        done = loads.share_consumer(broker, topic, group, count)
    return Sample(
        {"throughput": done["rate"] / 1000},
        seconds=done["seconds"],
        client_cpu=done["cpu"],
        byte_count=count * loads.RECORD_BYTES,
    )
