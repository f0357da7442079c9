"""Events of metadata: the closed set that `controller.decide` knows.

Whatever is random or taken from a clock was made outside and is in the event.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING
from uuid import UUID

from kafkalite.log_config import LogConfig
from kafkalite.meta.features import FeatureUpdate
from kafkalite.security.acls import Rule
from kafkalite.settings.config_def import Value

if TYPE_CHECKING:
    from kafkalite.meta.image import BrokerImage

PRODUCER_ID_BLOCK_SIZE = 1_000
"""Producer ids given to a broker at a time, as in Kafka (rule 64)."""


@dataclass(slots=True, frozen=True, kw_only=True)
class ControllerConfig:
    """Settings that the controller decides by.

    Attributes:
        broker_id: of the broker that decides.
        listener_names: the listeners of that broker.
        broker_values: its settings.
        topic_defaults: what topics have that do not set it.
        live: brokers as the store registers them now, which the image may not show yet; empty while
            that is not known, None where the image is all there is.
    """

    broker_id: int
    listener_names: Sequence[str]
    broker_values: Mapping[str, Value]
    topic_defaults: LogConfig
    live: "Mapping[int, BrokerImage] | None" = None


@dataclass(slots=True, frozen=True, kw_only=True)
class RegisterBroker:
    """A broker has started, or tells other addresses than before.

    Attributes:
        restarted: whether its partitions begin a new epoch. A registration under the epoch that is
            known tells nothing of the kind, whatever this says.
        broker_epoch: of the registration; -1 on a lone broker, which has none.
    """

    broker_id: int
    endpoints: Mapping[str, tuple[str, int]]
    rack: str | None = None
    restarted: bool = True
    broker_epoch: int = -1


@dataclass(slots=True, frozen=True, kw_only=True)
class UnregisterBroker:
    """A broker has stopped."""

    broker_id: int


@dataclass(slots=True, frozen=True, kw_only=True)
class CreateTopic:
    """A topic is wanted.

    Attributes:
        topic_id: a new one.
        num_partitions: -1 with assignments.
        replication_factor: -1 with assignments.
        assignments: index and brokers of each partition, instead of the two numbers.
        configs: the topic's own settings; None is what a client may send and nobody may set.
    """

    name: str
    topic_id: UUID
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(slots=True, frozen=True, kw_only=True)
class DeleteTopic:
    """A topic is to go.

    Attributes:
        topic_id: the topic that is meant, if that matters: the name may have become another's.
    """

    name: str
    topic_id: UUID | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class CreatePartitions:
    """A topic is to have more partitions.

    Attributes:
        count: of all partitions afterwards.
        assignments: brokers of each new partition; None leaves it to the controller.
    """

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class AlterConfigs:
    """A resource is to have exactly these settings of its own (the older AlterConfigs)."""

    resource_type: int
    resource_name: str
    configs: Sequence[tuple[str, str | None]]


class Operation(IntEnum):
    """Change to one setting (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(slots=True, frozen=True, kw_only=True)
class IncrementalAlterConfigs:
    """Some settings of a resource are to change: name, number of the operation, value."""

    resource_type: int
    resource_name: str
    operations: Sequence[tuple[str, int, str | None]]


@dataclass(slots=True, frozen=True, kw_only=True)
class UpdateFeatures:
    """Features are to have other levels, all of them or none (KIP-584)."""

    updates: Sequence[FeatureUpdate]


@dataclass(slots=True, frozen=True, kw_only=True)
class AlterScramCredential:
    """A user is to have this credential for a mechanism, as it is stored; None removes it."""

    user: str
    mechanism: str
    credential: str | None


@dataclass(slots=True, frozen=True, kw_only=True)
class AlterClientQuota:
    """A user, a client, both together or an address is to have other quotas (KIP-546).

    Attributes:
        entity: types and names of what they belong to; None is the default of all.
        quotas: names and values; None removes one.
    """

    entity: Sequence[tuple[str, str | None]]
    quotas: Sequence[tuple[str, float | None]]


@dataclass(slots=True, frozen=True, kw_only=True)
class CreateDelegationToken:
    """A token is wanted, for whoever is its owner; times are milliseconds since 1970.

    Attributes:
        token_id: new, and not to be guessed.
        owner: who shows it is this principal.
        requester: who asks.
        renewers: who else may renew and end it.
        expiry_ms: its end, unless it is renewed.
        max_ms: its end in any case.
    """

    token_id: str
    owner: str
    requester: str
    renewers: Sequence[str]
    now_ms: int
    expiry_ms: int
    max_ms: int


@dataclass(slots=True, frozen=True, kw_only=True)
class ChangeDelegationToken:
    """A token is to end at another time.

    Attributes:
        token_id: None if what was shown is of no token.
        principal: who asks.
        expiry_ms: when, None at once.
        is_renewal: it is to last longer.
    """

    token_id: str | None
    principal: str
    now_ms: int
    expiry_ms: int | None
    is_renewal: bool


@dataclass(slots=True, frozen=True, kw_only=True)
class SweepDelegationTokens:
    """Tokens that are worth nothing any more are to be removed."""

    now_ms: int


@dataclass(slots=True, frozen=True, kw_only=True)
class CreateAcl:
    """A rule about who may do what is to be there; it is no error if it is."""

    rule: Rule


@dataclass(slots=True, frozen=True, kw_only=True)
class DeleteAcl:
    """A rule is to be there no more; it is no error if it is not."""

    rule: Rule


@dataclass(slots=True, frozen=True, kw_only=True)
class AllocateProducerIds:
    """A broker has no producer ids left; its epoch is checked unless it is -1."""

    broker_id: int
    count: int = PRODUCER_ID_BLOCK_SIZE
    broker_epoch: int = -1


@dataclass(slots=True, frozen=True, kw_only=True)
class AlterPartition:
    """The leader of a partition wants other in-sync replicas (KIP-497).

    Attributes:
        broker_id: of the leader.
        broker_epoch: of its registration; not checked if -1.
        leader_epoch: of its epoch.
        partition_epoch: of the state that it wants to replace.
        new_isr: brokers and the epochs under which they are in sync; -1 is not checked (KIP-903).
    """

    broker_id: int
    broker_epoch: int
    topic_id: UUID
    index: int
    leader_epoch: int
    partition_epoch: int
    new_isr: Sequence[tuple[int, int]]


@dataclass(slots=True, frozen=True, kw_only=True)
class ControlledShutdown:
    """A broker is about to stop; its epoch is checked unless it is -1."""

    broker_id: int
    broker_epoch: int


@dataclass(slots=True, frozen=True, kw_only=True)
class ElectLeader:
    """The preferred replica of a partition is to lead it, or (unclean) any live replica at all."""

    topic: str
    index: int
    unclean: bool = False


@dataclass(slots=True, frozen=True, kw_only=True)
class RebalanceLeaders:
    """Preferred replicas are to lead again where too many of a broker's do not (rule 181).

    Attributes:
        imbalance_percentage: of the partitions that prefer a broker, those led by another that are
            tolerated (`leader.imbalance.per.broker.percentage`).
    """

    imbalance_percentage: int


@dataclass(slots=True, frozen=True, kw_only=True)
class Reassign:
    """A partition is to have other replicas (KIP-455).

    Attributes:
        replicas: the preferred leader first; None cancels what is going on.
        allow_replication_factor_change: whether there may be more or fewer of them (KIP-860).
    """

    topic: str
    index: int
    replicas: Sequence[int] | None
    allow_replication_factor_change: bool = True


@dataclass(slots=True, frozen=True, kw_only=True)
class FinishReassignments:
    """Completion of every reassignment that can be; for a controller that was just elected."""


@dataclass(slots=True, frozen=True, kw_only=True)
class ImportTopic:
    """Directories of a topic were found on a broker's disk.

    They are those of a known topic, or of one that Apache Kafka or a lost metadata file knew.

    Attributes:
        topic_id: as the directories say; None if they do not.
        new_topic_id: the id to give if they do not.
        leader_epochs: latest leader epoch in each partition's log, by index; -1 if there is none.
        broker_id: of the broker.
        configs: settings to begin with.
        next_producer_id: one more than the largest producer id in the logs.
    """

    name: str
    topic_id: UUID | None
    new_topic_id: UUID
    leader_epochs: Mapping[int, int]
    broker_id: int
    configs: Mapping[str, str] = field(default_factory=dict)
    next_producer_id: int = 0


Event = (
    RegisterBroker
    | UnregisterBroker
    | CreateTopic
    | DeleteTopic
    | CreatePartitions
    | AlterConfigs
    | IncrementalAlterConfigs
    | UpdateFeatures
    | AlterScramCredential
    | AlterClientQuota
    | CreateDelegationToken
    | ChangeDelegationToken
    | SweepDelegationTokens
    | CreateAcl
    | DeleteAcl
    | AllocateProducerIds
    | ImportTopic
    | AlterPartition
    | ControlledShutdown
    | ElectLeader
    | RebalanceLeaders
    | Reassign
    | FinishReassignments
)
