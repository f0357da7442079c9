"""The structure of the package, held as data and read from its imports (docs/architecture.md)."""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "kafkalite"
MODULES = sorted(PACKAGE.rglob("*.py"))

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 600

LAYERS = [
    {"types", "clock", "log_config", "settings", "config"},
    {"wire"},
    {"log"},
    {"coordinator", "group", "share", "txn", "isr", "meta", "security", "quota"},
    {"api"},
    {"network", "peers", "http", "client"},
    {"faults", "registry", "fixtures"},
    {"observe"},
    {"server"},
    {"testing", "pipeline", "sim", "cli", "console", "__main__"},
]
"""What stands lower in this list may import what stands higher, never the other way round."""

CORES = {
    "api/client_metrics", "api/fetch_session", "api/share_session", "coordinator/records",
    "coordinator/shard", "faults/answers", "faults/corruption", "faults/partitions",
    "faults/rules", "faults/specification", "group", "http/access", "http/routing",
    "isr/follower", "isr/leader", "isr/offline", "isr/partition_read", "isr/pending_acks",
    "isr/state", "isr/throttle", "log/compaction", "log/leader_epochs", "log/producer_state",
    "log/retention", "log/sequence_hold", "log/transaction_index", "log/validate", "meta/acls",
    "meta/adoption", "meta/alter_configs", "meta/brokers", "meta/changes", "meta/client_quotas",
    "meta/controller", "meta/delegation_tokens",
    "meta/election", "meta/entities", "meta/events", "meta/features", "meta/group_configs",
    "meta/image", "meta/names", "meta/partition_changes", "meta/placement", "meta/reassign",
    "meta/zookeeper/multi_operations", "meta/zookeeper/znodes", "quota", "security/acls",
    "security/digest_md5", "security/exchanges", "security/jaas", "security/names",
    "security/scram", "security/shorthand", "share/acknowledgement", "share/acquisition",
    "share/batches", "share/events", "share/inflight", "share/partition", "share/records",
    "share/reset", "share/settings", "share/shard", "txn/admin", "txn/events", "txn/records",
    "txn/shard", "txn/states", "txn/transactions", "wire",
}  # fmt: skip
"""Modules and folders that decide and do nothing else."""

NOT_IN_CORES = {"trio", "socket", "os", "time", "random", "threading", "logging", "kazoo"}

THREADED = {"log/disk", "meta/zookeeper/store", "testing/broker", "testing/proxy"}
"""The modules that may start threads; those of testing/ work while the test's thread blocks."""

ONLY_IMPORTERS = {
    "kazoo": {"meta/zookeeper"},
    "cramjam": {"wire/compression"},
    "zstandard": {"wire/compression"},
    "construct": {"wire"},
    "h11": {"http/server"},
    "pyspark": {"pipeline"},
    "threading": THREADED,
    "re2": {"group/consumer/patterns"},
    "xxhash": {"group/topic_hash"},
}

BANNED_CALLS = {("time", "time"), ("datetime", "now"), ("datetime", "utcnow")}
CALLS_CLOCKS = {
    "clock",
    "cli",
    "client",
    "pipeline",
    "__main__",
    "testing",
    "server",
    "network",
    "peers",
    "http",
    "observe",
    "console",
}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name_of(path: Path) -> str:
    name = path.relative_to(PACKAGE).with_suffix("").as_posix()
    return name.removesuffix("/__init__")


def layer_of(name: str) -> int:
    top = name.split("/")[0]
    if top.startswith("__") and top != "__main__":  # the package itself, and its __version__
        return 0
    for index, layer in enumerate(LAYERS):
        if top in layer or any(top.startswith(f"{member}_") for member in layer):
            return index
    raise AssertionError(f"{name} has no place in LAYERS")


def is_in(name: str, places: set[str]) -> bool:
    return any(name == place or name.startswith(f"{place}/") for place in places)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


@cache
def imports_of(tree: ast.AST) -> frozenset[str]:
    """Dotted names imported at run time; what stands under TYPE_CHECKING does not count."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if is_type_checking(node):
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, "relative imports hide layers"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        found |= imports_of(node)
    return frozenset(found)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
class TestEachModule:
    def test_imports_only_what_stands_below_it(self, path):
        name = name_of(path)
        for imported in imports_of(tree_of(path)):
            if not imported.startswith("kafkalite."):
                continue
            target = imported.removeprefix("kafkalite.").replace(".", "/")
            assert layer_of(target) <= layer_of(name), f"{name} may not import {imported}"

    def test_core_has_no_way_to_the_outside(self, path):
        name = name_of(path)
        if is_in(name, CORES) and name != "wire/stubs":
            tops = {imported.split(".")[0] for imported in imports_of(tree_of(path))}
            assert not tops & NOT_IN_CORES

    def test_library_is_imported_only_where_it_belongs(self, path):
        name = name_of(path)
        tops = {imported.split(".")[0] for imported in imports_of(tree_of(path))}
        for library, places in ONLY_IMPORTERS.items():
            assert library not in tops or is_in(name, places), f"{library} in {name}"

    def test_clock_is_read_in_one_place(self, path):
        if is_in(name_of(path), CALLS_CLOCKS):
            return
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = ast.unparse(node.func.value).split(".")[-1]
                assert (owner, node.func.attr) not in BANNED_CALLS, f"line {node.lineno}"

    def test_has_a_size_that_can_be_read(self, path):
        text = path.read_text()
        assert text.count("\n") <= MODULE_LINES_MAX
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                assert lines <= FUNCTION_LINES_MAX, f"{node.name} has {lines} lines"

    def test_shadows_no_module_of_the_standard_library(self, path):
        shadowed = {path.stem} & sys.stdlib_module_names - {"types", "__init__", "__main__"}
        # kafkalite.types and kafkalite.group.* are only ever imported by their full names.
        assert not shadowed
