"""All logs of a broker: directories, start and stop, creation and deletion.

What happens to them by itself in the course of time is in `housekeeping`.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from kafkalite.log.checkpoint import (
    CLEANER_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    PARTITION_METADATA_FILE,
    RECOVERY_POINT_FILE,
    format_uuid,
    read_partition_metadata,
    write_partition_metadata,
)
from kafkalite.log.directories import (
    LogDirectory,
    LogDirectoryError,
    name_as_stray,
    name_for_deletion,
)
from kafkalite.log.housekeeping import Housekeeping, HousekeepingSettings
from kafkalite.log.log import Log
from kafkalite.log.recovery import open_log
from kafkalite.types import ZERO_UUID, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkalite.clock import Clock
    from kafkalite.log.cleaner import CleaningStatistics
    from kafkalite.log.disk import Disk
    from kafkalite.log_config import LogConfig

__all__ = ["HousekeepingSettings", "LogDirectoryError", "LogManager"]

logger = logging.getLogger(__name__)

Progress = Callable[[int, int, TopicPartition], object]
"""Called with (logs opened, logs in all, the one just opened)."""


def _no_progress(*_: object) -> None:
    pass


class LogManager:
    """The logs of one broker, by partition.

    Order of use: `claim`, `load`, then `housekeeping` as a task beside everything else, `close`.

    Args:
        paths: of the log directories (`log.dirs`).
        disk: where they are.
        clock: for segments' ages and housekeeping.
        settings: of housekeeping.
        new_uuid: makes ids of clusters, directories and deleted partitions.

    Attributes:
        offline: partitions whose log could not be opened, and why; nor are they made anew.
        doubtful: partitions that may lack what was not flushed: the machine lost power.
    """

    def __init__(
        self,
        paths: Sequence[str],
        disk: "Disk",
        clock: "Clock",
        *,
        settings: HousekeepingSettings | None = None,
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        self.offline: dict[TopicPartition, str] = {}
        self.doubtful: set[TopicPartition] = set()
        self._disk = disk
        self._clock = clock
        self._new_uuid = new_uuid
        self._directories = [LogDirectory(disk, path.rstrip("/")) for path in paths]
        self._logs: dict[TopicPartition, Log] = {}
        self._directory_of: dict[TopicPartition, LogDirectory] = {}
        self._claimed_first: list[LogDirectory] = []
        self._closed = False
        self.keeper = Housekeeping(self, disk, clock, settings or HousekeepingSettings())

    # --- Starting --------------------------------------------------------------------------------

    def claim(self, *, node_id: int, cluster_id: str | None = None) -> str:
        """Lock the directories and give them this broker's name; return the cluster id.

        Args:
            node_id: of this broker.
            cluster_id: that it must belong to; None takes the directories' own, or makes one.

        Raises:
            LogDirectoryError: in use by another broker, or of another broker or cluster.
        """
        for directory in self._directories:
            directory.open()
        try:
            for directory in self._directories:
                found_cluster, found_node = directory.identity()
                if found_node not in (None, node_id):
                    raise LogDirectoryError(
                        f"log directory {directory.path} belongs to node.id {found_node}, "
                        f"this broker is node.id {node_id}"
                    )
                if cluster_id is None:
                    cluster_id = found_cluster
                elif found_cluster not in (None, cluster_id):
                    raise LogDirectoryError(
                        f"log directory {directory.path} belongs to cluster {found_cluster}, "
                        f"not to {cluster_id}"
                    )
            cluster_id = cluster_id or format_uuid(self._new_uuid())
            for directory in self._directories:
                if directory.identify(
                    cluster_id=cluster_id, node_id=node_id, new_uuid=self._new_uuid
                ):
                    self._claimed_first.append(directory)
        except LogDirectoryError:
            for directory in self._directories:
                directory.close()
            raise
        return cluster_id

    @property
    def has_metadata(self) -> bool:
        """As `LogDirectory.has_metadata`, of the first directory."""
        return self._directories[0].has_metadata

    def note_metadata(self) -> None:
        """Note it, if it can be written."""
        try:
            self._directories[0].note_metadata()
        except OSError as error:
            logger.warning("%s: %s", self._directories[0].path, error)

    def release_claim(self) -> None:
        """Take back what `claim` wrote into new directories, before anything else is there."""
        while self._claimed_first:
            self._claimed_first.pop().release_claim()

    def load(
        self,
        config_for: "Callable[[TopicPartition], LogConfig]",
        *,
        progress: Progress = _no_progress,
    ) -> list[Log]:
        """Open every log there is, repairing those that a crash has left; return them.

        Args:
            config_for: settings of a partition's topic.
            progress: see `Progress`.

        Raises:
            LogDirectoryError: a directory cannot be read, or two hold the same partition.
        """
        work = []
        for directory in self._directories:
            try:
                clean = directory.consume_clean_shutdown_marker()
                found, deleted = directory.partitions()
                if directory.take_power_loss(len(found)):
                    self.doubtful.update(each.topic_partition for each in found)
            except OSError as error:
                raise LogDirectoryError(f"log directory {directory.path}: {error}") from error
            work += [(directory, clean, each.topic_partition, each.path) for each in found]
            for path in deleted:
                self.keeper.remove_later([path], delay_ms=0)
        for count, (directory, clean, topic_partition, path) in enumerate(work):
            other = self._directory_of.get(topic_partition)
            if other is not None:
                raise LogDirectoryError(
                    f"{topic_partition} is in {other.path} and in {directory.path}; "
                    "move one of them out of log.dirs"
                )
            self._directory_of[topic_partition] = directory
            self._load_one(directory, topic_partition, path, config_for, clean=clean)
            progress(count + 1, len(work), topic_partition)
        return list(self._logs.values())

    def _load_one(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        path: str,
        config_for: "Callable[[TopicPartition], LogConfig]",
        *,
        clean: bool,
    ) -> None:
        try:
            topic_id = self._topic_id(path)
            log = self._open(
                topic_partition,
                path,
                topic_id,
                config_for(topic_partition),
                clean=clean,
                log_start_offset=directory.log_starts().get(topic_partition, 0),
                recovery_point=directory.recovery_points().get(topic_partition, 0),
            )
        except (OSError, KafkaError) as error:
            logger.warning("%s in %s is offline: %s", topic_partition, path, error)
            self.offline[topic_partition] = str(error)
        else:
            self._logs[topic_partition] = log
            self.keeper.on_opened(log)

    def _topic_id(self, path: str) -> UUID:
        """Return what `partition.metadata` says, ZERO_UUID if nothing that can be read.

        A power failure can tear a young partition's file; the cluster's metadata know the id, see
        `set_topic_id`. Raises OSError.
        """
        path = f"{path}/{PARTITION_METADATA_FILE}"
        try:
            return read_partition_metadata(self._disk, path) or ZERO_UUID
        except ValueError as error:
            logger.warning("%s: %s", path, error)
            return ZERO_UUID

    def _open(
        self,
        topic_partition: TopicPartition,
        path: str,
        topic_id: UUID,
        config: "LogConfig",
        *,
        clean: bool = True,
        log_start_offset: int = 0,
        recovery_point: int = 0,
    ) -> Log:
        state = open_log(
            self._disk,
            path,
            config,
            clean=clean,
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
            now_ms=self._clock.wall_ms(),
        )
        return Log(
            self._disk,
            path,
            topic_partition,
            topic_id,
            config,
            state,
            clock=self._clock,
            listener=self.keeper,
        )

    # --- Logs ------------------------------------------------------------------------------------

    def get(self, topic_partition: TopicPartition) -> Log | None:
        """Return a partition's log, None if it is not here (or `offline`)."""
        return self._logs.get(topic_partition)

    def logs(self) -> list[Log]:
        """Return all logs."""
        return list(self._logs.values())

    @property
    def clock(self) -> "Clock":
        """The clock that the logs go by."""
        return self._clock

    @property
    def paths(self) -> list[str]:
        """The log directories."""
        return [directory.path for directory in self._directories]

    def path_of(self, topic_partition: TopicPartition) -> str | None:
        """Return the log directory that a partition is in, None if it is not here."""
        home = self._directory_of.get(topic_partition)
        return None if home is None else home.path

    def usage(self, path: str) -> tuple[int, int]:
        """Return (total, free) bytes of a log directory's volume. Raises OSError."""
        return self._disk.usage(path)

    def create(self, topic_partition: TopicPartition, topic_id: UUID, config: "LogConfig") -> Log:
        """Make an empty log, in the directory with the fewest partitions.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR if the disk refuses, or there is a log that could not
                be opened.
        """
        assert topic_partition not in self._logs, topic_partition
        if topic_partition in self.offline:
            why = f"{topic_partition} is offline: {self.offline[topic_partition]}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, why)
        home = min(self._directories, key=self._count_in)
        path = f"{home.path}/{topic_partition}"
        is_made = False
        try:
            self._forget_checkpoints(home, topic_partition)
            # Whatever is there under this name, it is not this topic's, nor known to be deleted.
            if self._disk.exists(path):
                self._set_aside(home, topic_partition)
            is_made = True
            self._disk.make_directory(path)
            write_partition_metadata(
                self._disk, f"{path}/{PARTITION_METADATA_FILE}", topic_id, sync=False
            )
            log = self._open(topic_partition, path, topic_id, config)
        except OSError as error:
            if is_made:
                with suppress(OSError):
                    self._disk.remove(path)
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition} cannot be created: {error}"
            ) from error
        self._logs[topic_partition] = log
        self._directory_of[topic_partition] = home
        self.keeper.on_opened(log)
        return log

    def _count_in(self, directory: LogDirectory) -> int:
        if len(self._directories) == 1:
            return 0
        return sum(home is directory for home in self._directory_of.values())

    def _forget_checkpoints(self, home: LogDirectory, topic_partition: TopicPartition) -> None:
        """Remove what checkpoints say of a deleted partition of the same name. Raises OSError.

        Deletion leaves that to housekeeping, and a new log must not inherit it: a crash would then
        find data below a recovery point that they never reached.
        """
        if topic_partition in home.recovery_points() or topic_partition in home.log_starts():
            self.write_checkpoints(home, sync=False)
        if topic_partition in home.cleaner_offsets():
            offsets = {tp: at for tp, at in home.cleaner_offsets().items() if tp != topic_partition}
            home.write(CLEANER_FILE, offsets, sync=False)

    def delete(self, topic_partition: TopicPartition) -> None:
        """Delete a log: its name is free at once, its files go in `file.delete.delay.ms`.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; the log is offline then.
        """
        home = self._directory_of.get(topic_partition)
        if home is None:
            return
        log = self._give_up(topic_partition)
        delay_ms = 0 if log is None else log.config.file_delete_delay_ms
        try:
            self._rename_for_deletion(home, topic_partition, delay_ms=delay_ms)
        except OSError as error:
            raise self._stays(topic_partition, f"cannot be deleted: {error}") from error
        del self._directory_of[topic_partition]
        self.offline.pop(topic_partition, None)

    def rename_as_stray(self, topic_partition: TopicPartition) -> None:
        """Take a log out of use and keep it: its directory is renamed, as Kafka's stray ones are.

        For what nobody knows to be deleted. It is the operator's to remove, or to rename back.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR; the log is offline then.
        """
        home = self._directory_of.get(topic_partition)
        if home is None:
            return
        self._give_up(topic_partition)
        try:
            self._set_aside(home, topic_partition)
        except OSError as error:
            raise self._stays(topic_partition, f"cannot be set aside: {error}") from error
        del self._directory_of[topic_partition]
        self.offline.pop(topic_partition, None)

    def _set_aside(self, home: LogDirectory, topic_partition: TopicPartition) -> None:
        kept = f"{home.path}/{name_as_stray(topic_partition, self._new_uuid())}"
        self._disk.rename(f"{home.path}/{topic_partition}", kept)
        logger.warning("%s is of no topic that is known; it is kept as %s", topic_partition, kept)

    def _give_up(self, topic_partition: TopicPartition) -> Log | None:
        log = self._logs.pop(topic_partition, None)
        if log is not None:
            log.discard()
            self.keeper.on_closed(log)
        return log

    def _stays(self, topic_partition: TopicPartition, why: str) -> KafkaError:
        message = f"{topic_partition} {why}"
        self.offline[topic_partition] = message
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)

    def _rename_for_deletion(
        self, home: LogDirectory, topic_partition: TopicPartition, *, delay_ms: int
    ) -> None:
        """Rename a partition's directory, if there is one, and remove it later. Raises OSError."""
        target = f"{home.path}/{name_for_deletion(topic_partition, self._new_uuid())}"
        with suppress(FileNotFoundError):
            self._disk.rename(f"{home.path}/{topic_partition}", target)
            self.keeper.remove_later([target], delay_ms=delay_ms)

    def set_topic_id(self, topic_partition: TopicPartition, topic_id: UUID) -> None:
        """Give a log that has none (its `topic_id` is ZERO_UUID) the id of its topic.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
        """
        log = self._log(topic_partition)
        try:
            write_partition_metadata(
                self._disk, f"{log.directory}/{PARTITION_METADATA_FILE}", topic_id, sync=False
            )
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition}: topic id not written: {error}"
            ) from error
        log.topic_id = topic_id

    def update_config(self, topic_partition: TopicPartition, config: "LogConfig") -> None:
        """Follow a change of a topic's settings; nothing if the partition is not here."""
        log = self._logs.get(topic_partition)
        if log is not None:
            log.update_config(config)
            self.keeper.on_config_changed(log)

    # --- In the course of time -------------------------------------------------------------------

    @property
    def settings(self) -> HousekeepingSettings:
        """Of housekeeping; may be replaced while it runs."""
        return self.keeper.settings

    @settings.setter
    def settings(self, settings: HousekeepingSettings) -> None:
        self.keeper.settings = settings

    @property
    def bounds(self) -> "Callable[[Log], tuple[int, int]]":
        """Gives (high watermark, last stable offset) of a log, both exclusive.

        To be set where there are followers; until then both follow from the log alone.
        """
        return self.keeper.bounds

    @bounds.setter
    def bounds(self, bounds: "Callable[[Log], tuple[int, int]]") -> None:
        self.keeper.bounds = bounds

    @property
    def on_failed(self) -> "Callable[[Log], object]":
        """Called with each log that goes offline, in the midst of what failed."""
        return self.keeper.failed

    @on_failed.setter
    def on_failed(self, on_failed: "Callable[[Log], object]") -> None:
        self.keeper.failed = on_failed

    async def housekeeping(self) -> None:
        """Keep house (retention, compaction, flushes, checkpoints, removals) until cancelled."""
        await self.keeper.run()

    async def compact(self, topic_partition: TopicPartition) -> "CleaningStatistics | None":
        """Begin a new segment and compact all others now, however little dirt there is.

        Returns:
            What was done; None if nothing could be.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, or a damaged batch.
        """
        return await self.keeper.compact(self._log(topic_partition))

    def apply_retention(self, topic_partition: TopicPartition, now_ms: int) -> int:
        """Delete segments whose time has come; return how many. Raises as `Log`."""
        log = self._log(topic_partition)
        return log.apply_retention(now_ms, high_watermark=self.bounds(log)[0])

    def _log(self, topic_partition: TopicPartition) -> Log:
        log = self._logs.get(topic_partition)
        if log is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic_partition} is not on this broker"
            )
        return log

    # --- Checkpoints -----------------------------------------------------------------------------

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Return the high watermarks that were written last, for followers' start (rule 184)."""
        found: dict[TopicPartition, int] = {}
        for directory in self._directories:
            found.update(directory.high_watermarks())
        return found

    def write_high_watermarks(self, offsets: "Mapping[TopicPartition, int]") -> None:
        """Replace `replication-offset-checkpoint`. Raises OSError."""
        for directory in self._directories:
            directory.write(
                HIGH_WATERMARK_FILE,
                {each: offset for each, offset in offsets.items() if self._is_in(each, directory)},
                sync=False,
            )

    def write_all_checkpoints(self) -> list[str]:
        """Bring recovery points and log starts on disk up to date; return what is to be synced.

        Raises:
            OSError: a file cannot be written.
        """
        unsynced: list[str] = []
        if self._closed:  # what there is to say was said by `close`
            return unsynced
        for directory in self._directories:
            unsynced += self.write_checkpoints(directory, sync=False)
        return unsynced

    def write_checkpoints(self, directory: LogDirectory, *, sync: bool = True) -> list[str]:
        """Do that for one directory. Raises OSError."""
        # One that could not begin anew is offline too, and has no segment left.
        logs = [log for log in self._logs_in(directory) if len(log.segments)]
        points = {log.topic_partition: log.recovery_point_to_write for log in logs}
        starts = {
            log.topic_partition: log.log_start_offset
            for log in logs
            if log.log_start_offset > log.segments.first.base_offset
        }
        for tp, home in self._directory_of.items():  # others are kept for better days
            if home is directory and tp not in points:
                points[tp] = directory.recovery_points().get(tp, 0)
                if tp in directory.log_starts():
                    starts[tp] = directory.log_starts()[tp]
        unsynced = directory.write(RECOVERY_POINT_FILE, points, sync=sync)
        return unsynced + directory.write(LOG_START_FILE, starts, sync=sync)

    def written_recovery_point(self, log: Log) -> int:
        """Return what the checkpoint on disk says of a log."""
        return self._directory_of[log.topic_partition].recovery_points().get(log.topic_partition, 0)

    def write_checkpoints_of(self, log: Log) -> None:
        """Bring the checkpoints of a log's directory up to date. Raises OSError."""
        self.write_checkpoints(self._directory_of[log.topic_partition])

    def cleaner_offset(self, log: Log) -> int | None:
        """Return up to where a log was compacted (exclusive), None if it never was."""
        return self._directory_of[log.topic_partition].cleaner_offsets().get(log.topic_partition)

    def set_cleaner_offset(self, log: Log, offset: int) -> None:
        """Note up to where a log was compacted. Raises OSError."""
        home = self._directory_of[log.topic_partition]
        offsets = {tp: at for tp, at in home.cleaner_offsets().items() if self._is_in(tp, home)}
        offsets[log.topic_partition] = offset
        home.write(CLEANER_FILE, offsets, sync=False)

    def _is_in(self, topic_partition: TopicPartition, directory: LogDirectory) -> bool:
        return self._directory_of.get(topic_partition) is directory

    # --- Stopping --------------------------------------------------------------------------------

    def close(self, *, clean: bool = True) -> None:
        """Flush and close all logs and give the directories free. Blocks.

        Args:
            clean: leave `.kafka_cleanshutdown`, so that the next start need not recover. False
                leaves everything as a crash would.
        """
        for directory in self._directories:
            if clean:
                self._close_logs(directory)
            directory.close()
        for log in self._logs.values():
            log.discard()
        self._logs.clear()
        self._directory_of.clear()
        self._closed = True

    def _close_logs(self, directory: LogDirectory) -> None:
        is_clean = True
        for log in self._logs_in(directory):
            if log.failure is not None:
                is_clean = False
                continue
            try:
                log.close()
            except KafkaError as error:
                logger.warning("%s was not closed in order: %s", log.topic_partition, error)
                is_clean = False
        try:
            self.write_checkpoints(directory)
            if is_clean:
                directory.leave_clean_stop()
        except OSError as error:
            logger.warning("%s was not closed in order: %s", directory.path, error)

    def _logs_in(self, directory: LogDirectory) -> Iterable[Log]:
        return [log for tp, log in self._logs.items() if self._directory_of[tp] is directory]
