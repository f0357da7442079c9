"""The one way in which metadata change: decide, commit, apply, tell the subscribers.

Also on a lone broker, and one event after another, so that there is one path to test. In a cluster
only the controller decides and commits; the others apply what it committed.
"""

import logging
import math
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID, uuid4

import trio

from kafkalite.config import BrokerConfig
from kafkalite.config.listeners import with_hosts
from kafkalite.log_config import LogConfig
from kafkalite.meta.batch_decide import Decision, batch_decide, new_addresses, slices
from kafkalite.meta.bisect_commit import commit_by_topic, with_failure
from kafkalite.meta.changes import (
    BROKER_RESOURCE,
    Change,
    ConfigsChanged,
    ImageReplaced,
    ProducerIdsAllocated,
)
from kafkalite.meta.controller import check_partition_count
from kafkalite.meta.controller_loop import ControllerLoop
from kafkalite.meta.controller_requests import create_topics, producer_id_block
from kafkalite.meta.events import (
    AllocateProducerIds,
    CreateTopic,
    Event,
    FinishReassignments,
    RegisterBroker,
)
from kafkalite.meta.found_logs import FoundLog, adopt, is_stray, stale_logs
from kafkalite.meta.image import BrokerImage, ConfigResource, Image, TopicImage
from kafkalite.meta.kraft import KraftMetadata
from kafkalite.meta.names import refusal_of_name
from kafkalite.meta.peers import ControllerChannel
from kafkalite.meta.producer_ids import ProducerIds
from kafkalite.meta.store import (
    CommitEvent,
    ControllerChanged,
    FellBehind,
    LiveBrokers,
    MetadataStore,
    MetadataStoreError,
    OutcomeUnknown,
    ReadOthers,
    SessionLost,
    SessionResumed,
    SessionSuspended,
    StoreConflict,
    StoreEvent,
    WrittenByOthers,
)
from kafkalite.meta.topic_defaults import default_topic
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger("kafkalite.meta")

Subscriber = Callable[[Sequence[Change], Image], None]

RETRY_S = 0.2
"""Pause before the store is asked again after it could not be reached."""


