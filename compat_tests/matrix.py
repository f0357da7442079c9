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
from compat_tests.apache_suite import document as apache_suite
from compat_tests.broker import is_default
from compat_tests.client_suites import document as client_suites
from compat_tests.clients import all_clients
from compat_tests.driver import REPOSITORY
from compat_tests.kafka_tools.scenarios import TOOL_SCENARIOS
from compat_tests.scenarios import SCENARIOS

if TYPE_CHECKING:
    import pytest

    from compat_tests.clients import Client

DOCUMENT = REPOSITORY / "docs" / "compatibility.md"
_TOOL_VERSIONS = (KAFKA_4, KAFKA_3_9)

#: Titles of what Kafka Streams does, with the test of each version that does it.
_STREAMS = (
    (
        "exactly once while application and broker are killed",
        {KAFKA_4: "undisturbed_run[4.3.1-classic]", KAFKA_3_9: "undisturbed_run[3.9.2-classic]"},
    ),
    (
        "the same with `group.protocol=streams`",
        {KAFKA_4: "undisturbed_run[4.3.1-streams]"},
    ),
    (
        "exactly once while brokers of a cluster are killed",
        {KAFKA_4: "coordinators_are_killed[classic]"},
    ),
    (
        "the same with `group.protocol=streams`, in a cluster",
        {KAFKA_4: "coordinators_are_killed[streams]"},
    ),
    ("kafka-streams-groups: all it can", {KAFKA_4: "does_all_it_can"}),
)

#: Kinds of groups, by the scenario or the test of another suite that shows a client in one.
_KINDS = {
    "classic": ("groups:a-group-reads-everything", ""),
    "consumer": ("consumer_groups:assigned-by-the-broker-a-group-reads-everything", ""),
    "migrates online": ("consumer_groups:classic-members-online-migration-both-ways", ""),
    "share": ("", "test_workers_share_a_queue[{0.id}]"),
    "streams": ("", "undisturbed_run[{0.version}-streams]"),
}

#: Test id (what stands in brackets) -> passed.
outcomes: dict[str, bool] = {}

#: What is shown of share groups, by the tests that show it.
SHARE_GROUPS = {
    "test_workers_share_a_queue[Java-4.3.1]": "Java 4.3.1: KafkaShareConsumer, explicit",
    "test_implicit_acknowledgement_by_polling": "Java 4.3.1: KafkaShareConsumer, implicit",
    "test_workers_share_a_queue[franz-go-1.22.2]": "franz-go 1.22.2: share consumer",
    "test_tools": "4.3.1: kafka-console-share-consumer, kafka-verifiable-share-consumer, "
    "kafka-share-groups",
    "test_logs_are_read_by_the_other": "4.3.1: kafka-dump-log --share-group-state-decoder",
}

#: Ways to come in that every client has a test for.
WAYS = ("TLS", "mutual TLS", "PLAIN", "SCRAM-SHA-512")
_TOKENS = "renewed[kafkalite]"
#: Clients that come in by tokens, unsigned and signed.
TOKEN_CLIENTS = ("Java", "confluent-kafka", "franz-go")

_INTRODUCTION = """# Compatibility

Unmodified clients and tools against kafkalite {version}, each a real process over TCP. Written by
`pytest compat_tests` when all of it has run; every scenario passes against Apache Kafka {apache}
too, which is how it was checked that the scenario asks for the right thing.

✓ works · ✗ does not · a number: the client has no means for it, for the reason below.
What each client really sends, and what surprised, is in `compat_tests/*/FINDINGS.md`.
"""


def collect(report: pytest.TestReport) -> None:
    """Note the outcome of one test of this suite."""
    test_id = _test_id(report.nodeid)
    if test_id is None or report.skipped:
        return
    if report.when == "call":
        outcomes[test_id] = outcomes.get(test_id, True) and report.passed
    elif report.failed:
        outcomes[test_id] = False


def _test_id(node_id: str) -> str | None:
    found = re.search(r"compat_tests/test_(?:scenarios|tools)\.py::\w+\[(.*)\]$", node_id)
    if found is not None:
        return found[1]
    found = re.search(r"compat_tests/test_share_groups\.py::(\w+(?:\[.*\])?)$", node_id)
    if found is not None:
        return found[1]
    if "compat_tests/test_security.py::" in node_id:
        found = re.search(r"reads_and_asks\[(.*)\]$", node_id)
        if found is not None:
            return found[1]
        return _TOKENS if node_id.endswith(_TOKENS) else None
    if "compat_tests/test_streams.py::" not in node_id:
        return None
    return next((test for test in _streams_tests() if node_id.endswith(test)), None)


