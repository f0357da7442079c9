"""What a user sees of groups who may not see all topics: scenes for a broker of any make.

Each gives codes and texts as they were answered, and what both brokers have to answer.
"""

import time

from kafkalite.security.acls import CLUSTER_NAME, Operation, ResourceType
from kafkalite.types import ZERO_UUID
from kafkalite.wire.api import ApiKey as K
from kafkalite.wire.apis import APIS
from tests.group.streams.topologies import message, subtopology
from tests.security.group_matrix import (
    ACKNOWLEDGED,
    BACKWARDS,
    CONSUMER_JOIN,
    PATIENCE_S,
    SHARE_JOIN,
    SHARERS,
    STREAMS,
    STREAMS_JOIN,
    group,
    has_partitions,
    joined,
    share_fetch,
    sharer_leaves,
)
from tests.security.matrix import ORDERS, Asker, Need, made, topic

R, C, D, S = Operation.READ, Operation.CREATE, Operation.DELETE, Operation.DESCRIBE
HIDDEN = f"{ORDERS}-hidden"
HIDING = (
    "The group has described topic(s) that the client is not authorized to describe.",
    "The described group uses topics that the client is not authorized to describe.",
)


class Scene:
    """The administrator, and a user who may do what `allow` says."""

    def __init__(self, bootstrap, topic_id):
        self.bootstrap, self.topic_id = bootstrap, topic_id
        self.admin = Asker(bootstrap, "admin", "admin-secret")
        self.alice = Asker(bootstrap, "alice", "alice-secret")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.admin.close()
        self.alice.close()

    def allow(self, *needs):
        self.admin.set_rules(needs)

    def ask(self, key, version, values, who=None):
        api = APIS[key]
        return (who or self.alice).ask(api, version, made(api, values, self.topic_id))

    def until(self, is_there, key, version, values):
        deadline = time.monotonic() + PATIENCE_S
        while not is_there(answer := self.ask(key, version, values)):
            assert time.monotonic() < deadline, answer
            time.sleep(0.05)
        return answer


def order_of_checks_of_a_consumer(scene):
    found = []
    for needs in ((), (group(R, "late"),), (group(R, "late"), topic(S))):
        scene.allow(*needs)
        beat = {**CONSUMER_JOIN, "group_id": "late", "rack_id": ""}
        found.append(scene.ask(K.CONSUMER_GROUP_HEARTBEAT, 1, beat).error_code)
    return found


def order_of_checks_of_a_sharer(scene):
    found = []
    for needs in ((), (group(R, "late"),), (group(R, "late"), topic(S))):
        scene.allow(*needs)
        for values in ({"member_id": "x" * 37}, {"rack_id": ""}):
            beat = {**SHARE_JOIN, "group_id": "late", **values}
            found.append(scene.ask(K.SHARE_GROUP_HEARTBEAT, 1, beat).error_code)
    return found


def order_of_checks_of_a_streams_thread(scene):
    found = []
    for needs in ((), (group(R, STREAMS),)):
        scene.allow(*needs)
        for source in (f"__consumer_offsets {ORDERS}", f"a,b {ORDERS}", ORDERS):
            beat = {**STREAMS_JOIN, "topology": message(subtopology("0", source))}
            found.append(scene.ask(K.STREAMS_GROUP_HEARTBEAT, 0, beat).error_code)
    return found


def internal_topics_need_create(scene):
    values = {
        **STREAMS_JOIN,
        "group_id": "counting",
        "topology": message(subtopology("0", ORDERS, changelogs="counting-log")),
    }
    mine = (group(R, "counting"), topic(S))
    log = Need(S, ResourceType.TOPIC, "counting-log")
    scene.allow(*mine)
    found = [scene.ask(K.STREAMS_GROUP_HEARTBEAT, 0, values).error_code]
    scene.allow(*mine, log)
    answer = scene.ask(K.STREAMS_GROUP_HEARTBEAT, 0, values)
    found.append([s.status_detail for s in answer.status if s.status_code == 3])
    scene.allow(*mine, log, Need(C, ResourceType.CLUSTER, CLUSTER_NAME))
    answer = scene.until(
        lambda a: all(s.status_code != 3 for s in a.status or ()),
        K.STREAMS_GROUP_HEARTBEAT,
        0,
        values,
    )
    return [*found, answer.error_code]


def pattern_finds_what_may_be_seen(scene):
    joined(K.CONSUMER_GROUP_HEARTBEAT, 1, {**CONSUMER_JOIN, "group_id": "seeing"}, has_partitions)(
        scene.admin, scene.topic_id
    )
    values = {
        **CONSUMER_JOIN,
        "group_id": "matching",
        "subscribed_topic_names": [],
        "subscribed_topic_regex": f"{ORDERS}.*",
    }
    scene.allow(group(R, "matching"), topic(S))
    answer = scene.until(has_partitions, K.CONSUMER_GROUP_HEARTBEAT, 1, values)
    return [each.topic_id == scene.topic_id for each in answer.assignment.topic_partitions]


