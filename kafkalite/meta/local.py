"""Metadata of a lone broker: one file of lines, one line for each commit.

A line is the CRC-32 of the rest in eight hexadecimal digits, a space, and JSON:
`{"version": 7, "changes": [...]}`. The first line holds the sum of all commits before it. A crash
may leave a torn line at the end, which was never acknowledged and is cut off.
"""

import json
import logging
import os.path
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import trio

from kafkalite.log.disk import TornFile
from kafkalite.meta.changes import Change, from_json, snapshot, to_text
from kafkalite.meta.image import BrokerImage, Image
from kafkalite.meta.store import MetadataStoreError, Stored, StoreEvent
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.log.disk import Disk, File

logger = logging.getLogger("kafkalite.meta")

METADATA_FILE: Final = "kafkalite-metadata.log"
"""Its name in the first log directory. Apache Kafka looks at directories only, and leaves it be."""

SUM_UP_FROM_BYTES: Final = 1 << 20
SUM_UP_GROWTH: Final = 4
"""The file is rewritten when it has this size, and this many times that of its first line:
starts stay fast, and the rewriting costs a constant share of the writing."""

_CHECKSUM_DIGITS = 8


class LocalStore:
    """The file, held open for appending.

    Args:
        path: of the file.
        flush: whether a commit is forced to disk before it is acknowledged.
    """

    shared: Final = False

    def __init__(self, disk: "Disk", path: str, *, flush: bool = True) -> None:
        self._disk = disk
        self._path = path
        self._flush = flush
        self._file: File | None = None
        self._first_line_size = 0
        self._broken = ""

    async def open(self) -> None:
        """Do nothing: `load` opens the file."""

    async def cluster_id(self, proposed: str) -> str:
        """Return the id that the log directories have."""
        return proposed

    async def load(self, known_version: int = -1) -> Stored:
        """Return what was committed, and cut off what was not."""
        try:
            self._file = self._disk.open(self._path, create=True)
            data = self._disk.read(self._path)
        except OSError as error:
            raise MetadataStoreError(f"{self._path}: {error.strerror}") from error
        lines = data.split(b"\n")
        commits = [_read_line(line) for line in lines[:-1]]
        good = next((i for i, commit in enumerate(commits) if commit is None), len(commits))
        if any(commit is not None for commit in commits[good:]):
            raise MetadataStoreError(
                f"{self._path}: line {good + 1} is damaged, and commits follow it; restore the "
                "file from a copy, or move it away and see what the next start says"
            )
        size = sum(len(line) + 1 for line in lines[:good])
        if size < len(data):
            logger.warning(
                "%s: the last %d bytes are no whole commit and were cut off",
                self._path,
                len(data) - size,
            )
            self._cut(size)
        self._first_line_size = len(lines[0]) if good else 0
        changes: list[Change] = []
        version = 0
        for commit in commits[:good]:
            assert commit is not None
            version = commit["version"]
            try:
                changes += [from_json(values) for values in commit["changes"]]
            except ValueError as error:
                raise MetadataStoreError(f"{self._path}: {error}") from None
        return Stored(version, changes)

    async def register(self, broker: BrokerImage) -> int:
        """Return that there is nothing to register at."""
        return -1

    async def campaign(self) -> int:
        """Become controller; there is one epoch only."""
        return -1

    async def next_event(self) -> StoreEvent:
        """Wait for ever: what happens to a lone broker's metadata it does itself."""
        await trio.sleep_forever()

    async def commit(self, before: Image, after: Image, changes: Sequence[Change]) -> int:
        """Append one line.

        Writing and forcing to disk are one step in one thread, so a cancellation comes before
        both or after both.
        """
        if self._broken:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._broken)
        if not self._disk.exists(self._path):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self._path} is not there any more")
        line = _write_line(after.version, changes)
        try:
            if self._flush:
                await self._disk.run_in_thread(self._append, line)
            else:
                self._append(line)
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self._path}: {error.strerror}"
            ) from error
        return after.version

    async def compact(self, image: Image) -> None:
        """Rewrite the file as one line, once it has grown much beyond that."""
        assert self._file is not None
        size = self._file.size
        if size < max(SUM_UP_FROM_BYTES, SUM_UP_GROWTH * self._first_line_size):
            return
        try:
            if self._flush:
                await self._disk.run_in_thread(self._rewrite, image)
            else:
                self._rewrite(image)
        except OSError as error:
            logger.warning("%s: could not be summed up: %s", self._path, error.strerror)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _append(self, line: bytes) -> None:
        """Append and force to disk, or leave the file as it was."""
        assert self._file is not None
        size = self._file.size
        try:
            self._file.append(line)
        except TornFile as error:
            self._break(error)
            raise
        if self._flush:
            try:
                self._file.sync()
                if not size:  # the file is new, and so is its name
                    self._disk.sync(os.path.dirname(self._path))
            except OSError:
                self._cut(size)
                raise
        if not size:
            self._first_line_size = len(line)

    def _rewrite(self, image: Image) -> None:
        line = _write_line(image.version, snapshot(image))
        self._disk.replace(self._path, line, sync=self._flush)
        old = self._file
        assert old is not None
        self._file = self._disk.open(self._path)
        self._first_line_size = len(line)
        old.close()

    def _cut(self, size: int) -> None:
        """Take back what was written; if even that fails, commit nothing more."""
        assert self._file is not None
        try:
            self._file.truncate(size)
        except OSError as error:
            self._break(error)

    def _break(self, error: OSError) -> None:
        self._broken = f"{self._path}: a failed write could not be taken back: {error.strerror}"
        logger.error("%s", self._broken)


def metadata_file(changes: Sequence[Change]) -> bytes:
    """Return a file of metadata that has one commit."""
    return _write_line(1, changes)


def _write_line(version: int, changes: Sequence[Change]) -> bytes:
    text = f'{{"version":{version},"changes":[{",".join(map(to_text, changes))}]}}'.encode()
    return b"%08x %s\n" % (crc32(text), text)


def _read_line(line: bytes) -> dict[str, Any] | None:
    """Return the commit in a line (without its end), None if the line is damaged."""
    checksum, text = line[:_CHECKSUM_DIGITS], line[_CHECKSUM_DIGITS + 1 :]
    if b"%08x" % crc32(text) != checksum:
        return None
    values = json.loads(text)
    assert isinstance(values, dict)
    return values
