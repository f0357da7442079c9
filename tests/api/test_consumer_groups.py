"""ConsumerGroupHeartbeat and ConsumerGroupDescribe over the wire, in every version."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkalite.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.api.group_context import OFFSETS, run

PROTOCOLS = ("classic", "consumer", "streams")
ON_GROUP = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11


def configure(broker, *, protocols=PROTOCOLS, level=1):
    lists = {
        "group.coordinator.rebalance.protocols": protocols,
        "group.consumer.assignors": ("uniform", "range"),
    }
    broker.context.services.config = SimpleNamespace(node_id=1, list=lists.__getitem__)
    metadata = broker.metadata
    metadata.image = replace(metadata.image, feature_levels={"group.version": level})
    broker.runtime._kinds[OFFSETS].metadata.update(metadata.image)


def join(**said):
    fields = {
        "group_id": "g",
        "member_id": "m",
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["topic"],
        "topic_partitions": [],
        **said,
    }
    return ConsumerGroupHeartbeatRequest(**fields)


def ask(version, request, **how):
    found = []

    async def main(broker):
        configure(broker, **how)
        found.append(await broker.call("CONSUMER_GROUP_HEARTBEAT", version, request))

    run(main)
    return found[0]


@pytest.mark.parametrize("version", [0, 1])
def test_join(version):
    answer = ask(version, join())
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("m", 2, 5000)
    (topic,) = answer.assignment.topic_partitions
    assert topic.partitions == [0, 1, 2]


def test_version_0_makes_ids():
    assert len(ask(0, join(member_id="")).member_id) == 36


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "sticky"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"member_epoch": 4}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"subscribed_topic_regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ({"subscribed_topic_names": ["t" * 249] * 5_000}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": ["t"] * 20_001}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_refusals_say_why_and_nothing_else(said, code):
    answer = ask(1, join(**said))
    assert answer.error_code == code
    assert answer.error_message
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == (None, 0, 0)
    assert answer.assignment is None


@pytest.mark.parametrize("how", [{"level": 0}, {"protocols": ("classic",)}])
def test_what_is_switched_off_is_unsupported(how):
    """Rule 301."""
    assert ask(1, join(), **how).error_code == ErrorCode.UNSUPPORTED_VERSION

    async def main(broker):
        configure(broker, **how)
        request = ConsumerGroupDescribeRequest(group_ids=["g"])
        (group,) = (await broker.call("CONSUMER_GROUP_DESCRIBE", 1, request)).groups
        assert group.error_code == ErrorCode.UNSUPPORTED_VERSION

    run(main)


@pytest.mark.parametrize("version", [0, 1])
def test_describe(version):
    async def main(broker):
        configure(broker)
        await broker.call("CONSUMER_GROUP_HEARTBEAT", 1, join())
        request = ConsumerGroupDescribeRequest(
            group_ids=["g", "unknown", ""], include_authorized_operations=True
        )
        answer = await broker.call("CONSUMER_GROUP_DESCRIBE", version, request)
        known, unknown, nameless = answer.groups
        assert (known.group_id, known.group_state, known.group_epoch) == ("g", "Stable", 2)
        assert known.authorized_operations == ON_GROUP
        (member,) = known.members
        assert (member.client_id, member.client_host) == ("reader", "/10.0.0.2")
        assert member.member_type == (1 if version else -1)
        assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert unknown.authorized_operations == -(2**31)
        assert nameless.error_code == ErrorCode.INVALID_GROUP_ID

    run(main)
