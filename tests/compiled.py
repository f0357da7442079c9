#!/usr/bin/env python3
"""Run tests on the compiled build, which is made in the user's cache when the sources changed.

    python3 tests/compiled.py                  what can differ from the pure build, as CI runs it
    python3 tests/compiled.py tests/wire -x    what pytest is told

Tests marked `pure` are left out: they look at the interpreter itself, or change what is compiled.
One that fails beside others is run once more by itself, as in `run.py`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import start  # noqa: E402 - beside this folder, not on the path before
from tests.run import pytest, pytest_twice  # noqa: E402

SUITES = [
    *("tests/wire", "tests/log", "tests/network", "tests/api", "tests/isr", "tests/txn"),
    *("tests/coordinator", "tests/sim", "tests/server", "tests/test_deferred.py"),
]
CHOSEN = "not pure and not slow and not long and not compat and not spark and not kafka_dir"
CHECK = """
import importlib, pathlib, tomllib

project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())
hook = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
for name in hook["modules"]:
    module = importlib.import_module("kafkalite." + name.replace("/", "."))
    assert module.__file__.endswith(".so"), f"{name} is not compiled"
"""
COPIED = (
    *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md"),
    *("start.py", "conftest.py"),
)
FOLDERS = ("tests", "compat_tests", "benchmarks", "docs", "integrations", "examples")


def main() -> int:
    """Compile, lay the tests beside what was made, and run them there."""
    os.environ.setdefault("KAFKALITE_COMPILED_LEVEL", "0")  # behaviour is what is tested
    package = start.compiled(build=True)
    python = start.environment("tests", "[test]") / "bin" / "python"
    with tempfile.TemporaryDirectory(prefix="kafkalite-compiled-tests-") as name:
        folder = Path(name)
        shutil.copytree(package, folder, dirs_exist_ok=True)
        for each in FOLDERS:
            ignored = shutil.ignore_patterns("__pycache__", "node_modules")
            shutil.copytree(ROOT / each, folder / each, ignore=ignored)
        for each in COPIED:
            shutil.copy(ROOT / each, folder)
        variables = {**os.environ, "PYTHONPATH": name}
        subprocess.run([python, "-c", CHECK], cwd=folder, env=variables, check=True)
        if sys.argv[1:]:
            return pytest(python, folder, *sys.argv[1:], PYTHONPATH=name)
        return pytest_twice(python, folder, "-q", *SUITES, "-m", CHOSEN, PYTHONPATH=name)


if __name__ == "__main__":
    sys.exit(main())
