"""A disk in memory: it can be full, fail, tear a write, forget what was not synced, and replay.

Twin of kafkalite.log.disk.OsDisk. Every change goes into `trace`, so a test can ask for the disk
as it was after any change, and after any byte of the next one (`SimDisk.replay`). Names (creations,
renames, removals) are durable at once and in order; contents only when synced.
"""

import errno

from kafkalite.log.disk import DirectoryEntry, TornFile


class Content:
    """A file's bytes, and what a power failure would leave of them."""

    def __init__(self):
        self.data = bytearray()
        self.synced = b""
        self.modified_ms = 0
        self.appended_since_sync = False


class SimFile:
    def __init__(self, disk, path, content):
        self.disk = disk
        self.path = path
        self.content = content
        self.closed = False
        disk.open_count += 1

    @property
    def size(self):
        return len(self.content.data)

    def append(self, data):
        assert not self.closed
        data = bytes(data)
        self.disk.check("append", self.path)
        room = self.disk.room()
        if len(data) > room:
            self.content.data += data[:room]  # the torn part, which is then cut off
            try:
                self.disk.check("cut_off", self.path)
            except OSError as error:
                raise TornFile(errno.EIO, "cannot cut off") from error
            del self.content.data[len(self.content.data) - room :]
            raise OSError(errno.ENOSPC, "no space left on device", self.path)
        self.disk.record("append", self.path_now(), data)
        self.content.data += data

    def path_now(self):
        """Return the file's name after renames, for the trace; None once it was removed."""
        return next((p for p, c in self.disk.files.items() if c is self.content), None)

    def pread(self, length, position):
        assert not self.closed
        self.disk.check("pread", self.path)
        self.disk.reads += 1
        self.disk.bytes_read += min(length, max(self.size - position, 0))
        return bytes(self.content.data[position : position + length])

    def truncate(self, size):
        assert not self.closed
        self.disk.check("truncate", self.path)
        self.disk.record("truncate", self.path_now(), size)
        del self.content.data[size:]
        self.content.synced = self.content.synced[:size]

    def sync(self):
        self.disk.check("sync", self.path)
        self.content.synced = bytes(self.content.data)
        self.disk.syncs += 1

    def fileno(self):
        raise OSError(errno.EBADF, "a simulated file has no descriptor")

    def close(self):
        if not self.closed:
            self.closed = True
            self.disk.open_count -= 1

    def __del__(self):
        self.close()


