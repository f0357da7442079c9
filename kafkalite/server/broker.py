"""A whole broker: the one place that knows every part of it.

Shutting down is leaving the nurseries in reverse order: clients first, then what serves them, then
the logs, which are flushed and marked as cleanly closed.
"""

import logging
import random
import tempfile
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import trio

from kafkalite.api import HANDLERS
from kafkalite.api.context import Services
from kafkalite.api.fetch_session import FetchSessions
from kafkalite.clock import Clock, SystemClock
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.group.settings import group_settings
from kafkalite.group.shard import GroupShards
from kafkalite.isr.replicas import ReplicaManager
from kafkalite.log.cleaner import CleanerSettings
from kafkalite.log.disk import OsDisk, allow_many_open_files
from kafkalite.log.housekeeping import HousekeepingSettings
from kafkalite.log.manager import LogManager
from kafkalite.meta.changes import PartitionsAdded, TopicCreated, TopicDeleted
from kafkalite.meta.found_logs import FoundLog
from kafkalite.meta.kraft import KraftMetadata, merge, read_kraft_metadata
from kafkalite.meta.local import METADATA_FILE, LocalStore
from kafkalite.meta.runner import MetadataRunner
from kafkalite.server.dispatch import Dispatcher
from kafkalite.server.listeners import BindError, ConnectionServer
from kafkalite.txn.coordinator import TransactionCoordinator
from kafkalite.txn.settings import transaction_settings
from kafkalite.txn.shard import TransactionShards
from kafkalite.types import INTERNAL_TOPICS, ZERO_UUID

if TYPE_CHECKING:
    from kafkalite.config import BrokerConfig
    from kafkalite.log.disk import Disk
    from kafkalite.log.log import Log
    from kafkalite.meta.image import Change, Image
    from kafkalite.meta.store import MetadataStore
    from kafkalite.server.network import Network

logger = logging.getLogger("kafkalite.server")


