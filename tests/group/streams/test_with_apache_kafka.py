"""Apache Kafka's coordinator and this one, asked the same by Streams threads: answers side by side.

Random scripts of heartbeats (joins, owned tasks right and wrong, stale epochs, leaves, the wish to
end the application), changes of topics and settings, commits, and what operators ask. All delays
are off, so that answers do not depend on the time. Topics are made before, or, in some scripts, by
the brokers, which are waited for. Then each reads the log that the other wrote.

Not asked of Apache is what it fails at: endpoints while topics are not as the topology needs them.
"""

import random
import time

import pytest

from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkalite.wire.messages.describe_groups import DescribeGroupsRequest
from kafkalite.wire.messages.heartbeat import HeartbeatRequest
from kafkalite.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkalite.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkalite.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkalite.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafkalite.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from kafkalite.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.group.apache_pair import GroupPair, committed_codes, fetched_offsets
from tests.group.apache_side import (
    BrokerSide,
    both_brokers,
    both_sides,
    check_that_apache_reads,
    kinds_that_apache_wrote,
)
from tests.group.streams.harness import Thread, joining, task_lists, words
from tests.group.streams.topologies import message, subtopology

pytestmark = [pytest.mark.kafka_dir, pytest.mark.slow]

SCRIPTS = 30
STEPS = 40
CONFIG_PAUSE_S = 0.5
"""Until Apache's coordinator knows what settings a group has: nothing else tells."""

GROUP_RESOURCE = 32
SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
    "auto.create.topics.enable": "false",
}


class Side(BrokerSide):
    """One of the two brokers."""

    def wait_topics(self, topics):
        """Return when the coordinator knows them, which is after the broker does.

        A group of one's own has tasks for all of their partitions then.
        """
        self.probes += 1
        probe = Thread("probe", topology=tuple(subtopology(name, name) for name in topics))
        request = StreamsGroupHeartbeatRequest(
            group_id=f"probe-{self.probes}", member_id=probe.member_id, **joining(probe)
        )
        tasks = {f"{name}_{n}" for name, count in topics.items() for n in range(count)}
        self.wait_for(
            "STREAMS_GROUP_HEARTBEAT",
            0,
            request,
            lambda a: set((words(a.active_tasks) or "").split()) == tasks,
        )


