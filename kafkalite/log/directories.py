"""A log directory (`log.dirs`): its lock, its identity, its checkpoints, its partitions' names."""

import logging
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkalite.log.checkpoint import (
    CLEANER_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    META_PROPERTIES_FILE,
    RECOVERY_POINT_FILE,
    format_uuid,
    read_offsets,
    read_properties,
    write_offsets,
    write_properties,
)
from kafkalite.types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from kafkalite.log.disk import Disk, File

logger = logging.getLogger(__name__)

META_VERSIONS: Final = ("0", "1")
FORMAT_PROPERTY: Final = "kafkalite.format"
FORMAT: Final = 1
"""Version of what kafkalite adds to Kafka's files (decision 0161). Directories without it are of
version 0, which 0.1 wrote; they are laid out the same."""
METADATA_PROPERTY: Final = "kafkalite.metadata"
"""In `meta.properties` where there are metadata of a lone broker. Apache Kafka ignores it."""

LOCK_FILE: Final = ".lock"
BOOT_FILE: Final = "kafkalite-boot-id"
"""Has the id that the machine had when a broker ran here last."""
CLEAN_STOP_FILE: Final = ".kafka_cleanshutdown"
CLEAN_STOP: Final = b'{"version":0,"brokerEpoch":-1}'

DELETE_SUFFIX: Final = "-delete"
STRAY_SUFFIX: Final = "-stray"
IGNORED_SUFFIXES: Final = ("-future", STRAY_SUFFIX)
METADATA_LOG: Final = "__cluster_metadata"
"""A KRaft broker's own log of metadata, which is no topic."""
SECURE_FOLDER: Final = "secure"
"""What `serve --secure` makes beside the partitions (`security.development`)."""

NAME_MAX: Final = 255
"""Longest file name of common file systems."""

_PARTITION_NAME: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)")


class LogDirectoryError(Exception):
    """A log directory cannot be used; the message is for the operator."""


class PartitionDirectory(NamedTuple):
    """A partition's directory, by full path."""

    topic_partition: TopicPartition
    path: str


def partition_of(name: str) -> TopicPartition | None:
    """Return the partition whose directory has this name, None if it is no partition's."""
    match = _PARTITION_NAME.fullmatch(name)
    if match is None or match["topic"] == METADATA_LOG:
        return None
    return TopicPartition(match["topic"], int(match["partition"]))


def name_for_deletion(topic_partition: TopicPartition, unique: "UUID") -> str:
    """Return the name that a deleted partition's directory has until it is gone (rule 203)."""
    return _name_without_use(topic_partition, unique, DELETE_SUFFIX)


def name_as_stray(topic_partition: TopicPartition, unique: "UUID") -> str:
    """Return the name under which a directory is kept that is of no topic that is known."""
    return _name_without_use(topic_partition, unique, STRAY_SUFFIX)


def _name_without_use(topic_partition: TopicPartition, unique: "UUID", suffix: str) -> str:
    end = f"-{topic_partition.partition}.{unique.hex}{suffix}"
    return topic_partition.topic[: NAME_MAX - len(end)] + end


