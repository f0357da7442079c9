"""A broker's life: start, serve, hand over, stop.

Shutting down is leaving the nurseries in reverse order: clients first, then what serves them, then
the logs, which are flushed and marked as cleanly closed.
"""

import contextlib
import logging
import os
import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

import trio

from kafkalite.api import HANDLERS
from kafkalite.api.context import Services
from kafkalite.clock import Clock, SystemClock
from kafkalite.faults.parts import Control, parse_peers
from kafkalite.http.port import HttpPort, parse_http_address
from kafkalite.isr.replicas import ReplicaManager
from kafkalite.log.checkpoint import format_uuid
from kafkalite.log.directories import METADATA_PROPERTY
from kafkalite.log.disk import (
    LOW_LIMIT,
    SLOW_APPEND_MS,
    OsDisk,
    allow_many_open_files,
    files_for_logs,
    reserved_files,
)
from kafkalite.log.manager import LogManager
from kafkalite.meta.changes import (
    ConfigsChanged,
    ImageReplaced,
    LeaderEpochsRaised,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from kafkalite.meta.events import SweepDelegationTokens
from kafkalite.meta.image import Image
from kafkalite.meta.kraft import KraftMetadata, merge, read_kraft_metadata
from kafkalite.meta.local import METADATA_FILE
from kafkalite.meta.log_import import FoundLog, import_logs, stale_logs, stray_logs
from kafkalite.meta.runner import MetadataRunner
from kafkalite.meta.store import MetadataStoreError
from kafkalite.network.dispatch import Dispatcher
from kafkalite.network.listeners import BindError, ConnectionServer
from kafkalite.network.sockets import Network, SocketSettings, TcpNetwork
from kafkalite.server import composition
from kafkalite.server.pattern_resolver import PatternResolver
from kafkalite.server.quotas import QuotaSwitch
from kafkalite.settings.config_def import SettingError
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.controlled_shutdown import (
    CONTROLLED_SHUTDOWN,
    ControlledShutdownRequest,
)

if TYPE_CHECKING:
    from kafkalite.config import BrokerConfig
    from kafkalite.log.disk import Disk
    from kafkalite.log.log import Log
    from kafkalite.meta.image import Change
    from kafkalite.meta.store import MetadataStore
    from kafkalite.observe.requests import Requests

logger = logging.getLogger("kafkalite.server")

HAND_OVER_TRIALS: Final = 3
HAND_OVER_TIMEOUT_MS: Final = 5_000
HAND_OVER_BACKOFF_S: Final = 0.5
"""A broker that stops asks so often, and waits so long each time, for others to take over."""

OFFLINE_RETRY_S: Final = 5.0
"""Pause before a lone broker tries again to make the logs that its disk refused."""


class Broker:
    """One broker process, or one broker inside another process.

        async with trio.open_nursery() as nursery:
            broker = await nursery.start(Broker(load_config()).run)
            print(broker.bootstrap)
            ...
            nursery.cancel_scope.cancel()

    Args:
        config: its settings.
        clock, network, disk, store, entropy: what a simulation puts in the place of the machine's
            clocks, sockets and files, the place of metadata that the settings name, and chance.

    Attributes:
        services: the parts, for those who embed a broker; there once `run` has started.
        connections: those of clients; there once `run` has started.
        data_dirs: the log directories in use.
        control: its fault rules and its clock.
    """

    services: Services
    connections: ConnectionServer

    def __init__(
        self,
        config: "BrokerConfig",
        *,
        clock: Clock | None = None,
        network: Network | None = None,
        disk: "Disk | None" = None,
        store: "MetadataStore | None" = None,
        entropy: random.Random | None = None,
    ) -> None:
        self.config = config
        self.data_dirs: Sequence[str] = config.log_dirs
        self._clock = clock or SystemClock()
        self._network = network or TcpNetwork(SocketSettings.of(config))
        self._disk = disk or OsDisk(syncs=config.bool("kafkalite.metadata.flush"))
        self._store = store
        self._entropy = entropy or random.Random()
        self._cluster: composition.ClusterParts | None = None
        self._ports: dict[str, int] = {}
        self._http: HttpPort | None = None
        self._requests: Requests | None = None
        self._http_token = config.optional_str("kafkalite.http.token")
        self.control = Control(
            lambda: self.services.metadata.image,
            lambda: self._dispatcher,
            self._clock,
            self._disk,
            is_allowed=config.bool("kafkalite.control"),
            peers=parse_peers(config.list("kafkalite.control.peers")),
        )
        self._image = Image()
        self._patterns = PatternResolver(self._clock)

    @property
    def bootstrap(self) -> str:
        """Host and port of the first listener, as clients take it for `bootstrap.servers`."""
        return self.bootstrap_for(self.config.listeners[0].name)

    def bootstrap_for(self, listener: str) -> str:
        """Return the same of a listener, by its name."""
        first = next(one for one in self.config.listeners if one.name == listener)
        host, port = self.config.endpoints(self._ports)[first.name]
        if not host:
            host = "127.0.0.1" if first.host in ("", "0.0.0.0", "::") else first.host
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def http_url(self) -> str | None:
        """URL of this broker for a browser, None without an HTTP port.

        A token that was made up at the start is part of it.
        """
        if self._http is None:
            return None
        if self._http_token and self.config.optional_str("kafkalite.http.token") is None:
            return f"{self._http.url}/?token={self._http_token}"
        return self._http.url

    @property
    def dispatcher(self) -> Dispatcher:
        """The table of what is answered; there once `run` has started."""
        return self._dispatcher

    def observe_requests(self) -> "Requests":
        """Count requests and keep the latest from now on; return what does (decision 0131)."""
        if self._requests is None:
            self._requests = composition.request_observer(self.config)
            self._requests.watch(self._dispatcher)
            if isinstance(self._network, TcpNetwork):
                self._network.on_pause(self._requests.on_pause)
        return self._requests

    async def run(
        self, *, task_status: "trio.TaskStatus[Broker]" = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until cancelled, then stop cleanly.

        `task_status` is told when connections are accepted, and not before.

        Raises:
            LogDirectoryError, MetadataStoreError, BindError: the broker cannot start, or was
                declared dead and replaced; each message is one line for the operator.
        """
        self._limit_open_files(allow_many_open_files())
        if self.data_dirs:
            await self._run(task_status)
            return
        with tempfile.TemporaryDirectory(prefix="kafkalite-") as directory:
            self.data_dirs = (directory,)
            await self._run(task_status)

    def _limit_open_files(self, limit: int) -> None:
        """Divide the process's descriptors among logs and clients, and tell how many there are."""
        self._disk.open_files.limit = files_for_logs(limit)
        logger.log(
            logging.WARNING if limit < LOW_LIMIT else logging.INFO,
            "this process may have %d files open (ulimit -n): logs hold up to %d of them, clients "
            "are accepted up to %d",
            limit,
            self._disk.open_files.limit,
            limit - reserved_files(limit),
        )

    async def _run(self, task_status: "trio.TaskStatus[Broker]") -> None:
        config, clock = self.config, self._clock
        new_uuid = composition.new_uuid_from(self._entropy)
        logs = LogManager(
            self.data_dirs,
            self._disk,
            clock,
            settings=composition.housekeeping_settings(config),
            new_uuid=new_uuid,
        )
        store = self._store or composition.metadata_store(
            config, clock, self._disk, directory=self.data_dirs[0]
        )
        is_loaded = stopped_cleanly = False
        try:
            cluster_id = await self._claim(logs, store, format_uuid(new_uuid()))
            metadata = MetadataRunner(config, store, cluster_id=cluster_id, new_uuid=new_uuid)
            await self._load(metadata, logs, store, new_uuid)
            is_loaded = True
            replicas = ReplicaManager(config.node_id, logs, config)
            if store.shared:
                self._cluster = composition.cluster_parts(
                    config,
                    clock,
                    self._network,
                    metadata=metadata,
                    replicas=replicas,
                    session=getattr(store, "session", None),
                )
            self.services = composition.services(
                config,
                clock,
                self._entropy,
                logs=logs,
                metadata=metadata,
                replicas=replicas,
                patterns=self._patterns,
                cluster=self._cluster,
            )
            forward = None if self._cluster is None else self._cluster.forwarder
            self._dispatcher = Dispatcher(
                find=HANDLERS.get,
                forward=forward,
                authorize=composition.authorize(self.services, self._patterns),
            )
            await self._serve(task_status)
        except BaseException as error:
            # After a bug nobody knows what the logs' memory is worth: the next start recovers.
            expected = isinstance(error, BindError | SettingError) or _is_cancellation(error)
            stopped_cleanly = is_loaded and expected
            raise
        finally:
            store.close()
            logs.close(clean=stopped_cleanly)
            self._report_stalls()

    def _report_stalls(self) -> None:
        """Tell of appends that held everybody up: the disk, or memory to write to, is short."""
        stalls = self._disk.statistics() if isinstance(self._disk, OsDisk) else {}
        if stalls.get("append_stalls"):
            logger.info(
                "%d appends took longer than %d ms, the longest %d ms",
                stalls["append_stalls"],
                SLOW_APPEND_MS,
                stalls["append_stall_ms_max"],
            )

    async def _claim(self, logs: LogManager, store: "MetadataStore", new_id: str) -> str:
        """Find out which cluster this is, and take the directories for it; return its id."""
        await store.open()
        wanted = self.config.optional_str("kafkalite.cluster.id")
        if store.shared:
            cluster_id = await store.cluster_id(wanted or new_id)
            if wanted not in (None, cluster_id):
                raise MetadataStoreError(
                    f"kafkalite.cluster.id is {wanted}, the cluster at zookeeper.connect is "
                    f"{cluster_id}"
                )
            wanted = cluster_id
        return logs.claim(node_id=self.config.node_id, cluster_id=wanted)

    async def _load(
        self,
        metadata: MetadataRunner,
        logs: LogManager,
        store: "MetadataStore",
        new_uuid: Callable[[], UUID],
    ) -> None:
        """Take up metadata and logs, and make them agree.

        Raises:
            MetadataStoreError: metadata are missing that were there, or cannot be stored.
        """
        await metadata.load()
        logs.load(lambda tp: metadata.log_config(tp.topic), progress=_report_progress)
        found = [_found(log) for log in logs.logs()]
        is_new = not store.shared and not metadata.image.version
        if found and is_new and logs.has_metadata:
            raise MetadataStoreError(
                f"{self.data_dirs[0]}/{METADATA_FILE} is missing or empty, and there are "
                f"{len(found)} logs; restore it, or remove the line {METADATA_PROPERTY} from "
                "meta.properties: topics are then found by their directories, and their settings "
                "are lost"
            )
        if store.shared:
            stale = stale_logs(found, metadata.image, broker_id=self.config.node_id)
        else:
            stale = await import_logs(
                found,
                metadata.image,
                self.config,
                partial(_kraft, self._disk, self.data_dirs),
                new_uuid=new_uuid,
                submit=metadata.submit_all,
            )
        for topic_partition in stale:
            logs.delete(topic_partition)
        for stray in stray_logs(found, metadata.image):
            logs.rename_as_stray(stray)

    async def _serve(self, task_status: "trio.TaskStatus[Broker]") -> None:
        """Serve until cancelled; meanwhile everything runs on until others have taken over."""
        self.connections = connections = ConnectionServer(
            self.services,
            self._dispatcher,
            network=self._network,
            is_alone=self._cluster is None,
        )
        self.services.metadata.subscribe(
            QuotaSwitch(self.services, self._dispatcher, connections).on_changes
        )
        self._ports = await connections.bind(self.config.listeners)
        try:
            self._http = await self._bind_http(connections)
            async with trio.open_nursery() as outside:
                with trio.CancelScope(shield=True) as inside:
                    outside.start_soon(self._stop_when_cancelled, inside)
                    async with trio.open_nursery() as nursery:
                        await self._start(nursery, connections)
                        task_status.started(self)
                outside.cancel_scope.cancel()
        finally:
            connections.close()
            if self._http is not None:
                self._http.close()
            if self._cluster is not None:
                self._cluster.peers.close()

    @property
    def _lets_everybody_in(self) -> bool:
        """Whether who comes in by some listener may do all that can be done by HTTP (rule 580)."""
        is_open = any(listener.protocol == "PLAINTEXT" for listener in self.config.listeners)
        return is_open and self.services.authorizer is None

    async def _bind_http(self, connections: ConnectionServer) -> HttpPort | None:
        """Take the port for browsers and scrapers, if there is to be one."""
        config = self.config
        is_ephemeral = config.listeners[0].port == 0
        address = parse_http_address(
            config.str("kafkalite.http.listener"), is_ephemeral=is_ephemeral
        )
        if address is None:
            return None
        is_for_everybody = address.is_loopback and self._lets_everybody_in
        if not is_for_everybody and self._http_token is None:
            self._http_token = os.urandom(16).hex()
        requests = self.observe_requests()
        port = HttpPort(
            address,
            module="kafkalite.observe.serving",
            make_server=lambda: composition.http_server(
                self.services,
                self._dispatcher,
                connections,
                self._cluster,
                requests=requests,
                ports=self._ports,
                bootstrap=self.bootstrap,
                token=self._http_token,
                control=self.control,
            ),
        )
        await port.bind()
        return port

    async def _start(self, nursery: trio.Nursery, connections: ConnectionServer) -> None:
        """Join the cluster, take up the roles it gives, and accept clients."""
        services, cluster = self.services, self._cluster
        metadata = services.metadata
        if cluster is not None:
            for subscriber in cluster.subscribers:
                metadata.subscribe(subscriber)
        await nursery.start(metadata.run)
        try:
            await metadata.register(self._ports)
        except BaseException:
            if cluster is not None:
                # Where the id is taken, the next start may have these directories by another.
                services.logs.release_claim()
            raise
        if cluster is None:
            services.logs.note_metadata()
        # From here on nothing waits until all parts know where the cluster stands.
        services.replicas.load(metadata.image)
        metadata.subscribe(self._on_changes)
        nursery.start_soon(self._make_logs)
        services.replicas.on_taken_up = lambda topics: self._lead(metadata.image, topics)
        self._image = metadata.image
        services.group_metadata.update(metadata.image)
        self._lead(metadata.image, services.coordinators.topics)
        is_read_only = self.config.bool("kafkalite.read.only")
        if not is_read_only:  # what is old is to be seen, too
            nursery.start_soon(services.logs.housekeeping)
        nursery.start_soon(services.background_topics.run)
        if services.tokens is not None:
            nursery.start_soon(self._sweep_tokens)
        await nursery.start(services.coordinators.run)
        if not is_read_only:
            await nursery.start(services.transactions.run)
        nursery.start_soon(services.share_on_demand.run)
        nursery.start_soon(self._patterns.run)
        if cluster is not None:
            await nursery.start(cluster.isr_keeper.run)
            await nursery.start(cluster.fetchers.run)
        else:
            nursery.start_soon(self._retry_offline)
        await nursery.start(connections.run)
        if self._http is not None:
            await nursery.start(self._http.run)

    async def _make_logs(self) -> None:
        """Make the logs of many new partitions, a few at a time (rule 251)."""
        replicas = self.services.replicas
        while True:
            unopened = trio.Event()
            replicas.on_unopened = unopened.set
            while replicas.open_some():
                await trio.lowlevel.checkpoint()
            await unopened.wait()

    async def _sweep_tokens(self) -> None:
        """Remove delegation tokens that have ended, while this broker decides (rule 576)."""
        services = self.services
        interval_s = self.config.int("delegation.token.expiry.check.interval.ms") / 1_000
        while True:
            await trio.sleep(interval_s)
            if services.metadata.is_controller:
                with contextlib.suppress(KafkaError):  # another decides now, and does the same
                    event = SweepDelegationTokens(now_ms=services.clock.wall_ms())
                    await services.metadata.submit(event)

    async def _retry_offline(self) -> None:
        """Do on a lone broker what the keeper of the ISRs does in a cluster."""
        while True:
            await trio.sleep(OFFLINE_RETRY_S)
            self.services.replicas.retry_offline()

    async def _stop_when_cancelled(self, inside: trio.CancelScope) -> None:
        try:
            await trio.sleep_forever()
        finally:
            if not inside.cancel_called:
                with trio.CancelScope(shield=True):
                    await self._hand_over()
                inside.cancel()

    async def _hand_over(self) -> None:
        """Have others lead what this broker leads, so that clients notice little (rule 182)."""
        cluster, metadata = self._cluster, self.services.metadata
        if (
            cluster is None
            or metadata.broker_epoch < 0
            or not self.config.bool("controlled.shutdown.enable")
        ):
            return
        request = ControlledShutdownRequest(
            broker_id=self.config.node_id, broker_epoch=metadata.broker_epoch
        )
        metadata.leave()
        for trial in range(HAND_OVER_TRIALS):
            try:
                answer = await cluster.controller.request(
                    CONTROLLED_SHUTDOWN, request, timeout_ms=HAND_OVER_TIMEOUT_MS
                )
            except KafkaError as error:
                logger.warning("nobody took over what this broker leads: %s", error)
                return
            if answer.error_code != ErrorCode.NONE:
                logger.warning(
                    "the controller refused a shutdown: %s", ErrorCode(answer.error_code).name
                )
            elif not answer.remaining_partitions:
                return
            if trial + 1 < HAND_OVER_TRIALS:
                await trio.sleep(HAND_OVER_BACKOFF_S)
        logger.warning("stopping as leader of partitions that no other broker can lead")

    def _on_changes(self, changes: "Sequence[Change]", image: "Image") -> None:
        """Pass a commit on: logs first, then the coordinators that write to them."""
        services = self.services
        touched = _topics_touched(changes, self.services.coordinators.topics)
        is_new = any(isinstance(change, ImageReplaced) for change in changes)
        reshaped = services.group_metadata.update(image, None if is_new else touched)
        services.replicas.on_changes(changes, image)
        self._lead(image, touched)
        if reshaped:
            services.coordinators.on_topics_changed(reshaped)
        before, self._image = self._image, image
        if any(isinstance(change, ConfigsChanged | ImageReplaced) for change in changes):
            self.services.logs.settings = composition.housekeeping_settings(self.services.config)
        if any(isinstance(change, TopicDeleted | ImageReplaced) for change in changes):
            self.services.coordinators.on_topics_deleted(_deleted_between(before, image))

    def _lead(self, image: "Image", topics: Iterable[str]) -> None:
        """Tell the coordinators which partitions of their internal topics are led here."""
        groups = self.services.coordinators
        for name in sorted(topics):
            if groups.coordinates(name):
                topic = image.topics.get(name)
                count = 0 if topic is None else len(topic.partitions)
                groups.set_leaderships(name, count, self.services.replicas.partitions_of(name))


def _deleted_between(before: "Image", after: "Image") -> list[str]:
    """Return the names of topics that are gone, also of those whose name has another one by now."""
    return sorted(
        name
        for name, topic in before.topics.items()
        if name not in after.topics or after.topics[name].topic_id != topic.topic_id
    )


def _topics_touched(changes: "Sequence[Change]", coordinated: Iterable[str]) -> Iterable[str]:
    """Return the names of topics whose leaders may be others now; those of shards in doubt."""
    names: set[str] = set()
    for change in changes:
        match change:
            case TopicCreated() | TopicDeleted() | PartitionsAdded() | PartitionChanged():
                names.add(change.name)
            case LeaderEpochsRaised() | ImageReplaced():
                names.update(coordinated)
            case _:
                pass
    return names


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
