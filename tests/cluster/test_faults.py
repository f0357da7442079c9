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
