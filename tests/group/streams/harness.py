"""A group shard with streams groups, its log replayed into a second one, and Streams threads.

What must hold after every event is checked: the two shards agree on all that is in the log, and no
task is where it must not be.
"""

from dataclasses import dataclass, field, replace
from uuid import UUID

from kafkalite.config import BrokerConfig
from kafkalite.coordinator.records import decode_batch
from kafkalite.group.metadata import GroupMetadata
from kafkalite.group.shard import TopicsChanged
from kafkalite.group.streams.group import StreamsGroup
from kafkalite.group.streams.heartbeat import StreamsHeartbeat
from kafkalite.group.streams.part import DescribeStreamsGroup
from kafkalite.meta.changes import (
    GROUP_RESOURCE,
    ConfigsChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from kafkalite.meta.image import PartitionImage
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    TaskIds,
)
from tests.group.harness import GroupHarness
from tests.group.streams.topologies import COUNTING, message

AT_ONCE = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
"""Settings without which every test had to wait first."""


def task_lists(text):
    """Tasks in words as a message has them: "0_1 0_2 1_0"."""
    found = {}
    for task in text.split():
        name, _, number = task.partition("_")
        found.setdefault(name, []).append(int(number))
    return [TaskIds(subtopology_id=name, partitions=numbers) for name, numbers in found.items()]


def words(lists):
    """The other way round; None for null."""
    if lists is None:
        return None
    return " ".join(f"{each.subtopology_id}_{n}" for each in lists for n in each.partitions)


@dataclass
class Thread:
    """One Streams thread, and what it knows."""

    member_id: str
    process_id: str = ""
    endpoint: tuple | None = None
    client_id: str = "app"
    epoch: int = 0
    endpoint_epoch: int = -1
    active: str = ""
    standby: str = ""
    topology: tuple = COUNTING
    topology_epoch: int = 0
    tags: dict = field(default_factory=dict)

    def __post_init__(self):
        self.process_id = self.process_id or f"process of {self.member_id}"


