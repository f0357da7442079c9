"""The work of a broker in a cluster: register, campaign, and the controller's duties."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import trio

from kafkalite.config import BrokerConfig
from kafkalite.meta.events import Event, RebalanceLeaders, RegisterBroker, UnregisterBroker
from kafkalite.meta.image import BrokerImage, Image
from kafkalite.meta.store import ReadOthers
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.meta.runner import MetadataRunner

logger = logging.getLogger("kafkalite.meta")

RETRY_S = 0.5
"""Pause after something did not work: the store is away, or another broker became controller."""

IMBALANCE_PERCENTAGE = 10
"""Share of a broker's preferred partitions that others may lead; Kafka's default."""


class ControllerLoop:
    """Compares what is with what should be each time that it is woken, and makes it so.

    Attributes:
        live: the brokers that have a session, None while this broker is not told.
        read_others: returns what others wrote, None while there is nothing.
    """

    def __init__(self, runner: "MetadataRunner", config: BrokerConfig) -> None:
        self._runner = runner
        self._config = config
        self._woken = trio.Event()
        self.live: Mapping[int, BrokerImage] | None = None
        self.read_others: ReadOthers | None = None

    def wake(self) -> None:
        """Compare again."""
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled.

        Raises:
            MetadataStoreError: another broker has this one's id.
        """
        while True:
            await self._woken.wait()
            self._woken = trio.Event()
            try:
                await self._turn()
            except KafkaError as error:
                logger.info("metadata: will try again: %s", error)
                await trio.sleep(RETRY_S)
                self.wake()

    async def _turn(self) -> None:
        runner = self._runner
        await runner.catch_up_if_behind()
        if runner.is_registration_due:
            await runner.renew_registration()
        if runner.should_campaign:
            await runner.campaign()
        if not runner.is_controller or self.live is None:
            return
        events = registrations(runner.image, self.live)
        for result in await runner.submit_all(events) if events else ():
            if isinstance(result, KafkaError):
                raise result
        if self.read_others is not None:
            await self._take_up_others(self.read_others)

    async def _take_up_others(self, read: ReadOthers) -> None:
        try:
            is_left = await self._runner.take_up(read)
        except KafkaError as error:
            if error.code is ErrorCode.NOT_CONTROLLER:
                raise
            logger.warning("what others wrote into the store is not taken up: %s", error.message)
            is_left = False
        if is_left:
            self.wake()
        elif self.read_others is read:
            self.read_others = None

    async def rebalance(self) -> None:
        """Lead partitions back to their preferred replicas from time to time (rule 181)."""
        while True:
            await trio.sleep(self._config.int("leader.imbalance.check.interval.seconds"))
            if not self._runner.is_controller:
                continue
            if not self._config.bool("auto.leader.rebalance.enable"):
                continue
            try:
                await self._runner.submit(
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
