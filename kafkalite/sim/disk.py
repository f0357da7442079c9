"""A disk in memory: it can be full, fail, tear a write, forget what was not synced, and replay.

Twin of `kafkalite.log.disk.OsDisk`. Names (creations, renames, removals) are durable at once and in
order, as a journalling file system has them; contents only when synced.
"""

import errno
import os
from collections.abc import Callable
from random import Random
from typing import Any, Final, TypeVar, TypeVarTuple

import trio

from kafkalite.log.disk import Bytes, DirectoryEntry, OpenFiles, TornFile

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")

UNLIMITED_BYTES: Final = 1 << 62
USAGE_TOTAL_BYTES: Final = 1 << 40
"""Size of a volume that has no capacity of its own, as operators see it."""

LOST_PAGE_PROBABILITY: Final = 0.3
"""How often a power failure leaves a file long enough but with zeros at its end."""


class Content:
    """A file's bytes, and what a power failure would leave of them.

    Invariant: synced_size <= len(data); what was synced is the beginning of the data.
    """

    __slots__ = ("data", "modified_ms", "path", "synced_size")

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        """Its name after renames; None once it was removed."""
        self.data = bytearray()
        self.synced_size = 0
        self.modified_ms = 0

    @property
    def synced(self) -> bytes:
        """Bytes that a power failure leaves for certain."""
        return bytes(self.data[: self.synced_size])

    def replay_copy(self) -> "Content":
        """Return the same content for another disk."""
        other = Content(self.path)
        other.data = bytearray(self.data)
        other.synced_size = self.synced_size
        other.modified_ms = self.modified_ms
        return other


class SimFile:
    """An open file of a `SimDisk`."""

    def __init__(self, disk: "SimDisk", path: str, content: Content) -> None:
        self.disk = disk
        self.path = path
        self.content = content
        self.closed = False
        disk.open_count += 1

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return len(self.content.data)

    def append(self, data: Bytes) -> None:
        """Write all of `data`, or as much as there is room for, which is then cut off."""
        assert not self.closed
        data = bytes(data)
        self.disk.check("append", self.path)
        room = self.disk.room()
        if len(data) > room:
            self.content.data += data[:room]
            try:
                self.disk.check("cut_off", self.path)
            except OSError as error:
                raise TornFile(errno.EIO, "cannot cut off") from error
            del self.content.data[len(self.content.data) - room :]
            raise OSError(errno.ENOSPC, "no space left on device", self.path)
        self.disk.record("append", self.content.path, data)
        self.content.data += data

    def pread(self, length: int, position: int) -> bytes:
        """Return up to `length` bytes from `position`."""
        assert not self.closed
        self.disk.check("pread", self.path)
        self.disk.reads += 1
        self.disk.bytes_read += min(length, max(self.size - position, 0))
        return bytes(self.content.data[position : position + length])

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        assert not self.closed
        self.disk.check("truncate", self.path)
        self.disk.record("truncate", self.content.path, size)
        del self.content.data[size:]
        self.content.synced_size = min(self.content.synced_size, size)

    def sync(self) -> None:
        """Make what was written survive a power failure."""
        self.disk.check("sync", self.path)
        self.content.synced_size = len(self.content.data)
        self.disk.syncs += 1

    def fileno(self) -> int:
        """Refuse: there is nothing to send from."""
        raise OSError(errno.EBADF, "a simulated file has no descriptor")

    def close(self) -> None:
        """Count it as closed."""
        if not self.closed:
            self.closed = True
            self.disk.open_count -= 1

    def __del__(self) -> None:
        self.close()


class SimLock(SimFile):
    """The file that keeps other brokers off a directory."""

    def close(self) -> None:
        """Let the next one have it."""
        if not self.closed:
            self.disk.locked.discard(self.path)
        super().close()