class MetadataRunner:
    """Holds the image, and changes it.

    Args:
        config: the broker's settings, which take up what is changed of them.
        store: where commits go.
        cluster_id: of this cluster.
        new_uuid: makes topic ids.
    """

    def __init__(
        self,
        config: BrokerConfig,
        store: MetadataStore,
        *,
        cluster_id: str,
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        self._config = config
        self._store = store
        self._new_uuid = new_uuid
        self._broker_id = config.node_id
        self._image = Image(cluster_id=cluster_id)
        self._subscribers: list[Subscriber] = []
        self._bound_ports: Mapping[str, int] = {}
        self._channel: ControllerChannel | None = None
        self._changing = trio.Lock()
        self._changed = trio.Event()
        self._producer_ids = ProducerIds(self._producer_id_block)
        # The epoch in which this broker is controller, None while it is not.
        self._own_epoch: int | None = None
        self._broker_epoch = -1
        self._suspended = False
        self._is_leaving = False
        # Whether the store may have commits that the image lacks and no event will tell of.
        self._behind = False
        self._session = 0
        self._loop = ControllerLoop(self, config)

    # --- What is known ---------------------------------------------------------------------------

    @property
    def image(self) -> Image:
        """Metadata as they are now."""
        return self._image

    @property
    def is_controller(self) -> bool:
        """Whether this broker decides, as far as it knows; always on a lone broker."""
        return self._own_epoch is not None and not self._suspended

    @property
    def broker_epoch(self) -> int:
        """Number of this broker's registration, -1 if it has none; always -1 on a lone broker."""
        return self._broker_epoch

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(changes, image)` after each commit, before who asked for it goes on.

        Without changes, only the controller is another. Returns a function that ends this.
        """
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    async def wait_until(self, predicate: Callable[[Image], bool]) -> Image:
        """Return the first image, beginning with the present one, that satisfies a predicate.

        It waits as long as that takes: who calls knows what to do after some time.
        """
        while not predicate(self._image):
            await self._changed.wait()
        return self._image

    def log_config(self, topic: str) -> LogConfig:
        """Return the settings of a topic's logs; the broker's defaults for an unknown topic."""
        known = self._image.topics.get(topic)
        return self._config.log_config(None if known is None else known.configs)

    # --- Life ------------------------------------------------------------------------------------

    def use_channel(self, channel: ControllerChannel) -> None:
        """Ask the controller by this when it is another broker."""
        self._channel = channel

    async def load(self) -> Image:
        """Return the image of what was committed before. Raises MetadataStoreError."""
        async with self._changing:
            try:
                await self._catch_up(known_version=-1)
                if not self._store.shared:
                    self._become_controller(await self._store.campaign())
            except KafkaError as error:
                raise MetadataStoreError(error.message) from error
        return self._image

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the store until cancelled, and be the controller whenever nobody else is.

        Raises:
            MetadataStoreError: the session was lost, and now another broker has this one's id.
        """
        async with trio.open_nursery() as nursery:
            if self._store.shared:
                nursery.start_soon(self._loop.run)
                nursery.start_soon(self._loop.rebalance)
            task_status.started()
            await self._follow()

    async def register(self, bound_ports: Mapping[str, int]) -> None:
        """Tell the cluster that this broker is there, listening on these ports by listener.

        In a cluster, `run` has to run: this returns when the controller has seen it.

        Raises:
            BrokerIdTaken: another broker lives under this id.
        """
        self._bound_ports = bound_ports
        if not self._store.shared:
            own = self._own_broker()
            await self.submit(
                RegisterBroker(broker_id=own.broker_id, endpoints=own.endpoints, rack=own.rack)
            )
            return
        with suppress(KafkaError):  # the store is away for a moment; the loop tries again
            await self.renew_registration()
        self._loop.wake()
        await self.wait_until(
            lambda image: (
                (known := image.brokers.get(self._broker_id)) is not None
                and known.broker_epoch == self._broker_epoch
            )
        )

    def leave(self) -> None:
        """Register no more and become controller no more: this broker is about to stop."""
        self._is_leaving = True

    # --- Changes ---------------------------------------------------------------------------------

    async def submit(self, event: Event) -> list[Change]:
        """Make happen what an event asks for; return what changed.

        Raises:
            KafkaError: it was refused, or could not be stored. Nothing changed. NOT_CONTROLLER also
                stands for an outcome that is not known.
        """
        (result,) = await self.submit_all([event])
        if isinstance(result, KafkaError):
            raise result
        return result

    async def submit_all(self, events: Iterable[Event]) -> list[list[Change] | KafkaError]:
        """Make several events happen, in order; with one commit if they are not very many.

        Returns, for each, what changed or why it was refused; a refusal does not touch the others.

        Raises:
            KafkaError: NOT_CONTROLLER, this broker has nothing to decide.
        """
        parts = slices(events)
        return [result for part in parts for result in await self._submit_together(part)]

    async def _submit_together(self, events: Iterable[Event]) -> list[list[Change] | KafkaError]:
        async with self._changing:
            self._check_is_controller()
            if self._behind:
                await self._catch_up(known_version=self._image.version)
                self._check_is_controller()
            results, changes, image = self._decide(events)
            if not changes:
                return results
            try:
                await self._commit(changes, image)
            except KafkaError as failure:
                error, missing = failure, changes
                if isinstance(error, StoreConflict):
                    missing, error = await commit_by_topic(changes, error, self._commit)
                self._on_failed_commit(error)
                return with_failure(results, missing, error)
        return results

    async def _commit(self, changes: Sequence[Change], image: Image | None = None) -> None:
        image = image or self._image.apply(changes)
        version = await self._store.commit(self._image, image, changes)
        # From here to the end of the subscribers nothing waits.
        self._apply(replace(image, version=version), changes)
        await self._store.compact(self._image)

    async def take_up(self, read: ReadOthers) -> bool:
        """Commit what others wrote, if this broker decides; tell whether there was anything."""
        async with self._changing:
            self._check_is_controller()
            changes = await read(self._image)
            try:
                if changes:
                    await self._commit(changes)
            except KafkaError as error:
                self._on_failed_commit(error)
                raise
        return bool(changes)

    async def preview(self, events: Iterable[Event]) -> list[list[Change] | KafkaError]:
        """Return what `submit_all` would, and change nothing (validate_only)."""
        results: list[list[Change] | KafkaError] = []
        image = self._image
        for part in slices(events):
            await trio.lowlevel.checkpoint()
            decided, _, image = self._decide(part, image)
            results += decided
        return results

    def new_topic_id(self) -> UUID:
        """Return an id that no topic has had."""
        return self._new_uuid()

    async def ensure_topic(self, name: str) -> TopicImage:
        """Return a topic, which is created with the broker's defaults if it is not there.

        Internal topics get the settings that the broker has for them (rule 21).

        Raises:
            KafkaError: as for any creation.
        """
        refused = await self.ensure_topics([name])
        if name in refused:
            raise refused[name]
        topic = self._image.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} was deleted again")
        return topic

    async def ensure_topics(self, names: Iterable[str]) -> dict[str, KafkaError]:
        """Create those topics that are not there; return what was refused.

        That is all of them if they are more than one request may create (rule 250).
        """
        missing = [name for name in dict.fromkeys(names) if name not in self._image.topics]
        if not missing:
            return {}
        count = len(self._image.brokers)
        events = [
            default_topic(name, self._config, topic_id=self._new_uuid(), broker_count=count)
            for name in missing
        ]
        return await self.create_missing(events)

    async def create_missing(self, events: Sequence[CreateTopic]) -> dict[str, KafkaError]:
        """Create topics that may be there already, with one commit; return what was refused.

        Raises:
            KafkaError: NOT_CONTROLLER, this broker has nothing to decide any more.
        """
        try:
            check_partition_count(sum(event.num_partitions for event in events))
        except KafkaError as error:
            return {event.name: error for event in events}
        if not self.is_controller:
            timeout_ms = self._config.int("controller.socket.timeout.ms")
            refused = await create_topics(self._require_channel(), events, timeout_ms=timeout_ms)
            created = [event.name for event in events if event.name not in refused]
            # What the controller has committed comes here soon; if it does not, the caller sees.
            with trio.move_on_after(timeout_ms / 1_000):
                await self.wait_until(lambda image: all(name in image.topics for name in created))
            return refused
        results = await self.submit_all(events)
        return {
            event.name: result
            for event, result in zip(events, results, strict=True)
            # Somebody else was first.
            if isinstance(result, KafkaError) and result.code is not ErrorCode.TOPIC_ALREADY_EXISTS
        }

    def producer_id_nowait(self) -> int | None:
        """Return a producer id that was never given before, None if a new block is needed."""
        return self._producer_ids.next_nowait()

    async def allocate_producer_id(self) -> int:
        """Return a producer id that was never given before, also not before a crash (rule 64).

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, or the controller is not reached.
        """
        return await self._producer_ids.next()

    async def adopt(
        self, found: Iterable[FoundLog], kraft: Callable[[], KraftMetadata] = KraftMetadata
    ) -> list[TopicPartition]:
        """Make known which logs the disk has; return those that belong to no topic any more.

        What is returned is to be removed: it is left of topics that were deleted. In a cluster
        nothing is made known: it says what its brokers have, not the other way round.

        Args:
            found: the logs.
            kraft: reads what Apache Kafka knew of them; called only if there are unknown ones.

        Raises:
            MetadataStoreError: there are logs, and the cluster has never had a topic.
        """
        if self._store.shared:
            return stale_logs(list(found), self._image, broker_id=self._broker_id)
        return await adopt(
            found, self._image, self._config, kraft, new_uuid=self._new_uuid, submit=self.submit_all
        )

    def strays(self, found: Iterable[FoundLog]) -> list[TopicPartition]:
        """Return logs of unknown topics; after `adopt` those whose topic id contradicts others."""
        return [
            log.topic_partition
            for log in found
            if is_stray(log.topic_partition, log.topic_id, self._image)
            and refusal_of_name(log.topic_partition.topic) is None
        ]

    # --- For the controller loop -----------------------------------------------------------------

    @property
    def should_campaign(self) -> bool:
        """Whether to try to become controller: registered, and nobody else is, as far as known."""
        return (
            self._own_epoch is None
            and not self._suspended
            and not self._is_leaving
            and self._broker_epoch >= 0
            and self._image.controller_id in (-1, self._broker_id)
        )

    @property
    def is_registration_due(self) -> bool:
        """Whether what the cluster was told of this broker does not hold any more."""
        known = self._image.brokers.get(self._broker_id)
        if not self._bound_ports or self._suspended or self._is_leaving:
            return False
        return self._broker_epoch < 0 or (
            known is not None
            and known.broker_epoch == self._broker_epoch
            and known.endpoints != self._own_broker().endpoints
        )

    async def catch_up_if_behind(self) -> None:
        """Load what is missing after a commit whose outcome is not known."""
        if self._behind and not self._suspended:
            async with self._changing:
                await self._catch_up(known_version=self._image.version)

    async def renew_registration(self) -> None:
        """Register under a new broker epoch after a lost session, or other addresses."""
        session = self._session
        broker_epoch = await self._store.register(self._own_broker())
        if session == self._session:
            self._broker_epoch = broker_epoch

    async def campaign(self) -> bool:
        """Become controller if nobody is, with all that was committed before."""
        async with self._changing:
            session = self._session
            self._loop.live = None  # who lived in an earlier epoch says nothing
            epoch = await self._store.campaign()
            if epoch is None:
                return False
            await self._catch_up(known_version=self._image.version)
            if session != self._session:
                return False
            self._become_controller(epoch)
        logger.info("broker %d is controller, epoch %d", self._broker_id, epoch)
        await self.submit(FinishReassignments())
        return True

    # --- Following -------------------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            try:
                await self.catch_up_if_behind()
            except KafkaError as error:
                logger.info("metadata could not be read: %s", error.message)
            event: StoreEvent | None = None
            # No deadline is needed while nothing is missing: events come, or there is nothing.
            with trio.move_on_after(RETRY_S if self._behind else math.inf):
                event = await self._store.next_event()
            if event is not None:
                await self._on_event(event)

    async def _on_event(self, event: StoreEvent) -> None:
        match event:
            case CommitEvent():
                async with self._changing:
                    self._on_committed(event)
            case LiveBrokers(brokers=brokers):
                self._loop.live = brokers
            case ControllerChanged(broker_id=broker_id, epoch=epoch):
                self._on_controller(broker_id, epoch)
            case FellBehind():
                self._behind = True
            case WrittenByOthers(read=read):
                self._loop.read_others = read
            case SessionSuspended():
                logger.warning("broker %d does not reach the metadata store", self._broker_id)
                self._suspended = True
            case SessionResumed():
                self._suspended = False
                self._behind = True
            case SessionLost():
                logger.warning("broker %d lost its session and registers anew", self._broker_id)
                self._session += 1
                self._suspended = False
                self._behind = True
                self._broker_epoch = -1
                self._resign_controller()
        self._loop.wake()

    def _on_committed(self, commit: CommitEvent) -> None:
        if commit.version <= self._image.version:
            return
        if commit.version > self._image.version + 1:
            self._behind = True
            return
        self._apply(self._image.apply(commit.changes), commit.changes)

    def _on_controller(self, broker_id: int, epoch: int) -> None:
        if self._own_epoch is not None and epoch < self._own_epoch:
            return  # it was so before this broker became controller
        if broker_id != self._broker_id or epoch != self._own_epoch:
            self._resign_controller()
        self._show(self._image.with_controller(broker_id, epoch), ())

    def _become_controller(self, epoch: int | None) -> None:
        assert epoch is not None
        self._own_epoch = epoch
        self._show(self._image.with_controller(self._broker_id, epoch), ())

    def _resign_controller(self) -> None:
        if self._own_epoch is not None:
            logger.info("broker %d is not controller any more", self._broker_id)
        self._own_epoch = None

    async def _catch_up(self, *, known_version: int) -> None:
        """Load what the store has, if that is newer; the lock is held."""
        stored = await self._store.load(known_version)
        self._behind = False
        if stored is None:
            return
        known, image = self._image, Image(cluster_id=self._image.cluster_id)
        image = replace(image.apply(stored.changes), version=stored.version)
        self._image = image.with_controller(known.controller_id, known.controller_epoch)
        self._take_up_configs()
        self._show(self._image, [ImageReplaced()])

    # --- Deciding --------------------------------------------------------------------------------

    def _check_is_controller(self) -> None:
        if not self.is_controller:
            message = f"broker {self._broker_id} is not the controller"
            raise KafkaError(ErrorCode.NOT_CONTROLLER, message)

    def _on_failed_commit(self, error: KafkaError) -> None:
        logger.warning("metadata could not be stored: %s", error.message)
        if isinstance(error, OutcomeUnknown):
            self._behind = True
        elif error.code is ErrorCode.NOT_CONTROLLER:
            self._resign_controller()
        self._loop.wake()

    def _apply(self, image: Image, changes: Sequence[Change]) -> None:
        self._image = image
        own = ConfigResource(BROKER_RESOURCE, str(self._broker_id))
        common = ConfigResource(BROKER_RESOURCE, "")
        touched = {each.resource for each in changes if isinstance(each, ConfigsChanged)}
        if own in touched or common in touched:
            self._take_up_configs()
            self._loop.wake()
        self._show(image, changes)

    def _show(self, image: Image, changes: Sequence[Change]) -> None:
        self._image = image
        for subscriber in tuple(self._subscribers):
            subscriber(changes, image)
        self._changed.set()
        self._changed = trio.Event()

    def _decide(self, events: Iterable[Event], image: Image | None = None) -> Decision:
        known = image or self._image
        return batch_decide(events, known, self._config, and_then=self._new_addresses)

    def _new_addresses(self, changes: Sequence[Change], image: Image) -> list[Change]:
        if self._store.shared:
            return []
        return new_addresses(changes, image, self._config, self._bound_ports)

    def _own_broker(self) -> BrokerImage:
        endpoints = self._config.endpoints(self._bound_ports)
        if self._store.shared:
            # Clients of other brokers come by no address that they could be told.
            host = socket.gethostname()
            endpoints = with_hosts(endpoints, self._config.listeners, host_name=host)
        rack = self._config.optional_str("broker.rack")
        return BrokerImage(broker_id=self._broker_id, endpoints=endpoints, rack=rack)

    def _take_up_configs(self) -> None:
        own = ConfigResource(BROKER_RESOURCE, str(self._broker_id))
        common = ConfigResource(BROKER_RESOURCE, "")
        self._config.apply_dynamic(self._image.configs_of(own), self._image.configs_of(common))

    # --- Asking the controller -------------------------------------------------------------------

    async def _producer_id_block(self) -> tuple[int, int]:
        if self.is_controller:
            event = AllocateProducerIds(broker_id=self._broker_id)
            changes = await self.submit(event)
            end = next(
                change.next_producer_id
                for change in changes
                if isinstance(change, ProducerIdsAllocated)
            )
            return end - event.count, event.count
        return await producer_id_block(
            self._require_channel(),
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch,
            timeout_ms=self._config.int("controller.socket.timeout.ms"),
        )

    def _require_channel(self) -> ControllerChannel:
        if self._channel is None:
            message = f"broker {self._broker_id} is not the controller"
            raise KafkaError(ErrorCode.NOT_CONTROLLER, message)
        return self._channel
