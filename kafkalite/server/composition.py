"""The parts of one broker, made for each other: the one place that knows every part of it."""

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from kafkalite.api.client_metrics import ClientMetrics
from kafkalite.api.context import Services
from kafkalite.api.fetch_session import FetchSessions
from kafkalite.api.share_session import ShareSessions
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.group.effects import InitializeStates, ResolvePatterns
from kafkalite.group.metadata import GroupMetadata
from kafkalite.group.settings import group_settings
from kafkalite.group.shards import GroupShards
from kafkalite.isr.replicas import ReplicaManager
from kafkalite.log.cleaner import CleanerSettings
from kafkalite.log.housekeeping import HousekeepingSettings
from kafkalite.log.sequence_hold import SequenceHold
from kafkalite.meta.auto_topic_creation import AutoTopicCreationManager
from kafkalite.meta.background_topics import BackgroundTopics
from kafkalite.meta.deleted_topics import DeletedTopics
from kafkalite.meta.group_configs import GroupConfigs
from kafkalite.meta.local import METADATA_FILE, LocalStore
from kafkalite.meta.producer_ids import ProducerIdManager
from kafkalite.server.pattern_resolver import PatternResolver
from kafkalite.share.effects import PruneLog
from kafkalite.share.on_demand import ShareOnDemand
from kafkalite.share.settings import share_coordinator_settings
from kafkalite.share.shards import ShareStateShards
from kafkalite.txn.coordinator import TransactionCoordinator
from kafkalite.txn.settings import transaction_settings
from kafkalite.txn.shards import TransactionShards

if TYPE_CHECKING:
    from kafkalite.clock import Clock
    from kafkalite.config import BrokerConfig
    from kafkalite.coordinator.shard import ShardKind
    from kafkalite.faults.parts import Control
    from kafkalite.http.server import HttpServer
    from kafkalite.isr.alter_partition import AlterPartitionManager
    from kafkalite.isr.fetcher import ReplicaFetcherManager
    from kafkalite.log.disk import Disk
    from kafkalite.log.manager import LogManager
    from kafkalite.meta.image import Change, Image
    from kafkalite.meta.runner import MetadataRunner
    from kafkalite.meta.store import MetadataStore
    from kafkalite.meta.zookeeper.session import Session
    from kafkalite.network.dispatch import Authorize, Dispatcher
    from kafkalite.network.listeners import ConnectionServer
    from kafkalite.network.sockets import Network
    from kafkalite.observe.requests import Requests
    from kafkalite.peers.clients import ControllerClient, PeerClients
    from kafkalite.peers.forwarding import Forwarder
    from kafkalite.security.delegation_tokens import DelegationTokens
    from kafkalite.share.service import ShareService
    from kafkalite.types import TopicPartition

logger = logging.getLogger("kafkalite.server")

CONTROLLER_CHANNEL, ISR_CHANNEL = "controller", "isr"
"""Connections to the controller: what this broker asks for itself, and changes of ISRs, which are
not to wait behind that."""


@dataclass(slots=True, kw_only=True)
class ClusterParts:
    """Parts that only a broker in a cluster has."""

    peers: "PeerClients"
    controller: "ControllerClient"
    forwarder: "Forwarder"
    isr_keeper: "AlterPartitionManager"
    fetchers: "ReplicaFetcherManager"
    session: "Session | None"
    """With ZooKeeper, for those who look at it."""
    subscribers: "Sequence[Callable[[Sequence[Change], Image], None]]"
    """To be told of metadata before all others: they find out where other brokers are."""


def new_uuid_from(entropy: random.Random) -> Callable[[], UUID]:
    """Return a maker of random UUIDs."""
    return lambda: UUID(int=entropy.getrandbits(128), version=4)


