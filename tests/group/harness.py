"""A group shard, its log replayed into a second one, and clients that speak to it.

Every record goes through Kafka's bytes on its way to the second shard (`replica`), and after every
event the two must agree on everything that is in the log.
"""

from dataclasses import dataclass, field, replace

from kafkalite.coordinator.records import decode_batch, encode_batches
from kafkalite.coordinator.shard import Now, Ticket
from kafkalite.group.admin import DeleteGroup, DeleteOffsets, DescribeGroup, ListGroups
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.classic.join import JoinGroup
from kafkalite.group.classic.membership import Heartbeat, LeaveGroup
from kafkalite.group.classic.part import ConnectionClosed
from kafkalite.group.classic.states import GroupState
from kafkalite.group.classic.sync import SyncGroup
from kafkalite.group.commit import CommitOffsets, CommitOffsetsInTransaction
from kafkalite.group.metadata import GroupMetadata
from kafkalite.group.records import GroupRecordCodec
from kafkalite.group.settings import GroupSettings
from kafkalite.group.shard import (
    FetchOffsets,
    GroupShard,
    TopicsDeleted,
)
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.heartbeat import HeartbeatRequest
from kafkalite.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkalite.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkalite.wire.messages.list_groups import ListGroupsRequest
from kafkalite.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkalite.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkalite.wire.messages.offset_fetch import OffsetFetchRequestTopics
from kafkalite.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkalite.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkalite.wire.records import read_batch_header, set_offset_and_epoch
from tests.coordinator.fakes import START_MS, WALL_OFFSET_MS

SECOND = 1000
MINUTE = 60 * SECOND
SESSION_MS = 30 * SECOND
REBALANCE_MS = 60 * SECOND


def subscription(*topics):
    """ConsumerProtocol subscription v0 without user data."""
    names = [topic.encode() for topic in topics]
    encoded = b"".join(len(name).to_bytes(2, "big") + name for name in names)
    return b"\0\0" + len(topics).to_bytes(4, "big") + encoded + b"\xff\xff\xff\xff"


@dataclass
class Client:
    """What one consumer knows."""

    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None
    client_id: str = "client"
    topics: tuple = ("topic",)
    protocol_names: tuple = ("range",)
    protocol_type: str = "consumer"
    session_ms: int = SESSION_MS
    rebalance_ms: int = REBALANCE_MS
    connection_id: int = 1
    is_leader: bool = False
    assignment: bytes = b""
    join_ticket: int = 0
    sync_ticket: int = 0
    members: list = field(default_factory=list)

    @property
    def protocols(self):
        return [
            JoinGroupRequestProtocol(name=name, metadata=subscription(*self.topics))
            for name in self.protocol_names
        ]


