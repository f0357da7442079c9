"""The structure of the package, held as data and read from its imports (docs/architecture.md)."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "kafkalite"
MODULES = sorted(PACKAGE.rglob("*.py"))

FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 600
"""Also of tests."""

LAYERS = [
    {"types"},
    {"clock", "deferred", "log_config"},
    {"settings"},
    {"config"},
    {"wire"},
    {"log"},
    {"security"},
    {"meta/entities", "meta/image"},
    {"quota"},
    {"meta"},
    {"security/logins", "security/delegation_tokens"},
    {"isr", "coordinator"},
    {"group"},
    {"txn"},
    {"share"},
    {"api"},
    {"http", "client"},
    {"network"},
    {"peers", "faults", "fixtures", "registry"},
    {"observe"},
    {"server"},
    {"cli/parameters"},
    {"pipeline", "console"},
    {"testing"},
    {"sim"},
    {"cli"},
    {"__main__"},
]
"""A module imports from rows above its own, and from its own package: never from a row below, nor
from its neighbours in a row. A module may have a row of its own, to be imported from there."""

OWNER = "a part and its owner, whom it calls back"
REGISTRY = "the registry asks by the services, of which it is one"
PUBLIC = "what users import from the package; imported by its first use"

CIRCLES = {
    ("__init__", "testing/broker"): PUBLIC,
    ("__init__", "testing/cluster"): PUBLIC,
    ("api/context", "registry/rest"): REGISTRY,
    ("api/fetch", "api/large_fetch"): "imported by the first very large Fetch",
    ("api/envelope", "registry/rest"): REGISTRY,
    ("config/security", "config"): OWNER,
    ("isr/leader_role", "isr/offline"): OWNER,
    ("isr/leader_role", "isr/partition"): OWNER,
    ("isr/leader_role", "isr/recovering"): OWNER,
    ("log/housekeeping", "log/manager"): OWNER,
    ("log/state", "log/log"): OWNER,
    ("sim/model_node", "sim/level1"): OWNER,
    ("testing/clock", "testing/broker"): OWNER,
    ("testing/faults", "testing/broker"): OWNER,
    ("testing/report_facts", "testing/cluster"): OWNER,
}
"""Imports (importer, imported) that close a circle, for types only or in a function, and why."""

CORES = {
    "api/client_metrics", "api/fetch_session", "api/share_session", "coordinator/records",
    "coordinator/shard", "faults/answers", "faults/corruption", "faults/partitions",
    "faults/rules", "faults/specification", "group", "http/access", "http/routing",
    "isr/fetch_session_handler", "isr/fetch_turns", "isr/follower", "isr/leader", "isr/offline",
    "isr/partition_read", "isr/pending_acks",
    "isr/state", "isr/throttle", "log/compaction", "log/leader_epochs", "log/producer_state",
    "log/retention", "log/sequence_hold", "log/transaction_index", "log/validate", "meta/acls",
    "meta/alter_configs", "meta/brokers", "meta/changes", "meta/client_quotas",
    "meta/controller", "meta/delegation_tokens",
    "meta/election", "meta/entities", "meta/events", "meta/features", "meta/group_configs",
    "meta/image", "meta/names", "meta/partition_changes", "meta/placement", "meta/reassign",
    "meta/zookeeper/multi_operations", "meta/zookeeper/notice_nodes", "meta/zookeeper/znodes",
    "quota", "security/acls",
    "security/digest_md5", "security/exchanges", "security/jaas", "security/names",
    "security/scram", "security/shorthand", "share/acknowledgement", "share/acquisition",
    "share/batches", "share/events", "share/inflight", "share/partition", "share/records",
    "share/reset", "share/settings", "share/shard", "txn/admin", "txn/events", "txn/records",
    "txn/shard", "txn/states", "txn/transactions", "wire",
}  # fmt: skip
"""Modules and folders that decide and do nothing else."""

NOT_IN_CORES = {"trio", "socket", "os", "time", "random", "threading", "logging", "kazoo"}

THREADED = {
    "registry/service": "schemas that take long to read and to compare",
    "log/disk": "fsync and other work on files that takes long",
    "clock": "real time beside a clock that stands",
    "console/wire": "a blocking client",
    "faults/control": "asks other brokers by a blocking client",
    "faults/remote": "asks several brokers at once",
    "http/port": "imports the HTTP server while clients are served",
    "network/issuer": "fetches an issuer's keys",
    "network/login": "hashes passwords",
    "registry/lookup": "asks another schema registry",
    "testing/broker": "works while the test's thread blocks",
    "testing/proxy": "likewise",
}
"""The modules that may start threads, and what for. Threads do not touch a broker's state."""

