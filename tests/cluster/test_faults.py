"""The part of `tests/soak_cluster.py` that fits into every run of the tests."""

import pytest

from tests.soak_cluster import run_round


@pytest.mark.slow
@pytest.mark.long
def test_nothing_acknowledged_is_lost_under_faults(tmp_path):
    counts, work, found = run_round(7, str(tmp_path), faults=12, gap_s=0.5)
    assert found == []
    assert counts.total() == 12
    assert all(work.values()), work


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_where_every_link_is_secured(tmp_path):
    """TLS and logins for clients, brokers and ZooKeeper, under the same faults."""
    faults = ["kill leader", "isolate broker", "restart ZooKeeper"]
    counts, work, found = run_round(12, str(tmp_path), faults=faults, gap_s=0.1, secured=True)
    assert found == []
    assert [*counts] == faults
    assert all(work.values()), work
