#!/usr/bin/env python3
"""Run every test on a machine with only Python (and Java, Maven, Node, Go for their clients).

    python3 tests/run.py                 all suites, but for what takes long
    python3 tests/run.py --all           everything, as CI runs it
    python3 tests/run.py tests -k fetch  what pytest is told
    python3 tests/run.py --venv          only prepare, and print where the environment is

A test that fails beside others is run once more by itself, and named: clients have timeouts, and
two of them on a busy machine can starve a third. What fails alone has failed.

The environment lives in the user's cache folder and is made anew when pyproject.toml changes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from start import environment  # noqa: E402 - beside this folder, not on the path before

SUITES = ["tests", "compat_tests", "spark_tests"]
AGAIN_MAX = 10
"""More failures than these are no matter of a busy machine, and are not tried again."""
TESTS_FAILED = 1


def main() -> int:
    """Prepare, then hand over to pytest."""
    folder = environment("tests", "[test]")
    arguments = sys.argv[1:]
    if arguments == ["--venv"]:
        print(folder)
        return 0
    if arguments not in ([], ["--all"]):
        return pytest(folder / "bin" / "python", ROOT, *arguments)
    chosen = [] if arguments else ["-m", "not long"]
    return pytest_twice(folder / "bin" / "python", ROOT, *SUITES, *chosen)


def pytest(python: Path, folder: Path, *arguments: str, **variables: str) -> int:
    """Run pytest by an interpreter, in a folder; return its code."""
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", "")])
    command = [python, "-m", "pytest", *arguments]
    return subprocess.call(command, cwd=folder, env={**os.environ, "PATH": path, **variables})


def pytest_twice(python: Path, folder: Path, *arguments: str, **variables: str) -> int:
    """Run tests two at a time, and what failed so once more by itself."""
    beside = ("-n", "2", "--dist", "loadgroup")
    code = pytest(python, folder, *beside, *arguments, **variables)
    file = folder / ".pytest_cache" / "v" / "cache" / "lastfailed"
    failed = sorted(json.loads(file.read_text())) if code == TESTS_FAILED else []
    if 0 < len(failed) <= AGAIN_MAX:
        words = "\nFailed beside other tests, so run once more by itself:"
        print(words, *failed, sep="\n  ", flush=True)
        code = pytest(python, folder, "--last-failed", *arguments, **variables)
    return code


if __name__ == "__main__":
    sys.exit(main())
