"""Snapshots of a broker under test: its data, kept to be had again.

    snapshot = broker.snapshot()          # once, after a slow fixture was loaded
    broker.restore(snapshot)              # before each test

Old segments are linked, not copied. To restore is to start the broker anew over a copy, at the same
address: its clients are disconnected, and come again.
"""

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from kafkalite.server.broker import Broker as ServerBroker

LEFT_OUT: Final = frozenset({".lock"})
NAME_DIGITS: Final = 20
"""Of the first offset in the names of a segment's files."""


class Snapshot:
    """Data of a broker at one moment; the files are gone with this object."""

    def __init__(self) -> None:
        directory = tempfile.mkdtemp(prefix="kafkalite-snapshot-")
        self.path = Path(directory) / "data"
        weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)

    def __repr__(self) -> str:
        return f"<snapshot in {self.path}>"


class SnapshotBroker:
    """The part of `testing.Broker` that goes back to where it was."""

    def __init__(self) -> None:
        self._next_settings: Mapping[str, str] | None = None
        self._turn = trio.Event()
        """Set when the broker is to stop, or to start anew."""
        self._has_started = trio.Event()
        self._restored: tempfile.TemporaryDirectory[str] | None = None

    if TYPE_CHECKING:

        @property
        def server(self) -> ServerBroker: ...  # noqa: D102
        def _in_loop(self, function: Callable[[], Any]) -> Any: ...
        def _await(self, function: Callable[[], Awaitable[Any]]) -> Any: ...

    def snapshot(self) -> Snapshot:
        """Keep all topics, records, groups and transactions as they are now.

        Nothing happens in the broker meanwhile.

        Raises:
            RuntimeError: the broker is not running, or has several log directories.
        """
        kept = Snapshot()
        self.copy_data(kept.path)
        return kept

    def copy_data(self, target: Path) -> None:
        """Copy what `snapshot` keeps to a directory that is not there yet. Raises as it does."""
        self._in_loop(lambda: copy_data(self._data_dir_in_use(), target))

    def restore(self, snapshot: Snapshot) -> None:
        """Hold what a snapshot holds, and nothing else; the broker starts anew for it.

        Clients stay as they are: they connect again by themselves, and consumers join anew. Fault
        rules are gone, and the clock goes on.

        Raises:
            RuntimeError: as `snapshot`.
        """

        async def start_anew() -> None:
            server = self.server
            settings = dict(server.config.static)
            settings |= _addresses(server)
            fresh = tempfile.TemporaryDirectory(prefix="kafkalite-restored-")
            target = Path(fresh.name) / "data"
            copy_data(snapshot.path, target)
            before, self._restored = self._restored, fresh
            settings["log.dirs"] = str(target)
            settings.pop("log.dir", None)
            self._next_settings = settings
            self._has_started = trio.Event()
            self._turn.set()
            await self._has_started.wait()
            if before is not None:
                before.cleanup()

        self._await(start_anew)

    def _data_dir_in_use(self) -> Path:
        if len(self.server.data_dirs) != 1:
            raise RuntimeError("a snapshot is of one log directory")
        if self.server.config.optional_str("kafkalite.metadata.serve") is not None:
            raise RuntimeError("a snapshot is of one broker, and others follow this one")
        return Path(self.server.data_dirs[0])

    def _forget_restored(self) -> None:
        if self._restored is not None:
            self._restored.cleanup()
            self._restored = None


def copy_data(source: Path, target: Path) -> None:
    """Copy a data directory: segments that nobody writes to any more are linked."""
    target.mkdir(parents=True)
    for entry in os.scandir(source):
        if entry.name in LEFT_OUT:
            continue
        if entry.is_dir():
            _copy_partition(Path(entry.path), target / entry.name)
        else:
            shutil.copyfile(entry.path, target / entry.name)


def _copy_partition(source: Path, target: Path) -> None:
    target.mkdir()
    names = [entry.name for entry in os.scandir(source) if entry.is_file()]
    active = max((name[:NAME_DIGITS] for name in names if name.endswith(".log")), default="")
    for name in names:
        is_old = name.endswith(".log") and name[:NAME_DIGITS] < active
        try:
            (os.link if is_old else shutil.copyfile)(source / name, target / name)
        except OSError:  # another file system, or one without links
            shutil.copyfile(source / name, target / name)


def _addresses(server: "ServerBroker") -> dict[str, str]:
    """Return settings by which a broker has the addresses that another one has now."""
    listeners = [
        f"{each.name}://{server.bootstrap_for(each.name)}" for each in server.config.listeners
    ]
    said = {"listeners": ",".join(listeners)}
    if server.http_url is not None:
        said["kafkalite.http.listener"] = urlsplit(server.http_url).netloc
    return said
