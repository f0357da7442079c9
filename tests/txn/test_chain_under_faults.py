"""Exactly once, while everything fails: the chain of `tests.txn.chain`, in a size for every day.

Longer: `python -m tests.soak_transactions`.
"""

import pytest

from tests.txn.chain import Chain

pytestmark = pytest.mark.slow

RECORDS = 8_000
FAULTS = 12


def test_no_record_is_lost_doubled_or_out_of_order_in_a_chain_under_faults(tmp_path):
    """Goal: of thousands of records, each passes once, in order, for readers of committed ones.

    Method: workers are killed in the midst of their transactions, connections are cut, the broker
    is killed and started again; the history of what was read is then checked.
    """
    with Chain(tmp_path, seed=3) as chain:
        chain.fill(RECORDS)
        chain.run(faults=FAULTS)
        assert chain.check() == []
        assert set(chain.faults) == {"worker", "broker", "connections"}
        counts = chain.transactions()
    assert counts["read_committed"] > 100
    assert counts["read_uncommitted"] > counts["read_committed"], "nothing was aborted"