class StreamsHarness(GroupHarness):
    def __init__(self, topics=None, *, group_id="app", config=None, group_max_size=None):
        super().__init__(group_id)
        self.config = BrokerConfig({**AT_ONCE, **(config or {})})
        self.metadata = GroupMetadata(config=self.config)
        if group_max_size is not None:
            self.settings = replace(self.settings, streams_group_max_size=group_max_size)
        for shard in (self.shard, self.replica):
            shard.settings, shard.metadata = self.settings, self.metadata
        for name, count in (topics or {}).items():
            self.create(name, count)

    def restarted(self):
        """A harness that has loaded this one's log, as the next coordinator does."""
        other = StreamsHarness(group_id=self.group_id)
        other.config, other.metadata, other.settings = self.config, self.metadata, self.settings
        for shard in (other.shard, other.replica):
            shard.settings, shard.metadata = self.settings, self.metadata
            for batch in self.log:
                for record in decode_batch(batch, self.codec):
                    shard.replay(record)
        other.now_ms = self.now_ms
        other.end_offset = self.end_offset
        other._process(other.shard.on_loaded(other.now))
        other.check()
        return other

    def records(self, start=0):
        """What the log holds from a batch on: (short name of the kind, whether a value)."""
        return [
            (type(record.key).__name__.removeprefix("StreamsGroup").removesuffix("Key"), record)
            for batch in self.log[start:]
            for record in decode_batch(batch, self.codec)
        ]

    def kinds(self, start=0):
        return [f"{'' if r.value else '-'}{name}" for name, r in self.records(start)]

    # --- Metadata

    def change(self, *changes):
        touched = self.metadata.update(self.metadata.image.apply(changes))
        if touched:
            self.ask(TopicsChanged(touched))

    def create(self, name, count):
        topic_id = UUID(int=len(self.metadata.image.topics) + 1)
        self.change(TopicCreated(name=name, topic_id=topic_id, partitions=_partitions(count)))

    def grow(self, name, count):
        topic = self.metadata.image.topics[name]
        first = len(topic.partitions)
        self.change(
            PartitionsAdded(
                name=name,
                topic_id=topic.topic_id,
                first_index=first,
                partitions=_partitions(count - first),
            )
        )

    def delete(self, name):
        self.change(TopicDeleted(name=name, topic_id=self.metadata.image.topics[name].topic_id))

    def configure(self, **configs):
        self.change(
            ConfigsChanged(
                resource_type=GROUP_RESOURCE,
                resource_name=self.group_id,
                values={name.replace("_", "."): str(value) for name, value in configs.items()},
            )
        )

    # --- Requests

    def send_heartbeat(self, thread, **fields):
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=thread.member_id,
            member_epoch=thread.epoch,
            endpoint_information_epoch=thread.endpoint_epoch,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return self.send(
            StreamsHeartbeat(request=request, client_id=thread.client_id, client_host="/127.0.0.1")
        )

    def beat(self, thread, **fields):
        """A heartbeat as Streams sends it; the thread learns from the answer, which is returned.

        `owned=True` says what the thread has.
        """
        if fields.pop("owned", False):
            fields |= {
                "active_tasks": task_lists(thread.active),
                "standby_tasks": task_lists(thread.standby),
                "warmup_tasks": [],
            }
        response = self.answer(self.send_heartbeat(thread, **fields)).response
        thread.epoch = response.member_epoch
        thread.endpoint_epoch = response.endpoint_information_epoch
        if response.active_tasks is not None:
            thread.active = words(response.active_tasks)
            thread.standby = words(response.standby_tasks)
        return response

    def join(self, thread, **fields):
        thread.epoch, thread.active, thread.standby = 0, "", ""
        return self.beat(thread, **(joining(thread) | fields))

    def leave(self, thread, **fields):
        thread.epoch = -1
        return self.answer(self.send_heartbeat(thread, **fields)).response

    def settle(self, *threads, rounds=12):
        """Let threads heartbeat in turn, saying what they have, until nobody learns anything."""
        for _ in range(rounds):
            before = [(t.epoch, t.active, t.standby) for t in threads]
            for thread in threads:
                self.beat(thread, owned=True)
            if before == [(t.epoch, t.active, t.standby) for t in threads]:
                return
        raise AssertionError("the group does not come to rest")

    def refusal(self, thread, **fields):
        """The error that a heartbeat is refused with."""
        answer = self.answers[self.send_heartbeat(thread, **fields)]
        assert isinstance(answer, KafkaError), answer
        return answer

    def described(self):
        return self.ask(DescribeStreamsGroup(self.group_id))

    # --- What must hold

    def check(self):
        ours, theirs = (
            {name: g for name, g in shard.groups.items() if isinstance(g, StreamsGroup)}
            for shard in (self.shard, self.replica)
        )
        assert ours.keys() == theirs.keys()
        for name, group in ours.items():
            check_streams_group(group)
            assert hard_state(group) == hard_state(theirs[name])


def joining(thread):
    return {
        "rebalance_timeout_ms": 9_000,
        "topology": message(*thread.topology, epoch=thread.topology_epoch),
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": thread.process_id,
        "user_endpoint": thread.endpoint
        and Endpoint(host=thread.endpoint[0], port=thread.endpoint[1]),
        "client_tags": [KeyValue(key=key, value=value) for key, value in thread.tags.items()],
    }


def check_streams_group(group):
    """No task is active twice, nor twice in one process; what is held is known."""
    active, in_process = {}, {}
    for member in group.members.values():
        for held in (member.assigned, member.pending_revocation):
            for task in held.active:
                assert active.setdefault(task, member.member_id) == member.member_id, task
                assert group.holders.is_unreleased_active(task, "any")
        for kind in ("active", "standby", "warmup"):
            for task in getattr(member.assigned, kind):
                place = (member.process_id, task)
                assert in_process.setdefault(place, (member.member_id, kind)) == (
                    member.member_id,
                    kind,
                ), place
    assert set(group.soft.revoking_since) <= set(group.members)
    assert group.assignment_epoch <= group.group_epoch


def hard_state(group):
    return (
        group.group_epoch,
        group.metadata_hash,
        group.validated_topology_epoch,
        group.assignment_epoch,
        group.assignment_timestamp_ms,
        group.assignment_configs,
        None if group.topology is None else group.topology.value,
        group.members,
        group.targets,
    )


def _partitions(count):
    return tuple(PartitionImage(replicas=(1,), isr=(1,), leader=1) for _ in range(count))
