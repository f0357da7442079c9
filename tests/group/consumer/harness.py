"""A shard with consumer groups, topics it knows of, and members that speak KIP-848 to it."""

from dataclasses import dataclass
from uuid import UUID

import pytest

from kafkalite.group.consumer.events import (
    ConsumerHeartbeat,
    DescribeConsumerGroup,
    PatternsResolved,
)
from kafkalite.group.consumer.group import ConsumerGroup
from kafkalite.group.consumer.heartbeat import check_heartbeat
from kafkalite.group.consumer.patterns import matching_topics
from kafkalite.group.consumer.records import Resolution
from kafkalite.group.effects import ResolvePatterns
from kafkalite.group.metadata import GroupMetadata
from kafkalite.group.shard import TopicsChanged
from kafkalite.meta.changes import (
    GROUP_RESOURCE,
    ConfigsChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from kafkalite.meta.image import Image, PartitionImage
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kafkalite.wire.stored import consumer_group as stored
from tests.group.harness import GroupHarness

REBALANCE_MS = 60_000
SESSION_MS = 45_000
ANY = object()

NUMBERS = {
    stored.ConsumerGroupMetadataKey: 3,
    stored.ConsumerGroupPartitionMetadataKey: 4,
    stored.ConsumerGroupMemberMetadataKey: 5,
    stored.ConsumerGroupTargetAssignmentMetadataKey: 6,
    stored.ConsumerGroupTargetAssignmentMemberKey: 7,
    stored.ConsumerGroupCurrentMemberAssignmentKey: 8,
    stored.ConsumerGroupRegularExpressionKey: 16,
}


def topic_id(name):
    return UUID(bytes=name.encode().rjust(16, b"\1"))


@dataclass
class Answer:
    """What a member is told; `has` is None for "no change"."""

    member_id: str
    epoch: int
    has: dict | None
    interval_ms: int


class ConsumerHarness(GroupHarness):
    def __init__(self, group_id="g", *, topics=None, metadata=None, **settings):
        metadata = metadata or GroupMetadata()
        super().__init__(group_id, metadata=metadata, **settings)
        self.written = []
        if topics is not None:
            self.create(**topics)

    # --- Topics

    def create(self, **counts):
        self._commit(
            *(
                TopicCreated(name=name, topic_id=topic_id(name), partitions=partitions(count))
                for name, count in counts.items()
            )
        )

    def create_anew(self, name, count):
        """A topic of a name that another one had."""
        self._commit(
            TopicCreated(name=name, topic_id=topic_id(f"{name}'"), partitions=partitions(count))
        )

    def add_partitions(self, name, count):
        had = len(self.metadata.topic(name).partitions)
        more = partitions(count - had)
        self._commit(
            PartitionsAdded(name=name, topic_id=topic_id(name), partitions=more, first_index=had)
        )

    def drop_topic(self, name):
        self._commit(TopicDeleted(name=name, topic_id=topic_id(name)))

    def configure(self, **configs):
        named = {key.replace("_", "."): str(value) for key, value in configs.items()}
        self._commit(
            ConfigsChanged(resource_type=GROUP_RESOURCE, resource_name=self.group_id, values=named)
        )

    def _commit(self, *changes):
        image: Image = self.metadata.image.apply(changes)
        changed = self.metadata.update(image)
        if changed:
            self.send(TopicsChanged(changed))

    # --- Members

    def beat(self, member_id, epoch, *, owned=ANY, topics=None, version=1, group_id=None, **said):
        """A heartbeat; a join says all that it has to unless it is told otherwise."""
        if epoch == 0:
            said = {"rebalance_timeout_ms": REBALANCE_MS, **said}
            if topics is None and "subscribed_topic_regex" not in said:
                topics = ["t1"]
            owned = {} if owned is ANY else owned
        owned = None if owned is ANY else owned
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id if group_id is None else group_id,
            member_id=member_id,
            member_epoch=epoch,
            subscribed_topic_names=topics,
            topic_partitions=None if owned is None else as_owned(owned),
            **said,
        )
        check_heartbeat(request, version, self.settings.consumer_group_assignors)
        self.written = []
        answer = self.ask(ConsumerHeartbeat(request, "client", "/127.0.0.1", "made", "User:me"))
        has = None
        if answer.assignment is not None:
            has = {
                self.metadata.topic_by_id(each.topic_id).name: list(each.partitions)
                for each in answer.assignment.topic_partitions
            }
        return Answer(answer.member_id, answer.member_epoch, has, answer.heartbeat_interval_ms)

    def refused(self, member_id, epoch, **said):
        """The code of a heartbeat that must be refused."""
        before = len(self.log)
        with pytest.raises(KafkaError) as refused:
            self.beat(member_id, epoch, **said)
        assert len(self.log) == before, "a refusal writes nothing"
        assert refused.value.message, "people read it"
        return refused.value.code

    def settle(self, *member_ids):
        """Heartbeat as clients do, giving up what they are told to, until nothing changes."""
        for _ in range(20):
            before = len(self.log)
            self.advance(1_100)
            for member_id in member_ids:
                member = self.group.members[member_id]
                self.beat(member_id, member.member_epoch, owned=self.has(member_id))
            if len(self.log) == before and self.state_name == "Stable":
                return
        raise AssertionError(f"still {self.state_name}")

    def has(self, member_id):
        return self._named(self.group.members[member_id].assigned)

    def gives_up(self, member_id):
        return self._named(self.group.members[member_id].revoking)

    def target(self, member_id):
        return self._named(self.group.targets[member_id])

    def _named(self, partitions):
        return {
            self.metadata.topic_by_id(key).name: sorted(value) for key, value in partitions.items()
        }

    def epochs(self):
        """Group epoch, target epoch, and those of the members."""
        group = self.group
        return (
            group.group_epoch,
            group.target_epoch,
            *(member.member_epoch for member in group.members.values()),
        )

    def resolve(self):
        """Do what the effects so far want, as the broker does after answering."""
        effects, self.effects = self.effects, []
        for effect in effects:
            assert isinstance(effect, ResolvePatterns)
            found = {
                pattern: Resolution(
                    matching_topics(pattern, self.metadata.image.topics),
                    self.metadata.version,
                    self.now.wall_ms,
                )
                for pattern in effect.patterns
            }
            self.written = []
            self.ask(PatternsResolved(effect.group_id, found))
        return len(effects)

    def describe_consumers(self, group_id=None):
        return self.ask(DescribeConsumerGroup(group_id or self.group_id))

    # --- Checks

    def before_replay(self, record):
        """Kafka's replay refuses tombstones of what is not empty yet."""
        kind = NUMBERS.get(type(record.key))
        if kind is None:
            self.written.append(2 if type(record.key).__name__ == "GroupMetadataKey" else 1)
            return
        self.written.append(kind if record.value is not None else -kind)
        group = self.replica.groups.get(record.key.group_id)
        if record.value is not None or not isinstance(group, ConsumerGroup):
            return
        if kind == 5:
            member = group.members.get(record.key.member_id)
            assert member is None or member.member_epoch == -1
            assert record.key.member_id not in group.targets
        if kind in (3, 6):
            assert not group.targets
        if kind == 3:
            assert not group.members
            assert group.target_timestamp_ms == 0, "its tombstone comes first"

    def check(self):
        super().check()
        ours, theirs = hard_consumer_groups(self.shard), hard_consumer_groups(self.replica)
        assert ours == theirs
        for group in self.shard.groups.values():
            if isinstance(group, ConsumerGroup):
                check_consumer_group(self.shard, group)


