"""Rules said by names and values: what is meant, and what is refused with which sentence."""

import pytest

from kafkalite.faults.answers import can_answer
from kafkalite.faults.rules import Action, Kind, Order, Trigger
from kafkalite.faults.specification import FaultRuleError, chaos, error_named, parse
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode

LEADER = {"api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"}


def test_a_rule_is_read_whole():
    said = {
        "api": ["Produce", "FETCH", ApiKey.METADATA],
        "topic": "orders*",
        "partition": 3,
        "client_id": "c",
        "error": 6,
        "message": "so it is",
        "leader": 9,
        "times": 2,
        "after": 1,
    }
    rule = parse(said)
    assert rule.match.apis == {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA}
    assert (rule.match.topic, rule.match.partition, rule.match.client_id) == ("orders*", 3, "c")
    assert rule.trigger == Trigger(skip=1, times=2)
    assert rule.actions == (
        Action(
            kind=Kind.ERROR,
            code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            message="so it is",
            leader=9,
        ),
    )
    assert "topic=orders*" in rule.description


@pytest.mark.parametrize(
    ("said", "trigger"),
    [
        ({"once": True}, Trigger(times=1)),
        ({"always": True}, Trigger()),
        ({"on_call": 3}, Trigger(skip=2, times=1)),
        ({"every": 2}, Trigger(every=2)),
        ({"probability": 0.5, "seed": 4}, Trigger(probability=0.5, seed=4)),
        ({"for_s": 1.5}, Trigger(for_ms=1500)),
    ],
)
def test_triggers(said, trigger):
    assert parse({**LEADER, **said}).trigger == trigger


@pytest.mark.parametrize(
    ("said", "action"),
    [
        ({"lose_reply": True, "reset": True}, Action(kind=Kind.LOSE_REPLY, reset=True)),
        ({"disconnect": True}, Action(kind=Kind.DISCONNECT)),
        ({"blackhole": True, "applied": True}, Action(kind=Kind.BLACKHOLE, applied=True)),
        ({"ignore": True}, Action(kind=Kind.IGNORE)),
        ({"delay_s": 2}, Action(kind=Kind.DELAY, seconds=2, applied=True)),
        ({"delay_s": 2, "applied": False}, Action(kind=Kind.DELAY, seconds=2)),
        ({"throttle_ms": 50}, Action(kind=Kind.THROTTLE, throttle_ms=50)),
        ({"truncate_bytes": 7}, Action(kind=Kind.TRUNCATE, count_bytes=7)),
        ({"slice_bytes": 7}, Action(kind=Kind.SLICE, count_bytes=7, seconds=0.1)),
        (
            {"slice_bytes": 7, "pause_s": 0.5},
            Action(kind=Kind.SLICE, count_bytes=7, seconds=0.5),
        ),
        ({"slow_bytes_per_s": 100}, Action(kind=Kind.SLICE, count_bytes=5, seconds=0.05)),
        ({"slow_bytes_per_s": 2}, Action(kind=Kind.SLICE, count_bytes=1, seconds=0.5)),
        ({"api": "Metadata", "stale_metadata": True}, Action(kind=Kind.STALE_METADATA)),
        ({"api": "Fetch", "corrupt": "magic"}, Action(kind=Kind.CORRUPT, corruption="magic")),
        (
            {"api": "Produce", "wrong_leader": 7},
            Action(kind=Kind.ERROR, code=ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=7),
        ),
    ],
)
def test_actions(said, action):
    assert parse(said).actions == (action,)


def test_a_sequence_has_errors_actions_and_pauses():
    rule = parse({"api": "Produce", "sequence": ["ok", "NOT_LEADER_OR_FOLLOWER", {"delay_s": 1}]})
    assert rule.order is Order.SEQUENCE
    assert [each.kind for each in rule.actions] == [Kind.PASS, Kind.ERROR, Kind.DELAY]


def test_a_schedule_has_weights():
    rule = parse({"api": "Produce", "schedule": [{"ok": True, "weight": 9}, 6], "seed": 4})
    assert rule.order is Order.SCHEDULE
    assert [each.weight for each in rule.actions] == [9, 1]
    assert rule.trigger.seed == 4


@pytest.mark.parametrize(
    ("api", "action", "kind"),
    [
        ("Heartbeat", "evict_member", Kind.EVICT_MEMBER),
        ("ConsumerGroupHeartbeat", "rebalance", Kind.REBALANCE),
        ("EndTxn", "fence_producer", Kind.FENCE_PRODUCER),
        ("OffsetCommit", "move_coordinator", Kind.MOVE_COORDINATOR),
    ],
)
def test_what_changes_the_brokers_state_is_for_some_apis_alone(api, action, kind):
    assert parse({"api": api, action: True}).actions == (Action(kind=kind),)
    with pytest.raises(FaultRuleError, match=f"{action} is for"):
        parse({"api": "ListOffsets", action: True})
    with pytest.raises(FaultRuleError, match=f"{action} is for"):
        parse({action: True})