class GroupHarness:
    def __init__(self, group_id="g", *, delay_ms=0, metadata=None, **settings):
        self.settings = GroupSettings(group_initial_rebalance_delay_ms=delay_ms, **settings)
        self.group_id = group_id
        self.codec = GroupRecordCodec()
        self.metadata = metadata or GroupMetadata()
        self.shard = GroupShard(self.settings, self.metadata)
        self.replica = GroupShard(self.settings, self.metadata)
        self.effects = []
        self.now_ms = START_MS
        self.wall_offset_ms = WALL_OFFSET_MS
        self.answers = {}
        self.log = []
        self.end_offset = 0
        self.refuse_appends_with = None
        self.term = 0
        self._ticket = 0
        self._process(self.shard.on_loaded(self.now))

    # --- Machinery

    @property
    def now(self):
        return Now(self.now_ms, self.now_ms + self.wall_offset_ms)

    @property
    def group(self):
        return self.shard.groups.get(self.group_id)

    @property
    def tickets_used(self):
        return self._ticket

    @property
    def state(self):
        return self.group.state if self.group else GroupState.DEAD

    @property
    def state_name(self):
        return self.group.state_name if self.group else GroupState.DEAD.value

    def send(self, event):
        """Give the shard an event; return its ticket, answered or not."""
        self._ticket += 1
        ticket = Ticket(self._ticket)
        try:
            result = self.shard.handle(event, ticket, self.now)
        except KafkaError as error:
            self.answers[ticket] = error
        else:
            self._process(result)
        self.check()
        return ticket

    def ask(self, event):
        """Give the shard an event that is answered at once; return the answer, raise a refusal."""
        return self.answer(self.send(event))

    def answer(self, ticket):
        assert ticket in self.answers, "not answered yet"
        answer = self.answers[ticket]
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    def code(self, ticket):
        answer = self.answers[ticket]
        return answer.code if isinstance(answer, KafkaError) else ErrorCode(answer.error_code)

    def is_parked(self, ticket):
        return ticket not in self.answers

    def advance(self, milliseconds):
        """Let time pass, firing timers at their times."""
        end_ms = self.now_ms + milliseconds
        while (at := self.shard.next_deadline_ms()) is not None and at <= end_ms:
            self.now_ms = max(self.now_ms, at)
            self._process(self.shard.on_time(self.now))
            self.check()
        self.now_ms = end_ms

    def _process(self, result):
        if result.records and self.refuse_appends_with is not None:
            for ticket, _ in result.replies:
                self._reply(ticket, KafkaError(self.refuse_appends_with))
            return
        if result.records:
            self._append(result)
        self.effects += result.effects
        for ticket, message in result.replies:
            self._reply(ticket, message)

    def _reply(self, ticket, message):
        assert ticket not in self.answers, "answered twice"
        self.answers[ticket] = message

    def _append(self, result):
        for batch in encode_batches(
            result, self.codec, timestamp_ms=self.now.wall_ms, max_batch_bytes=1_000_000
        ):
            set_offset_and_epoch(batch.data, 0, base_offset=self.end_offset, leader_epoch=0)
            for offset, record in enumerate(batch.records, self.end_offset):
                record.offset = offset
                record.producer_id = result.producer_id
                self.shard.replay(record)
            data = memoryview(bytes(batch.data))
            self.log.append(data)
            self.end_offset = read_batch_header(data).next_offset
            for record in decode_batch(data, self.codec):
                self.before_replay(record)
                self.replica.replay(record)

    def before_replay(self, record):
        """What Kafka's own replay would insist on, where there is such a thing."""

    def end_transaction(self, producer_id, *, committed):
        self.shard.replay_marker(producer_id, committed=committed)
        self.replica.replay_marker(producer_id, committed=committed)
        self.check()

    def restarted(self, **settings):
        """A harness that has loaded this one's log, as a broker does that takes over."""
        other = type(self)(self.group_id, delay_ms=0, metadata=self.metadata)
        other.settings = other.shard.settings = replace(self.settings, **settings)
        other.now_ms = self.now_ms
        other.term = self.term + 1
        for shard in (other.shard, other.replica):
            for batch in self.log:
                for record in decode_batch(batch, self.codec):
                    shard.replay(record)
        other.end_offset = self.end_offset
        other._process(other.shard.on_loaded(other.now))
        other.check()
        return other

    def check(self):
        """What must hold after every event."""
        for group in self.shard.groups.values():
            if isinstance(group, ClassicGroup):
                check_group(self.shard, group)
        assert hard_offsets(self.shard) == hard_offsets(self.replica)
        assert hard_groups(self.shard) == {
            name: stored
            for name, stored in hard_groups(self.replica).items()
            if name in hard_groups(self.shard)
        }
        for name in self.replica.groups:
            assert name in self.shard.groups

    # --- Requests

    def join(self, client, *, version=9):
        """JoinGroup; a client that is told to come again with an id does so."""
        self.join_once(client, version=version)
        answer = self.answers.get(client.join_ticket)
        if answer is not None and self.code(client.join_ticket) is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
            self.join_once(client, version=version)
        self.learn(client)
        return client.join_ticket

    def join_once(self, client, *, version=9):
        client.join_ticket = self.send(
            JoinGroup(
                request=JoinGroupRequest(
                    group_id=self.group_id,
                    session_timeout_ms=client.session_ms,
                    rebalance_timeout_ms=client.rebalance_ms,
                    member_id=client.member_id,
                    group_instance_id=client.instance_id,
                    protocol_type=client.protocol_type,
                    protocols=client.protocols,
                ),
                api_version=version,
                client_id=client.client_id,
                client_host="/127.0.0.1",
                random_id=f"{self.term}.{self._ticket}",
                connection_id=client.connection_id,
            )
        )
        return client.join_ticket

    def hand_out(self, client):
        """Have a client ask for an id, which it keeps without using it."""
        asking = replace(client, member_id="")
        client.member_id = self.answer(self.join_once(asking)).member_id
        return client

    def hand_out_quietly(self, client):
        """Ask for an id, or be refused, and do nothing more."""
        self.join_once(client)

    def learn(self, client):
        """Have a client take in the answer to its join, if it is there."""
        answer = self.answers.get(client.join_ticket)
        if answer is None or isinstance(answer, KafkaError) or answer.error_code:
            return
        client.member_id = answer.member_id
        client.generation = answer.generation_id
        client.is_leader = answer.leader == answer.member_id
        client.members = [member.member_id for member in answer.members]

    def sync(self, client, assignments=None, *, protocol_type=None, protocol_name=None):
        """SyncGroup; the leader assigns each member its own id unless told otherwise."""
        if assignments is None:
            assignments = (
                {name: name.encode() for name in client.members} if client.is_leader else {}
            )
        client.sync_ticket = self.send(
            SyncGroup(
                SyncGroupRequest(
                    group_id=self.group_id,
                    generation_id=client.generation,
                    member_id=client.member_id,
                    group_instance_id=client.instance_id,
                    protocol_type=protocol_type,
                    protocol_name=protocol_name,
                    assignments=[
                        SyncGroupRequestAssignment(member_id=name, assignment=data)
                        for name, data in assignments.items()
                    ],
                )
            )
        )
        return client.sync_ticket

    def heartbeat(self, client, **changes):
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=client.generation,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
        )
        for name, value in changes.items():
            setattr(request, name, value)
        return self.code(self.send(Heartbeat(request)))

    def leave(self, client, *, version=5, instance_id=None):
        request = LeaveGroupRequest(group_id=self.group_id)
        if version < 3:
            request.member_id = client.member_id
        else:
            request.members = [
                MemberIdentity(
                    member_id=client.member_id, group_instance_id=instance_id or client.instance_id
                )
            ]
        return self.send(LeaveGroup(request, version))

    def disconnect(self, connection_id):
        return self.send(ConnectionClosed(connection_id))

    def stable_group(self, *clients, version=9):
        """Bring the given clients into a stable group with assignments."""
        for client in clients:
            self.join(client, version=version)
        for client in clients:  # those who were there before the last one came
            is_rebalancing = self.state is GroupState.PREPARING_REBALANCE
            if is_rebalancing and client.member_id not in self.group.join_tickets:
                self.join(client, version=version)
        for client in clients:
            self.learn(client)
        assert self.state is GroupState.COMPLETING_REBALANCE, self.state
        for client in clients:
            self.sync(client)
        for client in clients:
            client.assignment = self.answer(client.sync_ticket).assignment
        assert self.state is GroupState.STABLE
        return clients

    def commit(
        self,
        offsets,
        *,
        client=None,
        version=8,
        metadata="",
        retention_ms=-1,
        group_id=None,
        leader_epoch=-1,
    ):
        """OffsetCommit of {(topic, partition): offset}; return the ticket."""
        request = OffsetCommitRequest(
            group_id=self.group_id if group_id is None else group_id,
            generation_id_or_member_epoch=client.generation if client else -1,
            member_id=client.member_id if client else "",
            group_instance_id=client.instance_id if client else None,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_leader_epoch=leader_epoch,
                            committed_metadata=metadata,
                        )
                    ],
                )
                for (topic, partition), offset in offsets.items()
            ],
        )
        return self.send(CommitOffsets(request, version))

    def commit_in_transaction(self, offsets, *, producer_id=7, client=None, metadata=""):
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id=self.group_id,
            producer_id=producer_id,
            producer_epoch=0,
            generation_id=client.generation if client else -1,
            member_id=client.member_id if client else "",
            group_instance_id=client.instance_id if client else None,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata=metadata,
                        )
                    ],
                )
                for (topic, partition), offset in offsets.items()
            ],
        )
        return self.send(CommitOffsetsInTransaction(request))

    def partition_codes(self, ticket):
        return [
            ErrorCode(partition.error_code)
            for topic in self.answer(ticket).topics
            for partition in topic.partitions
        ]

    def fetch(self, *partitions, require_stable=False):
        """OffsetFetch of (topic, partition) pairs, or of all; return {pair: offset or error}."""
        topics = [
            OffsetFetchRequestTopics(name=topic, partition_indexes=[index])
            for topic, index in partitions
        ]
        answer = self.ask(FetchOffsets(self.group_id, topics or None, require_stable))
        return {
            (topic.name, p.partition_index): ErrorCode(p.error_code)
            if p.error_code
            else p.committed_offset
            for topic in answer.topics
            for p in topic.partitions
        }

    def delete_offsets(self, *partitions):
        topics = [
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
            )
            for topic, index in partitions
        ]
        request = OffsetDeleteRequest(group_id=self.group_id, topics=topics)
        return self.send(DeleteOffsets(request))

    def delete_topics(self, *topics):
        return self.send(TopicsDeleted(frozenset(topics)))

    def delete_group(self):
        return self.send(DeleteGroup(self.group_id))

    def describe(self, *, version=5, group_id=None):
        return self.ask(DescribeGroup(group_id or self.group_id, version))

    def list_groups(self, *, states=(), types=()):
        return self.ask(
            ListGroups(ListGroupsRequest(states_filter=[*states], types_filter=[*types]))
        )


