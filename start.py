#!/usr/bin/env python3
"""Start kafkalite from a checkout, on a machine with nothing but Python.

    python3 start.py                         a broker on 127.0.0.1:9092
    python3 start.py serve --listen 9093     what `kafkalite serve` is told
    python3 start.py cluster                 three brokers and a ZooKeeper (fetches 400 MB)
    python3 start.py topics list             any other command

The first run makes a virtual environment in the user's cache folder and installs kafkalite and its
dependencies there; it is made anew when pyproject.toml changes. In an environment of your own,
`pip install .` gives you the command `kafkalite`.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafkalite"


def environment(name: str = "broker", extras: str = "") -> Path:
    """Return a virtual environment in which this checkout is installed, with what `extras` name."""
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + sys.version.encode())
    folder = CACHE / f"{name}-{wanted.hexdigest()[:12]}"
    complete = folder / "installed-for"
    if not complete.exists() or complete.read_text() != str(ROOT):
        size = " with PySpark and Java, some 400 MB," if extras else ""
        print(f"installing kafkalite{size} in {folder}", file=sys.stderr)
        try:
            _install(folder, extras)
            complete.write_text(str(ROOT))
        except (OSError, ImportError) as error:
            _give_up(str(error))
        except subprocess.CalledProcessError as error:
            words = [str(word) for word in error.cmd]
            _give_up(f"'{' '.join(words[:4])} ...' ended with code {error.returncode}")
    return folder


def _install(folder: Path, extras: str) -> None:
    import venv  # Debian has it in a package of its own

    if not (folder / "bin" / "pip").exists():
        venv.create(folder, with_pip=True, clear=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
    install = [*pip, "--disable-pip-version-check", "--editable", f"{ROOT}{extras}"]
    subprocess.run(install, check=True, stdout=sys.stderr)


def _give_up(reason: str) -> NoReturn:
    sys.exit(
        f"kafkalite could not be installed: {reason}. "
        "It needs the network once, and Python's venv (Debian: apt install python3-venv)."
    )


def main() -> None:
    """Become `kafkalite` with the same arguments: signals and exit code are its own."""
    if sys.version_info < (3, 11):  # noqa: UP036  this file is what an older Python gets to see
        sys.exit(f"kafkalite needs Python 3.11 or later; this is {sys.version.split()[0]}")
    # A cluster needs a ZooKeeper, which comes with PySpark: 400 MB that nobody else wants.
    wanted = ("cluster", "[cluster]") if sys.argv[1:2] == ["cluster"] else ()
    python = environment(*wanted) / "bin" / "python"
    os.execv(python, [python, "-m", "kafkalite", *sys.argv[1:]])


if __name__ == "__main__":
    main()