class Broker:
    """One broker process, or one broker inside another process.

        async with trio.open_nursery() as nursery:
            broker = await nursery.start(Broker(load_config()).run)
            print(broker.bootstrap)
            ...
            nursery.cancel_scope.cancel()

    Args:
        config: its settings.
        clock, network, disk, store: what a simulation puts in the place of the real ones.

    Attributes:
        services: the parts, for those who embed a broker; there once `run` has started.
        data_dirs: the log directories in use.
    """

    services: Services

    def __init__(
        self,
        config: "BrokerConfig",
        *,
        clock: Clock | None = None,
        network: "Network | None" = None,
        disk: "Disk | None" = None,
        store: "MetadataStore | None" = None,
    ) -> None:
        self.config = config
        self._network = network
        self._disk = disk
        self._store = store
        self.data_dirs: Sequence[str] = config.log_dirs
        self._clock = clock or SystemClock()
        self._connections: ConnectionServer
        self._ports: dict[str, int] = {}

    @property
    def bootstrap(self) -> str:
        """Host and port of the first listener, as clients take it for `bootstrap.servers`."""
        first = self.config.listeners[0]
        host, port = self.config.endpoints(self._ports)[first.name]
        if not host:
            host = "127.0.0.1" if first.host in ("", "0.0.0.0", "::") else first.host
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def dispatcher(self) -> Dispatcher:
        """The table of what is answered; there once `run` has started."""
        return self._dispatcher

    async def run(
        self, *, task_status: "trio.TaskStatus[Broker]" = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until cancelled, then stop cleanly.

        `task_status` is told when connections are accepted, and not before.

        Raises:
            LogDirectoryError, MetadataStoreError, BindError: the broker cannot start; each message
                is one line for the operator.
        """
        allow_many_open_files()
        if self.data_dirs:
            await self._run(task_status)
            return
        with tempfile.TemporaryDirectory(prefix="kafkalite-") as directory:
            self.data_dirs = (directory,)
            await self._run(task_status)

    async def _run(self, task_status: "trio.TaskStatus[Broker]") -> None:
        config, clock = self.config, self._clock
        disk = self._disk or OsDisk(syncs=config.bool("kafkalite.metadata.flush"))
        logs = LogManager(self.data_dirs, disk, clock, settings=_housekeeping(config))
        cluster_id = logs.claim(
            node_id=config.node_id, cluster_id=config.optional_str("kafkalite.cluster.id")
        )
        store = self._store or LocalStore(
            disk,
            f"{self.data_dirs[0]}/{METADATA_FILE}",
            flush=config.bool("kafkalite.metadata.flush"),
        )
        metadata = MetadataRunner(config, store, cluster_id=cluster_id)
        stopped_cleanly = True
        try:
            await metadata.load()
            logs.load(lambda tp: metadata.log_config(tp.topic), progress=_report_progress)
            found = map(_found, logs.logs())
            for stale in await metadata.adopt(found, partial(_kraft, disk, self.data_dirs)):
                logs.delete(stale)
            replicas = ReplicaManager(config.node_id, logs, config)
            groups = CoordinatorRuntime(
                [
                    GroupShards(group_settings(config)),
                    TransactionShards(transaction_settings(config)),
                ],
                clock,
                write_timeout_ms=config.int("offsets.commit.timeout.ms"),
                perform=lambda effect: transactions.perform(effect),
            )
            transactions = TransactionCoordinator(
                groups,
                clock,
                find_partition=replicas.find,
                exists=lambda tp: metadata.image.partition(*tp) is not None,
            )
            self.services = Services(
                config=config,
                clock=clock,
                logs=logs,
                metadata=metadata,
                replicas=replicas,
                groups=groups,
                transactions=transactions,
                fetch_sessions=FetchSessions(
                    max_sessions=config.int("max.incremental.fetch.session.cache.slots"),
                    first_id=random.randrange(1, 2**31),
                ),
                fetch_max_bytes=config.int("fetch.max.bytes"),
            )
            self._dispatcher = Dispatcher(HANDLERS)
            await self._serve(task_status)
        except BaseException as error:
            # After a bug nobody knows what the logs' memory is worth: the next start recovers.
            stopped_cleanly = isinstance(error, BindError) or _is_cancellation(error)
            raise
        finally:
            metadata.close()
            logs.close(clean=stopped_cleanly)

    async def _serve(self, task_status: "trio.TaskStatus[Broker]") -> None:
        services = self.services
        connections = ConnectionServer(services, self._dispatcher, network=self._network)
        self._ports = await connections.bind(self.config.listeners)
        try:
            await self._serve_on(connections, task_status)
        finally:
            connections.close()

    async def _serve_on(
        self, connections: ConnectionServer, task_status: "trio.TaskStatus[Broker]"
    ) -> None:
        services = self.services
        await services.metadata.register(self._ports)
        services.replicas.load(services.metadata.image)
        services.metadata.subscribe(self._on_changes)
        self._lead(services.metadata.image, sorted(INTERNAL_TOPICS))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(services.logs.housekeeping)
            await nursery.start(services.groups.run)
            await nursery.start(services.transactions.run)
            async with trio.open_nursery() as clients:
                await clients.start(connections.run)
                task_status.started(self)

    def _on_changes(self, changes: "Sequence[Change]", image: "Image") -> None:
        """Pass a commit on: logs first, then the coordinators that write to them."""
        self.services.replicas.on_changes(changes, image)
        moved = [
            change.name
            for change in changes
            if isinstance(change, TopicCreated | TopicDeleted | PartitionsAdded)
        ]
        self._lead(image, moved)
        deleted = [change.name for change in changes if isinstance(change, TopicDeleted)]
        if deleted:
            self.services.groups.on_topics_deleted(deleted)

    def _lead(self, image: "Image", topics: Sequence[str]) -> None:
        """Tell the coordinators which partitions of their internal topics are led here."""
        groups = self.services.groups
        for name in topics:
            if groups.coordinates(name):
                topic = image.topics.get(name)
                count = 0 if topic is None else len(topic.partitions)
                groups.set_leaderships(name, count, self.services.replicas.partitions_of(name))


def _is_cancellation(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1] is None
    return isinstance(error, trio.Cancelled)


def _kraft(disk: "Disk", directories: Sequence[str]) -> KraftMetadata:
    """Read what Apache Kafka knew of the topics whose directories it left here."""
    return merge(read_kraft_metadata(disk, directory) for directory in directories)


def _found(log: "Log") -> FoundLog:
    producer_ids = [producer.producer_id for producer in log.producers]
    return FoundLog(
        topic_partition=log.topic_partition,
        topic_id=None if log.topic_id == ZERO_UUID else log.topic_id,
        leader_epoch=log.leader_epoch,
        next_producer_id=max(producer_ids, default=-1) + 1,
    )


def _report_progress(count: int, total: int, topic_partition: object) -> None:
    if count == total or count % 1_000 == 0:
        logger.info("opened %d of %d logs, last %s", count, total, topic_partition)


def _housekeeping(config: "BrokerConfig") -> HousekeepingSettings:
    return HousekeepingSettings(
        initial_task_delay_ms=config.int("log.initial.task.delay.ms"),
        retention_check_interval_ms=config.int("log.retention.check.interval.ms"),
        flush_offset_checkpoint_interval_ms=config.int("log.flush.offset.checkpoint.interval.ms"),
        flush_start_offset_checkpoint_interval_ms=config.int(
            "log.flush.start.offset.checkpoint.interval.ms"
        ),
        producer_id_expiration_ms=config.int("producer.id.expiration.ms"),
        producer_id_expiration_check_interval_ms=config.int(
            "producer.id.expiration.check.interval.ms"
        ),
        cleaner_enable=config.bool("log.cleaner.enable"),
        cleaner_backoff_ms=config.int("log.cleaner.backoff.ms"),
        cleaner=CleanerSettings(
            dedupe_buffer_size=config.int("log.cleaner.dedupe.buffer.size"),
            io_buffer_load_factor=config.float("log.cleaner.io.buffer.load.factor"),
            io_max_bytes_per_second=config.float("log.cleaner.io.max.bytes.per.second"),
        ),
    )
