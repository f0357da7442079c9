"""The HTTP ports of a cluster's brokers, and what is served there."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit, urlunsplit

if TYPE_CHECKING:
    from kafkalite.testing.broker_process import BrokerProcess

REGISTRY_SETTINGS: Final[Mapping[str, str]] = {"kafkalite.schema.registry": "true"}


def registry_url(http_url: str) -> str:
    """Return where clients find the schema registry of an HTTP port; a token is the password."""
    parts = urlsplit(http_url)
    login = "".join(f":{token}@" for token in parse_qs(parts.query).get("token", ()))
    return urlunsplit((parts.scheme, login + parts.netloc, "/schema-registry", "", ""))


class ClusterHttp:
    """The part of `kafkalite.testing.Cluster` that is about HTTP."""

    if TYPE_CHECKING:  # what the rest of a cluster has
        brokers: dict[int, BrokerProcess]

    @property
    def schema_registry_urls(self) -> dict[int, str]:
        """URL of each broker's schema registry; made with `schema_registry=True`."""
        urls = {
            number: registry_url(broker.http_url)
            for number, broker in self.brokers.items()
            if broker.http_url is not None and REGISTRY_SETTINGS.items() <= broker.settings.items()
        }
        if not urls:
            raise RuntimeError("no schema registry: make the cluster with schema_registry=True")
        return urls

    @property
    def schema_registry_url(self) -> str:
        """All of `schema_registry_urls` with commas, as clients take them."""
        return ",".join(self.schema_registry_urls.values())
