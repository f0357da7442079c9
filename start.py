#!/usr/bin/env python3
"""Start kafkalite from a checkout, on a machine with nothing but Python.

    python3 start.py                         a broker on 127.0.0.1:9092
    python3 start.py serve --listen 9093     what `kafkalite serve` is told
    python3 start.py cluster                 three brokers and a ZooKeeper (fetches 400 MB)
    python3 start.py topics list             any other command
    python3 start.py --compile               compile the hot modules, once; later starts use them

The first run makes a virtual environment in the user's cache folder and installs kafkalite and its
dependencies there; it is made anew when pyproject.toml changes. In an environment of your own,
`pip install .` gives you the command `kafkalite`.

Compiling takes minutes and a C compiler, so it is done when it is asked for. What was compiled is
used as long as the sources are the same, and then by the interpreter of this checkout alone.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent
RUNTIME = ("librt>=0.16", "mypy_extensions>=1")
"""What the compiled wheel needs besides."""
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


def compiled(*, build: bool = False) -> Path | None:
    """Return the folder with the compiled package of these very sources; None if there is none.

    Args:
        build: make it where it is not there yet.
    """
    if not build and next(CACHE.glob("compiled-*"), None) is None:
        return None  # nobody ever wanted one
    folder = compiled_folder()
    if not (folder / "kafkalite").exists():
        if not build:
            return None
        _compile(folder)
    return folder


def compiled_folder() -> Path:
    """Return where the compiled package of these sources is, or would be."""
    level = os.environ.get("KAFKALITE_COMPILED_LEVEL", "")
    digest = hashlib.sha256(f"{sys.version} {level}".encode())
    for path in sorted([*ROOT.glob("*.toml"), *ROOT.glob("hatch_build.py"), *_sources()]):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return CACHE / f"compiled-{digest.hexdigest()[:12]}"


def _sources() -> list[Path]:
    return [path for path in (ROOT / "kafkalite").rglob("*") if path.suffix in (".py", ".pyi")]


def _compile(folder: Path) -> None:
    """Build the compiled wheel, and take it apart in `folder`."""
    python = environment() / "bin" / "python"
    print(f"compiling kafkalite in {folder}, which takes minutes", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="kafkalite-wheel-") as wheels:
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        variables = {**os.environ, "HATCH_BUILD_HOOKS_ENABLE": "1"}
        try:
            wheel = [*pip, "wheel", "--no-deps", "--wheel-dir", wheels, str(ROOT)]
            subprocess.run(wheel, check=True, env=variables, stdout=sys.stderr)
            unpacked = Path(wheels) / "unpacked"
            (made,) = Path(wheels).glob("*.whl")
            # With what it needs and the pure one does not: the environment has all else.
            install = [*pip, "install", "--no-deps", "--target", unpacked, made, *RUNTIME]
            subprocess.run(install, check=True, stdout=sys.stderr)
        except subprocess.CalledProcessError as error:
            sys.exit(f"kafkalite could not be compiled: {error}. Without it nothing is missing.")
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(unpacked, folder)


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
    if sys.argv[1:] == ["--compile"]:
        print(f"compiled: {compiled(build=True)}")
        return
    found = compiled()
    if found is not None:
        print("kafkalite runs compiled", file=sys.stderr)
        os.environ["PYTHONPATH"] = str(found)
    os.execv(python, [python, "-m", "kafkalite", *sys.argv[1:]])


if __name__ == "__main__":
    main()
