"""Decisions by rules: what counts before what (rules 545 to 547)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.security.acls import (
    Entry,
    Filter,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    Rule,
    Rules,
    refusal_of,
)
from kafkalite.security.shorthand import (
    OPERATIONS,
    allow,
    deny,
    operations_of,
    pattern_of,
    principal_of,
)

READ, WRITE, DESCRIBE, DELETE = (
    Operation.READ,
    Operation.WRITE,
    Operation.DESCRIBE,
    Operation.DELETE,
)
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
HOST = "10.0.0.1"


def rules(*lists, **settings):
    found = {}
    for one in lists:
        for rule in one:
            found.setdefault(rule.pattern, []).append(rule.entry)
    return Rules(found, **settings)


def may(authority, operation=READ, name="orders", user="alice", kind=TOPIC, host=HOST):
    return authority.decide(f"User:{user}", host, operation, kind, name).is_allowed


def test_nothing_is_allowed_without_a_rule_unless_settings_say_so():
    assert not may(rules())
    assert may(rules(allows_unruled=True))
    assert not may(rules(allow("bob", "read", topic="orders"), allows_unruled=True))
    assert may(rules(super_users=["User:alice"]))
    assert may(rules(deny("alice", "all", topic="*"), super_users=["User:alice"]))


@pytest.mark.parametrize("name", ["orders", "*", "ord*", "o*"])
def test_rule_is_about_names_prefixes_and_all(name):
    authority = rules(allow("alice", "read", topic=name))
    assert may(authority)
    assert not may(authority, kind=GROUP)
    assert may(authority, name="other") == (name == "*" or "other".startswith(name.rstrip("*")))


@pytest.mark.parametrize("stronger", ["orders", "*", "ord*"])
@pytest.mark.parametrize("weaker", ["orders", "*", "orde*"])
def test_denial_counts_more_than_any_allowance(stronger, weaker):
    authority = rules(allow("alice", "read", topic=weaker), deny("alice", "read", topic=stronger))
    assert not may(authority)


def test_everybody_and_every_host_are_stars():
    authority = rules(allow("*", "read", topic="orders", host=HOST))
    assert may(authority, user="ANONYMOUS")
    assert not may(authority, host="10.0.0.2")
    assert not rules(allow("Group:x", "read", topic="orders")).decide(
        "User:x", HOST, READ, TOPIC, "orders"
    )[0]


@pytest.mark.parametrize("operation", ["read", "write", "delete", "alter", "describe", "all"])
def test_allowance_of_more_allows_to_describe(operation):
    assert may(rules(allow("alice", operation, topic="orders")), DESCRIBE)


@pytest.mark.parametrize("operation", ["create", "alter-configs", "describe-configs"])
def test_allowance_of_other_things_does_not(operation):
    assert not may(rules(allow("alice", operation, topic="orders")), DESCRIBE)


def test_settings_may_be_seen_by_who_may_change_them():
    authority = rules(allow("alice", "alter-configs", topic="orders"))
    assert may(authority, Operation.DESCRIBE_CONFIGS)


def test_denial_implies_nothing():
    everything = allow("alice", "all", topic="orders")
    assert may(rules(everything, deny("alice", "read", topic="orders")), DESCRIBE)
    assert may(rules(everything, deny("alice", "describe", topic="orders")), READ)
    assert not may(rules(everything, deny("alice", "all", topic="orders")), DESCRIBE)


def test_decision_tells_the_rule_that_made_it():
    (denied,) = deny("*", "delete", topic="ord*")
    (allowed,) = allow("alice", "all", topic="orders")
    authority = rules([denied], [allowed])
    assert authority.decide("User:alice", HOST, DELETE, TOPIC, "orders").rule == denied
    found = authority.decide("User:alice", HOST, READ, TOPIC, "orders")
    assert found.rule == allowed
    assert str(found.rule) == "allow User:alice all topic:orders"
    assert str(denied) == "deny User:* delete topic:ord*"
    assert sorted(authority.rules()) == sorted([denied, allowed])
    assert authority.decide("User:bob", HOST, READ, TOPIC, "orders").reason == (
        "no rule about it allows it"
    )


class TestAny:
    """Whether there is anything at all that one may write to."""

    @pytest.mark.parametrize(
        ("lists", "expected"),
        [
            ([], False),
            ([allow("alice", "write", topic="x")], True),
            ([allow("alice", "write", topic="*")], True),
            ([allow("alice", "read", topic="x")], False),
            ([allow("bob", "write", topic="x")], False),
            ([allow("alice", "write", group="x")], False),
            ([allow("alice", "write", topic="x"), deny("alice", "write", topic="*")], False),
            ([allow("alice", "write", topic="x"), deny("alice", "write", topic="x")], False),
            ([allow("alice", "write", topic="x"), deny("alice", "write", topic="y")], True),
            ([allow("alice", "write", topic="xy"), deny("*", "all", topic="x*")], False),
            ([allow("alice", "write", topic="x*"), deny("alice", "write", topic="xy*")], True),
            ([allow("alice", "write", topic="xy*"), deny("alice", "write", topic="x*")], False),
            ([allow("alice", "write", topic="x*"), deny("alice", "write", topic="x")], True),
            ([allow("alice", "write", topic="*"), deny("alice", "write", topic="x*")], True),
        ],
    )
    def test_one_that_is_not_denied_is_enough(self, lists, expected):
        authority = rules(*lists)
        assert authority.decide_any("User:alice", HOST, WRITE, TOPIC) == expected

    def test_super_users_and_open_clusters_may(self):
        assert rules(super_users=["User:alice"]).decide_any("User:alice", HOST, WRITE, TOPIC)
        assert rules(allows_unruled=True).decide_any("User:alice", HOST, WRITE, TOPIC)


names = st.text("ab*", min_size=1, max_size=3)
entries = st.builds(
    Entry,
    st.sampled_from(["User:alice", "User:*", "User:bob"]),
    st.sampled_from(["*", HOST]),
    st.sampled_from([2, 3, 4, 8]),
    st.sampled_from([2, 3]),
)
lists = st.lists(
    st.builds(Rule, st.builds(Pattern, st.just(2), st.sampled_from([3, 4]), names), entries),
    max_size=6,
)


@given(lists, names, st.sampled_from([READ, WRITE, DESCRIBE]))
def test_decision_is_that_of_looking_at_every_rule(found, name, operation):
    """The look-up by name and prefix finds what a look at all rules does."""
    implied = {READ, WRITE, DESCRIBE} if operation == DESCRIBE else {operation}
    about = [
        rule
        for rule in found
        if (rule.pattern.pattern_type == 3 and rule.pattern.name in (name, "*"))
        or (rule.pattern.pattern_type == 4 and name.startswith(rule.pattern.name))
    ]
    mine = [rule.entry for rule in about if rule.entry.principal in ("User:alice", "User:*")]
    denies = any(e.permission == 2 and e.operation in (2, operation) for e in mine)
    allows = any(e.permission == 3 and e.operation in {2, *implied} for e in mine)
    assert may(rules(found), operation, name) == (allows and not denies)


class TestFilter:
    literal, wildcard = Pattern(2, 3, "orders"), Pattern(2, 3, "*")
    prefix, other = Pattern(2, 4, "ord"), Pattern(2, 4, "x")

    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [
            (Filter(), "literal wildcard prefix other"),
            (Filter(resource_type=3), ""),
            (Filter(name="orders"), "literal"),
            (Filter(name="orders", pattern_type=2), "literal wildcard prefix"),
            (Filter(name="ord", pattern_type=4), "prefix"),
            (Filter(pattern_type=3), "literal wildcard"),
        ],
    )
    def test_patterns_fit_as_in_kafka(self, wanted, expected):
        found = [
            name
            for name in ("literal", "wildcard", "prefix", "other")
            if wanted.fits_pattern(getattr(self, name))
        ]
        assert " ".join(found) == expected

    def test_entries_fit_by_each_of_their_parts(self):
        (rule,) = allow("alice", "read", topic="orders", host=HOST)
        assert Filter(principal="User:alice", host=HOST, operation=3, permission=3).fits(rule)
        for wanted in (
            Filter(principal="User:bob"),
            Filter(host="*"),
            Filter(operation=2),
            Filter(permission=2),
        ):
            assert not wanted.fits(rule)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"resource_type": 1}, "Invalid resourceType 1"),
        ({"resource_type": 8}, "Invalid resourceType 8"),
        ({"pattern_type": PatternType.MATCH}, "Invalid patternType"),
        ({"name": ""}, "should not be empty"),
        ({"resource_type": 4}, "kafka-cluster"),
        ({"operation": 1}, "Invalid operation 1"),
        ({"permission": 1}, "Invalid permissionType 1"),
        ({"principal": "alice"}, "no colon is present"),
    ],
)
def test_rule_that_would_mean_nothing_is_refused(changed, message):
    (rule,) = allow("alice", "read", topic="orders")
    assert refusal_of(rule) == ""
    pattern = {name: changed[name] for name in Pattern._fields if name in changed}
    entry = {name: changed[name] for name in Entry._fields if name in changed}
    assert message in refusal_of(
        Rule(rule.pattern._replace(**pattern), rule.entry._replace(**entry))
    )


class TestShorthand:
    def test_resources_are_written_with_their_kinds(self):
        assert pattern_of("topic:orders") == (2, 3, "orders")
        assert pattern_of("group:bill*") == (3, 4, "bill")
        assert pattern_of("transactional-id:*") == (5, 3, "*")
        assert pattern_of("cluster") == (4, 3, "kafka-cluster")
        assert principal_of("alice") == "User:alice"
        assert principal_of("Group:x") == "Group:x"
        assert operations_of("read,describe_configs") == [3, 10]
        assert allow("a", "create") == allow("a", "create", cluster="kafka-cluster")
        assert len(allow("a", "read,write", topic=["x", "y"])) == 4
        assert Permission.ALLOW == 3
        assert "two-phase-commit" in OPERATIONS

    @pytest.mark.parametrize("text", ["orders", "topic:", "topic", "thing:x", "cluster:x"])
    def test_what_is_no_resource_is_refused(self, text):
        with pytest.raises(ValueError, match="is no resource"):
            pattern_of(text)

    def test_what_is_no_operation_is_refused(self):
        with pytest.raises(ValueError, match="is no operation"):
            operations_of("read,eat")
