"""start.py: the first command on a machine with nothing but Python."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkalite import __version__

ROOT = Path(__file__).parent.parent

pytestmark = [pytest.mark.slow]


def prepared(cache, script):
    """A folder where start.py finds its environment, whose Python is a script."""
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + sys.version.encode())
    folder = cache / "kafkalite" / f"broker-{wanted.hexdigest()[:12]}"
    (folder / "bin").mkdir(parents=True)
    for name in ("python", "pip"):
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / "bin" / name).chmod(0o755)
    return folder


def start(cache, *arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "start.py"), *arguments],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_first_command_installs_and_the_next_does_not(tmp_path):
    """Installing itself is left out: this Python has all of it."""
    real = f'test "$2" = pip && exit 0\nexec {sys.executable} "$@"'
    folder = prepared(tmp_path, real)
    done = start(tmp_path, "--version")
    assert (done.returncode, done.stdout) == (0, f"kafkalite {__version__}\n")
    assert done.stderr == f"installing kafkalite in {folder}\n"
    done = start(tmp_path, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"kafkalite {__version__}\n", "")


def test_what_was_compiled_of_these_sources_is_used(tmp_path, monkeypatch):
    sys.path.insert(0, str(ROOT))
    import start as starter

    folder = prepared(tmp_path, 'test "$2" = pip && exit 0\necho "$PYTHONPATH"')
    (folder / "installed-for").write_text(str(ROOT))
    monkeypatch.setattr(starter, "CACHE", tmp_path / "kafkalite")
    (tmp_path / "kafkalite" / "compiled-of-other-sources" / "kafkalite").mkdir(parents=True)
    assert start(tmp_path, "--version").stdout == f"{ROOT}\n"
    compiled = starter.compiled_folder()
    (compiled / "kafkalite").mkdir(parents=True)
    done = start(tmp_path, "--version")
    assert (done.stdout, done.stderr) == (f"{compiled}\n", "kafkalite runs compiled\n")


def test_what_pip_could_not_do_is_told_without_a_traceback(tmp_path):
    folder = prepared(tmp_path, "echo no network >&2; exit 3")
    done = start(tmp_path, "--version")
    assert (done.returncode, done.stdout) == (1, "")
    told = done.stderr.splitlines()
    assert told[1] == "no network"
    assert told[2].startswith(
        f"kafkalite could not be installed: '{folder}/bin/python -m pip install ...' "
        "ended with code 3. It needs the network once, and Python's venv"
    )
    assert len(told) == 3


def test_folder_that_cannot_be_made_is_told_without_a_traceback(tmp_path):
    (tmp_path / "file").write_text("")
    done = start(tmp_path / "file", "--version")
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert line.startswith("kafkalite could not be installed: ")
    assert "python3-venv" in line


def test_python_without_venv_is_told_so(tmp_path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "venv.py").write_text('raise ImportError("No module named venv")\n')
    done = subprocess.run(
        [sys.executable, str(ROOT / "start.py"), "--version"],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(hidden)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "kafkalite could not be installed: No module named venv. It needs the network once"
    )
