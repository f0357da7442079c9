"""Which rules fire for which requests, and how often."""

from random import Random

import pytest

from kafkalite.faults.rules import (
    RULES_MAX,
    Action,
    Kind,
    Match,
    Order,
    RecordFacts,
    RequestFacts,
    Rules,
    Trigger,
    Unit,
)
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode

REFUSE = Action(kind=Kind.ERROR, code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
SLOW = Action(kind=Kind.DELAY, seconds=1)
PRODUCE = frozenset({ApiKey.PRODUCE})


def facts(*units, api=ApiKey.PRODUCE, **said):
    return RequestFacts(api=api, units=tuple(Unit(*unit) for unit in units), **said)


def rules(*said):
    made = Rules()
    for match, trigger, *actions in said:
        made.add(
            Match(**match),
            Trigger(**trigger),
            actions or [REFUSE],
            order=Order.SEQUENCE if len(actions) > 1 else Order.SAME,
            now_ms=0,
            draw=Random(trigger.get("seed", 0)).random,
        )
    return made


def fired(made, *requests, now_ms=0):
    return [[hit.units for hit in made.decide(each, now_ms)] for each in requests]


@pytest.mark.parametrize(
    ("match", "request_facts"),
    [
        ({"client_id": "billing*"}, {"client_id": "billing-7"}),
        ({"user": "alice"}, {"user": "alice"}),
        ({"listener": "PLAINTEXT"}, {"listener": "PLAINTEXT"}),
        ({"peer": "10.0.0.*"}, {"peer": "10.0.0.9:1234"}),
        ({"group": "g*"}, {"groups": ("a", "g1")}),
        ({"transactional_id": "tx-?"}, {"transactional_ids": ("tx-1",)}),
        ({"version": 9}, {"version": 9}),
        ({"min_bytes": 100}, {"size_bytes": 100}),
        ({"replica": True}, {"is_replica": True}),
        ({"where": lambda message: message == "m"}, {"message": "m"}),
    ],
)
def test_what_is_given_must_hold(match, request_facts):
    made = rules((match, {}))
    assert fired(made, facts(**request_facts), facts()) == [[None], []]


def test_requests_of_brokers_are_left_alone():
    assert fired(rules(({}, {})), facts(is_replica=True), facts()) == [[], [None]]


def test_a_rule_about_a_topic_concerns_its_partitions_alone():
    made = rules(({"topic": "orders*", "partition": 1}, {}))
    request = facts(("orders-eu", 0), ("orders-eu", 1), ("other", 1))
    assert fired(made, request, facts(("other", 1))) == [[[("orders-eu", 1)]], []]


def test_a_request_about_whole_topics_matches_a_partition_of_it():
    made = rules(({"topic": "t", "partition": 3}, {}))
    assert fired(made, facts(("t", -1), api=ApiKey.METADATA)) == [[[("t", -1)]]]


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ({"key": b"k"}, True),
        ({"key": b"other"}, False),
        ({"value": b"needle"}, True),
        ({"value": b"hay "}, False),
        ({"header": "h"}, True),
        ({"header": "x"}, False),
        ({"key": b"k", "header": "x"}, False),
    ],
)
def test_records_are_looked_at_where_a_rule_wants_that(match, matches):
    records = [RecordFacts(None, None, []), RecordFacts(b"k", b"a needle", [("h", b"")])]
    request = facts(("t", 0), records=lambda unit: records)
    assert bool(rules((match, {})).decide(request, 0)) is matches


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ({}, "111111"),
        ({"times": 2}, "110000"),
        ({"skip": 2, "times": 1}, "001000"),
        ({"every": 3}, "100100"),
        ({"skip": 1, "every": 2, "times": 2}, "010100"),
        ({"probability": 0.0}, "000000"),
    ],
)
def test_a_trigger_counts_matches(trigger, expected):
    made = rules(({"apis": PRODUCE}, trigger))
    seen = ""
    for _ in expected:
        made.decide(facts(api=ApiKey.FETCH), 0)
        seen += "1" if made.decide(facts(), 0) else "0"
    assert seen == expected


