"""Files as the log uses them: a protocol, and the operating system behind it.

The only module that opens files or starts threads for them. Everything above it runs unchanged on a
simulated disk that forgets what was not synced. Failures are `OSError`; who turns them into an
answer is `Log`.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import resource
import threading
import time
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar, TypeVarTuple

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

Bytes = bytes | bytearray | memoryview
"""What can be written."""

MappedBytes = bytes | mmap.mmap
"""A whole file, readable by position without a copy where the disk has one to map."""

_Result = TypeVar("_Result")
_Arguments = TypeVarTuple("_Arguments")

SLOW_APPEND_MS = 10
"""An append that took longer is counted as a stall: the kernel was writing back."""


class DirectoryEntry(NamedTuple):
    """One name in a directory."""

    name: str
    size: int
    is_directory: bool
    modified_ms: int


class File(Protocol):
    """One open file. Stays readable after its name was changed or removed."""

    @property
    def size(self) -> int:
        """Bytes in the file, which is also where the next append goes."""
        ...

    def append(self, data: Bytes) -> None:
        """Write all of `data` at the end, or nothing: a torn write is cut off again.

        Raises:
            OSError: nothing was written. `TornFile` if some was and it could not be cut off.
        """
        ...

    def pread(self, length: int, position: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        ...

    def sync(self) -> None:
        """Return when the file's bytes are on stable storage. Blocks; for worker threads."""
        ...

    def fileno(self) -> int:
        """Return the descriptor, for sendfile."""
        ...

    def close(self) -> None:
        """Give the descriptor back. Regions that still point into the file fail afterwards."""
        ...


class Holder(Protocol):
    """Owner of an open file that it can open again."""

    def close(self) -> None:
        """Let go of the file."""
        ...


class OpenFiles:
    """Limit on open files: at the limit the oldest owner closes its files (rule 253).

    Not the one that was idle longest: to know that, each append would have to be noted, and to open
    a file again takes some ten microseconds.

    Attributes:
        limit: may be changed; it holds from the next file on.
    """

    def __init__(self, limit: int = 2**31) -> None:
        self.limit = limit
        self._holders: dict[Holder, None] = {}
        # Compaction opens files in its thread. The lock is free again when others let go.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._holders)

    def opened(self, holder: Holder) -> None:
        """Note that somebody opened a file, and let others go if there are too many."""
        with self._lock:
            self._holders[holder] = None
            excess = len(self._holders) - self.limit
            oldest = [each for each, _ in zip(self._holders, range(excess), strict=False)]
        for each in oldest:
            if each is not holder:
                each.close()

    def closed(self, holder: Holder) -> None:
        """Note that somebody let go."""
        with self._lock:
            self._holders.pop(holder, None)

    def give_back(self) -> bool:
        """Let half of them go; False if there are none."""
        with self._lock:
            count = (len(self._holders) + 1) // 2
            oldest = [each for each, _ in zip(self._holders, range(count), strict=False)]
        for each in oldest:
            each.close()
        return bool(oldest)


class Disk(Protocol):
    """The directories and files of one broker.

    Attributes:
        open_files: who holds files of logs open.
    """

    open_files: OpenFiles

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and appending; `create` makes an empty file where there is none."""
        ...

    def read(self, path: str) -> bytes:
        """Return the whole content. Raises FileNotFoundError."""
        ...

    def map(self, path: str) -> MappedBytes:
        """Return the whole content, mapped rather than read where that is possible."""
        ...

    def replace(self, path: str, data: Bytes, *, sync: bool = True) -> None:
        """Give `path` this content all at once: a crash leaves the old or the new, never a mix.

        `sync=False` gives up that promise for a power failure (not for a crash of the process),
        and saves the milliseconds of an fsync.
        """
        ...

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name, replacing a file that has it."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with everything in it; absent is fine."""
        ...

    def list(self, directory: str) -> list[DirectoryEntry]:
        """Return what is in a directory, sorted by name. Raises FileNotFoundError."""
        ...

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory has this name."""
        ...

    def boot_id(self) -> str:
        """Return what is another after each start of the machine; empty if nothing is known."""
        ...

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; present is fine."""
        ...

    def sync(self, path: str) -> None:
        """Return when a file's bytes, or a directory's names, are on stable storage.

        Blocks; for worker threads. Absent is fine: deleted data need no safe place.
        """
        ...

    def usage(self, path: str) -> tuple[int, int]:
        """Return (total, free for us) bytes of the volume that a directory is on."""
        ...

    def lock(self, path: str) -> File:
        """Hold `path` against other brokers until the file returned is closed.

        Raises:
            BlockingIOError: another process, or another broker of this one, holds it.
        """
        ...

    async def run_in_thread(
        self, function: "Callable[[*_Arguments], _Result]", *arguments: *_Arguments
    ) -> _Result:
        """Run what may block in a worker thread, and wait for it."""
        ...


