"""The results as a part of docs/compatibility.md: class by class, with reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compat_tests.apache_kafka import KAFKA_4
from compat_tests.apache_suite.classes import known_reasons
from compat_tests.apache_suite.results import COMMITTED
from compat_tests.page import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TITLE = "## Apache Kafka's own integration tests"

#: Why methods fail (`Class.method`), where somebody found out.
_EXPLANATIONS = Path(__file__).parent / "failures.tsv"

MESSAGE_MAX = 160

#: Suites of `jars` by what the names of their classes begin with.
_SUITES = {
    "org.apache.kafka.streams.": "streams",
    "org.apache.kafka.tools.": "tools",
    "org.apache.kafka.": "clients",
    "": "core",
}

_INTRODUCTION = """{title}

The test classes of Apache Kafka {version}, from the jars of Maven Central, unchanged: what starts a
cluster for them starts brokers of kafkalite instead (decision 0190). Written by
`python -m compat_tests.apache_suite`, which runs them; `--broker apache` runs the same classes with
Kafka's brokers. Of {classes} classes {run} have been run: {passed} tests passed, {failed} failed,
{not_applicable} cannot be applied to a broker outside the Java machine of the test.

| class | passed | failed | not applicable |
|---|---|---|---|
"""


def section(results: Mapping[str, dict[str, Any] | None] | None = None) -> str:
    """Return the part of the document, from its heading on."""
    if results is None:
        results = json.loads(COMMITTED.read_text())
    assert results is not None
    notes: dict[str, int] = {}
    found = {name: row for name, row in results.items() if row is not None}
    lines = [_line(name, row, notes) for name, row in found.items()]
    # A class that was left out as a whole counts as one test.
    skipped = [len(_left_out(row)) for row in found.values()]
    introduction = _INTRODUCTION.format(
        title=TITLE,
        version=KAFKA_4,
        classes=len(results),
        run=len(found),
        passed=sum(row["passed"] for row in found.values()),
        failed=sum(len(row["failed"]) for row in found.values()),
        not_applicable=sum(skipped),
    )
    numbered = "".join(f"{number}. {note}\n" for note, number in notes.items())
    parts = [introduction + "".join(lines), numbered, *_not_run(results)]
    return "\n".join(part for part in parts if part)


def _not_run(results: Mapping[str, dict[str, Any] | None]) -> Iterator[str]:
    """Yield the classes without a result, folded, a list for each suite; why, if they get none."""
    reasons = known_reasons()
    by_suite: dict[str, list[str]] = {}
    for name, row in results.items():
        if row is None:
            by_suite.setdefault(_suite_of(name), []).append(name)
    for suite, names in sorted(by_suite.items()):
        count = sum(_suite_of(name) == suite for name in results)
        shorts = [name.rpartition(".")[2] for name in names]
        told = (s if shorts.count(s) == 1 else n for s, n in zip(shorts, names, strict=True))
        heading = f"{suite}: {len(names)} of {count} classes are not run yet"
        why = (f": {plain(reasons[name])}" if name in reasons else "" for name in names)
        lines = "".join(f"- {name}{reason}\n" for name, reason in zip(told, why, strict=True))
        yield f"<details markdown>\n<summary>{heading}</summary>\n\n{lines}\n</details>\n"


def _suite_of(name: str) -> str:
    return next(suite for prefix, suite in _SUITES.items() if name.startswith(prefix))


def _left_out(row: dict[str, Any]) -> list[str]:
    return [test for tests in row["not_applicable"].values() for test in tests]


def _line(name: str, row: dict[str, Any], notes: dict[str, int]) -> str:
    short = name.rpartition(".")[2]
    explained = _explanations()
    why = []
    for test, message in row["failed"].items():
        method = test.partition("#")[0]
        text = explained.get(f"{short}.{method}") or _beginning(message)
        why.append(f"{short}.{method}: {text}")
    if row["problem"]:
        why.append(f"{short}: {_beginning(row['problem'])}")
    reasons = [_beginning(reason) for reason in row["not_applicable"]]
    skipped = _left_out(row)
    failed = str(len(row["failed"]) or "") or ("?" if row["problem"] else "")
    left_out = "all" if skipped == ["all"] else str(len(skipped) or "")
    return (
        f"| {short} | {row['passed'] or ''} | {failed}{_marks(why, notes)} |"
        f" {left_out}{_marks(reasons, notes)} |\n"
    )


def _marks(texts: list[str], notes: dict[str, int]) -> str:
    numbers = {notes.setdefault(text, len(notes) + 1) for text in texts}
    return f" ({', '.join(map(str, sorted(numbers)))})" if numbers else ""


def _beginning(message: str) -> str:
    return plain(message if len(message) <= MESSAGE_MAX else message[:MESSAGE_MAX] + " …")


def _explanations() -> dict[str, str]:
    if not _EXPLANATIONS.exists():
        return {}
    rows = (line.split("\t") for line in _EXPLANATIONS.read_text().splitlines() if line)
    return {row[0]: row[1] for row in rows}
