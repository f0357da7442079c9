"""Apache Kafka's own integration tests: a part of them, unchanged, with kafkalite under them.

All of them are run by `python -m compat_tests.apache_suite`; the results are in
docs/compatibility.md.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from compat_tests.apache_suite import document
from compat_tests.apache_suite.classes import known_reasons
from compat_tests.apache_suite.results import COMMITTED, Results
from compat_tests.apache_suite.running import Outcome, run_class
from compat_tests.matrix import DOCUMENT
from compat_tests.page import replace_part

if TYPE_CHECKING:
    from pathlib import Path

#: Classes, or methods of them, that together take at most three minutes on two cores, with how
#: many tests have to pass: one that is not started any more is a failure, too.
PART: dict[str, tuple[tuple[str, ...], int]] = {
    "org.apache.kafka.clients.admin.AdminFenceProducersTest": ((), 3),
    "org.apache.kafka.clients.admin.ConcurrentListOffsetsRequestTest": ((), 1),
    "org.apache.kafka.clients.TransactionsWithMaxInFlightOneTest": ((), 1),
    "org.apache.kafka.streams.integration.PurgeRepartitionTopicIntegrationTest": ((), 1),
    "org.apache.kafka.tools.DeleteRecordsCommandTest": ((), 6),
    "kafka.server.DescribeClusterRequestTest": ((), 2),
}


@pytest.mark.compat
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.xdist_group("apache_suite")
@pytest.mark.parametrize("name", PART, ids=lambda name: name.rpartition(".")[2])
def test_passes_unchanged(name: str, tmp_path: Path) -> None:
    """A class of Kafka's, by the runner of the whole suite."""
    methods, passed = PART[name]
    outcome = run_class(
        name, broker="kafkalite", timeout_s=300, keep=tmp_path / "logs", methods=methods
    )
    assert outcome.problem is None, outcome.problem
    assert not outcome.failed, outcome.failed
    assert outcome.passed == passed, outcome


def test_the_document_shows_the_results() -> None:
    """The part of docs/compatibility.md is what the committed file says."""
    text = DOCUMENT.read_text(encoding="utf-8")
    shown = text[text.index(document.TITLE) :]
    assert document.section(json.loads(COMMITTED.read_text())) in shown


def test_results_are_kept_by_class(tmp_path: Path) -> None:
    """A second run replaces what it ran, and nothing else."""
    path = tmp_path / "results.json"
    results = Results(path, ["a.First", "a.Third"])
    results.add("a.First", Outcome(passed=3, seconds=1.0))
    results.add("a.Second", Outcome(passed=1, failed={"works#1": "late\n  by <5> s"}))
    again = Results(path)
    again.add("a.First", Outcome(passed=4, not_applicable={"x": "needs KRaft", "y": "needs KRaft"}))
    assert json.loads(path.read_text()) == again.by_class
    (left_out, why) = next(iter(known_reasons().items()))
    others = dict.fromkeys(["kafka.a.Same", "kafka.b.Same", left_out])
    text = document.section({**again.by_class, **others})
    assert "| First | 4 |  | 2 (1) |\n" in text
    assert "| Second | 1 | 1 (2) |  |\n" in text
    assert "\n1. needs KRaft\n2. Second.works: late by &lt;5&gt; s\n" in text
    assert "<summary>core: 3 of 5 classes are not run yet</summary>" in text
    assert "\n\n- Third\n- kafka.a.Same\n- kafka.b.Same\n\n</details>\n" in text
    assert f"\n- {left_out.rpartition('.')[2]}: {why}\n" in text


def test_what_is_not_started_has_a_reason() -> None:
    """Each name is that of a class of the suites, or of one of its methods."""
    known = Results(COMMITTED).by_class
    for name, reason in known_reasons().items():
        assert name.partition("#")[0] in known, name
        assert reason.strip(), name


def test_the_document_keeps_what_others_wrote(tmp_path: Path) -> None:
    """Only the part under its heading is written anew."""
    path = tmp_path / "page.md"
    path.write_text(f"# Page\n\n{document.TITLE}\n\nold\n\n## Last\n\nstays\n")
    replace_part(path, document.TITLE, document.section({}))
    text = path.read_text()
    assert text.startswith("# Page\n\n" + document.TITLE)
    assert text.endswith("\n\n## Last\n\nstays\n")
    assert "old" not in text