def check_group(shard, group):
    """The invariants of one group."""
    state, group_id = group.state, group.group_id
    assert set(group.join_tickets) <= set(group.members)
    assert set(group.sync_tickets) <= set(group.members)
    assert set(group.pending_syncs) <= set(group.members)
    assert not set(group.pending_joins) & set(group.members)
    assert set(group.static_members.values()) <= set(group.members)
    assert group.leader_id is None or group.leader_id in group.members
    assert bool(group.leader_id) == bool(group.members)
    if state is GroupState.EMPTY:
        assert not group.members
    if group.join_tickets or state is GroupState.PREPARING_REBALANCE:
        assert state is GroupState.PREPARING_REBALANCE
        assert shard.timers.deadline_ms((1, group_id, "")) is not None
    if group.sync_tickets or state is GroupState.COMPLETING_REBALANCE:
        assert state is GroupState.COMPLETING_REBALANCE
        assert shard.timers.deadline_ms((2, group_id, "")) is not None
    is_new = any(shard.timers.deadline_ms((kind, group_id, "")) is not None for kind in (6, 7))
    for member_id in () if is_new else group.members:
        is_waiting = member_id in group.join_tickets or member_id in group.sync_tickets
        has_timer = shard.timers.deadline_ms((0, group_id, member_id)) is not None
        assert has_timer or is_waiting
    for member_id in group.pending_joins:
        assert shard.timers.deadline_ms((0, group_id, member_id)) is not None


def hard_offsets(shard):
    """Everything committed or pending, without the objects."""
    return {
        (group_id, topic, partition): (o.offset, o.leader_epoch, o.metadata, o.commit_timestamp_ms,
                                       o.expire_timestamp_ms, o.record_offset,
                                       shard.offsets.is_pending(group_id, topic, partition))
        for group_id in shard.offsets.group_ids()
        for topic, offsets in shard.offsets.topics(group_id).items()
        for partition, o in offsets.items()
    }  # fmt: skip


def hard_groups(shard):
    """What the log says of the groups that are not in a rebalance."""
    return {
        name: (
            group.generation,
            group.protocol_type,
            group.protocol_name,
            group.leader_id,
            group.state,
            group.subscribed_topics if group.members else None,
            {
                m.member_id: (
                    m.group_instance_id,
                    m.client_id,
                    m.client_host,
                    m.session_timeout_ms,
                    m.rebalance_timeout_ms,
                    m.metadata(group.protocol_name),
                    m.assignment,
                )
                for m in group.members.values()
            },
        )
        for name, group in shard.groups.items()
        if isinstance(group, ClassicGroup)
        and group.state in (GroupState.STABLE, GroupState.EMPTY)
        and (group.generation or group.members)
    }
