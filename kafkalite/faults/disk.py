"""A disk that fails when it is told to: the operating system's files otherwise."""

import errno
import os
import time
from collections.abc import Callable  # noqa: TC003  dataclass
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Final

from kafkalite.log.disk import Bytes, OsDisk, OsFile

OPERATIONS: Final = ("write", "fsync", "read")

SLOW_MAX_S: Final = 60.0


@dataclass(slots=True, kw_only=True, eq=False)
class DiskFault:
    """Fault of some operations on files of logs.

    Attributes:
        operation: one of `OPERATIONS`.
        topic: glob of the topics whose files are meant; None for all files.
        partition: only of this partition.
        errno: the error that is raised; 0 for none.
        delay_s: how long the operation takes, in the thread that asks: the loop's for writes.
        times: it happens so often; None for ever.
        hits: how often it has.
        fault_id: its name over HTTP ("d1").
    """

    operation: str
    topic: str | None = None
    partition: int | None = None
    errno: int = 0
    delay_s: float = 0.0
    times: int | None = None
    hits: int = 0
    fault_id: str = ""

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise ValueError(f"op is one of {', '.join(OPERATIONS)}, not {self.operation!r}")
        if not 0 <= self.delay_s <= SLOW_MAX_S:
            raise ValueError(f"a disk operation takes 0 to {SLOW_MAX_S:g} s")

    def happens(self, operation: str, topic: str, partition: int) -> bool:
        """Count an operation on a file, and tell whether it is concerned."""
        if operation != self.operation or (self.times is not None and self.hits >= self.times):
            return False
        if self.topic is not None and not fnmatchcase(topic, self.topic):
            return False
        if self.partition is not None and self.partition != partition:
            return False
        self.hits += 1
        return True


class FaultyDisk(OsDisk):
    """The operating system's files, with faults.

    Attributes:
        faults: looked at in their order at every operation; the first that happens does.
        on_hit: told of each that does.
    """

    def __init__(self, *, syncs: bool = True) -> None:
        super().__init__(syncs=syncs)
        self.faults: tuple[DiskFault, ...] = ()
        self.on_hit: Callable[[DiskFault], None] = _ignore

    def open(self, path: str, *, create: bool = False) -> "FaultyFile":
        """Open for reading and appending; `create` makes an empty file where there is none."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return FaultyFile(self, os.open(path, flags, 0o644), path)

    def check(self, operation: str, path: str) -> None:
        """Do to an operation what is to happen to it.

        Raises:
            OSError: it fails.
        """
        topic, _, index = PurePath(path).parent.name.rpartition("-")
        partition = int(index) if index.isdigit() else -1
        for fault in self.faults:
            if fault.happens(operation, topic, partition):
                self.on_hit(fault)
                if fault.delay_s:
                    time.sleep(fault.delay_s)
                if fault.errno:
                    raise OSError(fault.errno, os.strerror(fault.errno), path)
                return


class FaultyFile(OsFile):
    """A file of a `FaultyDisk`."""

    __slots__ = ("_faulty", "_path")

    def __init__(self, disk: FaultyDisk, descriptor: int, path: str) -> None:
        super().__init__(disk, descriptor)
        self._faulty = disk
        self._path = path

    def append(self, data: Bytes) -> None:
        """Write all of `data` at the end, or nothing."""
        if self._faulty.faults:
            self._faulty.check("write", self._path)
        super().append(data)

    def pread(self, length: int, position: int) -> bytes:
        """Return up to `length` bytes from `position`."""
        if self._faulty.faults:
            self._faulty.check("read", self._path)
        return super().pread(length, position)

    def sync(self) -> None:
        """Return when the file's bytes are on stable storage."""
        if self._faulty.faults:
            self._faulty.check("fsync", self._path)
        super().sync()


def full_disk(topic: str | None = None, *, times: int | None = None) -> DiskFault:
    """Return the fault of a disk that has no room."""
    return DiskFault(operation="write", topic=topic, errno=errno.ENOSPC, times=times)


def _ignore(fault: DiskFault) -> None:
    del fault
