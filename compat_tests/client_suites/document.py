"""The results as a part of docs/compatibility.md: numbers, and each test that does not pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat_tests.apache_kafka import KAFKA_4
from compat_tests.client_suites.brokers import APACHE, KAFKALITE, KINDS
from compat_tests.client_suites.results import FAILED, PASSED, SKIPPED, Results
from compat_tests.client_suites.suites import SUITES
from compat_tests.page import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES = {KAFKALITE: "kafkalite", APACHE: "Apache Kafka"}

TITLE = "## Other clients' own test suites"

_INTRODUCTION = f"""{TITLE}

The tests that clients bring with them, unchanged, against clusters of kafkalite and of Apache
Kafka {KAFKA_4} on the same machine (decision 0191). Each row is written by
`python -m compat_tests.client_suites NAME`, its last column with `--broker apache`. A test that
failed was run once more by itself.

| | tests | kafkalite: passed, failed, skipped | Apache Kafka: passed, failed, skipped |
|---|---|---|---|
"""


def section() -> str:
    """Return the part of the document, from its heading on."""
    lines = []
    notes: list[str] = []
    for suite, reasons in SUITES.items():
        results = Results.load(suite)
        if results.outcomes:
            counts = [_counts(results, broker) for broker in KINDS]
            tests = len(set().union(*results.outcomes.values()))
            lines.append(f"| {results.version} | {tests} | {' | '.join(counts)} |\n")
            notes += _notes(results, reasons)
    return _INTRODUCTION + "".join(lines) + "\n" + "".join(notes)


def _counts(results: Results, broker: str) -> str:
    if broker not in results.outcomes:
        return "not run"
    return ", ".join(str(results.count(broker, kind)) for kind in (PASSED, FAILED, SKIPPED))


def _notes(results: Results, reasons: Mapping[str, str]) -> list[str]:
    """Name the tests that fail, differ or are skipped, those of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for test in results.not_passed():
        found = [results.outcome(broker, test) for broker in KINDS]
        kinds = [f"{_NAMES[broker]} {o.kind}" for broker, o in zip(KINDS, found, strict=True)]
        equal = len({outcome.kind for outcome in found}) == 1
        told = f"both {found[0].kind}" if equal else ", ".join(kinds)
        said = next((outcome.why for outcome in found if outcome.why), "")
        why = reasons.get(test) or plain(said)
        by_reason.setdefault(f"{told}: {why}", []).append(f"`{test}`")
    title = results.version.partition(":")[0]
    return [f"- {title}, {', '.join(tests)}: {why}\n" for why, tests in by_reason.items()]
