"""Delegation tokens of a broker (rules 570-576)."""

import time

import pytest

from kafkalite.testing.broker import Broker
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from tests.security.tokens import (
    JAAS,
    LIFETIME_MS,
    PERIOD_MS,
    SCENARIOS,
    SETTINGS,
    Asker,
    TokenAsker,
    facts,
    logged_in,
)

CONFIG = {**SETTINGS, "listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.jaas.config": JAAS}


@pytest.fixture(scope="module")
def broker():
    with Broker(config=CONFIG) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_every_step_has_an_answer(broker, scenario):
    """What it is, is compared with Apache Kafka's."""
    assert len(list(scenario(broker.bootstrap))) > 5


@pytest.mark.slow
def test_who_shows_a_token_is_its_owner(broker):
    answers = list(logged_in(broker.bootstrap))
    assert answers[:2] == [True, True]
    assert answers[2][0] == 64
    assert answers[-3:] == ["refused"] * 3


def test_without_a_secret_there_are_none():
    config = {**CONFIG, "delegation.token.secret.key": ""}
    with Broker(config=config) as broker, Asker(broker.bootstrap, "alice") as alice:
        assert alice.create().error_code == 61
        assert alice.renew(b"x").error_code == 61
        assert alice.expire(b"x").error_code == 61
        assert alice.describe().error_code == 61


def test_clients_that_nobody_knows_get_none():
    """Rule 571."""
    with Broker(config={"delegation.token.secret.key": "x"}) as broker:
        asker = TokenlessAsker(broker)
        assert facts(Asker.create(asker))[:2] == (64, ("User", "ANONYMOUS"))
        assert Asker.renew(asker, b"x").expiry_timestamp_ms == -1
        assert Asker.describe(asker).error_code == 64
        asker.close()


class TokenlessAsker(TokenAsker):
    def __init__(self, broker):
        super(TokenAsker, self).__init__(broker, client_id="nobody")


def test_tokens_are_there_after_a_restart_until_they_end(tmp_path):
    """Rule 576."""
    config = {**CONFIG, "delegation.token.expiry.check.interval.ms": 1_000}
    with Broker(config=config, data_dir=tmp_path) as first, Asker(first.bootstrap, "alice") as one:
        made = one.create("bob", "User:carol=x")
    with Broker(config=config, data_dir=tmp_path) as second:
        with Asker(second.bootstrap, "alice") as alice:
            (token,) = alice.describe().tokens
            assert (token.token_id, token.hmac) == (made.token_id, made.hmac)
        with TokenAsker(second.bootstrap, made.token_id, made.hmac) as shown:
            assert 0 < shown.lifetime_ms <= PERIOD_MS
        second.clock.advance(PERIOD_MS / 1_000 + 2)
        with Asker(second.bootstrap, "alice") as alice:
            assert alice.describe().tokens == []
            assert alice.renew(made.hmac).error_code == 62


def test_a_token_that_has_ended_lets_nobody_stay():
    with Broker(config=CONFIG) as broker, Asker(broker.bootstrap, "alice") as alice:
        made = alice.create(lifetime_ms=LIFETIME_MS)
        alice.expire(made.hmac, 0)
        time.sleep(0.01)
        with TokenAsker(broker.bootstrap, made.token_id, made.hmac) as shown:
            time.sleep(0.01)
            shown.send_request(METADATA, 9, MetadataRequest(topics=[]))
            assert shown.is_closed()
