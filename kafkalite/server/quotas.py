"""Quotas, put where they act: made when there is the first, and then kept up to date."""

from typing import TYPE_CHECKING

from kafkalite.meta.entities import ENTITIES
from kafkalite.network.listeners import RATE_SETTING
from kafkalite.settings.cluster import INT_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkalite.api.context import Services
    from kafkalite.meta.changes import Change
    from kafkalite.meta.image import Image
    from kafkalite.network.dispatch import Dispatcher
    from kafkalite.network.listeners import ConnectionServer
    from kafkalite.network.throttling import Throttle
    from kafkalite.quota.clients import ClientQuotas
    from kafkalite.quota.connections import ConnectionRates


class QuotaSwitch:
    """Follows the settings of users, clients and addresses (decision 0112).

    Where there are no quotas, requests and connections find None, and nothing is imported.
    """

    def __init__(
        self, services: "Services", dispatcher: "Dispatcher", connections: "ConnectionServer"
    ) -> None:
        self._services = services
        self._dispatcher = dispatcher
        self._connections = connections
        self._configs: object = None
        self._quotas: ClientQuotas | None = None
        self._throttle: Throttle | None = None
        self._rates: ConnectionRates | None = None
        self.on_changes((), services.metadata.image)

    def on_changes(self, changes: "Iterable[Change]", image: "Image") -> None:
        """Take up the quotas of an image; a subscriber of metadata."""
        del changes
        if image.configs is self._configs:
            return
        self._configs = image.configs
        has_entities = any(resource.type in ENTITIES for resource in image.configs)
        if self._quotas is not None or has_entities:
            self._follow_clients(image)
        if self._rates is not None or has_entities or self._limits_connections():
            self._follow_addresses(image)

    def _follow_clients(self, image: "Image") -> None:
        if self._quotas is None or self._throttle is None:
            from kafkalite.network.throttling import Throttle
            from kafkalite.quota.clients import ClientQuotas
            from kafkalite.quota.rates import Window

            config = self._services.config
            self._quotas = ClientQuotas(
                Window(
                    config.int("quota.window.num"), config.int("quota.window.size.seconds") * 1_000
                ),
                Window(
                    config.int("controller.quota.window.num"),
                    config.int("controller.quota.window.size.seconds") * 1_000,
                ),
            )
            self._throttle = Throttle(self._quotas, self._services)
        self._quotas.update(image.configs)
        self._services.quotas = self._quotas or None
        self._dispatcher.throttle = self._throttle if self._quotas else None

    def _follow_addresses(self, image: "Image") -> None:
        from kafkalite.quota.connections import ConnectionRates
        from kafkalite.quota.limits import connection_rates
        from kafkalite.quota.rates import Window

        if self._rates is None:
            config = self._services.config
            self._rates = ConnectionRates(
                Window(
                    config.int("quota.window.num"), config.int("quota.window.size.seconds") * 1_000
                )
            )
        self._rates.by_address = connection_rates(image.configs)
        is_limited = self._rates.by_address or self._limits_connections()
        self._connections.rates = self._rates if is_limited else None

    def _limits_connections(self) -> bool:
        config = self._services.config
        return any(
            config.for_listener(listener.name).number(RATE_SETTING) != INT_MAX
            for listener in config.listeners
        )