class TornFile(OSError):
    """An append failed half way and what it left could not be cut off."""


async def run_in_thread(
    function: "Callable[[*_Arguments], _Result]", *arguments: *_Arguments
) -> _Result:
    """Run what may block in a worker thread, and wait for it (some 150 µs for the hop).

    Not abandoned on cancellation: what it does to files is finished before anyone goes on.
    """
    return await trio.to_thread.run_sync(function, *arguments)


def allow_many_open_files() -> int:
    """Raise this process's soft limit of open files to its hard limit; return the limit.

    A log keeps a descriptor per segment in use, and 1,024, the usual soft limit, is soon reached.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # macOS refuses "unlimited" here
        return soft
    return hard


def _boot_id_of_macos() -> str:
    """Return sysctl's kern.bootsessionuuid, empty where there is none."""
    try:
        library = ctypes.CDLL(None)
        buffer = ctypes.create_string_buffer(64)
        size = ctypes.c_size_t(len(buffer))
        name = b"kern.bootsessionuuid"
        if library.sysctlbyname(name, buffer, ctypes.byref(size), None, 0):
            return ""
    except (OSError, AttributeError):
        return ""
    return buffer.value.decode("ascii", "replace")


def open_files_limit() -> int:
    """Return how many descriptors this process may have."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


RESERVED_MAX: Final = 128

OUT_OF_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of a process, or a machine, that has no descriptor left."""

LOW_LIMIT: Final = 1_024
"""With fewer files an operator is told."""


