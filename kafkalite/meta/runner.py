"""The metadata of a running broker: loaded, followed, and changed by events."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from uuid import UUID, uuid4

import trio

from kafkalite.config import BrokerConfig
from kafkalite.log_config import LogConfig
from kafkalite.meta.cache import MetadataCache, Subscriber
from kafkalite.meta.changes import Change
from kafkalite.meta.committer import MetadataCommitter
from kafkalite.meta.controller_inbox import ControllerInbox
from kafkalite.meta.controller_loop import ControllerLoop
from kafkalite.meta.dynamic_config import DynamicBrokerConfig
from kafkalite.meta.events import Event, RegisterBroker
from kafkalite.meta.image import Image
from kafkalite.meta.lifecycle import BrokerLifecycle
from kafkalite.meta.store import (
    AskedByOthers,
    CommitEvent,
    ControllerChanged,
    FellBehind,
    LiveBrokers,
    MetadataStore,
    MetadataStoreError,
    SessionLost,
    SessionResumed,
    SessionSuspended,
    StoreEvent,
    WrittenByOthers,
)
from kafkalite.wire.errors import KafkaError

logger = logging.getLogger("kafkalite.meta")

RETRY_S = 0.2
"""Pause before the store is asked again after it could not be reached."""


class MetadataRunner:
    """Puts together what holds the metadata and what changes them, and follows the store.

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
        self._cache = MetadataCache(Image(cluster_id=cluster_id))
        self._inbox = ControllerInbox()
        self._lifecycle = BrokerLifecycle(config, store)
        self._cache.subscribe(DynamicBrokerConfig(config, self._inbox).on_changes)
        self._committer = MetadataCommitter(
            config, store, cache=self._cache, lifecycle=self._lifecycle, inbox=self._inbox
        )
        self._loop = ControllerLoop(
            config,
            cache=self._cache,
            lifecycle=self._lifecycle,
            committer=self._committer,
            inbox=self._inbox,
        )

    # --- State -----------------------------------------------------------------------------------

    @property
    def image(self) -> Image:
        """Metadata as they are now."""
        return self._cache.image

    @property
    def is_controller(self) -> bool:
        """Whether this broker decides, as far as it knows; always on a lone broker."""
        return self._committer.is_controller

    @property
    def broker_epoch(self) -> int:
        """Number of this broker's registration, -1 if it has none; always -1 on a lone broker."""
        return self._lifecycle.broker_epoch

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber(changes, image)` after each commit, see `MetadataCache.subscribe`."""
        return self._cache.subscribe(subscriber)

    async def wait_until(self, predicate: Callable[[Image], bool]) -> Image:
        """Return the first image that satisfies a predicate, see `MetadataCache.wait_until`."""
        return await self._cache.wait_until(predicate)

    def log_config(self, topic: str) -> LogConfig:
        """Return the settings of a topic's logs; the broker's defaults for an unknown topic."""
        known = self.image.topics.get(topic)
        return self._config.log_config(None if known is None else known.configs)

    def new_topic_id(self) -> UUID:
        """Return an id that no topic has had."""
        return self._new_uuid()

    # --- Changes ---------------------------------------------------------------------------------

    async def submit(self, event: Event) -> list[Change]:
        """Make happen what an event asks for, see `MetadataCommitter.submit`."""
        return await self._committer.submit(event)

    async def submit_all(self, events: Iterable[Event]) -> list[list[Change] | KafkaError]:
        """Make several events happen, see `MetadataCommitter.submit_all`."""
        return await self._committer.submit_all(events)

    async def preview(self, events: Iterable[Event]) -> list[list[Change] | KafkaError]:
        """Return what `submit_all` would, and change nothing (validate_only)."""
        return await self._committer.preview(events)

    # --- Lifecycle -------------------------------------------------------------------------------

    async def load(self) -> Image:
        """Return the image of what was committed before. Raises MetadataStoreError."""
        try:
            await self._committer.load()
        except KafkaError as error:
            raise MetadataStoreError(error.message) from error
        return self.image

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
        self._lifecycle.bound_ports = bound_ports
        if not self._store.shared:
            own = self._lifecycle.own_broker()
            await self.submit(
                RegisterBroker(broker_id=own.broker_id, endpoints=own.endpoints, rack=own.rack)
            )
            return
        with suppress(KafkaError):  # the store is away for a moment; the loop tries again
            await self._lifecycle.renew_registration()
        self._inbox.wake()
        await self.wait_until(self._lifecycle.is_registered_in)

    def leave(self) -> None:
        """Register no more and become controller no more: this broker is about to stop."""
        self._lifecycle.leave()

    # --- Following -------------------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            try:
                await self._committer.catch_up_if_behind()
            except KafkaError as error:
                logger.info("metadata could not be read: %s", error.message)
            event: StoreEvent | None = None
            # No deadline is needed while nothing is missing: events come, or there is nothing.
            with trio.move_on_after(RETRY_S if self._committer.is_behind else math.inf):
                event = await self._store.next_event()
            if event is not None:
                await self._on_event(event)

    async def _on_event(self, event: StoreEvent) -> None:
        match event:
            case CommitEvent():
                await self._committer.on_committed(event)
            case LiveBrokers(brokers=brokers):
                self._inbox.live = brokers
            case ControllerChanged(broker_id=broker_id, epoch=epoch):
                self._committer.on_controller(broker_id, epoch)
            case FellBehind():
                self._committer.is_behind = True
            case WrittenByOthers(read=read):
                self._inbox.read_others = read
            case AskedByOthers(requests=requests):
                self._inbox.requests = requests
            case SessionSuspended():
                self._lifecycle.on_suspended()
            case SessionResumed():
                self._lifecycle.on_resumed()
                self._committer.is_behind = True
            case SessionLost():
                self._lifecycle.on_lost()
                self._committer.is_behind = True
                self._committer.resign_controller()
        self._inbox.wake()
