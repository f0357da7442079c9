"""A consumer group at two coordinators, and what is asked of both."""

import time

from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkalite.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from kafkalite.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkalite.wire.messages.describe_groups import DescribeGroupsRequest
from kafkalite.wire.messages.heartbeat import HeartbeatRequest
from kafkalite.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkalite.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
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
from kafkalite.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkalite.wire.stored.consumer_protocol import (
    ASSIGNMENT,
    SUBSCRIPTION,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from tests.group.apache_pair import GroupPair, committed_codes, fetched_offsets
from tests.group.consumer.apache_side import Member, assigned, shown_description, shown_heartbeat
from tests.oracle import API, PATIENCE_S
from tests.raw_client import RawClient

PATTERN_PAUSE_S = 0.1
JOIN_PAUSE_S = 0.02


class Pair(GroupPair):
    """A group whose members may also speak the classic protocol."""

    def __init__(self, sides, name, rng):
        super().__init__(sides, name, rng)
        self.topics = {f"{name}-a": rng.choice([1, 2, 3, 5]), f"{name}-b": rng.choice([1, 2])}
        self.members = [Member("a"), Member("b"), Member("c", "i1"), Member("d", "i1"), Member("e")]
        self.previous = {}
        self.pattern = rng.choice([f"{name}-.*", f"{name}-a", f"(?:{name}-a)|(?:nobody)"])
        self.is_classic = False
        """All members speak the classic protocol, and the group is of that kind."""
        apache, ours = sides
        apache.create(self.topics)
        ours.create(self.topics)
        # Assignors break ties by topic ids, which each broker makes: in the same order, then.
        while ours.order(self.topics) != apache.order(self.topics):
            ours.drop(self.topics)
            ours.create(self.topics)

    # --- Heartbeats

    def beat(self, member, *, owned=None, epoch=None, **said):
        epoch = member.epoch if epoch is None else epoch

        def build(side):
            return ConsumerGroupHeartbeatRequest(
                **{
                    "group_id": self.name,
                    "member_id": member.member_id,
                    "member_epoch": epoch,
                    "instance_id": member.instance_id,
                    "topic_partitions": side.owned(owned),
                    **said,
                }
            )

        answer = self.both("CONSUMER_GROUP_HEARTBEAT", 1, build, shown_heartbeat)
        if answer.error_code:
            if answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
                member.epoch, member.has = 0, {}
            return answer
        if epoch == 0 and self.is_classic:
            UPGRADES.append(self.name)
            self.is_classic = False
        if said.get("subscribed_topic_regex"):
            self.settle_patterns()
        self.previous[member.member_id] = member.epoch
        member.epoch, member.classic = max(answer.member_epoch, 0), False
        if answer.assignment is not None:
            apache = self.sides[0]
            member.has = {
                apache.name(t.topic_id): t.partitions for t in answer.assignment.topic_partitions
            }
        return answer

    def subscription(self):
        return self.rng.choice(
            [[f"{self.name}-a"], [f"{self.name}-a"], [*self.topics], [f"{self.name}-b"], []]
        )

    def join(self, member):
        said = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": self.subscription()}
        odd = self.rng.random()
        if odd < 0.2:
            said["server_assignor"] = self.rng.choice(["range", "uniform", "sticky"])
        elif odd < 0.25:
            said["rebalance_timeout_ms"] = -1
        elif odd < 0.3:
            said["subscribed_topic_regex"] = self.rng.choice(["(", ""])
        elif odd < 0.45:
            said["subscribed_topic_regex"] = self.pattern
            said["subscribed_topic_names"] = self.rng.choice([None, [], [f"{self.name}-b"]])
        elif odd < 0.35:
            said["subscribed_topic_names"] = None
        member.has = {}
        self.beat(member, epoch=0, owned={}, **said)

    def settle_patterns(self):
        """Wait until both have looked for a pattern's topics, which they do after the answer."""
        deadline = time.monotonic() + PATIENCE_S
        request = ConsumerGroupDescribeRequest(group_ids=[self.name])
        while True:
            time.sleep(PATTERN_PAUSE_S)
            epochs = {
                side.ask("CONSUMER_GROUP_DESCRIBE", 1, request).groups[0].group_epoch
                for side in self.sides
            }
            if len(epochs) == 1:
                return
            assert time.monotonic() < deadline, f"group epochs {epochs}"

    def keep(self, member):
        self.beat(member)

    def acknowledge(self, member):
        self.beat(member, owned=member.has)

    def say_all(self, member):
        self.beat(
            member,
            owned=member.has,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=self.subscription(),
        )

    def claim(self, member):
        name = f"{self.name}-a"
        self.beat(member, owned={name: self.rng.sample(range(self.topics[name]), 1)})

    def be_stale(self, member):
        epoch = self.rng.choice(
            [self.previous.get(member.member_id, 1), member.epoch + 1, member.epoch - 1]
        )
        if epoch > 0:
            self.beat(member, epoch=epoch, owned=self.rng.choice([None, member.has, {}]))

    def change(self, member):
        self.beat(
            member,
            **self.rng.choice(
                [
                    {"rack_id": self.rng.choice("xyz")},
                    {"server_assignor": self.rng.choice(["range", "uniform"])},
                    {"rebalance_timeout_ms": 50_000},
                    {"subscribed_topic_names": self.subscription()},
                    {"subscribed_topic_regex": self.rng.choice([self.pattern, ""])},
                ]
            ),
        )

    def leave(self, member):
        away = member.instance_id is not None and self.rng.random() < 0.6
        answer = self.beat(member, epoch=-2 if away else -1)
        member.epoch, member.has = 0, {}
        if not answer.error_code:
            self.look_for_downgrade()

    def misspell(self, member):
        self.beat(
            member,
            **self.rng.choice(
                [
                    {"instance_id": ""},
                    {"rack_id": " "},
                    {"member_id": ""},
                    {"member_epoch": -3},
                    {"server_assignor": "sticky"},
                    {"group_id": "unknown"},
                    {"member_id": "stranger"},
                    {"instance_id": "i9"},
                ]
            ),
        )

    # --- Members of the classic protocol; only in a group that is there, where ids are their own

    def has_others(self, member):
        return any(m.epoch > 0 and not m.classic and m is not member for m in self.members)

    def classic_members(self):
        return [each for each in self.members if each.classic]

    def look_for_downgrade(self):
        """When the last consumer has gone, let those that remain begin as a classic group."""
        if not self.classic_members():
            return
        request = DescribeGroupsRequest(groups=[self.name])
        for side in self.sides:  # the rebalance begins when the group has become classic
            side.wait_for(
                "DESCRIBE_GROUPS", 5, request, lambda a: a.groups[0].group_state != "Stable"
            )
        answer = self.describe_classic(None, version=5)
        self.is_classic = answer.groups[0].group_state != "Dead"
        if self.is_classic:
            self.rebalance()

    def go_classic(self, member):
        """Let all consumers leave, where others remain."""
        self.join_classic(member)
        if self.is_classic or not self.classic_members():
            return
        left = [self.beat(each, epoch=-1) for each in self.members if not each.classic]
        for each in self.members:
            if not each.classic:
                each.epoch, each.has = 0, {}
        if not all(answer.error_code for answer in left):
            self.look_for_downgrade()

    def rebalance(self):
        """Let all classic members join and sync at once; nobody is answered before all ask."""
        members = self.classic_members()
        rounds = []
        for side in self.sides:
            clients = [RawClient(side.broker) for _ in members]
            for client, member in zip(clients, members, strict=True):
                client.send_request(API["JOIN_GROUP"], 9, self.joining(member))
                time.sleep(JOIN_PAUSE_S)  # who comes first leads
            joined = [client.receive_response(API["JOIN_GROUP"], 9) for client in clients]
            rounds.append((clients, joined))
        # Which of them leads follows from the order of a hash table in Kafka, and tells nothing.
        apaches, ours = (
            [(a.error_code, a.generation_id, a.protocol_name, a.member_id) for a in joined]
            + sorted((m.member_id, bytes(m.metadata)) for a in joined for m in a.members)
            for _, joined in rounds
        )
        assert ours == apaches, f"JOIN_GROUP: Apache {apaches}, kafkalite {ours}"
        assert not any(code for code, *_ in apaches[: len(members)]), apaches
        synced = [self.synced(members, *each) for each in rounds]
        assert synced[1] == synced[0], f"SYNC_GROUP: Apache {synced[0]}, kafkalite {synced[1]}"
        for member, (_, has) in zip(members, synced[0], strict=True):
            member.has = has
        for clients, _ in rounds:
            for client in clients:
                client.close()

    def synced(self, members, clients, joined):
        """Return what each member is assigned; the leader asks first."""
        found = {}
        each = [*zip(members, clients, joined, strict=True)]
        for member, client, answer in sorted(each, key=lambda e: e[2].leader != e[2].member_id):
            member.epoch = answer.generation_id
            is_leader = answer.leader == answer.member_id
            request = SyncGroupRequest(
                group_id=self.name,
                generation_id=member.epoch,
                member_id=member.member_id,
                protocol_type="consumer",
                protocol_name="cooperative-sticky",
                assignments=self.divided(members) if is_leader else [],
            )
            response = client.ask(API["SYNC_GROUP"], 5, request)
            found[member.member_id] = response.error_code, assigned(response.assignment)
        return [found[member.member_id] for member in members]

    def divided(self, members):
        """Give each member every so-many-th partition."""
        name = f"{self.name}-a"
        return [
            SyncGroupRequestAssignment(
                member_id=member.member_id,
                assignment=ASSIGNMENT.encode_versioned(
                    1,
                    ConsumerProtocolAssignment(
                        assigned_partitions=[TopicPartition(topic=name, partitions=[*part])]
                        if (part := range(index, self.topics[name], len(members)))
                        else []
                    ),
                ),
            )
            for index, member in enumerate(members)
        ]

    def joining(self, member):
        message = ConsumerProtocolSubscription(
            topics=self.subscription() if member.reads is None else member.reads,
            owned_partitions=[
                TopicPartition(topic=name, partitions=[*indexes])
                for name, indexes in member.has.items()
            ],
        )
        member.reads = message.topics
        data = SUBSCRIPTION.encode_versioned(1, message)
        return JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=member.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="cooperative-sticky", metadata=data)],
        )

    def join_classic(self, member):
        if member.instance_id is not None or self.is_classic or not self.has_others(member):
            return
        member.reads = None
        request = self.joining(member)
        answer = self.both(
            "JOIN_GROUP",
            9,
            request,
            lambda a, _: (a.error_code, a.generation_id, a.protocol_name, a.leader, a.members),
        )
        if not answer.error_code:
            member.epoch, member.classic = answer.generation_id, True
            self.sync(member)

    def sync(self, member):
        if not member.classic:
            return
        request = SyncGroupRequest(
            group_id=self.name,
            generation_id=member.epoch,
            member_id=member.member_id,
            protocol_type="consumer",
            protocol_name="cooperative-sticky",
        )
        answer = self.both(
            "SYNC_GROUP", 5, request, lambda a, _: (a.error_code, assigned(a.assignment))
        )
        if not answer.error_code:
            member.has = assigned(answer.assignment)

    def beat_classic(self, member):
        if not member.classic:
            return
        epoch = member.epoch + self.rng.choice([0, 0, 0, 1])
        request = HeartbeatRequest(
            group_id=self.name, generation_id=epoch, member_id=member.member_id
        )
        answer = self.both("HEARTBEAT", 4, request, lambda a, _: a.error_code)
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.join_classic(member)

    def leave_classic(self, member):
        named = MemberIdentity(member_id=member.member_id, group_instance_id=member.instance_id)
        request = LeaveGroupRequest(group_id=self.name, members=[named])
        answer = self.both(
            "LEAVE_GROUP",
            5,
            request,
            lambda a, _: (a.error_code, [m.error_code for m in a.members]),
        )
        member.epoch, member.has, member.classic = 0, {}, False
        if not answer.error_code and not answer.members[0].error_code:
            self.look_for_downgrade()

    # --- Offsets, topics, operators

    def commit(self, member):
        epoch = member.epoch + self.rng.choice([0, 0, -1, -1, -2, 1])
        epoch, member_id = self.rng.choice([(epoch, member.member_id)] * 4 + [(-1, "")])
        name = self.rng.choice([*self.topics])
        indexes = self.rng.sample(range(self.topics[name]), 1)
        version = self.rng.choice([8, 9, 10, 10])

        def build(side):
            return OffsetCommitRequest(
                group_id=self.name,
                generation_id_or_member_epoch=epoch,
                member_id=member_id,
                topics=[
                    OffsetCommitRequestTopic(
                        name=name,
                        topic_id=side.ids[name],
                        partitions=[
                            OffsetCommitRequestPartition(
                                partition_index=n, committed_offset=7, committed_metadata=""
                            )
                            for n in indexes
                        ],
                    )
                ],
            )

        self.both(
            "OFFSET_COMMIT",
            version,
            build,
            committed_codes,
        )

    def fetch(self, member):
        epoch = member.epoch + self.rng.choice([0, 0, -1, 1])
        member_id, epoch = self.rng.choice([(member.member_id, epoch)] * 3 + [(None, -1)])
        version = self.rng.choice([9, 10])

        def build(side):
            topics = [
                OffsetFetchRequestTopics(
                    name=name, topic_id=side.ids[name], partition_indexes=[*range(count)]
                )
                for name, count in self.topics.items()
            ]
            group = OffsetFetchRequestGroup(
                group_id=self.name, member_id=member_id, member_epoch=epoch, topics=topics
            )
            return OffsetFetchRequest(groups=[group])

        self.both(
            "OFFSET_FETCH",
            version,
            build,
            fetched_offsets,
        )

    def grow(self, member):
        del member
        name = f"{self.name}-a"
        if self.topics[name] > 6:
            return
        self.topics[name] += 1
        topic = CreatePartitionsTopic(name=name, count=self.topics[name], assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)
        for side in self.sides:
            side.ask("CREATE_PARTITIONS", 3, request)
            side.wait_topics({name: self.topics[name]})

    def describe(self, member):
        del member
        request = ConsumerGroupDescribeRequest(group_ids=[self.name, "unknown"])
        self.both("CONSUMER_GROUP_DESCRIBE", 1, request, shown_description)

    def list(self, member):
        del member
        states = self.rng.choice([[], ["stable"], ["Reconciling"], ["EMPTY"], ["Assigning"]])
        self.list_by(states, self.rng.choice([[], ["Consumer"], ["classic"], ["nonsense"]]))

    def describe_classic(self, member, version=None):
        del member
        return self.both(
            "DESCRIBE_GROUPS",
            version or self.rng.choice([5, 6]),
            DescribeGroupsRequest(groups=[self.name]),
            lambda a, _: [(g.error_code, g.group_state) for g in a.groups],
        )


UPGRADES = []
"""Groups that became consumer groups again."""
