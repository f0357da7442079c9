"""A group shard with share groups, its log replayed into a second one, and members.

After every event the two shards must agree on all that is in the log. Share partitions are
initialised when a test says so.
"""

from dataclasses import replace
from uuid import UUID

from kafkalite.config import BrokerConfig
from kafkalite.coordinator.records import decode_batch
from kafkalite.group.effects import InitializeStates
from kafkalite.group.metadata import GroupMetadata
from kafkalite.group.shard import TopicsChanged, TopicsDeleted
from kafkalite.group.share.group import ShareGroup
from kafkalite.group.share.heartbeat import ShareHeartbeat
from kafkalite.group.share.part import DescribeShareGroup
from kafkalite.group.share.states import StatesInitialized
from kafkalite.meta.changes import (
    GROUP_RESOURCE,
    ConfigsChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from kafkalite.meta.image import PartitionImage
from kafkalite.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.group.harness import GroupHarness


class ShareHarness(GroupHarness):
    def __init__(self, topics=None, *, config=None, group_max_size=None):
        self.plans = []
        super().__init__("sh")
        config = {"group.share.assignment.interval.ms": "0", **(config or {})}
        self.config = BrokerConfig(config)
        self.metadata = GroupMetadata(config=self.config)
        if group_max_size is not None:
            self.settings = replace(self.settings, share_group_max_size=group_max_size)
        for shard in (self.shard, self.replica):
            shard.settings, shard.metadata = self.settings, self.metadata
        for name, count in (topics or {}).items():
            self.create(name, count)

    def restarted(self, *, times=1):
        """A harness that has loaded this one's log, as the next coordinator does."""
        other = ShareHarness()
        other.config, other.metadata, other.settings = self.config, self.metadata, self.settings
        for shard in (other.shard, other.replica):
            shard.settings, shard.metadata = self.settings, self.metadata
            for batch in self.log * times:
                for record in decode_batch(batch, self.codec):
                    shard.replay(record)
        other.now_ms = self.now_ms
        other.log = [*self.log]
        other.end_offset = self.end_offset
        other._process(other.shard.on_loaded(other.now))
        other.check()
        return other

    def kinds(self, start=0):
        """What the log holds from a batch on: short names of kinds, - for those without value."""
        return [
            ("" if record.value else "-")
            + type(record.key).__name__.removeprefix("ShareGroup").removesuffix("Key")
            for batch in self.log[start:]
            for record in decode_batch(batch, self.codec)
        ]

    def _process(self, result):
        self.plans += [each for each in result.effects if isinstance(each, InitializeStates)]
        super()._process(result)

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
        topic = self.metadata.image.topics[name]
        self.change(TopicDeleted(name=name, topic_id=topic.topic_id))
        self.ask(TopicsDeleted(frozenset([name])))

    def configure(self, **configs):
        self.change(
            ConfigsChanged(
                resource_type=GROUP_RESOURCE,
                resource_name=self.group_id,
                values={name.replace("_", "."): str(value) for name, value in configs.items()},
            )
        )

    # --- Members

    def heartbeat(self, member, epoch, *topics, **fields):
        """Send a heartbeat; without topics none are said. Return the ticket."""
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=member,
            member_epoch=epoch,
            subscribed_topic_names=[*topics] if topics else None,
            **fields,
        )
        return self.send(ShareHeartbeat(request, "client", "/127.0.0.1"))

    def beat(self, member, epoch, *topics, **fields):
        """Send a heartbeat; return (epoch, {topic: partitions}, None if nothing was said)."""
        answer = self.answer(self.heartbeat(member, epoch, *topics, **fields))
        if answer.assignment is None:
            return answer.member_epoch, None
        names = {topic.topic_id: name for name, topic in self.metadata.image.topics.items()}
        return answer.member_epoch, {
            names[each.topic_id]: each.partitions for each in answer.assignment.topic_partitions
        }

    def initialize(self, *, is_done=True):
        """Have what is to be initialised done, or fail; return how many plans there were."""
        plans, self.plans = self.plans, []
        for plan in plans:
            partitions = {}
            for topic_id, index in plan.start_offsets:
                partitions.setdefault(topic_id, []).append(index)
            self.ask(StatesInitialized(plan.group_id, partitions, is_done))
        return len(plans)

    def described(self):
        return self.ask(DescribeShareGroup(self.group_id))

    # --- What must hold

    def check(self):
        ours, theirs = (
            {name: g for name, g in shard.groups.items() if isinstance(g, ShareGroup)}
            for shard in (self.shard, self.replica)
        )
        assert ours.keys() == theirs.keys()
        for name, group in ours.items():
            assert hard_state(group) == hard_state(theirs[name])
            assert group.target_epoch <= group.group_epoch
            for member in group.members.values():
                assert member.previous_member_epoch <= member.member_epoch <= group.group_epoch
                key = (0, name, member.member_id)
                assert self.shard.timers.deadline_ms(key) is not None


def hard_state(group):
    return (
        group.group_epoch,
        group.metadata_hash,
        group.members,
        group.targets,
        group.target_epoch,
        group.target_timestamp_ms,
        group.states,
        group.topic_counts,
    )


def _partitions(count):
    return tuple(PartitionImage(replicas=(1,), isr=(1,), leader=1) for _ in range(count))
