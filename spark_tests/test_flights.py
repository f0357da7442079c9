"""The whole pipeline on real input: the example script, as a newcomer runs it, and its checks."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "flights.py"


@pytest.fixture(scope="module")
def flights():
    spec = importlib.util.spec_from_file_location("flights_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def said(flights, spark, bootstrap, tmp_path_factory):
    """What the example says; it runs once."""
    lines = []
    folder = tmp_path_factory.mktemp("flights")
    names = {"flights_topic": f"flights-{folder.name}", "delays_topic": f"delays-{folder.name}"}
    equal = flights.run(spark, bootstrap, folder, **names, say=lines.append)
    return equal, lines, folder, names


def test_every_window_equals_the_one_computed_by_pandas(said):
    equal, lines, _, _ = said
    assert equal, lines
    assert sum("rows equal those of pandas" in line for line in lines) == 2


def test_all_flights_went_through_the_topic_in_time_order(said, source):
    """336,776 flights and the closing row; in each partition times rise with the offsets."""
    _, _, _, names = said
    rows = source(subscribe=names["flights_topic"]).selectExpr(
        "partition",
        "offset",
        "timestamp < lag(timestamp) OVER (PARTITION BY partition ORDER BY offset) AS back",
    )
    assert rows.count() == 336_777
    assert rows.where("back").isEmpty()


def test_no_flight_came_too_late_for_its_window(said):
    _, lines, _, _ = said
    assert any(" 0 rows came too late" in line for line in lines)


def test_a_changed_row_is_noticed(said, flights, spark):
    _, _, folder, _ = said
    rows = spark.read.schema(flights.DELAYS).parquet(str(folder / "delays"))
    expected = flights.delays_by_pandas(flights.source)
    wrong = rows.selectExpr(
        *(name for name in rows.columns if name != "worst_minutes"),
        "worst_minutes + CASE WHEN origin = 'JFK' AND carrier = 'B6' AND "
        "window_start = '2013-07-04 12:00:00' THEN 1 ELSE 0 END AS worst_minutes",
    )
    assert flights.compare(wrong, expected) is not None
    assert flights.compare(rows.limit(39_000), expected) is not None
    assert flights.compare(rows.union(rows.limit(1)), expected) is not None
