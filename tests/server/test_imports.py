"""Which modules a broker has imported when clients can connect (decision 0134)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ALLOWED = Path(__file__).with_name("modules_at_start.txt")
"""Modules of the project by name, others by their package; each costs start-up time and memory."""

ENVIRONMENT = {"__main__", "_distutils_hack", "sitecustomize", "usercustomize"}
"""What an interpreter or a virtual environment adds."""

START = """
import builtins, os, sys
told = print
def tell(*words, **options):
    told(*sys.modules, flush=True)
    os._exit(0)
builtins.print = tell
from kafkalite.cli.main import run
run(sys.argv[1:])
"""


def imported(folder, *options):
    """Return the modules of a broker that has just told that it is ready."""
    listen = ["serve", "--listen", "127.0.0.1:0", "--data-dir", str(folder / "data")]
    done = subprocess.run(
        [sys.executable, "-c", START, *listen, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    names = done.stdout.split()
    assert "kafkalite.server.broker" in names
    found = {name if name.startswith("kafkalite") else name.partition(".")[0] for name in names}
    return found - ENVIRONMENT


@pytest.fixture(scope="module")
def lone(tmp_path_factory):
    return imported(tmp_path_factory.mktemp("lone"), "--profile", "kafka")


@pytest.mark.slow
def test_start_imports_nothing_that_was_not_thought_about(lone):
    """What few use is imported by its first use; add to the list what every broker needs."""
    allowed = set(ALLOWED.read_text().split())
    standard = sys.stdlib_module_names
    assert sorted(lone - allowed - standard) == []
    assert sorted(allowed - lone) == [], "no longer imported: take it off the list"


@pytest.mark.slow
def test_start_imports_no_heavy_module_of_python(lone):
    heavy = {"asyncio", "decimal", "fractions", "multiprocessing", "sqlite3", "statistics", "xml"}
    assert sorted(lone & heavy) == []


@pytest.mark.slow
def test_http_port_adds_little_before_somebody_connects(lone, tmp_path):
    more = imported(tmp_path, "--profile", "dev") - lone - sys.stdlib_module_names
    assert sorted(more) == [
        "kafkalite.faults.disk",
        "kafkalite.observe",
        "kafkalite.observe.buckets",
        "kafkalite.observe.entries",
        "kafkalite.observe.requests",
    ]