BROAD_HANDLERS = {
    "cli/sim": 1, "coordinator/runtime": 1, "http/server": 2, "meta/processes": 1,
    "network/connection": 3, "network/dispatch": 1, "network/large": 1, "network/poller": 3,
    "network/transport": 1, "pipeline/archive": 1, "pipeline/audit": 1,
    "pipeline/broker_view": 2, "pipeline/replay": 1, "pipeline/session": 1, "sim/campaign": 1,
}  # fmt: skip
"""Modules with `except Exception`, and how often: a task that serves many outlives one of them."""

PROTOCOL_METHODS_MAX = 8
LARGE_PROTOCOLS = {
    "coordinator/partition.CoordinatorPartition": 9,
    "group/kinds.Group": 14,
    "log/disk.Disk": 14,
    "meta/store.MetadataStore": 10,
}
"""Larger ones; these may become smaller."""

SKIPS = {
    "tests/cli/test_cluster.py": (1, "/proc is Linux's"),
    "tests/network/test_delayed.py": (1, "epoll is Linux's"),
    "tests/network/test_pipelining.py": (2, "likewise"),
    "tests/network/test_poller.py": (1, "likewise"),
    "tests/network/test_transport.py": (1, "POLLRDHUP is Linux's"),
    "tests/server/test_broker.py": (1, "a machine without IPv6"),
    "tests/test_guards.py": (1, "counts of bytecodes are of one version of Python"),
    "tests/testing/test_namespaces.py": (1, "namespaces need Linux and root"),
    "tests/testing/test_processes.py": (1, "/proc is Linux's"),
}
"""Tests that may be skipped, by file: how many marks there are and why. A library that is in the
extra `test` is no reason, and a program that is missing needs no mark (`conftest.py`)."""

TESTED_BY: dict[str, tuple[str, ...]] = {
    "faults/answers": ("faults/test_specification.py", "testing/test_faults.py"),
    "faults/partitions": ("testing/test_faults.py",),
    "group/classic/part": (
        "group/test_shard.py",
        "group/classic/test_join.py",
        "group/test_admin.py",
    ),
    "group/consumer/classic_members": ("group/consumer/test_migration.py",),
    "group/consumer/describe": ("group/consumer/test_part.py",),
    "group/consumer/embedded": ("group/consumer/test_migration.py",),
    "group/consumer/fencing": (
        "group/consumer/test_heartbeat.py",
        "group/consumer/test_migration.py",
    ),
    "group/consumer/group": (
        "group/consumer/test_heartbeat.py",
        "group/consumer/test_migration.py",
    ),
    "group/consumer/member": (
        "group/consumer/test_heartbeat.py",
        "group/consumer/test_migration.py",
    ),
    "group/consumer/records": (
        "group/consumer/test_heartbeat.py",
        "group/consumer/test_migration.py",
    ),
    "group/consumer/room": ("group/consumer/test_heartbeat.py", "group/consumer/test_migration.py"),
    "group/consumer/target": ("group/consumer/test_heartbeat.py",),
    "group/consumer/update": (
        "group/consumer/test_heartbeat.py",
        "group/consumer/test_migration.py",
    ),
    "group/kinds": ("group/share/test_group.py",),
    "group/parts": (
        "group/test_shard.py",
        "group/streams/test_part.py",
        "group/share/test_group.py",
        "group/consumer/test_part.py",
    ),
    "group/shard_state": ("group/test_shard.py",),
    "group/shards": ("group/test_shard.py",),
    "group/share/heartbeat": ("group/share/test_group.py",),
    "group/share/part": ("group/share/test_group.py",),
    "group/share/records": ("group/share/test_group.py",),
    "group/share/states": ("group/share/test_group.py",),
    "group/share/target": ("group/share/test_group.py", "group/test_new_target.py"),
    "group/streams/target": ("group/streams/test_part.py", "group/test_new_target.py"),
    "group/streams/describe": ("group/streams/test_part.py",),
    "group/streams/endpoints": ("group/streams/test_part.py", "group/streams/test_heartbeat.py"),
    "isr/offline": ("isr/test_failing_disks.py",),
    "isr/state": ("isr/test_leader.py",),
    "meta/client_quotas": ("quota/test_with_a_broker.py",),
    "meta/delegation_tokens": ("security/test_delegation_tokens.py",),
    "meta/entities": ("network/test_login.py",),
    "security/exchanges": ("network/test_login.py",),
    "security/shorthand": ("security/test_acls.py",),
    "share/acquisition": ("share/test_partition.py",),
    "share/inflight": ("share/test_partition.py",),
    "wire/apis": ("wire/test_api.py",),
    "wire/errors": ("group/test_shard.py",),
    "wire/native_support": ("wire/test_native.py",),
}
"""Cores that are parts of a larger one and tested through it: these files run four of five of their
statements and more."""

