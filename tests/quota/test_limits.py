"""Which quota applies to whom (rule 556)."""

import itertools

import pytest

from kafkalite.meta.entities import client_resource, ip_resource, user_resource
from kafkalite.quota.limits import (
    Limits,
    Sharers,
    connection_rates,
    entity_of,
    limits_of,
    normal_address,
    quotas_of,
)

NAME = "producer_byte_rate"
LEVELS = [
    user_resource("ann", "app"),
    user_resource("ann", None),
    user_resource("ann"),
    user_resource(None, "app"),
    user_resource(None, None),
    user_resource(None),
    client_resource("app"),
    client_resource(None),
]
"""The most specific first."""

SHARED = [Sharers("ann", "app")] * 2 + [Sharers("ann", "")] + [Sharers("ann", "app")] * 2
SHARED += [Sharers("ann", "")] + [Sharers("", "app")] * 2


@pytest.mark.parametrize("count", range(1, 9))
def test_the_most_specific_quota_counts_and_says_who_shares_it(count):
    for chosen in itertools.combinations(range(8), count):
        configs = {LEVELS[level]: {NAME: str(level + 1)} for level in chosen}
        assert limits_of(configs, NAME).find("ann", "app") == (SHARED[chosen[0]], chosen[0] + 1)


def test_others_have_the_defaults_or_none():
    configs = {LEVELS[0]: {NAME: "1"}, LEVELS[2]: {NAME: "2"}, LEVELS[6]: {NAME: "3"}}
    limits = limits_of(configs, NAME)
    assert limits.find("bob", "app") == (Sharers("", "app"), 3)
    assert limits.find("ann", "other") == (Sharers("ann", ""), 2)
    assert limits.find("bob", "other") is None


def test_who_has_no_client_id_has_quotas_of_users_only():
    configs = {level: {NAME: str(place)} for place, level in enumerate(LEVELS)}
    assert limits_of(configs, NAME).find("ann", "") == (Sharers("ann", ""), 2)
    assert limits_of({LEVELS[7]: {NAME: "1"}}, NAME).find("ann", "") is None


def test_there_are_none_of_another_kind():
    configs = {LEVELS[2]: {"consumer_byte_rate": "1", "SCRAM-SHA-256": "salt=..."}}
    assert not limits_of(configs, NAME)
    assert limits_of(configs, "consumer_byte_rate")
    assert not Limits({}, {}, {})
    assert dict(quotas_of(configs)) == {(("user", "ann"),): {"consumer_byte_rate": 1.0}}


def test_users_who_have_credentials_only_have_no_quotas():
    assert list(quotas_of({user_resource("ann"): {"SCRAM-SHA-256": "salt=..."}})) == []


def test_names_are_read_as_they_were_given():
    assert entity_of(user_resource("a/b", "<default>")) == (
        ("client-id", "<default>"),
        ("user", "a/b"),
    )
    assert entity_of(user_resource(None, None)) == (("client-id", None), ("user", None))
    assert entity_of(ip_resource("::1")) == (("ip", "::1"),)


def test_addresses_are_compared_by_their_meaning():
    configs = {
        ip_resource("::ffff:10.0.0.1"): {"connection_creation_rate": "3"},
        ip_resource(None): {"connection_creation_rate": "7"},
        user_resource("ann"): {NAME: "1"},
    }
    assert connection_rates(configs) == {"10.0.0.1": 3.0, None: 7.0}
    assert normal_address("fe80:0::1%eth0") == "fe80::1"
    assert normal_address("node-1") == "node-1"