class Pair(GroupPair):
    """A group of Streams threads."""

    def __init__(self, sides, name, rng):
        super().__init__(sides, name, rng)
        self.topics = {f"{name}-in": rng.choice([1, 2, 3])}
        source = f"{name}-in"
        self.topology = rng.choice(
            [
                (subtopology("0", source),),
                (subtopology("0", source, changelogs=f"{name}-log"),),
                (
                    subtopology("0", source, sinks=f"{name}-rep"),
                    subtopology("1", repartition=f"{name}-rep", changelogs=f"{name}-log"),
                ),
            ]
        )
        self.internal = {
            info.name: self.topics[source]
            for each in self.topology
            for info in (*each.repartition_source_topics, *each.state_changelog_topics)
        }
        self.all_there = rng.random() < 0.7
        has_endpoints = self.all_there and rng.random() < 0.5
        self.threads = [
            Thread(
                member,
                rng.choice(["p1", "p2", "p3"]),
                topology=self.topology,
                endpoint=(member, 9) if has_endpoints and rng.random() < 0.6 else None,
                client_id="raw",
            )
            for member in ("a", "b", "c")
        ]
        self.previous = dict.fromkeys(("a", "b", "c"), 0)
        made = {**self.topics, **self.internal} if self.all_there else dict(self.topics)
        for side in sides:
            side.create(made)

    @property
    def committed_to(self):
        return {**self.topics, **self.internal}

    # --- Heartbeats

    def beat(self, thread, **fields):
        request = StreamsGroupHeartbeatRequest(
            group_id=self.name,
            member_id=thread.member_id,
            member_epoch=thread.epoch,
            endpoint_information_epoch=thread.endpoint_epoch,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        answer = self.both("STREAMS_GROUP_HEARTBEAT", 0, request, shown_heartbeat)
        if answer.error_code:
            return answer
        self.previous[thread.member_id] = thread.epoch
        thread.epoch = answer.member_epoch
        thread.endpoint_epoch = answer.endpoint_information_epoch
        if answer.active_tasks is not None:
            thread.active = words(answer.active_tasks)
            thread.standby = words(answer.standby_tasks)
        if any(status.status_code == 3 for status in answer.status):
            self.internal = dict.fromkeys(self.internal, self.topics[f"{self.name}-in"])
            for side in self.sides:
                side.wait_topics(self.internal)
        return answer

    def join(self, thread, **fields):
        thread.epoch, thread.active, thread.standby = 0, "", ""
        return self.beat(thread, **(joining(thread) | fields))

    def join_anyhow(self, thread):
        odd = self.rng.random()
        fields = {}
        if odd < 0.1:
            fields["topology"] = message(subtopology("0", f"{self.name}-in", sinks="other"))
        elif odd < 0.15:
            fields["topology"] = message(*self.topology, epoch=1)
        elif odd < 0.2:
            fields["topology"] = message(subtopology("9", "__consumer_offsets"))
        elif odd < 0.25:
            fields["rebalance_timeout_ms"] = -1
        self.join(thread, **fields)

    def acknowledge(self, thread):
        self.beat(thread, **owning(thread.active, thread.standby))

    def claim(self, thread):
        tasks = [f"{s}_{n}" for s in ("0", "1", "7") for n in range(3)]
        chosen = self.rng.sample(tasks, self.rng.randrange(3))
        self.beat(thread, **owning(" ".join(sorted(chosen)), ""))

    def be_stale(self, thread):
        epoch = thread.epoch
        thread.epoch = self.rng.choice([self.previous[thread.member_id], epoch + 1, epoch - 1])
        fields = self.rng.choice([{}, owning(thread.active, thread.standby), owning("", "")])
        if thread.epoch > 0 and self.beat(thread, **fields).error_code:
            thread.epoch = epoch

    def change(self, thread):
        value = self.rng.choice("xyz")
        self.beat(thread, **self.rng.choice([{"rack_id": value}, {"process_id": f"p{value}"}]))

    def leave(self, thread):
        thread.epoch = -1
        self.beat(thread, shutdown_application=self.rng.random() < 0.2)
        thread.epoch = 0

    def end_application(self, thread):
        self.beat(thread, shutdown_application=True)

    def misspell(self, thread):
        self.beat(
            thread,
            **self.rng.choice(
                [
                    {"instance_id": "i"},
                    {"active_tasks": []},
                    {"warmup_tasks": task_lists("0_0")},
                    {"member_id": ""},
                    {"member_epoch": -3},
                    {"topology": message(*self.topology)},
                    {"group_id": "unknown"},
                ]
            ),
        )

    # --- Topics and settings

    def grow(self, _):
        name = f"{self.name}-in"
        if self.topics[name] > 4 or any(thread.endpoint for thread in self.threads):
            return
        self.topics[name] += 1
        topic = CreatePartitionsTopic(name=name, count=self.topics[name], assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)
        for side in self.sides:
            side.ask("CREATE_PARTITIONS", 2, request)
            side.wait_topics(self.topics)

    def want_standbys(self, thread):
        del thread
        value = self.rng.choice("01")
        config = AlterableConfig(
            name="streams.num.standby.replicas", config_operation=0, value=value
        )
        resource = AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=self.name, configs=[config]
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        self.both(
            "INCREMENTAL_ALTER_CONFIGS",
            1,
            request,
            lambda a, _: [r.error_code for r in a.responses],
        )
        time.sleep(CONFIG_PAUSE_S)

    # --- What others ask

    def describe(self, thread):
        del thread
        request = StreamsGroupDescribeRequest(group_ids=[self.name, "unknown"])
        self.both("STREAMS_GROUP_DESCRIBE", 0, request, shown_description)

    def list(self, thread):
        del thread
        states = self.rng.choice([[], ["not_ready"], ["NotReady"], ["Stable"], ["empty"]])
        self.list_by(states, ["Streams"])

    def describe_classic(self, thread):
        del thread
        request = DescribeGroupsRequest(groups=[self.name])
        version = self.rng.choice([5, 6])
        self.both(
            "DESCRIBE_GROUPS",
            version,
            request,
            lambda a, _: [(g.error_code, g.error_message, g.group_state) for g in a.groups],
        )

    def commit(self, thread):
        epoch = thread.epoch + self.rng.choice([0, 0, -1, -1, -2, 1])
        name = self.rng.choice([*self.committed_to])
        indexes = range(self.committed_to[name])
        request = OffsetCommitRequest(
            group_id=self.name,
            generation_id_or_member_epoch=self.rng.choice([epoch, epoch, -1]),
            member_id=self.rng.choice([thread.member_id, thread.member_id, ""]),
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=n, committed_offset=7)
                        for n in self.rng.sample(indexes, 1)
                    ],
                )
            ],
        )
        version = self.rng.choice([8, 9, 9, 9])
        self.both(
            "OFFSET_COMMIT",
            version,
            request,
            committed_codes,
        )

    def fetch(self, thread):
        epoch = thread.epoch + self.rng.choice([0, 0, -1, 1])
        member_id, epoch = self.rng.choice([(thread.member_id, epoch)] * 3 + [(None, -1)])
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=[*range(count)])
            for name, count in self.topics.items()
        ]
        group = OffsetFetchRequestGroup(
            group_id=self.name, member_id=member_id, member_epoch=epoch, topics=topics
        )
        self.both(
            "OFFSET_FETCH",
            9,
            OffsetFetchRequest(groups=[group]),
            fetched_offsets,
        )

    def speak_classic(self, thread):
        if self.rng.random() < 0.5:
            request = HeartbeatRequest(
                group_id=self.name, generation_id=thread.epoch, member_id=thread.member_id
            )
            self.both("HEARTBEAT", 4, request, lambda a, _: a.error_code)
            return
        if not any(each.epoch > 0 for each in self.threads):
            return  # it would become a classic group, which other tests compare
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
        request = JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=thread.member_id,
            protocol_type="consumer",
            protocols=[protocol],
        )
        self.both("JOIN_GROUP", 9, request, lambda a, _: a.error_code)


