"""Settings of this broker that are changed while it runs."""

import logging
from collections.abc import Mapping, Sequence

from kafkalite.config import BrokerConfig
from kafkalite.meta.changes import BROKER_RESOURCE, Change, ConfigsChanged, ImageReplaced
from kafkalite.meta.controller_inbox import ControllerInbox
from kafkalite.meta.image import ConfigResource, Image

logger = logging.getLogger("kafkalite.meta")

ENCODED = "encryptedPassword:"
"""What encoded passwords have in them (rule 255)."""


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
        # Plain by encoded, of those in force: to decode takes milliseconds.
        self._passwords: dict[str, str] = {}

    def on_changes(self, changes: Sequence[Change], image: Image) -> None:
        """Take up what has changed."""
        if any(map(self._concerns, changes)):
            own, common = image.configs_of(self._own), image.configs_of(self._common)
            self._config.apply_dynamic(self._decoded(own), common)
            self._inbox.wake()

    def _decoded(self, values: Mapping[str, str]) -> Mapping[str, str]:
        """Return settings with passwords as they are; those that cannot be decoded are left out."""
        if not any(ENCODED in text for text in values.values()):
            return values
        from kafkalite.security.password_encoder import PasswordEncoder, PasswordError, is_password

        encoder = PasswordEncoder.of(self._config)
        found, known = {}, self._passwords
        self._passwords = {}
        for name, text in values.items():
            if ENCODED not in text or not is_password(name):
                found[name] = text
                continue
            try:
                if text not in known:
                    if encoder is None:
                        raise PasswordError("password.encoder.secret is not set")
                    known[text] = encoder.decode(text)
                found[name] = self._passwords[text] = known[text]
            except PasswordError as error:
                logger.error("%s of this broker could not be decoded, ignoring: %s", name, error)
        return found

    def _concerns(self, change: Change) -> bool:
        if isinstance(change, ConfigsChanged):
            return change.resource in (self._own, self._common)
        return isinstance(change, ImageReplaced)