class LogDirectory:
    """One of the broker's log directories.

    Attributes:
        path: absolute.
        had_clean_stop: the last broker here stopped in order; known after
            `consume_clean_shutdown_marker`.
    """

    def __init__(self, disk: "Disk", path: str) -> None:
        self.path = path
        self.had_clean_stop = False
        self._disk = disk
        self._lock: File | None = None
        self._written: dict[str, dict[TopicPartition, int]] = {}

    # --- Ownership -------------------------------------------------------------------------------

    def open(self) -> None:
        """Make the directory if it is not there, and keep other brokers out of it.

        Raises:
            LogDirectoryError: another broker has it, or it cannot be made.
        """
        try:
            self._disk.make_directory(self.path)
            self._lock = self._disk.lock(f"{self.path}/{LOCK_FILE}")
        except BlockingIOError as error:
            raise LogDirectoryError(
                f"log directory {self.path} is used by another broker ({error.strerror})"
            ) from error
        except OSError as error:
            raise LogDirectoryError(f"log directory {self.path}: {error}") from error

    def close(self) -> None:
        """Let other brokers have it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def identity(self) -> tuple[str | None, int | None]:
        """Return (cluster id, node id) of `meta.properties`, None for what it does not say.

        Raises:
            LogDirectoryError: it cannot be read.
        """
        path = f"{self.path}/{META_PROPERTIES_FILE}"
        try:
            properties = read_properties(self._disk, path)
            version = properties.get("version", "0")
            if version not in META_VERSIONS:
                raise ValueError(f"version {version} is not known, {META_VERSIONS} are")
            if not properties and self._disk.exists(path):
                raise ValueError("it is empty; restore it, or remove it to have it made anew")
            if int(properties.get(FORMAT_PROPERTY, "0")) > FORMAT:
                raise ValueError(
                    f"{FORMAT_PROPERTY}={properties[FORMAT_PROPERTY]} was written by a later "
                    f"version of kafkalite, this one reads {FORMAT} and before"
                )
            node = properties.get("node.id", properties.get("broker.id"))
            return properties.get("cluster.id"), None if node is None else int(node)
        except (OSError, ValueError) as error:
            raise LogDirectoryError(f"{path}: {error}") from error

    def identify(self, *, cluster_id: str, node_id: int, new_uuid: "Callable[[], UUID]") -> bool:
        """Write `meta.properties` as a KRaft broker does; False where it was there already.

        There only the format is noted, if an earlier version or Apache Kafka wrote the file.
        """
        path = f"{self.path}/{META_PROPERTIES_FILE}"
        if self._disk.exists(path):
            self._note_format(path)
            return False
        if any(partition_of(entry.name) for entry in self._disk.list(self.path)):
            logger.warning(
                "%s has partitions and no %s; it is taken for node.id %d of cluster %s",
                self.path,
                META_PROPERTIES_FILE,
                node_id,
                cluster_id,
            )
        properties = {
            "version": "1",
            "cluster.id": cluster_id,
            "node.id": str(node_id),
            "directory.id": format_uuid(new_uuid()),
            FORMAT_PROPERTY: str(FORMAT),
        }
        try:
            write_properties(self._disk, path, properties)
        except OSError as error:
            raise LogDirectoryError(f"{path}: {error}") from error
        return True

    def _note_format(self, path: str) -> None:
        """Keep brokers of earlier formats out from now on, if it can be written."""
        try:
            properties = read_properties(self._disk, path)
            if int(properties.get(FORMAT_PROPERTY, "0")) < FORMAT:
                write_properties(self._disk, path, {**properties, FORMAT_PROPERTY: str(FORMAT)})
        except OSError as error:
            logger.warning("%s: the format's version cannot be noted: %s", path, error)

    @property
    def has_metadata(self) -> bool:
        """Whether a lone broker has written its metadata beside the logs."""
        return METADATA_PROPERTY in read_properties(
            self._disk, f"{self.path}/{META_PROPERTIES_FILE}"
        )

    def note_metadata(self) -> None:
        """Note that for the starts to come. Raises OSError."""
        path = f"{self.path}/{META_PROPERTIES_FILE}"
        properties = read_properties(self._disk, path)
        if METADATA_PROPERTY not in properties:
            write_properties(self._disk, path, {**properties, METADATA_PROPERTY: "true"})

    def release_claim(self) -> None:
        """Remove `meta.properties`: the directory is nobody's again."""
        self._disk.remove(f"{self.path}/{META_PROPERTIES_FILE}")

    # --- Stopping --------------------------------------------------------------------------------

    def consume_clean_shutdown_marker(self) -> bool:
        """Return whether the last stop was clean, and forget it: the next one may not be."""
        path = f"{self.path}/{CLEAN_STOP_FILE}"
        try:
            self._disk.read(path)
        except FileNotFoundError:
            self.had_clean_stop = False
        else:
            self._disk.remove(path)
            self.had_clean_stop = True
        return self.had_clean_stop

    def take_power_loss(self, partition_count: int) -> bool:
        """Return whether the machine may have lost power since a broker ran here last.

        Its boot id tells that from the end of the process alone, of which nothing is lost that was
        written. To be asked after `consume_clean_shutdown_marker`; the next start compares with
        this one.

        Raises:
            OSError: the disk fails.
        """
        path = f"{self.path}/{BOOT_FILE}"
        now = self._disk.boot_id().encode()
        try:
            before = self._disk.read(path)
        except FileNotFoundError:
            before = b""
        if before != now or not now:
            self._disk.replace(path, now)
        is_lost = bool(partition_count) and not self.had_clean_stop and (before != now or not now)
        if is_lost:
            logger.warning(
                "%s: the machine may have lost power while a broker ran here, and with it what "
                "was not flushed of %d partitions",
                self.path,
                partition_count,
            )
        return is_lost

    def leave_clean_stop(self) -> None:
        """Say that nothing here needs recovery."""
        self._disk.replace(f"{self.path}/{CLEAN_STOP_FILE}", CLEAN_STOP)

    # --- Partitions ------------------------------------------------------------------------------

    def partitions(self) -> tuple[list[PartitionDirectory], list[str]]:
        """Return the partitions' directories, and those of partitions being deleted."""
        found = []
        deleted = []
        for entry in self._disk.list(self.path):
            if not entry.is_directory:
                continue
            name = entry.name
            path = f"{self.path}/{name}"
            topic_partition = partition_of(name)
            if topic_partition is not None:
                found.append(PartitionDirectory(topic_partition, path))
            elif name.endswith(DELETE_SUFFIX):
                deleted.append(path)
            elif name != SECURE_FOLDER and not (
                name.endswith(IGNORED_SUFFIXES) or name.startswith(METADATA_LOG)
            ):
                logger.warning("%s is no partition's directory, it is left alone", path)
        return found, deleted

    # --- Checkpoints -----------------------------------------------------------------------------

    def recovery_points(self) -> dict[TopicPartition, int]:
        """Return what `recovery-point-offset-checkpoint` says."""
        return self._read(RECOVERY_POINT_FILE)

    def log_starts(self) -> dict[TopicPartition, int]:
        """Return what `log-start-offset-checkpoint` says."""
        return self._read(LOG_START_FILE)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Return what `replication-offset-checkpoint` says."""
        return self._read(HIGH_WATERMARK_FILE)

    def cleaner_offsets(self) -> dict[TopicPartition, int]:
        """Return what `cleaner-offset-checkpoint` says."""
        return self._read(CLEANER_FILE)

    def _read(self, name: str) -> dict[TopicPartition, int]:
        known = self._written.get(name)
        if known is not None:
            return known
        path = f"{self.path}/{name}"
        try:
            offsets = read_offsets(self._disk, path)
        except (OSError, ValueError) as error:
            # Each of them only saves work: recovery of all segments, deletion again.
            logger.warning("%s: %s; it is taken for empty", path, error)
            offsets = {}
        self._written[name] = offsets
        return offsets

    def write(
        self, name: str, offsets: "Mapping[TopicPartition, int]", *, sync: bool = True
    ) -> list[str]:
        """Replace a checkpoint, unless it says this already. Raises OSError.

        Returns:
            What is to be synced, if `sync` is False.
        """
        if self._written.get(name) == offsets:
            return []
        path = f"{self.path}/{name}"
        write_offsets(self._disk, path, offsets, sync=sync)
        self._written[name] = dict(offsets)
        return [] if sync else [path, self.path]