def metadata_store(
    config: "BrokerConfig", clock: "Clock", disk: "Disk", directory: str
) -> "MetadataStore":
    """Return the store that the settings name: ZooKeeper, another process, or a file here."""
    if config.optional_str("zookeeper.connect") is not None:
        # Only a broker in a cluster pays for the import.
        from kafkalite.meta.zookeeper.store import ZookeeperStore

        return ZookeeperStore.of(config, clock)
    flush = config.bool("kafkalite.metadata.flush")
    local = LocalStore(disk, f"{directory}/{METADATA_FILE}", flush=flush)
    if config.is_alone:
        return local
    from kafkalite.meta.processes import FirstProcessStore, FollowingStore

    followed = config.optional_str("kafkalite.metadata.follow")
    if followed is not None:
        return FollowingStore(followed)
    return FirstProcessStore(local, config.str("kafkalite.metadata.serve"))


def cluster_parts(
    config: "BrokerConfig",
    clock: "Clock",
    network: "Network",
    *,
    metadata: "MetadataRunner",
    replicas: ReplicaManager,
    session: "Session | None",
) -> ClusterParts:
    """Make what a broker needs in order to work with others."""
    # A lone broker starts without all this.
    from kafkalite.isr.alter_partition import AlterPartitionManager
    from kafkalite.isr.fetcher import ReplicaFetcherManager
    from kafkalite.peers.clients import ControllerClient, PeerClients, peer_settings
    from kafkalite.peers.forwarding import FORWARDING_CHANNEL, Forwarder

    def image() -> "Image":
        return metadata.image

    known_epoch = -1

    def broker_epoch() -> int:
        # Of the registration that ended, until there is another: that is refused where it matters,
        # and -1 would be taken unchecked (KIP-903).
        nonlocal known_epoch
        known_epoch = max(known_epoch, metadata.broker_epoch)
        return known_epoch

    peers = PeerClients(network, image, settings=peer_settings(config))
    controller, forwarding, isr = (
        ControllerClient(peers, image, channel=channel)
        for channel in (CONTROLLER_CHANNEL, FORWARDING_CHANNEL, ISR_CHANNEL)
    )
    return ClusterParts(
        peers=peers,
        controller=controller,
        forwarder=Forwarder(forwarding, timeout_ms=config.int("request.timeout.ms")),
        isr_keeper=AlterPartitionManager(replicas, isr, config, broker_epoch=broker_epoch),
        fetchers=ReplicaFetcherManager(
            replicas, peers, config, clock, image=image, broker_epoch=broker_epoch
        ),
        session=session,
        subscribers=[each.on_changes for each in (peers, controller, forwarding, isr)],
    )


def _shard_kinds(
    config: "BrokerConfig", metadata: "MetadataRunner", group_metadata: GroupMetadata
) -> "list[ShardKind]":
    """Return what this broker coordinates."""
    kinds: list[ShardKind] = [
        GroupShards(group_settings(config), group_metadata),
        TransactionShards(transaction_settings(config)),
        ShareStateShards(share_coordinator_settings(config), partial(_has_partition, metadata)),
    ]
    if config.bool("kafkalite.schema.registry"):
        # Only who wants a registry pays for the import.
        from kafkalite.registry.shard import RegistryShards

        kinds.append(RegistryShards())
    return kinds