def test_chance_is_the_same_for_the_same_seed():
    def run(seed):
        made = rules(({}, {"probability": 0.5, "seed": seed}))
        return "".join(str(len(made.decide(facts(), 0))) for _ in range(64))

    assert run(7) == run(7) != run(8)
    assert 10 < run(7).count("1") < 54


def test_a_rule_acts_for_some_time_only():
    made = rules(({}, {"for_ms": 100}))
    assert fired(made, facts(), now_ms=99) == [[None]]
    assert fired(made, facts(), now_ms=100) == [[]]


def test_a_sequence_does_one_after_the_other_and_is_spent_then():
    made = rules(({}, {}, Action(kind=Kind.PASS), REFUSE, Action(kind=Kind.PASS)))
    assert fired(made, *[facts()] * 5) == [[], [None], [], [], []]
    (rule,) = made
    assert rule.is_spent
    assert (rule.matched, rule.hits) == (3, 3)


def test_a_schedule_draws_by_weight_and_the_same_for_the_same_seed():
    def run(seed):
        made = Rules()
        actions = [REFUSE, Action(kind=Kind.DELAY, seconds=1, weight=3), Action(kind=Kind.PASS)]
        made.add(
            Match(),
            Trigger(),
            actions,
            order=Order.SCHEDULE,
            now_ms=0,
            draw=Random(seed).random,
        )
        return [[hit.action.kind for hit in made.decide(facts(), 0)] for _ in range(500)]

    drawn = run(1)
    assert drawn == run(1) != run(2)
    assert 60 < drawn.count([Kind.ERROR]) < 140
    assert 250 < drawn.count([Kind.DELAY]) < 350
    assert 60 < drawn.count([]) < 140


def test_the_first_rule_that_fires_decides_and_delays_add_up():
    made = rules(({}, {}, SLOW), ({}, {}, SLOW), ({}, {"times": 1}), ({}, {}, REFUSE))
    first, second = made.decide(facts(), 0), made.decide(facts(), 0)
    assert [hit.action.kind for hit in first] == [Kind.DELAY, Kind.DELAY, Kind.ERROR]
    assert [hit.rule.rule_id for hit in first] == ["f1", "f2", "f3"]
    assert [hit.rule.rule_id for hit in second] == ["f1", "f2", "f4"]


def test_each_partition_is_decided_about_once():
    made = rules(({"topic": "t", "partition": 0}, {}), ({"topic": "t"}, {}))
    hits = made.decide(facts(("t", 0), ("t", 1)), 0)
    assert [(hit.rule.rule_id, hit.units) for hit in hits] == [
        ("f1", [("t", 0)]),
        ("f2", [("t", 1)]),
    ]


def test_matches_are_counted_by_partition():
    made = rules(({"topic": "t"}, {"times": 3}))
    made.decide(facts(("t", 0), ("t", 1)), 0)
    assert fired(made, facts(("t", 0), ("t", 1))) == [[[("t", 0)]]]


def test_another_trigger_keeps_what_was_counted():
    made = rules(({}, {}))
    (rule,) = made
    fired(made, facts(), facts())
    rule.set_trigger(Trigger(times=3), lambda: 0.0)
    assert fired(made, facts(), facts()) == [[None], []]
    assert rule.hits == 3


def test_rules_are_found_removed_and_bounded():
    made = rules(({}, {}), ({}, {}))
    assert made.get("f2") is not None
    assert made.remove("f1").rule_id == "f1"
    assert made.remove("f1") is None
    assert len(made) == 1
    for _ in range(RULES_MAX - 1):
        made.add(Match(), Trigger(), [REFUSE], now_ms=0, draw=lambda: 0.0)
    with pytest.raises(ValueError, match="already"):
        made.add(Match(), Trigger(), [REFUSE], now_ms=0, draw=lambda: 0.0)
    assert len(made.clear()) == RULES_MAX
    assert not len(made)


def test_actions_say_what_they_do():
    assert str(REFUSE) == "NOT_LEADER_OR_FOLLOWER"
    assert str(Action(kind=Kind.ERROR, code=ErrorCode.NONE, applied=True)).endswith("applied")
    assert str(SLOW) == "delay 1 s"
    assert str(Action(kind=Kind.BLACKHOLE)) == "blackhole"
