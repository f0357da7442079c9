"""The test suites of other clients: a part of them, unchanged, against clusters of kafkalite.

The whole suites are run by `python -m compat_tests.client_suites`.
"""

from __future__ import annotations

import importlib

import pytest

from compat_tests.client_suites import document, results
from compat_tests.client_suites.brokers import APACHE, KAFKALITE
from compat_tests.client_suites.go_tests import without_parents
from compat_tests.client_suites.results import FAILED, PASSED, SKIPPED, Outcome, Results
from compat_tests.matrix import DOCUMENT

#: Tests of each suite that take about half a minute together. A broker is stopped in one of them.
PARTS = {
    "sarama": (
        "TestFuncProducing",
        "TestFuncProducingZstd",
        "TestFuncTxnProduce",
        "TestFuncTxnAbortedProduce",
        "TestFuncTxnProduceWithBrokerFailure",
        "TestFuncConsumerGroupPartitioning",
        "TestFuncConsumerGroupStaticMembership_Basic",
        "TestFuncAdminAlterPartitionReassignments",
        "TestFuncOffsetManager",
        "TestVersionMatrix",
    ),
    # Those of the suite's own smoke test that need a broker.
    "librdkafka": ("0001", "0012", "0017", "0022", "0030", "0039", "0049", "0103"),
}


@pytest.mark.compat
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.xdist_group("client_suites")
@pytest.mark.parametrize("name", PARTS)
def test_passes_unchanged(name, tmp_path):
    suite = importlib.import_module(f"compat_tests.client_suites.{name}")
    outcomes = suite.run(KAFKALITE, tmp_path / "log", PARTS[name])
    wanted = {
        test: outcome
        for test, outcome in Results.load(name).outcomes[KAFKALITE].items()
        if test.split("/")[0] in PARTS[name] or test[:4] in PARTS[name]
    }
    assert {test: outcome.kind for test, outcome in outcomes.items()} == {
        test: outcome.kind for test, outcome in wanted.items()
    }, outcomes
    assert wanted


def test_the_document_shows_the_results():
    assert document.section().rstrip("\n") in DOCUMENT.read_text(encoding="utf-8")


def test_results_are_kept_by_broker(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    first = Results("some", version="some 1.0")
    first.outcomes[KAFKALITE] = {
        "one": Outcome(kind=PASSED),
        "two": Outcome(kind=FAILED, why="expected: 1"),
        "three": Outcome(kind=SKIPPED),
    }
    first.outcomes[APACHE] = {"one": Outcome(kind=PASSED), "two": Outcome(kind=PASSED)}
    first.save()
    again = Results.load("some")
    assert again == first
    assert again.not_passed() == ["three", "two"]
    assert again.count(KAFKALITE, PASSED) == 1
    assert again.outcome(APACHE, "three").kind == "not run"


def test_a_parent_counts_where_it_says_more_than_its_subtests():
    passed, failed = Outcome(kind=PASSED), Outcome(kind=FAILED)
    found = {"A": passed, "A/x": passed, "B": failed, "B/x": passed, "C": passed}
    assert without_parents(found) == {"A/x": passed, "B": failed, "B/x": passed, "C": passed}
