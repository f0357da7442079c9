"""The cluster's metadata at one moment: brokers, topics, partitions, settings, producer ids.

An image is a value: nothing in it is changed after it was made, and `apply` gives the next one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from kafkalite.meta.features import finalized_level
from kafkalite.meta.names import alike, can_collide, collision_key, refusal_of_name
from kafkalite.security.acls import Entry, Pattern
from kafkalite.wire.errors import ErrorCode

NO_LEADER = -1
RETIRED_TOPIC_IDS_MAX = 1_000
"""Ids of deleted topics that are remembered, to know their directories should any turn up."""


@dataclass(slots=True, frozen=True, kw_only=True)
class BrokerImage:
    """A live broker.

    Attributes:
        endpoints: host and port by listener name. An empty host stands for the address that a
            client came in by.
        broker_epoch: grows with each registration of a broker (KIP-380); -1 where there is none.
        shutting_down: it gave its leaderships away and gets none until it registers again; nor
            may it join in-sync replicas (rules 182 and 183).
    """

    broker_id: int
    endpoints: Mapping[str, tuple[str, int]]
    rack: str | None = None
    broker_epoch: int = -1
    shutting_down: bool = False


@dataclass(slots=True, frozen=True)
class PartitionImage:
    """One partition.

    Invariant: leader in isr or leader == NO_LEADER; isr is a subset of replicas and not empty;
    adding and removing are subsets of replicas and share nothing.

    Attributes:
        replicas: all of them; the ones to be added and to be removed too while it is reassigned.
        leader_epoch: one more with each write by the controller (rule 180).
        partition_epoch: one more with each write.
        adding: replicas that a reassignment brings in (KIP-455).
        removing: replicas that go once those to stay are all in sync.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_reassigned(self) -> bool:
        """Whether its replicas are being exchanged."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas that it has once its reassignment is complete."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas that it has should its reassignment be cancelled."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)


@dataclass(slots=True, frozen=True, kw_only=True)
class TopicImage:
    """One topic; partition i is `partitions[i]`, `configs` are its own settings as text."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionImage, ...]
    configs: Mapping[str, str] = field(default_factory=dict)


class ConfigResource(NamedTuple):
    """Resource that settings belong to: its number in the protocol, and its name."""

    type: int
    name: str


class Change(Protocol):
    """A step from one image to the next; the closed set of them is in `meta/changes.py`."""

    def apply_to(self, builder: "ImageBuilder") -> None:
        """Make the step."""
        ...


@dataclass(slots=True, frozen=True, kw_only=True)
class Image:
    """All metadata of the cluster at one version.

    Attributes:
        version: number of commits that led here.
        controller_id: the broker that decides, -1 if none is known.
        controller_epoch: of its epoch; -1 where there is no election.
        colliding: topics whose names hold '.' or '_', by what others may not share with them.
        configs: settings of brokers, groups and client metrics; those of topics are with them.
        acls: rules about who may do what, by what they are about.
        next_producer_id: first producer id that has not been given to any broker.
        retired_topic_ids: ids of topics deleted lately, the latest last.
        feature_levels: levels of features that were set; `feature_level` tells all.
    """

    version: int = 0
    cluster_id: str = ""
    controller_id: int = -1
    controller_epoch: int = -1
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names: Mapping[UUID, str] = field(default_factory=dict)
    colliding: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    acls: Mapping[Pattern, tuple[Entry, ...]] = field(default_factory=dict)
    next_producer_id: int = 0
    retired_topic_ids: tuple[UUID, ...] = ()
    feature_levels: Mapping[str, int] = field(default_factory=dict)

    def feature_level(self, name: str) -> int:
        """Return the finalised level of a feature such as group.version, 0 if it is off."""
        return finalized_level(self.feature_levels, name)

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        """Return the topic with this id, None if there is none."""
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """Return a partition, None if there is none."""
        found = self.topics.get(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index]

    def eligible_brokers(self) -> tuple[int, ...]:
        """Return the live brokers that may be made leaders, in the order of their ids."""
        return tuple(
            sorted(id_ for id_, broker in self.brokers.items() if not broker.shutting_down)
        )

    def with_controller(self, controller_id: int, controller_epoch: int) -> "Image":
        """Return the same image under another controller; -1 for none."""
        return replace(self, controller_id=controller_id, controller_epoch=controller_epoch)

    def configs_of(self, resource: ConfigResource) -> Mapping[str, str]:
        """Return the settings of a broker, group or metrics subscription; empty if it has none."""
        return self.configs.get(resource, {})

    def refusal_of_unknown(self, name: str) -> ErrorCode:
        """Return what to answer about a topic that is not here (rule 19)."""
        if refusal_of_name(name) is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def apply(self, changes: Iterable[Change]) -> "Image":
        """Return the image after one commit."""
        builder = ImageBuilder(self)
        for change in changes:
            change.apply_to(builder)
        return builder.build(self.version + 1)


