"""Share groups beside other APIs, without their feature, and at the limits of sessions."""

from collections import Counter

import pytest

from kafkalite.testing import Broker
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafkalite.wire.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafkalite.wire.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kafkalite.wire.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, MemberIdentity
from kafkalite.wire.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from kafkalite.wire.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkalite.wire.messages.offset_delete import (
    OFFSET_DELETE,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkalite.wire.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafkalite.wire.messages.sync_group import SYNC_GROUP, SyncGroupRequest
from kafkalite.wire.messages.update_features import (
    UPDATE_FEATURES,
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from tests.share.probe import Probe, acquired
from tests.share.test_broker import EARLIEST, join

SESSIONS = 2


@pytest.fixture
def broker():
    settings = {
        "group.share.assignment.interval.ms": 0,
        "group.share.max.share.sessions": SESSIONS,
    }
    with Broker(config=settings) as running:
        yield running


@pytest.fixture
def probes(broker):
    made = []

    def make(member="M1", group="g"):
        made.append(Probe(broker.port, group=group, member=member))
        return made[-1]

    yield make
    for probe in made:
        probe.client.close()


def ready(probe, partitions=1):
    topic_id = probe.create_topic("t", partitions)
    for partition in range(partitions):
        probe.produce("t", 20, partition=partition)
    probe.set_group(**EARLIEST)
    join(probe, "t")
    return topic_id


def test_no_share_groups_below_share_version_1(probes):
    """Rule 380."""
    probe = probes()
    topic_id = ready(probe)
    key = FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
    response = probe.ask(UPDATE_FEATURES, 2, UpdateFeaturesRequest(feature_updates=[key]))
    assert not response.error_code, response
    unsupported = ErrorCode.UNSUPPORTED_VERSION
    assert probe.heartbeat(0, ["t"]).error_code == unsupported
    assert probe.fetch(topic_id).error_code == unsupported
    assert probe.acknowledge(topic_id, epoch=1).error_code == unsupported
    (group,) = probe.describe_offsets().groups
    assert group.error_code == unsupported
    assert probe.alter_offsets("t", {0: 1}).error_code == unsupported


def test_other_apis_find_no_group_of_theirs(probes):
    """Rule 390."""
    probe = probes()
    ready(probe)
    committed = probe.ask(
        OFFSET_COMMIT,
        8,
        OffsetCommitRequest(
            group_id="g",
            topics=[
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
                    ],
                )
            ],
        ),
    )
    assert committed.topics[0].partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    deleted = probe.ask(
        OFFSET_DELETE,
        0,
        OffsetDeleteRequest(
            group_id="g",
            topics=[
                OffsetDeleteRequestTopic(
                    name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
                )
            ],
        ),
    )
    assert deleted.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    fetched = probe.ask(
        OFFSET_FETCH,
        9,
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)]),
    )
    assert not fetched.groups[0].error_code
    assert fetched.groups[0].topics[0].partitions[0].committed_offset == -1
    joined = probe.ask(
        JOIN_GROUP,
        5,
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        ),
    )
    assert joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id="M1")
    assert probe.ask(SYNC_GROUP, 3, sync).error_code == unknown
    beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="M1")
    assert probe.ask(HEARTBEAT, 3, beat).error_code == unknown
    leave = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="M1")])
    assert probe.ask(LEAVE_GROUP, 3, leave).members[0].error_code == unknown
    (listed,) = probe.ask(LIST_GROUPS, 5, ListGroupsRequest()).groups
    assert (listed.group_id, listed.protocol_type) == ("g", "share")
    assert (listed.group_state, listed.group_type) == ("Stable", "share")
    (described,) = probe.ask(DESCRIBE_GROUPS, 6, DescribeGroupsRequest(groups=["g"])).groups
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert described.group_state == "Dead"


def test_there_are_so_many_sessions(probes):
    """Rule 406."""
    first = probes()
    topic_id = ready(first)
    for number in range(1, SESSIONS):
        assert not probes(f"N{number}").fetch(topic_id, max_wait_ms=0).error_code
    assert not first.fetch(topic_id).error_code
    refused = probes("more").fetch(topic_id, max_wait_ms=10)
    assert refused.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert not first.fetch(topic_id, epoch=-1).error_code
    assert not probes("more").fetch(topic_id, max_wait_ms=0).error_code


def test_max_records_are_for_all_partitions_and_each_has_its_turn(probes):
    """Rule 408."""
    probe = probes()
    topic_id = ready(probe, partitions=3)
    firsts = Counter()
    for _ in range(9):
        response = probe.fetch(topic_id, partitions=(0, 1, 2), max_records=2, share_acquire_mode=1)
        counts = {
            index: sum(last - first + 1 for first, last, _ in acquired(response, index) or [])
            for index in range(3)
        }
        assert sum(counts.values()) == 2
        firsts.update(counts)
    # Not evenly: those that had records go to the end of the session's order, as in Kafka.
    assert min(firsts.values()) > 0
