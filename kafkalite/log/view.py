"""A data directory as it is, for a broker that must not change a byte of it.

The view is a directory beside it: folders of its own, in them a link to each file, and copies of
the few small files at the top. What the broker writes goes to the view; a file that it would change
is copied first. So any number of brokers may look at one directory, also while its owner runs.
"""

import os
import shutil
from pathlib import Path
from typing import Final

from kafkalite.log.disk import Bytes, OsDisk, OsFile

LEFT_OUT: Final = frozenset({".lock"})
COPY_MAX_BYTES: Final = 64 * 1024 * 1024
"""Files at the top are small: checkpoints, the identity, the metadata. Larger ones are linked."""


def make_view(source: Path, view: Path) -> None:
    """Make a view of a data directory.

    Raises:
        OSError: it cannot be read, or the view cannot be written.
    """
    view.mkdir(parents=True, exist_ok=True)
    for entry in sorted(source.iterdir()):
        if entry.name in LEFT_OUT or entry.name.endswith(".tmp"):
            continue
        target = view / entry.name
        if not entry.is_dir():
            if entry.stat().st_size <= COPY_MAX_BYTES:
                shutil.copyfile(entry, target)
            else:
                target.symlink_to(entry.resolve())
            continue
        target.mkdir()
        for file in sorted(entry.iterdir()):
            if file.is_file():
                (target / file.name).symlink_to(file.resolve())


class ViewDisk(OsDisk):
    """The operating system's files, of which those that are links are never written to."""

    def open(self, path: str, *, create: bool = False) -> OsFile:
        """Open for reading and appending; `create` makes an empty file where there is none."""
        if os.path.islink(path):
            return ViewFile(self, path)
        return super().open(path, create=create)


class ViewFile(OsFile):
    """A file of somebody else, until it is changed; a copy from then on."""

    __slots__ = ("_is_copy", "_path")

    def __init__(self, disk: ViewDisk, path: str) -> None:
        super().__init__(disk, os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        self._path = path
        self._is_copy = False

    def append(self, data: Bytes) -> None:
        """Write all of `data` at the end, or nothing."""
        self._copy()
        super().append(data)

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        self._copy()
        super().truncate(size)

    def sync(self) -> None:
        """Return at once: nobody misses the view."""

    def _copy(self) -> None:
        if self._is_copy:
            return
        temporary = self._path + ".tmp"
        shutil.copyfile(self._path, temporary)
        os.replace(temporary, self._path)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        # In the place of the one before, which regions that are being sent may know.
        os.dup2(descriptor, self._descriptor, inheritable=False)
        os.close(descriptor)
        self._is_copy = True
