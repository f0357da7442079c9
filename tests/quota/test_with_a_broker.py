"""Quotas of a broker: who has to wait how long, and does."""

import pytest

from kafkalite.testing.broker import Broker
from tests.quota.scenarios import FILTERS, REFUSED, SCENARIOS, TIMED, Asker, described


@pytest.fixture
def broker():
    with Broker(config={"auto.create.topics.enable": "false"}) as running:
        yield running


@pytest.fixture
def admin(broker):
    with Asker(broker, "admin") as client:
        yield client


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_clients_are_told_to_wait_as_by_apache_kafka(broker, admin, scenario):
    scenario(broker, admin)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", TIMED, ids=lambda one: one.__name__)
def test_clients_wait_as_with_apache_kafka(broker, admin, scenario):
    scenario(broker, admin)


@pytest.mark.parametrize(("entity", "quotas"), REFUSED)
def test_nonsense_is_refused(admin, entity, quotas):
    """Rule 558."""
    assert admin.set_quota(entity, **quotas) == 42
    assert admin.quotas() == []


def test_quotas_are_described_by_type_name_and_strictness(admin):
    """Rule 557."""
    answers = described(admin)
    assert len(answers) == 2 * len(FILTERS)
    assert len(answers[0]) == 8
    assert answers[1] == []
    assert admin.quotas() == []
