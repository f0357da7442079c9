"""Every API, denied and allowed, in every version (rules 549-551)."""

import pytest

from kafkalite.testing.broker import Broker
from tests.security.admin_matrix import ADMIN_ROWS, OPEN_ROWS
from tests.security.data_matrix import ROWS
from tests.security.group_matrix import GROUP_ROWS
from tests.security.group_scenes import SCENES, played
from tests.security.matrix import AUTHORIZATION, JAAS, ORDERS, SETTINGS, Asker, outcome


@pytest.fixture(scope="module")
def broker():
    config = {
        **SETTINGS,
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.jaas.config": JAAS,
    }
    with Broker(config=config) as running:
        yield running


@pytest.fixture(scope="module")
def topic_id(broker):
    with Asker(broker.bootstrap, "admin", "admin-secret") as admin:
        return admin.topic_id(ORDERS)


@pytest.mark.parametrize("row", [*ROWS, *GROUP_ROWS, *ADMIN_ROWS], ids=lambda row: row.name)
def test_without_rules_it_is_denied_and_with_all_of_them_allowed(broker, topic_id, row):
    found = outcome(broker.bootstrap, topic_id, row)
    *denied, allowed = found.items()
    for needs, by_version in denied:
        for version, codes in by_version.items():
            assert {code for _, code in codes} & AUTHORIZATION, (needs, version)
    for version, codes in denied[0][1].items():
        assert row.code in {code for _, code in codes}, version
    for version, codes in allowed[1].items():
        assert not codes, version


@pytest.mark.parametrize("row", OPEN_ROWS, ids=lambda row: row.name)
def test_these_are_for_everybody(broker, topic_id, row):
    ((_, by_version),) = set(map(_frozen, outcome(broker.bootstrap, topic_id, row).items()))
    assert {codes for _, codes in by_version} == {()}


def _frozen(item):
    needs, by_version = item
    return needs, tuple(by_version.items())


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_groups_are_seen_as_far_as_their_topics_may_be(broker, topic_id, scene):
    """Rules 342 to 345."""
    assert played(scene, broker.bootstrap, topic_id) == SCENES[scene]