def services(
    config: "BrokerConfig",
    clock: "Clock",
    entropy: random.Random,
    *,
    logs: "LogManager",
    metadata: "MetadataRunner",
    replicas: ReplicaManager,
    patterns: PatternResolver,
    cluster: ClusterParts | None,
) -> Services:
    """Make the coordinators, and put together what handlers may know."""
    share_sessions = ShareSessions(max_sessions=config.int("group.share.max.share.sessions"))

    def perform(effect: object) -> None:
        performers.get(type(effect), transactions.perform)(effect)

    group_metadata = GroupMetadata(metadata.image, config)
    groups = CoordinatorRuntime(
        _shard_kinds(config, metadata, group_metadata),
        clock,
        write_timeout_ms=config.int("offsets.commit.timeout.ms"),
        perform=perform,
        on_disconnect=lambda connection_id: _end_sessions(connection_id, share_sessions, share),
    )
    peers = None if cluster is None else cluster.peers
    controller = None if cluster is None else cluster.controller
    topic_creation = AutoTopicCreationManager(config, metadata, controller)
    sequence_hold = SequenceHold()
    transactions = _transactions(config, clock, groups, sequence_hold, metadata, replicas, peers)
    group_configs = GroupConfigs(config, lambda: metadata.image)
    share = ShareOnDemand(
        lambda: _share_service(
            config, clock, groups, group_configs, metadata, topic_creation, replicas, peers
        )
    )
    patterns.attach(groups, group_metadata)
    performers = _performers(share, patterns)
    made = Services(
        config=config,
        clock=clock,
        logs=logs,
        metadata=metadata,
        topic_creation=topic_creation,
        producer_ids=ProducerIdManager(config, metadata, controller),
        replicas=replicas,
        coordinators=groups,
        group_metadata=group_metadata,
        transactions=transactions,
        sequence_hold=sequence_hold,
        fetch_sessions=FetchSessions(
            max_sessions=config.int("max.incremental.fetch.session.cache.slots"),
            first_id=entropy.randrange(1, 2**31),
        ),
        deleted_topics=DeletedTopics.following(metadata.subscribe),
        tokens=_delegation_tokens(config, metadata),
        client_metrics=ClientMetrics(telemetry_max_bytes=config.int("telemetry.max.bytes")),
        background_topics=BackgroundTopics(topic_creation, clock),
        group_configs=group_configs,
        share_on_demand=share,
        share_sessions=share_sessions,
        fetch_max_bytes=config.int("fetch.max.bytes"),
    )
    _add_registry(made, peers)
    return made


def _transactions(
    config: "BrokerConfig",
    clock: "Clock",
    groups: CoordinatorRuntime,
    sequence_hold: SequenceHold,
    metadata: "MetadataRunner",
    replicas: ReplicaManager,
    peers: "PeerClients | None",
) -> TransactionCoordinator:
    return TransactionCoordinator(
        groups,
        clock,
        sequence_hold=sequence_hold,
        find_partition=replicas.find,
        exists=lambda tp: metadata.image.partition(*tp) is not None,
        broker_id=config.node_id,
        leader_of=partial(_leader_of, metadata),
        peers=peers,
        request_timeout_ms=config.int("request.timeout.ms"),
    )


def _add_registry(made: Services, peers: "PeerClients | None") -> None:
    if made.config.bool("kafkalite.schema.registry"):
        # Only who wants a registry pays for the import.
        from kafkalite.registry.rest import RegistryApi
        from kafkalite.registry.service import Registry

        made.registry = RegistryApi(Registry(made, peers))


def _delegation_tokens(
    config: "BrokerConfig", metadata: "MetadataRunner"
) -> "DelegationTokens | None":
    """Return what knows delegation tokens, where there is a secret to make them."""
    secret = config.optional_str("delegation.token.secret.key")
    if not secret:
        return None
    # Only who has them pays for the import.
    from kafkalite.security.delegation_tokens import DelegationTokens

    return DelegationTokens(secret, lambda: metadata.image)


def _performers(share: ShareOnDemand, patterns: PatternResolver) -> dict[type, Callable[..., None]]:
    """Return who performs which effects of shards; what is not here is the transactions'."""
    return {
        PruneLog: share.perform,
        InitializeStates: share.perform,
        ResolvePatterns: patterns.perform,
    }


def _end_sessions(connection_id: int, sessions: ShareSessions, share: ShareOnDemand) -> None:
    """Tell of a connection's end, where there may be share sessions."""
    if share.made is not None:
        from kafkalite.api.share_acknowledge import end_sessions

        end_sessions(connection_id, sessions, share.made.partitions)