HEARTBEATS = ("join_anyhow", "beat", "beat", "beat", "acknowledge", "acknowledge", "acknowledge")
ODD = ("claim", "be_stale", "change", "leave", "end_application", "misspell")
OTHERS = (
    *("grow", "want_standbys", "describe", "describe", "list", "describe_classic", "commit"),
    *("commit", "commit_in_transaction", "fetch", "delete_offsets", "delete", "speak_classic"),
)


def owning(active, standby):
    return {
        "active_tasks": task_lists(active),
        "standby_tasks": task_lists(standby),
        "warmup_tasks": [],
    }


def in_order(lists):
    return None if lists is None else sorted((t.subtopology_id, t.partitions) for t in lists)


def shown_heartbeat(answer, _):
    endpoints = answer.partitions_by_user_endpoint
    return (
        ErrorCode(answer.error_code).name,
        answer.error_message,
        (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms),
        (answer.acceptable_recovery_lag, answer.task_offset_interval_ms),
        [
            (s.status_code, s.status_detail.partition("; Creation failed")[0])
            for s in answer.status or ()
        ],
        [in_order(t) for t in (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)],
        answer.endpoint_information_epoch,
        None
        if endpoints is None
        else sorted(
            (
                (e.user_endpoint.host, e.user_endpoint.port),
                *(
                    sorted((t.topic, sorted(t.partitions)) for t in topics)
                    for topics in (e.active_partitions, e.standby_partitions)
                ),
            )
            for e in endpoints
        ),
    )


def shown_description(answer, _):
    return [
        (
            (ErrorCode(g.error_code).name, g.error_message, g.group_id, g.group_state),
            (g.group_epoch, g.assignment_epoch, g.authorized_operations),
            g.topology
            and (
                g.topology.epoch,
                [
                    (
                        (s.subtopology_id, s.source_topics, s.repartition_sink_topics),
                        [_topic(t) for t in s.state_changelog_topics],
                        [_topic(t) for t in s.repartition_source_topics],
                    )
                    for s in g.topology.subtopologies
                ],
            ),
            sorted(_described_member(m) for m in g.members),
        )
        for g in sorted(answer.groups, key=lambda g: g.group_id)
    ]


def _topic(t):
    """All but the count of partitions: Apache's coordinator tells of those that it has decided only
    when it has written something afterwards.
    """
    return t.name, t.replication_factor, sorted((c.key, c.value) for c in t.topic_configs)


def _described_member(m):
    endpoint = m.user_endpoint
    return (
        (m.member_id, m.member_epoch, m.instance_id or "", m.rack_id or "", m.topology_epoch),
        (m.client_id, m.client_host, m.process_id, m.is_classic),
        (endpoint.host, endpoint.port) if endpoint else (),
        *(
            [words(t) for t in (a.active_tasks, a.standby_tasks, a.warmup_tasks)]
            for a in (m.assignment, m.target_assignment)
        ),
    )


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    with both_brokers(tmp_path_factory.mktemp("oracle"), SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def sides(brokers):
    with both_sides(brokers, Side) as made:
        yield made


@pytest.mark.parametrize("seed", range(SCRIPTS))
def test_answers_are_the_same(sides, seed):
    rng = random.Random(seed)
    pair = Pair(sides, f"app{seed}", rng)
    done = []
    for _ in range(STEPS):
        thread = rng.choice(pair.threads)
        step = rng.choice(HEARTBEATS if rng.random() < 0.6 else rng.choice([ODD, OTHERS]))
        if thread.epoch == 0 and step in (*HEARTBEATS, *ODD):
            step = "join_anyhow" if rng.random() < 0.8 else step
        if thread.epoch == 0 and step in ("beat", "acknowledge", "claim", "change", "be_stale"):
            thread.epoch = 1
        done.append(f"{step}({thread.member_id}, {thread.epoch})")
        try:
            getattr(pair, step)(thread)
        except AssertionError as difference:
            difference.add_note(f"seed {seed}: {', '.join(done)}")
            raise


def test_each_reads_what_the_other_wrote(brokers, sides):
    """`kafka-dump-log` reads our records, and our codec those of Apache's."""
    del sides
    _, _, folder = brokers
    check_that_apache_reads(folder, (17, 19, 20, 21, 22, 23))
    assert {
        f"StreamsGroup{kind}Key"
        for kind in (
            "Metadata",
            "MemberMetadata",
            "TargetAssignmentMetadata",
            "TargetAssignmentMember",
            "CurrentMemberAssignment",
            "Topology",
        )
    } <= kinds_that_apache_wrote(folder)
