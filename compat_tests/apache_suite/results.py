"""The result file: what became of each class, kept between runs and shown in the documentation."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compat_tests.apache_suite.running import Outcome

#: Results with kafkalite, as committed.
COMMITTED = Path(__file__).parent / "results.json"

_MESSAGE_CHARACTERS = 300


class Results:
    """Outcomes by class, written after each of them.

    Args:
        path: of the file; what it has stays.
        classes: all that there are; those without an outcome are kept as None.
    """

    def __init__(self, path: Path, classes: Iterable[str] = ()) -> None:
        self._path = path
        self.by_class: dict[str, dict[str, Any] | None] = dict.fromkeys(classes)
        if path.exists():
            self.by_class |= json.loads(path.read_text())

    def add(self, name: str, outcome: Outcome) -> None:
        """Put one in the place of the class's last, and write all."""
        row: dict[str, Any] = asdict(outcome)
        row["failed"] = {test: _short(text) for test, text in sorted(outcome.failed.items())}
        reasons: dict[str, list[str]] = {}
        for test, reason in sorted(outcome.not_applicable.items()):
            reasons.setdefault(_short(reason), []).append(test)
        row["not_applicable"] = reasons
        row["problem"] = None if outcome.problem is None else _short(outcome.problem)
        self.by_class[name] = row
        text = json.dumps(dict(sorted(self.by_class.items())), indent=1, ensure_ascii=False)
        self._path.write_text(text + "\n")


def _short(text: str) -> str:
    """Return the beginning of a message, without what another run changes."""
    return " ".join(text.split())[:_MESSAGE_CHARACTERS]
