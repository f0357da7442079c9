"""The work of a broker in a cluster: register, campaign, and the controller's duties."""

import logging
from collections.abc import Mapping

import trio

from kafkalite.config import BrokerConfig
from kafkalite.meta.cache import MetadataCache
from kafkalite.meta.committer import MetadataCommitter
from kafkalite.meta.controller_inbox import ControllerInbox
from kafkalite.meta.events import (
    Event,
    FinishReassignments,
    RebalanceLeaders,
    RegisterBroker,
    UnregisterBroker,
)
from kafkalite.meta.image import BrokerImage, Image
from kafkalite.meta.lifecycle import BrokerLifecycle
from kafkalite.meta.store import ReadOthers, Requests
from kafkalite.wire.errors import ErrorCode, KafkaError

logger = logging.getLogger("kafkalite.meta")

RETRY_S = 0.5
"""Pause after something did not work: the store is away, or another broker became controller."""

IMBALANCE_PERCENTAGE = 10
"""Share of a broker's preferred partitions that others may lead; Kafka's default."""


class ControllerLoop:
    """Reconciliation loop: registers this broker, campaigns for controller, and decides as such.

    Args:
        config: the broker's settings.
        cache: what is known.
        lifecycle: of this broker, which is registered when that is due.
        committer: by which this broker becomes controller, and decides then.
        inbox: what there is to look at.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        cache: MetadataCache,
        lifecycle: BrokerLifecycle,
        committer: MetadataCommitter,
        inbox: ControllerInbox,
    ) -> None:
        self._config = config
        self._cache = cache
        self._lifecycle = lifecycle
        self._committer = committer
        self._inbox = inbox

    async def run(self) -> None:
        """Work until cancelled.

        Raises:
            MetadataStoreError: another broker has this one's id.
        """
        while True:
            await self._inbox.wait()
            try:
                await self._turn()
            except KafkaError as error:
                logger.info("metadata: will try again: %s", error)
                await trio.sleep(RETRY_S)
                self._inbox.wake()

    async def _turn(self) -> None:
        committer, inbox = self._committer, self._inbox
        await committer.catch_up_if_behind()
        if self._lifecycle.is_registration_due(self._cache.image):
            await self._lifecycle.renew_registration()
        if committer.should_campaign and await committer.campaign():
            await committer.submit(FinishReassignments())
        if not committer.is_controller or inbox.live is None:
            return
        events = registrations(self._cache.image, inbox.live)
        for result in await committer.submit_all(events) if events else ():
            if isinstance(result, KafkaError):
                raise result
        if inbox.read_others is not None:
            await self._take_up_others(inbox.read_others)
        if inbox.requests is not None:
            await self._do_what_others_ask(inbox.requests)

    async def _take_up_others(self, read: ReadOthers) -> None:
        try:
            is_left = await self._committer.commit_found(read)
        except KafkaError as error:
            if error.code is ErrorCode.NOT_CONTROLLER:
                raise
            logger.warning("what others wrote into the store is not taken up: %s", error.message)
            is_left = False
        if is_left:
            self._inbox.wake()
        elif self._inbox.read_others is read:
            self._inbox.read_others = None

    async def _do_what_others_ask(self, requests: Requests) -> None:
        for path, events in await requests.read(self._cache.image):
            results = await self._committer.submit_all(events) if events else []
            for result in results:
                if isinstance(result, KafkaError) and result.code is ErrorCode.NOT_CONTROLLER:
                    raise result
            await requests.answer(path, results)
        if self._inbox.requests is requests:
            self._inbox.requests = None

    async def rebalance(self) -> None:
        """Lead partitions back to their preferred replicas from time to time (rule 181)."""
        while True:
            await trio.sleep(self._config.int("leader.imbalance.check.interval.seconds"))
            if not self._committer.is_controller:
                continue
            if not self._config.bool("auto.leader.rebalance.enable"):
                continue
            try:
                await self._committer.submit(
                    RebalanceLeaders(imbalance_percentage=IMBALANCE_PERCENTAGE)
                )
            except KafkaError as error:
                logger.info("leaders were not rebalanced: %s", error)


def registrations(image: Image, live: Mapping[int, BrokerImage]) -> list[Event]:
    """Return what makes the brokers of an image those that live.

    One with another broker epoch failed and came back, perhaps unnoticed (rule 197). That is one
    event: nobody is elected uncleanly for a broker that is there.
    """
    events: list[Event] = [
        UnregisterBroker(broker_id=broker_id)
        for broker_id in image.brokers
        if broker_id not in live
    ]
    for broker_id, now in live.items():
        before = image.brokers.get(broker_id)
        restarted = before is None or before.broker_epoch != now.broker_epoch
        if (
            restarted
            or before is None
            or (before.endpoints, before.rack) != (now.endpoints, now.rack)
        ):
            events.append(
                RegisterBroker(
                    broker_id=broker_id,
                    endpoints=now.endpoints,
                    rack=now.rack,
                    broker_epoch=now.broker_epoch,
                    restarted=restarted,
                )
            )
    return events