def _share_service(
    config: "BrokerConfig",
    clock: "Clock",
    groups: CoordinatorRuntime,
    group_configs: GroupConfigs,
    metadata: "MetadataRunner",
    topic_creation: AutoTopicCreationManager,
    replicas: ReplicaManager,
    peers: "PeerClients | None",
) -> "ShareService":
    from kafkalite.share.service import ShareService

    return ShareService(
        groups,
        clock,
        group_configs,
        find_partition=replicas.find,
        ensure_topic=topic_creation.ensure_topic,
        broker_id=config.node_id,
        leader_of=partial(_leader_of, metadata),
        peers=peers,
        request_timeout_ms=config.int("request.timeout.ms"),
    )


def _leader_of(metadata: "MetadataRunner", topic_partition: "TopicPartition") -> int | None:
    state = metadata.image.partition(*topic_partition)
    return None if state is None or state.leader < 0 else state.leader


def _has_partition(metadata: "MetadataRunner", topic_id: UUID, index: int) -> bool:
    topic = metadata.image.topic_by_id(topic_id)
    return topic is not None and index < len(topic.partitions)


def authorize(services: Services, patterns: PatternResolver) -> "Authorize | None":
    """Make the authorizer that the settings name; return what is called instead of handlers."""
    handle: Authorize | None = None
    if services.config.str("authorizer.class.name"):
        # A broker without one does not pay for it.
        from kafkalite.api import authorization
        from kafkalite.api.authorizer import Authorizer

        services.authorizer = Authorizer(services.config, services.metadata.image)
        services.metadata.subscribe(services.authorizer.on_changes)
        patterns.restrict(services.authorizer.may_see)
        handle = authorization.handle
    if services.config.bool("kafkalite.read.only"):
        from kafkalite.api.read_only import refusing

        return refusing(handle)
    return handle


def housekeeping_settings(config: "BrokerConfig") -> HousekeepingSettings:
    """Return the intervals and limits of what is done to logs in the background."""
    return HousekeepingSettings(
        initial_task_delay_ms=config.int("log.initial.task.delay.ms"),
        retention_check_interval_ms=config.int("log.retention.check.interval.ms"),
        flush_offset_checkpoint_interval_ms=config.int("log.flush.offset.checkpoint.interval.ms"),
        flush_start_offset_checkpoint_interval_ms=config.int(
            "log.flush.start.offset.checkpoint.interval.ms"
        ),
        producer_id_expiration_ms=config.int("producer.id.expiration.ms"),
        producer_id_expiration_check_interval_ms=config.int(
            "producer.id.expiration.check.interval.ms"
        ),
        cleaner_enable=config.bool("log.cleaner.enable"),
        cleaner_backoff_ms=config.int("log.cleaner.backoff.ms"),
        cleaner=CleanerSettings(
            dedupe_buffer_size=config.int("log.cleaner.dedupe.buffer.size"),
            io_buffer_load_factor=config.float("log.cleaner.io.buffer.load.factor"),
            io_max_bytes_per_second=config.float("log.cleaner.io.max.bytes.per.second"),
        ),
    )


def request_observer(config: "BrokerConfig") -> "Requests":
    """Make what counts requests, and keeps the latest; only for a broker with an HTTP port."""
    from kafkalite.observe.requests import Requests

    return Requests(
        max_bytes=config.int("kafkalite.journal.max.bytes"),
        slow_ms=config.int("kafkalite.slow.request.ms"),
    )


def http_server(
    services: Services,
    dispatcher: "Dispatcher",
    connections: "ConnectionServer",
    cluster: ClusterParts | None,
    *,
    requests: "Requests",
    ports: "Mapping[str, int]",
    bootstrap: str,
    token: str | None,
    control: "Control",
) -> "HttpServer":
    """Make what answers on the HTTP port; only called once somebody has connected to it."""
    from kafkalite.observe.inside import BrokerParts
    from kafkalite.observe.serving import broker_server

    parts = BrokerParts(
        services=services,
        dispatcher=dispatcher,
        connections=connections,
        requests=requests,
        peers=None if cluster is None else cluster.peers,
        fetchers=None if cluster is None else cluster.fetchers,
        session=None if cluster is None else cluster.session,
        ports=ports,
        bootstrap=bootstrap,
        control=control,
    )
    return broker_server(parts, token=token)