def groups_with_hidden_topics_are_not_described(scene):
    found = []
    topics = [ORDERS, HIDDEN]

    def has_both(answer):
        return len(answer.assignment.topic_partitions if answer.assignment else ()) == 2

    for join, describe, version, values, has in (
        (
            K.CONSUMER_GROUP_HEARTBEAT,
            K.CONSUMER_GROUP_DESCRIBE,
            1,
            {**CONSUMER_JOIN, "group_id": "both", "subscribed_topic_names": topics},
            has_both,
        ),
        (
            K.SHARE_GROUP_HEARTBEAT,
            K.SHARE_GROUP_DESCRIBE,
            1,
            {**SHARE_JOIN, "group_id": "both-share", "subscribed_topic_names": topics},
            has_both,
        ),
        (
            K.STREAMS_GROUP_HEARTBEAT,
            K.STREAMS_GROUP_DESCRIBE,
            0,
            {
                **STREAMS_JOIN,
                "group_id": "both-streams",
                "topology": message(subtopology("0", " ".join(topics))),
            },
            lambda a: not a.error_code,
        ),
    ):
        joined(join, version, values, has)(scene.admin, scene.topic_id)
        scene.allow(group(S, values["group_id"]), topic(S))
        asked = {"group_ids": [values["group_id"]], "include_authorized_operations": True}
        (answer,) = scene.ask(describe, version, asked).groups
        found.append((answer.error_code, answer.error_message, answer.members))
        hidden = Need(S, ResourceType.TOPIC, HIDDEN)
        scene.allow(group(S, values["group_id"]), topic(S), hidden)
        (answer,) = scene.ask(describe, version, asked).groups
        found.append((answer.error_code, len(answer.members), answer.authorized_operations))
    return found


def order_of_checks_of_an_acknowledgement(scene):
    values = share_fetch(0)
    scene.allow(group(R, SHARERS))
    assert not scene.ask(K.SHARE_FETCH, 1, values).error_code
    found = []
    for epoch, partition in enumerate((BACKWARDS, ACKNOWLEDGED), 1):
        answer = scene.ask(K.SHARE_FETCH, 1, share_fetch(epoch, **partition))
        (part,) = answer.responses[0].partitions
        found.append((part.error_code, part.acknowledge_error_code))
    return found


def hidden_topics_among_share_offsets(scene):
    both = {**SHARE_JOIN, "subscribed_topic_names": [ORDERS, HIDDEN]}

    def has_both(answer):
        return len(answer.assignment.topic_partitions if answer.assignment else ()) == 2

    joined(K.SHARE_GROUP_HEARTBEAT, 1, both, has_both)(scene.admin, scene.topic_id)
    scene.allow(group(S, SHARERS), topic(S))
    asked = {"groups": [{"group_id": SHARERS, "topics": None}]}
    everything = scene.ask(K.DESCRIBE_SHARE_GROUP_OFFSETS, 0, asked).groups[0].topics
    topics = [{"topic_name": name, "partitions": [0]} for name in (HIDDEN, ORDERS)]
    asked = {"groups": [{"group_id": SHARERS, "topics": topics}]}
    named = scene.ask(K.DESCRIBE_SHARE_GROUP_OFFSETS, 0, asked).groups[0].topics
    scene.allow(group(R, SHARERS), group(D, SHARERS), topic(R))
    sharer_leaves(scene.admin, scene.topic_id)
    parts = [{"partition_index": 0, "start_offset": 0}]
    topics = [{"topic_name": name, "partitions": parts} for name in (HIDDEN, ORDERS, "ghost")]
    altered = scene.ask(
        K.ALTER_SHARE_GROUP_OFFSETS, 0, {"group_id": SHARERS, "topics": topics}
    ).responses
    topics = [{"topic_name": name} for name in (HIDDEN, ORDERS, "ghost")]
    deleted = scene.ask(
        K.DELETE_SHARE_GROUP_OFFSETS, 0, {"group_id": SHARERS, "topics": topics}
    ).responses
    return [
        [each.topic_name for each in everything],
        sorted(
            (t.topic_name, t.topic_id == ZERO_UUID, p.error_code, p.error_message or "")
            for t in named
            for p in t.partitions
        ),
        sorted(
            (t.topic_name, t.topic_id == ZERO_UUID, p.error_code)
            for t in altered
            for p in t.partitions
        ),
        sorted((t.topic_name, t.topic_id == ZERO_UUID, t.error_code) for t in deleted),
    ]


DENIED = "Topic authorization failed."
SCENES = {
    order_of_checks_of_a_consumer: [30, 29, 42],
    order_of_checks_of_a_sharer: [30, 30, 42, 29, 42, 42],
    order_of_checks_of_a_streams_thread: [30, 30, 30, 130, 130, 29],
    internal_topics_need_create: [
        29,
        [
            "Internal topics are missing: counting-log; "
            "Unauthorized to CREATE on topics counting-log."
        ],
        0,
    ],
    pattern_finds_what_may_be_seen: [True],
    groups_with_hidden_topics_are_not_described: [
        (29, HIDING[0], []),
        (0, 1, 1 << S),
        (29, HIDING[0], []),
        (0, 1, 1 << S),
        (29, HIDING[1], []),
        (0, 1, 1 << S),
    ],
    order_of_checks_of_an_acknowledgement: [(29, 42), (29, 29)],
    hidden_topics_among_share_offsets: [
        [ORDERS],
        [(ORDERS, False, 0, ""), (HIDDEN, True, 29, DENIED)],
        [("ghost", True, 29), (ORDERS, False, 0), (HIDDEN, False, 29)],
        [("ghost", True, 29), (ORDERS, False, 0), (HIDDEN, True, 29)],
    ],
}


def played(scene, bootstrap, topic_id):
    """Return what a scene gives."""
    with Scene(bootstrap, topic_id) as stage:
        stage.admin.topic_id(HIDDEN)
        return scene(stage)