class ImageBuilder:
    """Collects the changes of a commit; what they do not touch is shared with the old image."""

    __slots__ = ("_copied", "_image")

    def __init__(self, image: Image) -> None:
        self._image = image
        self._copied: set[str] = set()

    @property
    def image(self) -> Image:
        """The image so far; not to be kept."""
        return self._image

    def set_broker(self, broker: BrokerImage) -> None:
        """Add or replace a broker."""
        self._replace("brokers", broker.broker_id, broker)

    def remove_broker(self, broker_id: int) -> None:
        """Remove a broker."""
        self._replace("brokers", broker_id, None)

    def set_topic(self, topic: TopicImage) -> None:
        """Add or replace a topic."""
        is_new = topic.name not in self._image.topics
        self._replace("topics", topic.name, topic)
        self._replace("topic_names", topic.topic_id, topic.name)
        if is_new and can_collide(topic.name):
            self._replace("colliding", collision_key(topic.name), topic.name)

    def remove_topic(self, name: str) -> None:
        """Remove a topic and remember its id."""
        topic_id = self._image.topics[name].topic_id
        self._replace("topics", name, None)
        self._replace("topic_names", topic_id, None)
        # Two that were found on disk may collide; the entry is that of the later one.
        if self._image.colliding.get(collision_key(name)) == name:
            others = [other for other in alike(name) if other in self._image.topics]
            self._replace("colliding", collision_key(name), others[0] if others else None)
        self.retire((topic_id,))

    def set_partitions(self, name: str, partitions: tuple[PartitionImage, ...]) -> None:
        """Give a topic other partitions."""
        self.set_topic(replace(self._image.topics[name], partitions=partitions))

    def set_configs(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Give a broker, group or metrics subscription other settings; empty removes it."""
        self._replace("configs", resource, configs or None)

    def set_feature_level(self, name: str, level: int) -> None:
        """Give a feature another level."""
        self._replace("feature_levels", name, level)

    def set_acls(self, pattern: Pattern, entries: tuple[Entry, ...]) -> None:
        """Have these rules about something; none removes all."""
        self._replace("acls", pattern, entries or None)

    def set_next_producer_id(self, next_producer_id: int) -> None:
        """Move the producer ids on."""
        self._image = replace(self._image, next_producer_id=next_producer_id)

    def retire(self, topic_ids: tuple[UUID, ...]) -> None:
        """Remember ids of deleted topics."""
        known = self._image.retired_topic_ids
        new = tuple(topic_id for topic_id in topic_ids if topic_id not in known)
        retired = (*known, *new)[-RETIRED_TOPIC_IDS_MAX:]
        self._image = replace(self._image, retired_topic_ids=retired)

    def build(self, version: int) -> Image:
        """Return the new image."""
        self._copied.clear()
        return replace(self._image, version=version)

    def _replace(self, attribute: str, key: object, value: object) -> None:
        """Set or (with None) remove one entry of one mapping, which is copied the first time."""
        if attribute not in self._copied:
            copy: Any = dict(getattr(self._image, attribute))
            self._image = replace(self._image, **{attribute: copy})
            self._copied.add(attribute)
        mapping = getattr(self._image, attribute)
        if value is None:
            mapping.pop(key, None)
        else:
            mapping[key] = value