def _streams_tests() -> set[str]:
    return {test for _, tests in _STREAMS for test in tests.values()}


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
    secured = {_TOKENS} | {
        _way_test(client, way)
        for client in _current_clients()
        for way in WAYS
        if client.reason_against([f"security:{way}"]) is None
    }
    return scenarios | tools | _streams_tests() | SHARE_GROUPS.keys() | secured


def _current_clients() -> list[Client]:
    return [client for client in all_clients() if client.is_current]


def _way_test(client: Client, way: str) -> str:
    return f"kafkalite-{client.id}-{way}"


def _mark(test_id: str) -> str:
    return "✓" if outcomes[test_id] else "✗"


def render() -> str:
    """Return the document; rows and columns in the order of the lists that they come from."""
    parts = [_INTRODUCTION.format(version=kafkalite.__version__, apache=KAFKA_4)]
    parts.append("## Clients\n\n" + _client_table())
    parts.append("## TLS and logins\n\n" + security_table())
    parts.append("## Apache Kafka's command-line tools\n\n" + _tool_table())
    parts.append("## Kinds of groups\n\n" + _kinds_table())
    parts.append("## Kafka Streams\n\n" + _streams_table())
    rows = "".join(f"| {title} | {_mark(test)} |\n" for test, title in SHARE_GROUPS.items())
    parts.append("## Share groups\n\n| | |\n|---|---|\n" + rows)
    parts.append(client_suites.section())
    parts.append(apache_suite.section())
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


def security_table() -> str:
    """Return who comes in by which way."""
    clients = _current_clients()
    notes: list[str] = []
    lines = [
        "| | " + " | ".join(f"{client.name} {client.version}" for client in clients) + " |",
        "|---" * (len(clients) + 1) + "|",
    ]
    for way in WAYS:
        cells = []
        for client in clients:
            reason = client.reason_against([f"security:{way}"])
            if reason is None:
                cells.append(_mark(_way_test(client, way)))
            else:
                notes.append(f"{client.name}: {reason}")
                cells.append(str(len(notes)))
        lines.append(f"| {way} | " + " | ".join(cells) + " |")
    cells = [_mark(_TOKENS) if client.name in TOKEN_CLIENTS else "-" for client in clients]
    title = "OAUTHBEARER, unsigned and signed, with sessions renewed under load"
    lines.append(f"| {title} | " + " | ".join(cells) + " |")
    text = "\n".join([*lines, "", "-: not tested.", ""])
    return text + "".join(f"\n{number}. {note}" for number, note in enumerate(notes, 1)) + "\n"


def _kinds_table() -> str:
    """One row for each client: in which kinds of groups it was seen, and how it migrates."""
    lines = ["| | " + " | ".join(_KINDS) + " |", "|---" * (len(_KINDS) + 1) + "|"]
    for client in all_clients():
        cells = []
        for scenario_id, test in _KINDS.values():
            wanted = [f"{scenario_id}-{client.id}", test.format(client) if test else ""]
            found = [_mark(each) for each in wanted if each in outcomes]
            cells.append(found[0] if found else "-")
        lines.append(f"| {client.name} {client.version} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n\n-: not one of the client's, or not one that it was tried with.\n"


def _tool_table() -> str:
    lines = ["| | " + " | ".join(_TOOL_VERSIONS) + " |", "|---" * 3 + "|"]
    for tool in TOOL_SCENARIOS:
        cells = [_mark(f"{tool.id}-{version}") for version in _TOOL_VERSIONS]
        lines.append(f"| {tool.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _streams_table() -> str:
    lines = ["| | " + " | ".join(_TOOL_VERSIONS) + " |", "|---" * 3 + "|"]
    for title, tests in _STREAMS:
        cells = [_mark(tests[v]) if v in tests else "-" for v in _TOOL_VERSIONS]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    notes = "\n-: that version has no protocol of Streams' own, or the other one shows it.\n"
    return "\n".join(lines) + "\n" + notes
