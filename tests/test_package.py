"""The wheel and the sdist, as users get them: built, installed in clean environments, and used."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from kafkalite import __version__

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
DEADLINE_S = 240

pytestmark = pytest.mark.slow


def pythons():
    """One interpreter of each version that kafkalite is for, as far as they are on this machine."""
    found = {}
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for version in VERSIONS:
        candidates = [shutil.which(f"python{version}"), *pyenv.glob(f"{version}.*/bin/python")]
        if version == f"{sys.version_info.major}.{sys.version_info.minor}":
            candidates = [sys._base_executable]
        for candidate in filter(None, candidates):
            code = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
            asked = subprocess.run([candidate, "-c", code], capture_output=True, text=True)
            if asked.stdout.strip() == version:  # not a shim for another version
                found[version] = str(candidate)
                break
    return found


PYTHONS = pythons()


def run(command, **options):
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A folder with both; the wheel is made from the sdist, not from the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)])
    return folder


def test_wheel_has_the_package_and_what_it_needs_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    assert wheel.name == f"kafkalite-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"kafkalite-{__version__}.dist-info/METADATA").decode()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"kafkalite", f"kafkalite-{__version__}.dist-info"}
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "kafkalite").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if name.startswith("kafkalite/")} == sources
    assert "Requires-Python: >=3.11" in metadata
    assert "License-Expression: Apache-2.0" in metadata


def test_sdist_can_be_read_and_tested(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    kept = {"README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "conftest.py", "tests/run.py"}
    assert kept <= names
    assert not [name for name in names if "__pycache__" in name]


def test_a_python_for_it_is_here():
    assert PYTHONS


@pytest.mark.long
@pytest.mark.parametrize("version", PYTHONS)
def test_package_serves_a_record_in_a_clean_environment(built, tmp_path, version):
    """The oldest Python here installs the sdist, the others the wheel."""
    pattern = "*.tar.gz" if version == min(PYTHONS) else "*.whl"
    (package,) = built.glob(pattern)
    venv = tmp_path / "venv"
    run([PYTHONS[version], "-m", "venv", str(venv)])
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
    run([*pip, "--disable-pip-version-check", str(package)], cwd=tmp_path)
    kafkalite = str(venv / "bin" / "kafkalite")
    assert run([kafkalite, "--version"], cwd=tmp_path) == f"kafkalite {__version__}\n"
    serve = [kafkalite, "serve", "--profile", "test", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as broker:
        try:
            bootstrap = re.search(r"bootstrap=(\S+)", broker.stdout.readline())[1]
            at = ["-b", bootstrap]
            run([kafkalite, "produce", "orders", "-m", "hello", *at], cwd=tmp_path)
            assert run([kafkalite, "consume", "orders", *at], cwd=tmp_path) == "hello\n"
        finally:
            broker.send_signal(signal.SIGTERM)
    assert broker.returncode == 0
