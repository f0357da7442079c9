"""The results as a part of docs/compatibility.md: class by class, with reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compat_tests.apache_kafka import KAFKA_4
from compat_tests.apache_suite.results import COMMITTED

if TYPE_CHECKING:
    from collections.abc import Mapping

TITLE = "## Apache Kafka's own integration tests"

#: Why methods fail (`Class.method`), where somebody found out.
_EXPLANATIONS = Path(__file__).parent / "failures.tsv"

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
    others = ", ".join(name.rpartition(".")[2] for name, row in results.items() if row is None)
    numbered = "".join(f"{number}. {note}\n" for note, number in notes.items())
    parts = [introduction + "".join(lines), numbered, others and f"Not run yet: {others}.\n"]
    return "\n".join(part for part in parts if part)


def write(document: Path, results: Mapping[str, dict[str, Any] | None] | None = None) -> None:
    """Put the part into the document in the place of the one that is there."""
    text = document.read_text(encoding="utf-8")
    before, _, rest = text.partition(TITLE)
    after = rest.partition("\n## ")
    end = f"\n## {after[2]}" if after[1] else ""
    document.write_text(before.rstrip("\n") + "\n\n" + section(results) + end, encoding="utf-8")


def _left_out(row: dict[str, Any]) -> list[str]:
    return [test for tests in row["not_applicable"].values() for test in tests]


def _line(name: str, row: dict[str, Any], notes: dict[str, int]) -> str:
    short = name.rpartition(".")[2]
    explained = _explanations()
    why = []
    for test, message in row["failed"].items():
        method = test.partition("#")[0]
        text = explained.get(f"{short}.{method}") or _plain(message)
        why.append(f"{short}.{method}: {text}")
    if row["problem"]:
        why.append(f"{short}: {_plain(row['problem'])}")
    reasons = [_plain(reason) for reason in row["not_applicable"]]
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


def _plain(message: str) -> str:
    """Return the beginning of a message, with nothing that Markdown takes for its own."""
    text = message.replace("|", "/").replace("<", "&lt;").replace(">", "&gt;").replace("*", "\\*")
    return text if len(text) <= 160 else text[:160] + " …"


def _explanations() -> dict[str, str]:
    if not _EXPLANATIONS.exists():
        return {}
    rows = (line.split("\t") for line in _EXPLANATIONS.read_text().splitlines() if line)
    return {row[0]: row[1] for row in rows}
