"""What came of each test of a suite, kept in a file for each suite."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "results"

PASSED = "passed"
FAILED = "failed"
SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one test: `PASSED`, `FAILED` or `SKIPPED`, and why where it is known."""

    kind: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.why}" if self.why else self.kind

    @classmethod
    def parse(cls, text: str) -> Outcome:
        """Return what `str` made a text of."""
        kind, _, why = text.partition(": ")
        return cls(kind=kind, why=why)


@dataclass
class Results:
    """The outcomes of one suite, by kind of broker and name of the test."""

    suite: str
    version: str = ""
    outcomes: dict[str, dict[str, Outcome]] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """Where they are kept."""
        return FOLDER / f"{self.suite}.json"

    @classmethod
    def load(cls, suite: str) -> Results:
        """Return what is kept of a suite; nothing if it never ran."""
        results = cls(suite)
        if results.file.exists():
            kept = json.loads(results.file.read_text())
            results.version = kept["version"]
            results.outcomes = {
                broker: {test: Outcome.parse(text) for test, text in tests.items()}
                for broker, tests in kept["outcomes"].items()
            }
        return results

    def save(self) -> None:
        """Keep them, in an order that shows in a diff what changed."""
        kept = {
            "version": self.version,
            "outcomes": {
                broker: {test: str(tests[test]) for test in sorted(tests)}
                for broker, tests in sorted(self.outcomes.items())
            },
        }
        FOLDER.mkdir(exist_ok=True)
        self.file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")

    def count(self, broker: str, kind: str) -> int:
        """Return how many tests ended so."""
        return sum(outcome.kind == kind for outcome in self.outcomes.get(broker, {}).values())

    def not_passed(self) -> list[str]:
        """Return the tests that do not pass at every broker that they were run at."""
        tests = sorted(set().union(*self.outcomes.values()))
        return [
            test
            for test in tests
            if any(self.outcome(broker, test).kind != PASSED for broker in self.outcomes)
        ]

    def outcome(self, broker: str, test: str) -> Outcome:
        """Return how a test ended at a broker."""
        return self.outcomes.get(broker, {}).get(test, Outcome(kind="not run"))
