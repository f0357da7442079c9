"""The hot paths stay as cheap as `benchmarks/guards.json` says, in bytecodes and in bytes held."""

import pytest

from benchmarks import guards


@pytest.fixture(scope="module")
def table():
    table = guards.expected()
    if table is None:
        pytest.skip(f"guards.json is not of Python {guards.PYTHON}: run the one that it names")
    return table


@pytest.fixture(scope="module")
def now(table):
    return guards.measure()


def test_no_path_has_become_dearer(table, now):
    """Renew the table by `python -m benchmarks.guards --renew` where it is meant to be so."""
    dearer = {
        name: f"{table[name]} -> {cost}"
        for name, cost in now.items()
        if name in table and cost.exceeds(table[name])
    }
    assert dearer == {}


def test_table_has_all_paths_and_no_other(table, now):
    assert sorted(table) == sorted(now)


def test_table_is_near_what_it_costs(table, now):
    """A table that lags behind guards nothing: what was gained could be lost unnoticed."""
    lagging = {
        name: f"{table[name].bytecodes} -> {cost.bytecodes}"
        for name, cost in now.items()
        if name in table and table[name].bytecodes > cost.bytecodes * 1.2
    }
    assert lagging == {}


def test_same_work_is_counted_the_same():
    def work():
        return [str(number) for number in range(100)]

    assert guards.cost_of(work) == guards.cost_of(work)


def test_more_work_is_noticed():
    less = guards.cost_of(lambda: [str(number) for number in range(100)])
    more = guards.cost_of(lambda: [str(number) for number in range(110)])
    assert more.exceeds(less)
    assert not less.exceeds(more)


def test_more_memory_is_noticed():
    less = guards.cost_of(lambda: bytes(10_000))
    more = guards.cost_of(lambda: bytes(20_000))
    assert more.exceeds(less)
