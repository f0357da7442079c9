"""The matrix of clients, versions and scenarios, written to docs/ after a whole run.

Outcomes are collected where pytest brings its reports together (under xdist that is the controller,
which collects no tests itself), so what the matrix holds is derived from the lists of scenarios and
clients, not from what was collected. Nothing is written unless every cell was run, against
kafkalite.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import kafkalite
from compat_tests.apache_kafka import KAFKA_3_9, KAFKA_4
from compat_tests.broker import is_default
from compat_tests.clients import all_clients
from compat_tests.driver import REPOSITORY
from compat_tests.kafka_tools.scenarios import TOOL_SCENARIOS
from compat_tests.scenarios import SCENARIOS

if TYPE_CHECKING:
    import pytest

DOCUMENT = REPOSITORY / "docs" / "compatibility.md"
_TOOL_VERSIONS = (KAFKA_4, KAFKA_3_9)

#: Test id (what stands in brackets) -> passed.
outcomes: dict[str, bool] = {}

_INTRODUCTION = """# Compatibility

Unmodified clients and tools against kafkalite {version}, each a real process over TCP. Written by
`pytest compat_tests` when all of it has run; every scenario passes against Apache Kafka {apache}
too, which is how it was checked that the scenario asks for the right thing.

✓ works · ✗ does not · a number: the client has no means for it, for the reason below.
What each client really sends, and what surprised, is in `compat_tests/*/FINDINGS.md`.
"""


def collect(report: pytest.TestReport) -> None:
    """Note the outcome of one test of this suite."""
    found = re.search(r"compat_tests/test_(?:scenarios|tools)\.py::\w+\[(.*)\]$", report.nodeid)
    if found is None or report.skipped:
        return
    if report.when == "call":
        outcomes[found[1]] = outcomes.get(found[1], True) and report.passed
    elif report.failed:
        outcomes[found[1]] = False


def write_if_complete() -> None:
    """Write the document if every cell was run, and against one broker of kafkalite."""
    if not is_default() or not outcomes or not expected() <= outcomes.keys():
        return
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(render(), encoding="utf-8")


def expected() -> set[str]:
    """Return the test ids of all cells that are to be run."""
    scenarios = {
        f"{scenario.id}-{client.id}"
        for scenario in SCENARIOS
        for client in all_clients()
        if client.reason_against(scenario.needs) is None
    }
    tools = {f"{tool.id}-{version}" for tool in TOOL_SCENARIOS for version in _TOOL_VERSIONS}
    return scenarios | tools


def _mark(test_id: str) -> str:
    return "✓" if outcomes[test_id] else "✗"


def render() -> str:
    """Return the document; rows and columns in the order of the lists that they come from."""
    parts = [_INTRODUCTION.format(version=kafkalite.__version__, apache=KAFKA_4)]
    parts.append("## Clients\n\n" + _client_table())
    parts.append("## Apache Kafka's command-line tools\n\n" + _tool_table())
    return "\n".join(parts)


def _client_table() -> str:
    clients = all_clients()
    reasons: dict[str, int] = {}
    lines = [
        "| | " + " | ".join(f"{client.name} {client.version}" for client in clients) + " |",
        "|---" * (len(clients) + 1) + "|",
    ]
    for scenario in SCENARIOS:
        cells = []
        for client in clients:
            reason = client.reason_against(scenario.needs)
            if reason is None:
                cells.append(_mark(f"{scenario.id}-{client.id}"))
            else:
                number = reasons.setdefault(f"{client.name}: {reason}", len(reasons) + 1)
                cells.append(str(number))
        lines.append(f"| {scenario.title} | " + " | ".join(cells) + " |")
    notes = [f"{number}. {reason}" for reason, number in reasons.items()]
    return "\n".join(lines) + "\n\n" + "\n".join(notes) + "\n"


def _tool_table() -> str:
    lines = ["| | " + " | ".join(_TOOL_VERSIONS) + " |", "|---" * 3 + "|"]
    for tool in TOOL_SCENARIOS:
        cells = [_mark(f"{tool.id}-{version}") for version in _TOOL_VERSIONS]
        lines.append(f"| {tool.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