class SimDisk:
    """The files of one broker.

    Args:
        capacity: bytes that fit; None for no limit.
        traced: whether every change goes into `trace`, so that `replay` can give the disk as it
            was after any change, and after any byte of the next one.
    """

    def __init__(self, capacity: int | None = None, *, traced: bool = True) -> None:
        self.files: dict[str, Content] = {}
        self.directories = {"/"}
        self.capacity = capacity
        self.trace: list[tuple[Any, ...]] = []
        self.faults: list[list[Any]] = []
        self.locked: set[str] = set()
        self.reads = self.bytes_read = self.syncs = self.open_count = 0
        self.open_files = OpenFiles()
        self.now_ms = 0
        self.boots = 0
        self.thread_delay: Callable[[], float] | None = None
        """Seconds that a call "in a thread" takes; None runs it at once, without a checkpoint."""
        self._traced = traced

    # --- faults and time travel

    def fail(
        self, operation: str, part: str = "", *, error: int = errno.EIO, times: int | None = None
    ) -> Callable[[], None]:
        """Let `operation` fail on paths that contain `part`; returns a function that stops it."""
        fault = [operation, part, error, times]
        self.faults.append(fault)

        def stop() -> None:
            if fault in self.faults:
                self.faults.remove(fault)

        return stop

    def check(self, operation: str, path: str) -> None:
        """Raise if a fault is set for this."""
        for fault in self.faults:
            if fault[0] == operation and fault[1] in path and fault[3] != 0:
                if fault[3] is not None:
                    fault[3] -= 1
                raise OSError(fault[2], "simulated failure", path)

    def room(self) -> int:
        """Return bytes that still fit."""
        if self.capacity is None:
            return UNLIMITED_BYTES
        return max(self.capacity - self.used_bytes(), 0)

    def used_bytes(self) -> int:
        """Return bytes in all files."""
        return sum(len(content.data) for content in self.files.values())

    def record(self, *operation: Any) -> None:
        """Note a change."""
        if self._traced:
            self.trace.append(operation)

    @classmethod
    def replay(cls, trace: list[tuple[Any, ...]], count: int, torn: int | None = None) -> "SimDisk":
        """Return the disk after `count` changes, and `torn` bytes of the append that follows.

        `replace` writes its temporary file first; with `torn` set, that is what is left.
        """
        disk = cls()
        for operation in trace[:count]:
            disk._redo(operation)
        if torn is not None:
            kind, path, data = trace[count][:3]
            assert kind in ("append", "replace")
            if kind == "append":
                disk.files[path].data += data[:torn]
            else:
                disk.file(path + ".tmp").data = bytearray(data[:torn])
        disk.trace.clear()
        return disk

    def _redo(self, operation: tuple[Any, ...]) -> None:
        kind, path, *arguments = operation
        if path is None:
            return
        if kind == "append":
            self.files[path].data += arguments[0]
        elif kind == "truncate":
            del self.files[path].data[arguments[0] :]
        elif kind == "create":
            self.file(path)
        elif kind == "replace":
            self.replace(path, arguments[0])
        else:
            getattr(self, kind)(path, *arguments)

    def after_power_failure(self, random: Random) -> "SimDisk":
        """Return a disk that kept what was synced and a random part of what was not."""
        disk = self.copy()
        disk.boots += 1
        for survivor in disk.files.values():
            synced_size, size = survivor.synced_size, len(survivor.data)
            kept = random.randint(synced_size, size)
            lost_page = random.random() < LOST_PAGE_PROBABILITY and kept > synced_size
            del survivor.data[kept:]
            if lost_page:  # the length was written, the page was not
                at = random.randint(synced_size, kept - 1)
                survivor.data[at:] = bytes(kept - at)
            survivor.synced_size = len(survivor.data)
        return disk

    def copy(self) -> "SimDisk":
        """Return the disk as a crash of the process leaves it: everything written is there."""
        disk = SimDisk(self.capacity, traced=self._traced)
        disk.directories = set(self.directories)
        disk.files = {path: content.replay_copy() for path, content in self.files.items()}
        disk.now_ms = self.now_ms
        disk.boots = self.boots
        disk.thread_delay = self.thread_delay
        return disk

    # --- Disk

    def file(self, path: str) -> Content:
        """Return a file's content, made if there is none. Raises FileNotFoundError."""
        if path not in self.files:
            parent = os.path.dirname(path) or "/"
            if parent not in self.directories:
                raise FileNotFoundError(errno.ENOENT, "no such directory", parent)
            self.files[path] = Content(path)
            self.files[path].modified_ms = self.now_ms
        return self.files[path]

    def open(self, path: str, *, create: bool = False) -> SimFile:
        """Open for reading and appending."""
        return self._open(SimFile, path, create=create)

    def _open(self, kind: type[SimFile], path: str, *, create: bool) -> SimFile:
        self.check("open", path)
        if path not in self.files:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self.check("create", path)
            self.file(path)
            self.record("create", path)
        return kind(self, path, self.files[path])

    def read(self, path: str) -> bytes:
        """Return the whole content."""
        self.check("read", path)
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self.reads += 1
        self.bytes_read += len(self.files[path].data)
        return bytes(self.files[path].data)

    def map(self, path: str) -> bytes:
        """Return the whole content."""
        return self.read(path)

    def replace(self, path: str, data: Bytes, *, sync: bool = True) -> None:
        """Give `path` this content all at once."""
        self.check("replace", path)
        data = bytes(data)
        if len(data) > self.room():
            raise OSError(errno.ENOSPC, "no space left on device", path)
        self._forget(path)
        content = self.file(path)
        content.data = bytearray(data)
        if sync:
            content.synced_size = len(data)
            self.syncs += 1
        self.record("replace", path, data)

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name."""
        self.check("rename", source)
        if source in self.files:
            self._move(source, target)
        elif source in self.directories:
            for path in [p for p in self.files if p.startswith(source + "/")]:
                self._move(path, target + path[len(source) :])
            for path in [d for d in self.directories if (d + "/").startswith(source + "/")]:
                self.directories.discard(path)
                self.directories.add(target + path[len(source) :])
        else:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        self.record("rename", source, target)

    def _move(self, source: str, target: str) -> None:
        self._forget(target)
        content = self.files[target] = self.files.pop(source)
        content.path = target

    def _forget(self, path: str) -> None:
        content = self.files.pop(path, None)
        if content is not None:
            content.path = None

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with everything in it."""
        self.check("remove", path)
        if path in self.files or path in self.directories:
            self.record("remove", path)
        self._forget(path)
        for name in [p for p in self.files if p.startswith(path + "/")]:
            self._forget(name)
        self.directories = {d for d in self.directories if not (d + "/").startswith(path + "/")}

    def list(self, directory: str) -> list[DirectoryEntry]:
        """Return what is in a directory, sorted by name."""
        self.check("list", directory)
        if directory not in self.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", directory)
        prefix = directory.rstrip("/") + "/"
        entries = [
            DirectoryEntry(path[len(prefix) :], len(content.data), False, content.modified_ms)
            for path, content in self.files.items()
            if path.startswith(prefix) and "/" not in path[len(prefix) :]
        ]
        entries += [
            DirectoryEntry(path[len(prefix) :], 0, True, 0)
            for path in self.directories
            if path.startswith(prefix) and path != prefix and "/" not in path[len(prefix) :]
        ]
        return sorted(entries)

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory has this name."""
        return path in self.files or path in self.directories

    def boot_id(self) -> str:
        """Return what is another after each loss of power."""
        return f"boot {self.boots}"

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents."""
        self.check("make_directory", path)
        if path in self.directories:
            return
        parts = path.strip("/").split("/")
        for count in range(1, len(parts) + 1):
            self.directories.add("/" + "/".join(parts[:count]))
        self.record("make_directory", path)

    def sync(self, path: str) -> None:
        """Make a file's bytes survive a power failure; names do anyway."""
        self.check("sync", path)
        if path in self.files:
            self.files[path].synced_size = len(self.files[path].data)
            self.syncs += 1

    def usage(self, path: str) -> tuple[int, int]:
        """Return (total, free) bytes."""
        del path
        return self.capacity or USAGE_TOTAL_BYTES, self.room()

    def lock(self, path: str) -> SimFile:
        """Hold `path` against other brokers until the file returned is closed."""
        if path in self.locked:
            raise BlockingIOError(errno.EAGAIN, "held by another broker", path)
        file = self._open(SimLock, path, create=True)
        self.locked.add(path)
        return file

    async def run_in_thread(
        self, function: Callable[[*_Arguments], _Result], *arguments: *_Arguments
    ) -> _Result:
        """Run it here; before it, as long as a thread would have taken."""
        if self.thread_delay is not None:
            with trio.CancelScope(shield=True):
                await trio.sleep(self.thread_delay())
        return function(*arguments)