def reserved_files(limit: int) -> int:
    """Return how many descriptors are kept from clients, for files that are open for a moment."""
    return min(RESERVED_MAX, limit // 4)


def files_for_logs(limit: int) -> int:
    """Return how many files logs may hold open; the others are for clients and other brokers."""
    return max((limit - reserved_files(limit)) // 2, 1)


class OsFile:
    """A file of the operating system.

    Its descriptor is closed with its last reference, so a region that is being sent keeps a
    deleted segment's bytes alive, and nobody counts references.
    """

    __slots__ = ("_descriptor", "_disk", "size")

    def __init__(self, disk: "OsDisk", descriptor: int) -> None:
        self._disk = disk
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def append(self, data: Bytes) -> None:
        """Write all of `data` at the end, or nothing."""
        size = self.size
        length = len(data)
        start = time.perf_counter_ns()
        try:
            written = os.pwrite(self._descriptor, data, size)
            while written < length:  # a disk that is nearly full, or more than 2 GiB
                written += os.pwrite(self._descriptor, data[written:], size + written)
        except OSError as error:
            self._cut_off(size, error)
            raise
        self.size = size + length
        elapsed_ns = time.perf_counter_ns() - start
        if elapsed_ns > SLOW_APPEND_MS * 1_000_000:
            self._disk.count_stall(elapsed_ns)

    def _cut_off(self, size: int, cause: OSError) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise TornFile(error.errno or errno.EIO, f"{cause}, then {error}") from cause

    def pread(self, length: int, position: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""
        data = os.pread(self._descriptor, length, position)
        if len(data) < length and position + len(data) < self.size:
            # One call returns at most 2 GiB - 4 KiB.
            parts = [data]
            position += len(data)
            length -= len(data)
            while length and data:
                data = os.pread(self._descriptor, length, position)
                parts.append(data)
                position += len(data)
                length -= len(data)
            return b"".join(parts)
        return data

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        os.ftruncate(self._descriptor, size)
        self.size = size

    def sync(self) -> None:
        """Return when the file's bytes are on stable storage."""
        if self._disk.syncs:
            self._disk.flushes.fsync(self._descriptor)

    def fileno(self) -> int:
        """Return the descriptor."""
        if self._descriptor < 0:
            raise OSError(errno.EBADF, "the file is closed")
        return self._descriptor

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class FlushTimes:
    """How long fsync took: of all of them together, and of the latest.

    Attributes:
        recent_s: the latest of them in seconds, the oldest first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0
        self.sum_s = 0.0
        self.recent_s: deque[float] = deque(maxlen=256)

    def fsync(self, descriptor: int) -> None:
        """Do it, and note how long it took; in any thread."""
        began_s = perf_counter()
        os.fsync(descriptor)
        took_s = perf_counter() - began_s
        with self._lock:
            self.count += 1
            self.sum_s += took_s
            self.recent_s.append(took_s)


class OsDisk:
    """The operating system's files.

    Args:
        syncs: False makes every sync a no-op, for brokers whose data need not survive a power
            failure. A crash of the process loses nothing either way.
    """

    def __init__(self, *, syncs: bool = True) -> None:
        self.syncs = syncs
        self.open_files = OpenFiles()
        self.flushes = FlushTimes()
        self._stalls = 0
        self._stall_ns_max = 0

    def open(self, path: str, *, create: bool = False) -> OsFile:
        """Open for reading and appending; `create` makes an empty file where there is none."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return OsFile(self, self._open(path, flags))

    def _open(self, path: str, flags: int) -> int:
        """Return a descriptor; where there is none left, logs give theirs back."""
        try:
            return os.open(path, flags, 0o644)
        except OSError as error:
            if error.errno not in OUT_OF_FILES or not self.open_files.give_back():
                raise
            return os.open(path, flags, 0o644)

    def read(self, path: str) -> bytes:
        """Return the whole content."""
        descriptor = self._open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            return os.read(descriptor, size) if size else b""
        finally:
            os.close(descriptor)

    def map(self, path: str) -> MappedBytes:
        """Return the whole content, mapped (an empty file cannot be)."""
        descriptor = self._open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(descriptor).st_size == 0:
                return b""
            return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(descriptor)

    def replace(self, path: str, data: Bytes, *, sync: bool = True) -> None:
        """Give `path` this content all at once (Kafka's own way: `<path>.tmp`, then a rename)."""
        temporary = path + ".tmp"
        descriptor = self._open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC)
        try:
            remaining = memoryview(data)
            while remaining:
                remaining = remaining[os.write(descriptor, remaining) :]
            if sync and self.syncs:
                self.flushes.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
        if sync:
            self.sync(os.path.dirname(path))

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name."""
        os.rename(source, target)

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with everything in it; absent is fine."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
        except (IsADirectoryError, PermissionError):  # macOS says the latter of a directory
            if not os.path.isdir(path):
                raise
            for entry in self.list(path):
                self.remove(os.path.join(path, entry.name))
            os.rmdir(path)

    def list(self, directory: str) -> list[DirectoryEntry]:
        """Return what is in a directory, sorted by name."""
        entries = []
        with os.scandir(directory) as names:
            for name in names:
                try:
                    status = name.stat()
                except FileNotFoundError:  # removed since, or a link to nowhere
                    continue
                entries.append(
                    DirectoryEntry(
                        name.name, status.st_size, name.is_dir(), status.st_mtime_ns // 1_000_000
                    )
                )
        entries.sort()
        return entries

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory has this name."""
        return os.path.exists(path)

    def boot_id(self) -> str:
        """Return what is another after each start of the machine; empty if nothing is known."""
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            return _boot_id_of_macos()

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; present is fine."""
        try:
            os.mkdir(path)
        except FileExistsError:
            return
        except FileNotFoundError:
            os.makedirs(path, exist_ok=True)

    def sync(self, path: str) -> None:
        """Return when a file's bytes, or a directory's names, are on stable storage."""
        if not self.syncs:
            return
        try:
            descriptor = self._open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            self.flushes.fsync(descriptor)
        finally:
            os.close(descriptor)

    def usage(self, path: str) -> tuple[int, int]:
        """Return (total, free for us) bytes of the volume that a directory is on."""
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    def lock(self, path: str) -> "OsLock":
        """Hold `path` against other brokers until the lock is closed."""
        return OsLock(self, path)

    async def run_in_thread(
        self, function: "Callable[[*_Arguments], _Result]", *arguments: *_Arguments
    ) -> _Result:
        """Run what may block in a worker thread, and wait for it."""
        return await run_in_thread(function, *arguments)

    def count_stall(self, elapsed_ns: int) -> None:
        """Note an append that held the broker up."""
        self._stalls += 1
        self._stall_ns_max = max(self._stall_ns_max, elapsed_ns)

    def statistics(self) -> dict[str, int]:
        """Return how often an append took longer than SLOW_APPEND_MS, and the longest."""
        return {"append_stalls": self._stalls, "append_stall_ms_max": self._stall_ns_max // 10**6}


class OsLock(OsFile):
    """A locked file.

    The lock is the POSIX record lock that Java takes, so that a Kafka broker and this one exclude
    each other. Such a lock does not hold within one process; a set of paths does.
    """

    __slots__ = ("_path",)

    _held: set[str] = set()  # noqa: RUF012 - shared on purpose: one table per process

    def __init__(self, disk: OsDisk, path: str) -> None:
        self._descriptor = -1
        self._path = os.path.realpath(path)
        if self._path in self._held:
            raise BlockingIOError(errno.EAGAIN, "held by another broker of this process", path)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            os.close(descriptor)
            raise BlockingIOError(errno.EAGAIN, "held by another process", path) from error
        super().__init__(disk, descriptor)
        self._held.add(self._path)

    def close(self) -> None:
        """Let the next one have it."""
        if self._descriptor >= 0:
            self._held.discard(self._path)
        super().close()
