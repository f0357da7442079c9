"""Context of a request: client, connection, and the services that hold the broker's state."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kafkalite.api.authorizer import Authorizer
    from kafkalite.api.client_metrics import ClientMetrics
    from kafkalite.api.fetch_session import FetchSessions
    from kafkalite.api.share_session import ShareSessions
    from kafkalite.clock import Clock
    from kafkalite.config import BrokerConfig
    from kafkalite.coordinator.runtime import CoordinatorRuntime
    from kafkalite.group.metadata import GroupMetadata
    from kafkalite.isr.replicas import ReplicaManager
    from kafkalite.log.manager import LogManager
    from kafkalite.log.sequence_hold import SequenceHold
    from kafkalite.meta.auto_topic_creation import AutoTopicCreationManager
    from kafkalite.meta.background_topics import BackgroundTopics
    from kafkalite.meta.deleted_topics import DeletedTopics
    from kafkalite.meta.group_configs import GroupConfigs
    from kafkalite.meta.image import BrokerImage
    from kafkalite.meta.producer_ids import ProducerIdManager
    from kafkalite.meta.runner import MetadataRunner
    from kafkalite.quota.clients import ClientQuotas
    from kafkalite.registry.rest import RegistryApi
    from kafkalite.security.delegation_tokens import DelegationTokens
    from kafkalite.share.on_demand import ShareOnDemand
    from kafkalite.share.service import ShareService
    from kafkalite.txn.coordinator import TransactionCoordinator

ANONYMOUS = "User:ANONYMOUS"
"""Who nobody has told the name of."""


@dataclass(slots=True, kw_only=True)
class Services:
    """The parts of one broker, as its composition root (`server/composition.py`) built them."""

    config: "BrokerConfig"
    clock: "Clock"
    logs: "LogManager"
    metadata: "MetadataRunner"
    topic_creation: "AutoTopicCreationManager"
    producer_ids: "ProducerIdManager"
    replicas: "ReplicaManager"
    coordinators: "CoordinatorRuntime"
    group_metadata: "GroupMetadata"
    """What the shards of groups read; told each image before they are."""
    transactions: "TransactionCoordinator"
    sequence_hold: "SequenceHold"
    """Batches that have to come again before their successors may."""
    fetch_sessions: "FetchSessions"
    share_on_demand: "ShareOnDemand"
    share_sessions: "ShareSessions"
    group_configs: "GroupConfigs"
    client_metrics: "ClientMetrics"
    background_topics: "BackgroundTopics"
    deleted_topics: "DeletedTopics"
    fetch_max_bytes: int
    """Most bytes of records in one Fetch answer (`fetch.max.bytes`)."""
    registry: "RegistryApi | None" = None
    """The schema registry; None where there is none."""
    authorizer: "Authorizer | None" = None
    """Who says what clients may do; None where everybody may do everything."""
    quotas: "ClientQuotas | None" = None
    """What clients may use, and what they used; None while there are no quotas of clients."""
    tokens: "DelegationTokens | None" = None
    """What knows delegation tokens; None without `delegation.token.secret.key`."""

    @property
    def share(self) -> "ShareService":
        """Share partitions and sessions of the broker; see `share/`."""
        return self.share_on_demand.service


class LoginGate(Protocol):
    """A client's login, as far as it is known here (`network/login.py`)."""

    def handle(self, frame: memoryview, context: "RequestContext", dispatcher: Any) -> Any:
        """Answer a frame, be it by the dispatcher."""
        ...


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """One connection, and the request on it that is being served.

    There is one per connection: `api_version`, `client_id` and `now_ms` are those of the request
    in process, of which a connection has one at a time (rule 9), so they hold until it is
    answered; behind a `DelayedOperation` that `allows_pipelining` they do not.
    """

    services: Services
    connection_id: int
    listener: str
    """Name of the listener the client came in by, as in `listeners` (for example PLAINTEXT)."""
    is_inter_broker: bool = True
    """Brokers may come in by this listener; clients too, unless they have one of their own."""
    local_address: tuple[str, int]
    """Host and port that the client connected to; the host is a name if TLS told it (SNI)."""
    peer_address: tuple[str, int]
    principal: str = ANONYMOUS
    is_token: bool = False
    """The principal has shown a delegation token, not credentials of its own."""
    login: "LoginGate | None" = None
    """What answers first where clients have to log in; None on other listeners."""
    api_version: int = 0
    client_id: str = ""
    client_software: tuple[str, str] | None = None
    """Name and version of the client's software, once ApiVersions v3+ has told it (KIP-511)."""
    is_consumer: bool = False
    """Records were fetched on this connection."""
    is_held_up: bool = False
    """A fault rule keeps an answer from the client: if it goes it is not of its own will."""
    now_ms: int = 0
    """Wall clock in milliseconds when the request was read."""

    def endpoint(self, broker: "BrokerImage") -> tuple[str, int] | None:
        """Return the host and port at which this client reaches `broker`; None if it cannot.

        A broker whose advertised host is empty (`advertised.listeners=auto`) is this one: the
        client is answered with the address that it came in by, which is the only one known to work
        for it.
        """
        advertised = broker.endpoints.get(self.listener)
        if advertised is None:
            return None
        host, port = advertised
        if host:
            return host, port
        return self.local_address if broker.broker_id == self.services.config.node_id else None
