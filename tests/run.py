#!/usr/bin/env python3
"""Run every test on a machine with only Python (and Java, Maven, Node, Go for their clients).

    python3 tests/run.py                 all suites, but for what takes long
    python3 tests/run.py --all           everything, as CI runs it
    python3 tests/run.py tests -k fetch  what pytest is told
    python3 tests/run.py --venv          only prepare, and print where the environment is

The environment lives in the user's cache folder and is made anew when pyproject.toml changes.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from start import environment  # noqa: E402 - beside this folder, not on the path before

SUITES = ["tests", "compat_tests", "spark_tests"]


def main() -> int:
    """Prepare, then hand over to pytest."""
    folder = environment("tests", "[test]")
    arguments = sys.argv[1:]
    if arguments == ["--venv"]:
        print(folder)
        return 0
    if arguments in ([], ["--all"]):
        chosen = [] if arguments else ["-m", "not long"]
        arguments = [*SUITES, "-n", "2", "--dist", "loadgroup", *chosen]
    path = os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", "")])
    command = [folder / "bin" / "python", "-m", "pytest", *arguments]
    return subprocess.call(command, cwd=ROOT, env={**os.environ, "PATH": path})


if __name__ == "__main__":
    sys.exit(main())