def check_consumer_group(shard, group):
    """The invariants of one consumer group."""
    owners = {}
    for member in group.members.values():
        for epochs in (member.assigned, member.revoking):
            for topic, indexes in epochs.items():
                for index in indexes:
                    assert owners.setdefault((topic, index), member) is member, "two owners"
                    assert group.partition_epoch(topic, index) == member.member_epoch
        assert member.member_epoch <= group.target_epoch <= group.group_epoch
        key = (0, group.group_id, member.member_id)
        assert shard.timers.deadline_ms(key) is not None, "nobody is kept for ever"
    held = {
        (topic, index) for topic, indexes in group.partition_epochs.items() for index in indexes
    }
    assert held == set(owners)
    assert set(group.static_members.values()) <= set(group.members)
    assert group.classic_members == sum(m.uses_classic_protocol for m in group.members.values())
    names = {}
    for member in group.members.values():
        for name in member.subscribed_topic_names:
            names.setdefault(name, [0, 0])[0] += 1
    for found in group.resolutions.values():
        for name in found.topics:
            names.setdefault(name, [0, 0])[1] += 1
    assert {name: [c.by_name, c.by_pattern] for name, c in group.names.items()} == names
    assert all(group.group_id in shard.subscribers.of([name]) for name in names)


def hard_consumer_groups(shard):
    return {
        name: (
            group.group_epoch, group.target_epoch, group.target_timestamp_ms, group.metadata_hash,
            group.members, {m: dict(t) for m, t in group.targets.items()}, group.static_members,
            group.partition_epochs, group.names, group.patterns, group.resolutions,
            group.assignors, group.classic_members, group.has_partition_metadata,
        )
        for name, group in shard.groups.items()
        if isinstance(group, ConsumerGroup)
    }  # fmt: skip


def partitions(count):
    return tuple(PartitionImage(replicas=(1,), isr=(1,), leader=1) for _ in range(count))


def as_owned(owned):
    return [
        TopicPartitions(topic_id=topic_id(name), partitions=[*indexes])
        for name, indexes in owned.items()
    ]
