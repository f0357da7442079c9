"""Settings of this broker that are changed while it runs."""

from collections.abc import Sequence

from kafkalite.config import BrokerConfig
from kafkalite.meta.changes import BROKER_RESOURCE, Change, ConfigsChanged, ImageReplaced
from kafkalite.meta.controller_inbox import ControllerInbox
from kafkalite.meta.image import ConfigResource, Image


class DynamicBrokerConfig:
    """Writes the settings of the image into a broker's configuration.

    Args:
        config: takes up what is changed of this broker's settings, and of all brokers'.
        inbox: woken then, for the addresses of this broker may be others.
    """

    def __init__(self, config: BrokerConfig, inbox: ControllerInbox) -> None:
        self._config = config
        self._inbox = inbox
        self._own = ConfigResource(BROKER_RESOURCE, str(config.node_id))
        self._common = ConfigResource(BROKER_RESOURCE, "")

    def on_changes(self, changes: Sequence[Change], image: Image) -> None:
        """Take up what has changed."""
        if any(map(self._concerns, changes)):
            own, common = image.configs_of(self._own), image.configs_of(self._common)
            self._config.apply_dynamic(own, common)
            self._inbox.wake()

    def _concerns(self, change: Change) -> bool:
        if isinstance(change, ConfigsChanged):
            return change.resource in (self._own, self._common)
        return isinstance(change, ImageReplaced)
