"""The tables of docs/reference/faults.md are true: some rows of each with every client."""

from __future__ import annotations

import pytest

from compat_tests import fault_table
from compat_tests.fault_table import CLIENTS, PAGE, TABLES, bench_of, told_on_page

pytestmark = [pytest.mark.slow, pytest.mark.compat]


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_do_what_the_page_says(client):
    told = told_on_page(PAGE.read_text())
    with bench_of(client) as bench:
        for table in TABLES:
            for row in table.rows:
                if row.is_quick:
                    done = table.run(bench, row)
                    assert done == told[table.name, row.name, client], (table.name, row.name)


def test_the_page_has_every_cell():
    told = told_on_page(PAGE.read_text())
    wanted = {(t.name, row.name, client) for t in TABLES for row in t.rows for client in CLIENTS}
    assert set(told) == wanted
    assert not [cell for cell in told.values() if cell.startswith("(") or not cell]
    assert fault_table.render(told, CLIENTS).count("\n| ") > len(wanted) / 3
