"""This broker as the cluster knows it: its session with the store, and its registration."""

import logging
import socket
from typing import TYPE_CHECKING

from kafkalite.config import BrokerConfig
from kafkalite.config.listeners import with_hosts
from kafkalite.meta.image import BrokerImage, Image
from kafkalite.meta.store import MetadataStore

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger("kafkalite.meta")


class BrokerLifecycle:
    """Registers this broker, and again after its session was lost (Kafka: BrokerLifecycleManager).

    Attributes:
        broker_epoch: number of the registration, -1 while there is none; always -1 on a lone
            broker.
        bound_ports: by listener, empty before the broker listens.
        is_suspended: whether the store is not reached, so that nothing is to be decided.
        session: counts the sessions; whoever awaited something compares.
    """

    def __init__(self, config: BrokerConfig, store: MetadataStore) -> None:
        self._config = config
        self._store = store
        self._is_leaving = False
        self.broker_epoch = -1
        self.bound_ports: Mapping[str, int] = {}
        self.is_suspended = False
        self.session = 0

    def leave(self) -> None:
        """Register no more: this broker is about to stop."""
        self._is_leaving = True

    @property
    def may_campaign(self) -> bool:
        """Whether this broker may become controller."""
        return self.broker_epoch >= 0 and not self.is_suspended and not self._is_leaving

    def is_registered_in(self, image: Image) -> bool:
        """Tell whether the cluster knows the latest registration."""
        known = image.brokers.get(self._config.node_id)
        return known is not None and known.broker_epoch == self.broker_epoch

    def is_registration_due(self, image: Image) -> bool:
        """Tell whether what the cluster was told of this broker does not hold any more."""
        if not self.bound_ports or self.is_suspended or self._is_leaving:
            return False
        if self.broker_epoch < 0:
            return True
        if not self.is_registered_in(image):
            return False
        return image.brokers[self._config.node_id].endpoints != self.own_broker().endpoints

    async def renew_registration(self) -> None:
        """Register under a new broker epoch after a lost session, or other addresses."""
        session = self.session
        broker_epoch = await self._store.register(self.own_broker())
        if session == self.session:
            self.broker_epoch = broker_epoch

    def own_broker(self) -> BrokerImage:
        """Return what the cluster is to be told of this broker."""
        endpoints = self._config.endpoints(self.bound_ports)
        if self._store.shared:
            # Clients of other brokers come by no address that they could be told.
            host = socket.gethostname()
            endpoints = with_hosts(endpoints, self._config.listeners, host_name=host)
        rack = self._config.optional_str("broker.rack")
        return BrokerImage(broker_id=self._config.node_id, endpoints=endpoints, rack=rack)

    def on_suspended(self) -> None:
        """Decide nothing until the store is reached again."""
        logger.warning("broker %d does not reach the metadata store", self._config.node_id)
        self.is_suspended = True

    def on_resumed(self) -> None:
        """Go on: the session outlived it."""
        self.is_suspended = False

    def on_lost(self) -> None:
        """Be unknown to the cluster, until registered again."""
        logger.warning("broker %d lost its session and registers anew", self._config.node_id)
        self.session += 1
        self.is_suspended = False
        self.broker_epoch = -1