ONLY_IMPORTERS = {
    "kazoo": {"meta/zookeeper"},
    "cramjam": {"wire/compression"},
    "zstandard": {"wire/compression"},
    "construct": {"wire"},
    "h11": {"http/server"},
    "pyspark": {"pipeline"},
    "threading": set(THREADED),
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


@cache
def place_of(name: str) -> str:
    """The entry of LAYERS that a module belongs to: the longest that its name begins with."""
    if name.split("/")[0] in {"__init__", "__version__"}:  # the package itself
        return "types"
    entries = [entry for layer in LAYERS for entry in layer if is_in(name, {entry})]
    assert entries, f"{name} has no place in LAYERS"
    return max(entries, key=len)


def layer_of(name: str) -> int:
    return next(index for index, layer in enumerate(LAYERS) if place_of(name) in layer)


@cache
def module_imports(path: Path) -> frozenset[str]:
    """The modules of the package that one imports, also those for types only."""
    known = {name_of(each) for each in MODULES}
    found = set()
    for each in imports_of(tree_of(path), with_types=True):
        target = each.removeprefix("kafkalite.").replace(".", "/")
        if each.split(".")[0] == "kafkalite":
            found |= {target, target.rpartition("/")[0] or "__init__"} & known
    return frozenset(found - {name_of(path)})


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The strongly connected components of more than one module."""
    reached = {name: {name} for name in graph}
    for start, found in reached.items():
        to_visit = [start]
        while to_visit:
            for name in graph[to_visit.pop()] - found:
                found.add(name)
                to_visit.append(name)
    found_circles = {
        frozenset(other for other in found if name in reached[other])
        for name, found in reached.items()
    }
    return [set(circle) for circle in found_circles if len(circle) > 1]


def is_in(name: str, places: set[str]) -> bool:
    return any(name == place or name.startswith(f"{place}/") for place in places)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


@cache
def imports_of(tree: ast.AST, *, with_types: bool = False) -> frozenset[str]:
    """Dotted names imported at run time; what stands under TYPE_CHECKING only `with_types`."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if is_type_checking(node) and not with_types:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, "relative imports hide layers"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        found |= imports_of(node, with_types=with_types)
    return frozenset(found)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
class TestEachModule:
    def test_imports_only_what_stands_above_it(self, path):
        name = name_of(path)
        for imported in imports_of(tree_of(path)):
            if not imported.startswith("kafkalite."):
                continue
            target = imported.removeprefix("kafkalite.").replace(".", "/")
            is_own = target.split("/")[0] == name.split("/")[0]
            assert is_own or layer_of(target) < layer_of(name), f"{name} may not import {imported}"

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


def test_modules_of_tests_have_a_size_that_can_be_read():
    root = PACKAGE.parent
    sizes = {
        path.relative_to(root).as_posix(): path.read_text().count("\n")
        for folder in ("tests", "compat_tests", "spark_tests")
        for path in (root / folder).rglob("*.py")
    }
    assert {file: size for file, size in sizes.items() if size > MODULE_LINES_MAX} == {}


def test_no_modules_import_each_other():
    """Neither at run time nor for types, but for what is listed."""
    graph = {name_of(path): set(module_imports(path)) for path in MODULES}
    for importer, imported in CIRCLES:
        assert imported in graph[importer], f"{importer} does not import {imported} any more"
        graph[importer].remove(imported)
    assert not circles(graph)


def test_packages_are_drawn_in_the_order_that_is_checked():
    """The table in docs/architecture.md has each package once, in the order of LAYERS."""
    text = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    section = text.split("\n## Packages, from the bottom up\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    told = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    layers = [layer_of(name) for name in told]
    assert layers == sorted(layers)
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert sorted(told) == sorted(packages)


def files_that_test(name: str) -> list[Path]:
    """The test files of a core: its own, or those that are listed for it."""
    path = Path(name)
    own = TESTS / path.parent / f"test_{path.name}.py"
    return [own] if own.exists() else [TESTS / each for each in TESTED_BY.get(name, ())]


def decides(path: Path) -> bool:
    """Whether a module has a condition or a loop anywhere; declarations have none."""
    branches = (ast.If, ast.IfExp, ast.For, ast.While, ast.Match, ast.BoolOp, ast.comprehension)
    nodes = (node for node in ast.walk(tree_of(path)) if isinstance(node, branches))
    return not all(map(is_type_checking, nodes))


@pytest.mark.parametrize(
    "path", [path for path in MODULES if is_in(name_of(path), CORES) and decides(path)], ids=name_of
)
def test_core_has_a_test_file(path):
    """`tests/<folder>/test_<module>.py`, unless TESTED_BY says which test it through another."""
    name = name_of(path)
    found = files_that_test(name)
    assert found, f"{name} needs tests/{Path(name).parent}/test_{Path(name).name}.py"
    assert all(file.exists() for file in found), f"TESTED_BY of {name} is out of date"


def test_nothing_is_listed_that_has_a_test_file_of_its_own():
    modules = {name_of(path) for path in MODULES}
    for name in TESTED_BY:
        assert name in modules, f"{name} is gone"
        assert not (TESTS / Path(name).parent / f"test_{Path(name).name}.py").exists(), name


def handlers_of(path: Path, caught: str) -> list[ast.ExceptHandler]:
    return [
        node
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or caught in re.findall(r"\w+", ast.unparse(node.type)))
    ]


def test_every_exception_is_caught_in_few_places():
    """`except Exception` hides bugs: each of them is counted, and says why where it is."""
    found = {name_of(path): len(handlers_of(path, "Exception")) for path in MODULES}
    assert {name: count for name, count in found.items() if count} == BROAD_HANDLERS


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_cancellation_is_never_swallowed(path):
    """What catches BaseException raises again, or hands on what it caught."""
    for handler in handlers_of(path, "BaseException"):
        names = {node.id for node in ast.walk(handler) if isinstance(node, ast.Name)}
        raises = any(isinstance(node, ast.Raise) for node in ast.walk(handler))
        assert raises or (handler.name in names), f"line {handler.lineno}"


def test_threads_are_started_where_they_are_listed():
    found = set()
    for path in MODULES:
        imported = {each.split(".")[0] for each in imports_of(tree_of(path))}
        words = {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}
        if "to_thread" in words or imported & {"threading", "concurrent"}:
            found.add(name_of(path))
    assert found == set(THREADED)


def test_tests_are_skipped_for_reasons_that_are_listed():
    words = re.compile(r"\bpytest\.(?:mark\.)?(?:skip|skipif|xfail|importorskip)\(")
    root = PACKAGE.parent
    found = {
        path.relative_to(root).as_posix(): len(words.findall(path.read_text()))
        for folder in ("tests", "compat_tests", "spark_tests")
        for path in (root / folder).rglob("*.py")
        if path != Path(__file__)
    }
    listed = {file: count for file, (count, _) in SKIPS.items()}
    assert {file: count for file, count in found.items() if count} == listed


def methods_of(path: Path) -> dict[str, int]:
    """The protocols of a module, and how many methods each wants."""
    return {
        f"{name_of(path)}.{node.name}": sum(
            isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) for member in node.body
        )
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases)
    }


def test_protocols_are_small():
    """Whoever plays a part in a test or a simulation has to write all of its methods."""
    found = {name: count for path in MODULES for name, count in methods_of(path).items()}
    large = {name: count for name, count in found.items() if count > PROTOCOL_METHODS_MAX}
    assert large == LARGE_PROTOCOLS
