#!/usr/bin/env python3
"""Run every test on a machine with only Python (and Java, Maven, Node, Go for their clients).

    python3 tests/run.py                 all suites, as CI runs them
    python3 tests/run.py tests -k fetch  what pytest is told
    python3 tests/run.py --venv          only prepare, and print where the environment is

The environment lives in the user's cache folder and is made anew when pyproject.toml changes.
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafkalite"
SUITES = ["tests", "compat_tests", "spark_tests"]


def environment() -> Path:
    """Return a virtual environment with this checkout and its test dependencies."""
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + sys.version.encode())
    folder = CACHE / f"venv-{wanted.hexdigest()[:12]}"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    complete = folder / "installed-for"
    if not complete.exists() or complete.read_text() != str(ROOT):
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--editable", f"{ROOT}[test]"], check=True, stdout=sys.stderr)
        complete.write_text(str(ROOT))
    return folder


def main() -> int:
    """Prepare, then hand over to pytest."""
    folder = environment()
    arguments = sys.argv[1:]
    if arguments == ["--venv"]:
        print(folder)
        return 0
    if not arguments:
        arguments = [*SUITES, "-n", "2", "--dist", "loadgroup"]
    path = os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", "")])
    command = [folder / "bin" / "python", "-m", "pytest", *arguments]
    return subprocess.call(command, cwd=ROOT, env={**os.environ, "PATH": path})


if __name__ == "__main__":
    sys.exit(main())
