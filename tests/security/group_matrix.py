"""Rows of the matrix for the groups of Kafka 4: consumer, share and streams groups."""

import time

from kafkalite.security.acls import Operation, ResourceType
from kafkalite.wire.api import ApiKey as K
from kafkalite.wire.apis import APIS
from tests.group.streams.topologies import message, subtopology
from tests.security.matrix import ORDERS, TOPIC_ID, Need, Row, made, topic

CONSUMERS, SHARERS, STREAMS = "consumers", "sharers", "streams"
PATIENCE_S = 30
R, D, S = Operation.READ, Operation.DELETE, Operation.DESCRIBE


def group(operation, name):
    return Need(operation, ResourceType.GROUP, name)


CONSUMER_JOIN = {
    "group_id": CONSUMERS,
    "member_id": "m1",
    "rebalance_timeout_ms": 60_000,
    "subscribed_topic_names": [ORDERS],
    "topic_partitions": [],
}
SHARE_JOIN = {"group_id": SHARERS, "member_id": "m1", "subscribed_topic_names": [ORDERS]}
STREAMS_JOIN = {
    "group_id": STREAMS,
    "member_id": "m1",
    "process_id": "p1",
    "rebalance_timeout_ms": 60_000,
    "active_tasks": [],
    "standby_tasks": [],
    "warmup_tasks": [],
    "topology": message(subtopology("0", ORDERS)),
}


def joined(key, version, values, has):
    """Return what makes a member join, and waits until it has something."""

    def join(admin, topic_id):
        api = APIS[key]
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = admin.ask(api, version, made(api, values, topic_id))
            if not answer.error_code and has(answer):
                return
            assert time.monotonic() < deadline, answer
            time.sleep(0.05)

    return join


def has_partitions(answer):
    return bool(answer.assignment and answer.assignment.topic_partitions)


consumer_joins = joined(K.CONSUMER_GROUP_HEARTBEAT, 1, CONSUMER_JOIN, has_partitions)
sharer_joins = joined(K.SHARE_GROUP_HEARTBEAT, 1, SHARE_JOIN, has_partitions)
streams_joins = joined(K.STREAMS_GROUP_HEARTBEAT, 0, STREAMS_JOIN, lambda a: a.active_tasks)


def sharer_leaves(admin, topic_id):
    """Leave share partitions that are known to the group, which nobody is in."""
    sharer_joins(admin, topic_id)
    api = APIS[K.SHARE_GROUP_HEARTBEAT]
    leave = {"group_id": SHARERS, "member_id": "m1", "member_epoch": -1}
    assert not admin.ask(api, 1, made(api, leave)).error_code


def share_fetch(epoch, **partition):
    part = {"partition_index": 0, **partition}
    return {
        "group_id": SHARERS,
        "member_id": "f1",
        "share_session_epoch": epoch,
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1000,
        "max_records": 10,
        "batch_size": 10,
        "topics": [{"topic_id": TOPIC_ID, "partitions": [part]}],
    }


ACKNOWLEDGED = {
    "acknowledgement_batches": [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}]
}
BACKWARDS = {
    "acknowledgement_batches": [{"first_offset": 5, "last_offset": 0, "acknowledge_types": [1]}]
}


GROUP_ROWS = [
    Row(
        "consumer heartbeat",
        K.CONSUMER_GROUP_HEARTBEAT,
        (group(R, CONSUMERS), topic(S)),
        30,
        CONSUMER_JOIN,
    ),
    Row(
        "consumer heartbeat that is malformed",
        K.CONSUMER_GROUP_HEARTBEAT,
        (group(R, CONSUMERS), topic(S)),
        30,
        {**CONSUMER_JOIN, "rack_id": ""},
    ),
    Row(
        "consumer group",
        K.CONSUMER_GROUP_DESCRIBE,
        (group(S, CONSUMERS), topic(S)),
        30,
        {"group_ids": [CONSUMERS]},
        before=consumer_joins,
    ),
    Row(
        "share heartbeat",
        K.SHARE_GROUP_HEARTBEAT,
        (group(R, SHARERS), topic(S)),
        30,
        SHARE_JOIN,
    ),
    Row(
        "share group",
        K.SHARE_GROUP_DESCRIBE,
        (group(S, SHARERS), topic(S)),
        30,
        {"group_ids": [SHARERS]},
        before=sharer_joins,
    ),
    Row("share fetch", K.SHARE_FETCH, (group(R, SHARERS), topic(R)), 30, share_fetch(0)),
    Row(
        "share offsets",
        K.DESCRIBE_SHARE_GROUP_OFFSETS,
        (group(S, SHARERS), topic(S)),
        30,
        {"groups": [{"group_id": SHARERS, "topics": [{"topic_name": ORDERS, "partitions": [0]}]}]},
        before=sharer_joins,
    ),
    Row(
        "altered share offsets",
        K.ALTER_SHARE_GROUP_OFFSETS,
        (group(R, SHARERS), topic(R)),
        30,
        {
            "group_id": SHARERS,
            "topics": [
                {
                    "topic_name": ORDERS,
                    "partitions": [{"partition_index": 0, "start_offset": 0}],
                }
            ],
        },
        before=sharer_leaves,
    ),
    Row(
        "deleted share offsets",
        K.DELETE_SHARE_GROUP_OFFSETS,
        (group(D, SHARERS), topic(R)),
        30,
        {"group_id": SHARERS, "topics": [{"topic_name": ORDERS}]},
        before=sharer_leaves,
    ),
    Row(
        "streams heartbeat",
        K.STREAMS_GROUP_HEARTBEAT,
        (group(R, STREAMS), topic(S)),
        30,
        STREAMS_JOIN,
    ),
    Row(
        "streams group",
        K.STREAMS_GROUP_DESCRIBE,
        (group(S, STREAMS), topic(S)),
        30,
        {"group_ids": [STREAMS]},
        before=streams_joins,
    ),
]
