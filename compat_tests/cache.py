"""Where fetched clients and compiled drivers are kept, and how two processes share them.

Everything lives under ``$XDG_CACHE_HOME/kafkalite`` (``~/.cache/kafkalite``). An entry is a folder
that appears by one rename when it is complete, under a file lock, so that pytest-xdist workers and
two test runs at once neither see half an entry nor do the same work twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def cache_dir() -> Path:
    """Return the user's cache folder of this project; it exists afterwards."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = Path(base) / "kafkalite"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock of this name against every other process of this user; waits for it."""
    lock_dir = cache_dir() / "locks"
    lock_dir.mkdir(exist_ok=True)
    with open(lock_dir / name.replace("/", "_"), "w") as lock_file:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        yield


def digest_of(*parts: str | bytes | Path) -> str:
    """Return a short digest of texts and files: the part of an entry's name that tells versions."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            content = part.read_bytes()
        else:
            content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()[:12]


def cached_dir(name: str, build: Callable[[Path], None], *, lock: str | None = None) -> Path:
    """Return the folder ``name`` of the cache, calling ``build(empty_folder)`` if it is missing.

    ``name`` may hold slashes. ``lock`` names a wider lock than the entry's own, for tools such as
    Maven whose own cache must not be written by two processes at once.
    """
    target = cache_dir() / name
    if target.is_dir():
        return target
    with locked(lock or name):
        if target.is_dir():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            build(scratch)
            scratch.chmod(0o755)
            scratch.rename(target)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    return target
