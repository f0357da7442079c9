"""Delegation tokens that one broker makes are known to all (rules 570-576)."""

import pytest

import kafkalite
from kafkalite.security import scram
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from tests.security.tokens import SECRET, Asker, TokenAsker

pytestmark = [pytest.mark.slow]

CONFIG = {"delegation.token.secret.key": SECRET, "delegation.token.expiry.check.interval.ms": 1_000}


@pytest.fixture(scope="module")
def brokers():
    users = {"alice": "alice-secret", "bob": "bob-secret"}
    with kafkalite.Cluster(2, users=users, config=CONFIG, links=False) as running:
        yield [broker.bootstrap for broker in running.brokers.values()]


@pytest.mark.parametrize("made_at", [0, 1])
def test_a_token_of_one_broker_is_a_login_at_the_other_until_it_is_taken_back(brokers, made_at):
    here, there = brokers[made_at], brokers[1 - made_at]
    with Asker(here, "alice") as alice, Asker(there, "bob") as bob:
        made = alice.create("bob")
        assert not made.error_code
        bob.wait_known(made.token_id)
        for mechanism in (scram.SHA_256, scram.SHA_512):
            with TokenAsker(there, made.token_id, made.hmac, mechanism) as shown:
                told = shown.ask(METADATA, 9, MetadataRequest(topics=[]))
                assert {broker.node_id for broker in told.brokers} == {1, 2}
        renewed = bob.renew(made.hmac, 1_000_000)
        assert not renewed.error_code
        assert not bob.expire(made.hmac).error_code
        for asker in (alice, bob):
            asker.wait_known(made.token_id, expected=False)
        for bootstrap in brokers:
            with pytest.raises((AssertionError, scram.ScramError)):
                TokenAsker(bootstrap, made.token_id, made.hmac)


def test_a_token_that_ends_by_itself_is_gone_at_every_broker(brokers):
    with Asker(brokers[0], "alice") as alice, Asker(brokers[1], "alice") as elsewhere:
        made = alice.create()
        elsewhere.wait_known(made.token_id)
        assert not elsewhere.expire(made.hmac, 1).error_code
        for asker in (alice, elsewhere):
            asker.wait_known(made.token_id, expected=False)
