"""The two brokers as consumers see them, and their answers side by side."""

import struct
from dataclasses import dataclass, field

from kafkalite.group.consumer.embedded import read_assignment
from kafkalite.group.java_order import copied_set_order, uuid_hash
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kafkalite.wire.messages.delete_topics import DeleteTopicsRequest
from kafkalite.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.group.apache_side import (
    BrokerSide,
)


class Side(BrokerSide):
    """One of the two brokers, and the ids that it gave to topics."""

    def __init__(self, broker):
        super().__init__(broker)
        self.ids = {}

    def wait_topics(self, topics):
        """Return when the coordinator knows them, which is after the broker does."""
        self.probes += 1
        request = ConsumerGroupHeartbeatRequest(
            group_id=f"probe-{self.probes}",
            member_id="probe",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[*topics],
            topic_partitions=[],
        )
        count = sum(topics.values())
        self.wait_for(
            "CONSUMER_GROUP_HEARTBEAT",
            1,
            request,
            lambda a: (
                a.assignment is not None
                and sum(len(t.partitions) for t in a.assignment.topic_partitions) == count
            ),
        )
        asked = [MetadataRequestTopic(name=name, topic_id=ZERO_UUID) for name in topics]
        answer = self.ask("METADATA", 12, MetadataRequest(topics=asked))
        self.ids |= {topic.name: topic.topic_id for topic in answer.topics}

    def drop(self, topics):
        request = DeleteTopicsRequest(topic_names=[*topics], timeout_ms=10_000)
        self.ask("DELETE_TOPICS", 5, request)

    def order(self, topics):
        """How topics stand to each other in the orders that assignors use."""
        ids = {self.ids[name]: name for name in topics}
        by_hash = [ids[each] for each in copied_set_order(ids, uuid_hash)]
        return by_hash, [ids[each] for each in sorted(ids, key=signed)]

    def name(self, topic_id):
        return next((name for name, known in self.ids.items() if known == topic_id), str(topic_id))

    def owned(self, partitions):
        if partitions is None:
            return None
        return [
            TopicPartitions(topic_id=self.ids[name], partitions=sorted(indexes))
            for name, indexes in partitions.items()
        ]


@dataclass
class Member:
    member_id: str
    instance_id: str | None = None
    epoch: int = 0
    has: dict = field(default_factory=dict)
    classic: bool = False
    reads: list | None = None


def signed(topic_id):
    return struct.unpack(">qq", topic_id.bytes)


def assigned(data):
    found = read_assignment(bytes(data)).assigned_partitions if data else []
    return {each.topic: sorted(each.partitions) for each in found if each.partitions}


def shown_heartbeat(answer, side):
    return (
        ErrorCode(answer.error_code).name,
        bool(answer.error_message),
        (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms),
        None if answer.assignment is None else by_name(answer.assignment, side),
    )


def by_name(assignment, side):
    return sorted(
        (side.name(t.topic_id), sorted(t.partitions)) for t in assignment.topic_partitions
    )


def shown_description(answer, side):
    return [
        (
            (ErrorCode(g.error_code).name, bool(g.error_message), g.group_id, g.group_state),
            (g.group_epoch, g.assignment_epoch, g.assignor_name, g.authorized_operations),
            sorted(
                (
                    (m.member_id, m.instance_id or "", m.rack_id or "", m.member_epoch),
                    (m.client_id, m.client_host, m.member_type),
                    (sorted(m.subscribed_topic_names), m.subscribed_topic_regex or ""),
                    by_name(m.assignment, side),
                    by_name(m.target_assignment, side),
                )
                for m in g.members
            ),
        )
        for g in answer.groups
    ]