def test_chaos_is_several_rules_by_one_seed():
    rules = chaos({"seed": 7, "client_id": "c"})
    assert [rule.trigger.seed for rule in rules] == [7, 8, 9, 10, 11, 12]
    assert {rule.trigger.probability for rule in rules} == {0.02}
    assert {rule.match.client_id for rule in rules} == {"c"}
    with pytest.raises(FaultRuleError, match="chaos has no 'topic'"):
        chaos({"topic": "orders"})


def test_bytes_are_text_or_base64():
    assert parse({**LEADER, "key": "k", "value": {"b64": "AAE="}}).match.value == b"\0\1"
    assert parse({**LEADER, "key": b"raw"}).match.key == b"raw"


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"api": "Produce", "topik": "x", "error": 6}, "has no 'topik'"),
        ({"api": "Produse", "error": 6}, "no API named 'Produse'"),
        ({"api": [], "error": 6}, "api is a name"),
        ({"api": 4, "error": 6}, "api is a name"),
        ({"api": "Produce"}, "this has none"),
        ({"api": "Produce", "error": 6, "disconnect": True}, "this has error and disconnect"),
        ({"api": "Produce", "error": "NOT_A_CODE"}, "no error 'NOT_A_CODE'"),
        ({"api": "Produce", "error": 9999}, "no error 9999"),
        ({"api": "Produce", "error": "NONE"}, "NONE is no error"),
        ({"api": "Produce", "error": "GROUP_ID_NOT_FOUND"}, "never answers GROUP_ID_NOT_FOUND"),
        ({"topic": "t", "disconnect": True}, "names its api"),
        ({**LEADER, "times": 0}, "times is a whole number of 1 or more"),
        ({**LEADER, "times": True}, "times is a whole number"),
        ({**LEADER, "once": True, "times": 2}, "contradict"),
        ({**LEADER, "once": 1}, "once is true or false"),
        ({**LEADER, "probability": 2}, "probability is a number"),
        ({**LEADER, "topic": 3}, "topic is text"),
        ({**LEADER, "key": 3}, "key is text"),
        ({**LEADER, "key": {"b64": "?"}}, "no valid base64"),
        ({**LEADER, "where": 3}, "only Python"),
        ({"delay_s": -1}, "delay_s is a number"),
        ({**LEADER, "every": 2, "on_call": 3}, "every and on_call contradict"),
        ({**LEADER, "seed": 3}, "a seed is for probability or schedule"),
        ({**LEADER, "pause_s": 3}, "error has no pause_s"),
        ({"delay_s": 1, "message": "x"}, "delay_s has no message"),
        ({"api": "Produce", "throttle_ms": 1, "reset": True}, "throttle_ms has no reset"),
        ({"api": "Heartbeat", "topic": "t", "error": 25}, "HEARTBEAT has no topics"),
        ({"api": "Produce", "group": "g", "error": 6}, "PRODUCE has no groups"),
        ({"api": "Fetch", "transactional_id": "t", "error": 6}, "no transactional ids"),
        ({"api": "Fetch", "key": "k", "error": 6}, "FETCH has no records"),
        ({"api": "Produce", "stale_metadata": True}, "is for DESCRIBE_CLUSTER"),
        ({"api": "Produce", "sequence": [6], "times": 2}, "over after 1 times, not 2"),
        ({"api": "Produce", "sequence": [6], "leader": 2}, "leader belongs to an element"),
        ({"api": "Produce", "schedule": [{"error": 6, "weight": 0}]}, "weights of a schedule"),
        ({"api": "Produce", "schedule": 6}, "a schedule is a list"),
        ({"delay_s": 10**9}, "delay_s is a number from 0 to"),
        ({"api": "Produce", "corrupt": "crc"}, "corrupt is for Fetch"),
        ({"api": "Fetch", "corrupt": "all"}, "corrupt is one of"),
        ({"api": "Metadata", "wrong_leader": 1}, "wrong_leader is for"),
        ({"api": "Produce", "wrong_leader": True}, "id of a broker"),
        ({"transform": "code"}, "only Python"),
        ({"sequence": "ok"}, "a sequence is a list"),
        ({"sequence": []}, "1 to"),
        ({"sequence": [None]}, "a sequence has"),
        ({"sequence": [{"sequence": []}]}, "one action"),
        ({"sequence": [{"disconnect": True, "times": 2}]}, "one action"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(said, sentence):
    with pytest.raises(FaultRuleError, match=sentence):
        parse(said)


def test_unchecked_allows_what_kafka_never_answers():
    rule = parse({"api": "Produce", "error": "GROUP_ID_NOT_FOUND", "unchecked": True})
    assert rule.actions[0].code is ErrorCode.GROUP_ID_NOT_FOUND


def test_errors_have_names_and_numbers():
    assert error_named("3") is error_named(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_every_api_may_fail_as_such_and_unlisted_apis_with_anything():
    for api in ApiKey:
        assert can_answer(api, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert can_answer(ApiKey.DESCRIBE_ACLS, ErrorCode.SECURITY_DISABLED)
    assert not can_answer(ApiKey.END_TXN, ErrorCode.OFFSET_OUT_OF_RANGE)
