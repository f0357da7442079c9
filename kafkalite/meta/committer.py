"""The one way in which metadata change: decide, commit, apply, tell the subscribers.

Also on a lone broker, and one event after another, so that there is one path to test. In a cluster
only the controller decides and commits; the others apply what it committed.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

import trio

from kafkalite.config import BrokerConfig
from kafkalite.meta.batch_decide import Decision, batch_decide, new_addresses, slices
from kafkalite.meta.bisect_commit import commit_by_topic, with_failure
from kafkalite.meta.cache import MetadataCache
from kafkalite.meta.changes import Change, ImageReplaced
from kafkalite.meta.controller_inbox import ControllerInbox
from kafkalite.meta.events import Event
from kafkalite.meta.image import Image
from kafkalite.meta.lifecycle import BrokerLifecycle
from kafkalite.meta.store import (
    CommitEvent,
    MetadataStore,
    OutcomeUnknown,
    ReadOthers,
    StoreConflict,
)
from kafkalite.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger("kafkalite.meta")


class MetadataCommitter:
    """Changes the image: by own commits while this broker is controller, else by others'.

    Args:
        config: the broker's settings.
        store: where commits go.
        cache: gets each next image.
        lifecycle: of this broker.
        inbox: of the controller's loop, which repairs what has failed.

    Attributes:
        is_behind: whether the store may have commits that the image lacks and no event will tell
            of.
    """

    def __init__(
        self,
        config: BrokerConfig,
        store: MetadataStore,
        *,
        cache: MetadataCache,
        lifecycle: BrokerLifecycle,
        inbox: ControllerInbox,
    ) -> None:
        self._config = config
        self._store = store
        self._cache = cache
        self._lifecycle = lifecycle
        self._inbox = inbox
        self._broker_id = config.node_id
        self._changing = trio.Lock()
        # The epoch in which this broker is controller, None while it is not.
        self._own_epoch: int | None = None
        self.is_behind = False

    # --- Deciding --------------------------------------------------------------------------------

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
        parts = slices(events, self._cache.image)
        return [result for part in parts for result in await self._submit_together(part)]

    async def preview(self, events: Iterable[Event]) -> list[list[Change] | KafkaError]:
        """Return what `submit_all` would, and change nothing (validate_only)."""
        results: list[list[Change] | KafkaError] = []
        image = self._cache.image
        for part in slices(events, image):
            await trio.lowlevel.checkpoint()
            decided, _, image = self._decide(part, image)
            results += decided
        return results

    async def _submit_together(self, events: Iterable[Event]) -> list[list[Change] | KafkaError]:
        async with self._changing:
            self._check_is_controller()
            if self.is_behind:
                await self._catch_up(known_version=self._cache.image.version)
                self._check_is_controller()
            results, changes, image = self._decide(events, self._cache.image)
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

    def _decide(self, events: Iterable[Event], image: Image) -> Decision:
        live = (self._inbox.live or {}) if self._store.shared else None
        return batch_decide(events, image, self._config, live=live, and_then=self._new_addresses)

    def _new_addresses(self, changes: Sequence[Change], image: Image) -> list[Change]:
        if self._store.shared:
            return []
        return new_addresses(changes, image, self._config, self._lifecycle.bound_ports)

    # --- Committing ------------------------------------------------------------------------------

    async def commit_found(self, read: ReadOthers) -> bool:
        """Commit what others wrote, if this broker decides; tell whether there was anything."""
        async with self._changing:
            self._check_is_controller()
            changes = await read(self._cache.image)
            try:
                if changes:
                    await self._commit(changes)
            except KafkaError as error:
                self._on_failed_commit(error)
                raise
        return bool(changes)

    async def _commit(self, changes: Sequence[Change], image: Image | None = None) -> None:
        known = self._cache.image
        image = image or known.apply(changes)
        version = await self._store.commit(known, image, changes)
        # From here to the end of the subscribers nothing waits.
        self._cache.publish(replace(image, version=version), changes)
        await self._store.compact(self._cache.image)

    def _on_failed_commit(self, error: KafkaError) -> None:
        logger.warning("metadata could not be stored: %s", error.message)
        if isinstance(error, OutcomeUnknown):
            self.is_behind = True
        elif error.code is ErrorCode.NOT_CONTROLLER:
            self.resign_controller()
        self._inbox.wake()

    # --- Following others' commits ---------------------------------------------------------------

    async def load(self) -> None:
        """Load all that was committed before; a lone broker is the controller from then on."""
        async with self._changing:
            await self._catch_up(known_version=-1)
            if not self._store.shared:
                self._become_controller(await self._store.campaign())

    async def catch_up_if_behind(self) -> None:
        """Load what is missing after a commit whose outcome is not known."""
        if self.is_behind and not self._lifecycle.is_suspended:
            async with self._changing:
                await self._catch_up(known_version=self._cache.image.version)

    async def on_committed(self, commit: CommitEvent) -> None:
        """Apply what the controller has committed."""
        async with self._changing:
            image = self._cache.image
            if commit.version == image.version + 1:
                self._cache.publish(image.apply(commit.changes), commit.changes)
            elif commit.version > image.version:
                self.is_behind = True

    async def _catch_up(self, *, known_version: int) -> None:
        """Load what the store has, if that is newer; the lock is held."""
        stored = await self._store.load(known_version)
        self.is_behind = False
        if stored is None:
            return
        known = self._cache.image
        image = Image(cluster_id=known.cluster_id).apply(stored.changes)
        image = replace(image, version=stored.version)
        image = image.with_controller(known.controller_id, known.controller_epoch)
        self._cache.publish(image, [ImageReplaced()])

    # --- Being the controller --------------------------------------------------------------------

    @property
    def is_controller(self) -> bool:
        """Whether this broker decides, as far as it knows; always on a lone broker."""
        return self._own_epoch is not None and not self._lifecycle.is_suspended

    @property
    def should_campaign(self) -> bool:
        """Whether to try to become controller: registered, and nobody else is, as far as known."""
        return (
            self._own_epoch is None
            and self._lifecycle.may_campaign
            and self._cache.image.controller_id in (-1, self._broker_id)
        )

    async def campaign(self) -> bool:
        """Become controller if nobody is, with all that was committed before."""
        async with self._changing:
            session = self._lifecycle.session
            self._inbox.live = None  # who lived in an earlier epoch says nothing
            epoch = await self._store.campaign()
            if epoch is None:
                return False
            await self._catch_up(known_version=self._cache.image.version)
            if session != self._lifecycle.session:
                return False
            self._become_controller(epoch)
        logger.info("broker %d is controller, epoch %d", self._broker_id, epoch)
        return True

    def on_controller(self, broker_id: int, epoch: int) -> None:
        """Note who is the controller."""
        if self._own_epoch is not None and epoch < self._own_epoch:
            return  # it was so before this broker became controller
        if broker_id != self._broker_id or epoch != self._own_epoch:
            self.resign_controller()
        self._cache.publish(self._cache.image.with_controller(broker_id, epoch), ())

    def resign_controller(self) -> None:
        """Decide nothing more."""
        if self._own_epoch is not None:
            logger.info("broker %d is not controller any more", self._broker_id)
        self._own_epoch = None

    def _become_controller(self, epoch: int | None) -> None:
        assert epoch is not None
        self._own_epoch = epoch
        self._cache.publish(self._cache.image.with_controller(self._broker_id, epoch), ())

    def _check_is_controller(self) -> None:
        if not self.is_controller:
            message = f"broker {self._broker_id} is not the controller"
            raise KafkaError(ErrorCode.NOT_CONTROLLER, message)
