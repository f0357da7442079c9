"""Names that somebody who knows Kafka searches for, and sentences that are read once."""

import ast
import re
from pathlib import Path

import pytest

from tests.test_layering import MODULES, PACKAGE, is_in, name_of, tree_of

GLOSSARY = Path(__file__).parent.parent / "docs" / "glossary.md"
RIDDLES = ("What", "Who", "Where")
"""Beginnings of docstrings that do not say what a thing is."""

FAMILIES = {
    "acls", "alter_configs", "client_quotas", "configs", "consumer_groups", "delegation_tokens",
    "sasl", "share_groups", "share_offsets", "share_state", "streams_groups", "topics",
    "transactions",
}  # fmt: skip
"""API modules that are named after a family of APIs, all of which they answer."""

BLOCKING = {"testing", "cli", "pipeline", "console", "faults/remote"}
"""Places whose callers have a thread of their own, where `wait_` blocks instead of being async."""

SEARCHED_FOR = [
    "AddPartitionsToTxnManager", "AlterPartitionManager", "ConfigDef", "CoordinatorRuntime",
    "DelayedOperation", "FetchSession", "KafkaApis", "LeaderEpochFileCache", "LogCleaner",
    "LogManager", "LogSegment", "LogValidator", "MetadataCache", "ProducerStateManager",
    "purgatory", "ReplicaFetcherManager", "ReplicaManager", "stray", "TransactionIndex",
    "TransactionMarkerChannelManager", "UnifiedLog", "VerificationGuard",
]  # fmt: skip


def rows():
    for line in GLOSSARY.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and cells[-1] != "Where":
            yield pytest.param(*cells, id=cells[0])


def documented(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node, text


@pytest.mark.parametrize(("word", "ours", "place"), [*rows()])
def test_the_glossary_tells_the_place(word, ours, place):
    where = (PACKAGE.parent if place.startswith(("tests/", "docs/")) else PACKAGE) / place
    assert where.exists()
    if where.is_file():
        text = where.read_text()
        for name in re.findall(r"`(\w+)[`(]", ours):
            assert re.search(rf"\b{name}\b", text), f"{name} is not in {place}"


@pytest.mark.parametrize("word", SEARCHED_FOR)
def test_somebody_who_knows_kafka_finds_its_word(word):
    assert word in GLOSSARY.read_text()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
class TestEachModule:
    def test_docstrings_say_what_a_thing_is(self, path):
        for node, text in documented(path):
            at = f"{path.name}:{getattr(node, 'lineno', 1)}"
            assert not text.startswith(RIDDLES), at
            assert not re.fullmatch(r"Rules? [\d, and-]+\.", text), f"{at}: a rule's number alone"

    def test_wait_waits_and_nowait_does_not(self, path):
        is_blocking = is_in(name_of(path), BLOCKING)
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef) and not is_blocking:
                is_property = any("property" in ast.unparse(d) for d in node.decorator_list)
                assert is_property or not re.match(r"_?wait(_|$)", node.name), node.name
            if isinstance(node, ast.AsyncFunctionDef):
                assert not node.name.endswith("_nowait"), node.name

    def test_api_modules_are_called_like_their_api(self, path):
        name = name_of(path)
        answered = [
            target.id
            for node in tree_of(path).body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name) and target.id == "HANDLERS"
        ]
        if not name.startswith("api/") or not answered:
            return
        module = name.removeprefix("api/")
        messages = {path.stem for path in (PACKAGE / "wire" / "messages").glob("*.py")}
        assert module in messages | FAMILIES