class SimDisk:
    def __init__(self, capacity=None):
        self.files = {}
        self.directories = {"/"}
        self.capacity = capacity
        self.trace = []
        self.faults = []
        self.locked = set()
        self.reads = self.bytes_read = self.syncs = self.open_count = 0
        self.now_ms = 0

    # --- faults and time travel

    def fail(self, operation, part="", *, error=errno.EIO, times=None):
        """Let `operation` fail on paths that contain `part`; returns a function that stops it."""
        fault = [operation, part, error, times]
        self.faults.append(fault)
        return lambda: self.faults.remove(fault)

    def check(self, operation, path):
        for fault in self.faults:
            if fault[0] == operation and fault[1] in path and fault[3] != 0:
                if fault[3] is not None:
                    fault[3] -= 1
                raise OSError(fault[2], "simulated failure", path)

    def room(self):
        if self.capacity is None:
            return 1 << 62
        return max(self.capacity - sum(len(c.data) for c in self.files.values()), 0)

    def record(self, *operation):
        self.trace.append(operation)

    @classmethod
    def replay(cls, trace, count, torn=None):
        """Return the disk after `count` changes, and `torn` bytes of the append that follows.

        `replace` writes its temporary file first; with `torn` set, that is what is left.
        """
        disk = cls()
        for operation in trace[:count]:
            disk.redo(operation)
        if torn is not None:
            kind, path, data = trace[count][:3]
            assert kind in ("append", "replace")
            if kind == "append":
                disk.files[path].data += data[:torn]
            else:
                disk.file(path + ".tmp").data = bytearray(data[:torn])
        disk.trace.clear()
        return disk

    def redo(self, operation):
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

    def after_power_failure(self, random):
        """Return a disk that kept what was synced and a random part of what was not."""
        disk = SimDisk()
        disk.directories = set(self.directories)
        for path, content in self.files.items():
            survivor = disk.files[path] = Content()
            synced, data = content.synced, bytes(content.data)
            if data[: len(synced)] == synced:
                kept = random.randint(len(synced), len(data))
                lost_page = random.random() < 0.3 and kept > len(synced)
                survivor.data = bytearray(data[:kept])
                if lost_page:  # the length was written, the page was not
                    at = random.randint(len(synced), kept - 1)
                    survivor.data[at:] = bytes(kept - at)
            else:
                survivor.data = bytearray(synced)
            survivor.synced = bytes(survivor.data)
        return disk

    def copy(self):
        """Return the disk as a crash of the process leaves it: everything written is there."""
        disk = SimDisk()
        disk.directories = set(self.directories)
        for path, content in self.files.items():
            disk.files[path] = Content()
            disk.files[path].data = bytearray(content.data)
            disk.files[path].synced = content.synced
        return disk

    # --- Disk

    def file(self, path):
        if path not in self.files:
            parent = path.rpartition("/")[0] or "/"
            if parent not in self.directories:
                raise FileNotFoundError(errno.ENOENT, "no such directory", parent)
            self.files[path] = Content()
            self.files[path].modified_ms = self.now_ms
        return self.files[path]

    def open(self, path, *, create=False):
        self.check("open", path)
        if path not in self.files:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self.check("create", path)
            self.file(path)
            self.record("create", path)
        return SimFile(self, path, self.files[path])

    def read(self, path):
        self.check("read", path)
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self.reads += 1
        self.bytes_read += len(self.files[path].data)
        return bytes(self.files[path].data)

    def map(self, path):
        return self.read(path)

    def replace(self, path, data, *, sync=True):
        self.check("replace", path)
        data = bytes(data)
        if len(data) > self.room():
            raise OSError(errno.ENOSPC, "no space left on device", path)
        self.files.pop(path, None)
        content = self.file(path)
        content.data = bytearray(data)
        if sync:
            content.synced = data
            self.syncs += 1
        self.record("replace", path, data)

    def rename(self, source, target):
        self.check("rename", source)
        if source in self.files:
            self.files[target] = self.files.pop(source)
        elif source in self.directories:
            for path in [p for p in self.files if p.startswith(source + "/")]:
                self.files[target + path[len(source) :]] = self.files.pop(path)
            for path in [d for d in self.directories if (d + "/").startswith(source + "/")]:
                self.directories.discard(path)
                self.directories.add(target + path[len(source) :])
        else:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        self.record("rename", source, target)

    def remove(self, path):
        self.check("remove", path)
        if path in self.files or path in self.directories:
            self.record("remove", path)
        self.files.pop(path, None)
        for name in [p for p in self.files if p.startswith(path + "/")]:
            del self.files[name]
        self.directories = {d for d in self.directories if not (d + "/").startswith(path + "/")}

    def list(self, directory):
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

    def make_directory(self, path):
        self.check("make_directory", path)
        if path in self.directories:
            return
        parts = path.strip("/").split("/")
        for count in range(1, len(parts) + 1):
            self.directories.add("/" + "/".join(parts[:count]))
        self.record("make_directory", path)

    def sync(self, path):
        self.check("sync", path)
        if path in self.files:
            self.files[path].synced = bytes(self.files[path].data)
            self.syncs += 1

    def usage(self, path):
        return self.capacity or 1 << 40, self.room()

    def lock(self, path):
        if path in self.locked:
            raise BlockingIOError(errno.EAGAIN, "held by another broker", path)
        file = self.open(path, create=True)
        self.locked.add(path)
        close = file.close

        def unlock():
            self.locked.discard(path)
            close()

        file.close = unlock
        return file

    async def run_in_thread(self, function, *arguments):
        return function(*arguments)
