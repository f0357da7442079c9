"""The closed set of steps that metadata takes, and their form in the metadata file.

A commit is a list of changes. `to_json` and `from_json` convert one to plain values, `to_text`
writes these; names and order of attributes are part of the file format.

A broker that loads a snapshot may be told changes again that are in it, with all that came after
them. So a change says what is, not by how much it differs, and one that is older than what is
known has no effect. (`LeaderEpochsRaised` is the exception; only a lone broker has it.)
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID

from kafkalite.meta.image import (
    BrokerImage,
    ConfigResource,
    Image,
    ImageBuilder,
    PartitionImage,
    TopicImage,
)
from kafkalite.security.acls import Entry, Pattern

_dump = partial(json.dumps, separators=(",", ":"))

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32


@dataclass(slots=True, frozen=True, kw_only=True)
class BrokerRegistered:
    """A broker is there, or is reached at other addresses than before."""

    broker_id: int
    endpoints: Mapping[str, tuple[str, int]]
    rack: str | None = None
    broker_epoch: int = -1
    shutting_down: bool = False

    @classmethod
    def of(cls, broker: BrokerImage) -> "BrokerRegistered":
        """Return the change that makes this broker."""
        return cls(
            broker_id=broker.broker_id,
            endpoints=broker.endpoints,
            rack=broker.rack,
            broker_epoch=broker.broker_epoch,
            shutting_down=broker.shutting_down,
        )

    def apply_to(self, builder: ImageBuilder) -> None:
        """Add or replace the broker."""
        known = builder.image.brokers.get(self.broker_id)
        if known is not None and self.broker_epoch < known.broker_epoch:
            return
        builder.set_broker(
            BrokerImage(
                broker_id=self.broker_id,
                endpoints=self.endpoints,
                rack=self.rack,
                broker_epoch=self.broker_epoch,
                shutting_down=self.shutting_down,
            )
        )


@dataclass(slots=True, frozen=True, kw_only=True)
class BrokerUnregistered:
    """A broker is gone. What it led is changed by changes of its own.

    Attributes:
        broker_epoch: of the registration that ended.
    """

    broker_id: int
    broker_epoch: int = -1

    def apply_to(self, builder: ImageBuilder) -> None:
        """Remove the broker."""
        known = builder.image.brokers.get(self.broker_id)
        if known is not None and self.broker_epoch in (-1, known.broker_epoch):
            builder.remove_broker(self.broker_id)


@dataclass(slots=True, frozen=True, kw_only=True)
class LeaderEpochsRaised:
    """A broker that came back leads its partitions again, in a new epoch of each (rule 180).

    Consumers see by the epoch that records of the epoch before may have been lost with the crash
    of a machine (KIP-320). One change for all partitions: a start may have thousands.
    """

    broker_id: int

    def apply_to(self, builder: ImageBuilder) -> None:
        """Raise the leader epoch of every partition that the broker leads."""
        for topic in builder.image.topics.values():
            if any(state.leader == self.broker_id for state in topic.partitions):
                builder.set_partitions(topic.name, tuple(map(self._raised, topic.partitions)))

    def _raised(self, state: PartitionImage) -> PartitionImage:
        if state.leader != self.broker_id:
            return state
        return replace(
            state, leader_epoch=state.leader_epoch + 1, partition_epoch=state.partition_epoch + 1
        )


@dataclass(slots=True, frozen=True, kw_only=True)
class TopicCreated:
    """A topic is there, with its partitions and its own settings."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionImage, ...]
    configs: Mapping[str, str] = field(default_factory=dict)

    def apply_to(self, builder: ImageBuilder) -> None:
        """Add the topic; of one that is there, only the settings are as they were."""
        known = builder.image.topics.get(self.name)
        if self.topic_id in builder.image.retired_topic_ids:
            return
        partitions = self.partitions
        if known is not None and known.topic_id == self.topic_id:
            partitions = known.partitions
        elif known is not None:
            builder.remove_topic(self.name)
        builder.set_topic(
            TopicImage(
                name=self.name,
                topic_id=self.topic_id,
                partitions=partitions,
                configs=self.configs,
            )
        )


@dataclass(slots=True, frozen=True, kw_only=True)
class TopicDeleted:
    """A topic is gone for good; its name may be used again at once, its id never."""

    name: str
    topic_id: UUID

    def apply_to(self, builder: ImageBuilder) -> None:
        """Remove the topic and remember its id."""
        known = builder.image.topics.get(self.name)
        if known is not None and known.topic_id == self.topic_id:
            builder.remove_topic(self.name)
        else:
            builder.retire((self.topic_id,))


@dataclass(slots=True, frozen=True, kw_only=True)
class PartitionsAdded:
    """A topic has more partitions.

    Attributes:
        first_index: of the first of them; -1 (in files of older versions) goes on from the last.
    """

    name: str
    topic_id: UUID
    partitions: tuple[PartitionImage, ...]
    first_index: int = -1

    def apply_to(self, builder: ImageBuilder) -> None:
        """Append those partitions that are not there."""
        topic = builder.image.topics.get(self.name)
        if topic is None or topic.topic_id != self.topic_id:
            return
        count = len(topic.partitions)
        known_count = 0 if self.first_index < 0 else count - self.first_index
        builder.set_partitions(self.name, topic.partitions + self.partitions[known_count:])


@dataclass(slots=True, frozen=True, kw_only=True)
class PartitionChanged:
    """A partition has another leader, other in-sync replicas or other replicas."""

    name: str
    topic_id: UUID
    index: int
    state: PartitionImage

    def apply_to(self, builder: ImageBuilder) -> None:
        """Replace the partition, unless what is known of it is newer."""
        topic = builder.image.topics.get(self.name)
        if topic is None or topic.topic_id != self.topic_id:
            return
        if self.index >= len(topic.partitions):
            return
        if self.state.partition_epoch < topic.partitions[self.index].partition_epoch:
            return
        states = list(topic.partitions)
        states[self.index] = self.state
        builder.set_partitions(self.name, tuple(states))


@dataclass(slots=True, frozen=True, kw_only=True)
class ConfigsChanged:
    """A topic, broker, group or metrics subscription has other settings of its own.

    Attributes:
        resource_type: number of the kind as the protocol has it.
        resource_name: empty for the default of all brokers.
        values: settings that have this value now.
        removed: settings that are back at their default.
    """

    resource_type: int
    resource_name: str
    values: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()

    @property
    def resource(self) -> ConfigResource:
        """Thing that the settings belong to."""
        return ConfigResource(self.resource_type, self.resource_name)

    def apply_to(self, builder: ImageBuilder) -> None:
        """Change the settings."""
        if self.resource_type == TOPIC_RESOURCE:
            topic = builder.image.topics.get(self.resource_name)
            if topic is None:
                return
            builder.set_topic(replace(topic, configs=self._changed(topic.configs)))
        else:
            before = builder.image.configs_of(self.resource)
            builder.set_configs(self.resource, self._changed(before))

    def _changed(self, before: Mapping[str, str]) -> dict[str, str]:
        after = {**before, **self.values}
        for name in self.removed:
            after.pop(name, None)
        return after


def settings_of(resource: ConfigResource, image: Image) -> Mapping[str, str]:
    """Return the settings that any resource has of its own, a topic too; empty if it has none."""
    if resource.type == TOPIC_RESOURCE:
        topic = image.topics.get(resource.name)
        return {} if topic is None else topic.configs
    return image.configs_of(resource)


@dataclass(slots=True, frozen=True, kw_only=True)
class AclsChanged:
    """There are other rules about who may do something to some resources.

    Attributes:
        pattern: which resources: numbers of their type and of the pattern's, and the name.
        entries: all rules that there are now.
    """

    pattern: Pattern
    entries: tuple[Entry, ...] = ()

    def apply_to(self, builder: ImageBuilder) -> None:
        """Replace the rules."""
        builder.set_acls(self.pattern, self.entries)


@dataclass(slots=True, frozen=True, kw_only=True)
class ProducerIdsAllocated:
    """A broker may hand out the producer ids up to `next_producer_id`, exclusive (rule 64)."""

    broker_id: int
    next_producer_id: int

    def apply_to(self, builder: ImageBuilder) -> None:
        """Move the producer ids on."""
        builder.set_next_producer_id(max(self.next_producer_id, builder.image.next_producer_id))


@dataclass(slots=True, frozen=True, kw_only=True)
class FeaturesUpdated:
    """Features have these levels now, by name (KIP-584)."""

    levels: Mapping[str, int]

    def apply_to(self, builder: ImageBuilder) -> None:
        """Change the levels."""
        for name, level in self.levels.items():
            builder.set_feature_level(name, level)


@dataclass(slots=True, frozen=True, kw_only=True)
class TopicIdsRetired:
    """Ids of deleted topics, kept when the changes that deleted them are summed up."""

    topic_ids: tuple[UUID, ...]

    def apply_to(self, builder: ImageBuilder) -> None:
        """Remember the ids."""
        builder.retire(self.topic_ids)


@dataclass(slots=True, frozen=True, kw_only=True)
class ImageReplaced:
    """A whole image was loaded, and what led to it is unknown: compare everything.

    Never stored; subscribers of the image get it as the only change.
    """

    def apply_to(self, builder: ImageBuilder) -> None:
        """Change nothing: it is told after the fact."""


Change = (
    BrokerRegistered
    | BrokerUnregistered
    | LeaderEpochsRaised
    | TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | PartitionChanged
    | ConfigsChanged
    | AclsChanged
    | ProducerIdsAllocated
    | TopicIdsRetired
    | FeaturesUpdated
    | ImageReplaced
)

_CLASSES: dict[str, type[Change]] = {
    cls.__name__: cls
    for cls in (
        BrokerRegistered,
        BrokerUnregistered,
        LeaderEpochsRaised,
        TopicCreated,
        TopicDeleted,
        PartitionsAdded,
        PartitionChanged,
        ConfigsChanged,
        AclsChanged,
        ProducerIdsAllocated,
        TopicIdsRetired,
        FeaturesUpdated,
    )
}


def changed(topic: TopicImage, index: int, state: PartitionImage) -> list[Change]:
    """Return the change to this state of a partition; none if it is the state that it has."""
    if state is topic.partitions[index]:
        return []
    return [PartitionChanged(name=topic.name, topic_id=topic.topic_id, index=index, state=state)]


def snapshot(image: Image) -> list[Change]:
    """Return changes that make this image out of an empty one (but for its version)."""
    changes: list[Change] = []
    if image.retired_topic_ids:
        changes.append(TopicIdsRetired(topic_ids=image.retired_topic_ids))
    changes += [BrokerRegistered.of(broker) for broker in image.brokers.values()]
    changes += [
        TopicCreated(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=topic.partitions,
            configs=topic.configs,
        )
        for topic in image.topics.values()
    ]
    changes += [
        ConfigsChanged(resource_type=resource.type, resource_name=resource.name, values=values)
        for resource, values in image.configs.items()
    ]
    changes += [
        AclsChanged(pattern=pattern, entries=entries) for pattern, entries in image.acls.items()
    ]
    if image.next_producer_id:
        changes.append(ProducerIdsAllocated(broker_id=-1, next_producer_id=image.next_producer_id))
    if image.feature_levels:
        changes.append(FeaturesUpdated(levels=image.feature_levels))
    return changes


def to_json(change: Change) -> dict[str, Any]:
    """Return a change as values that JSON has."""
    values: dict[str, Any] = {"change": type(change).__name__}
    for name in type(change).__dataclass_fields__:
        value = getattr(change, name)
        match value:
            case UUID():
                values[name] = str(value)
            case PartitionImage():
                values[name] = _partition_to_json(value)
            case Pattern():
                values[name] = list(value)
            case tuple() if name == "entries":
                values[name] = [list(entry) for entry in value]
            case tuple() if name == "partitions":
                values[name] = [_partition_to_json(state) for state in value]
            case tuple():
                values[name] = [str(item) for item in value]
            case Mapping():
                values[name] = dict(value)
            case _:
                values[name] = value
    return values


def to_text(change: Change) -> str:
    """Return a change as JSON text.

    New partitions are alike for the most part: each kind of them is written once, and ten thousand
    take a few milliseconds.
    """
    if not isinstance(change, TopicCreated | PartitionsAdded):
        return _dump(to_json(change))
    text = _dump(to_json(replace(change, partitions=())))
    empty, brackets = '"partitions":[]', '"partitions":[%s]'
    before, found, after = text.rpartition(empty)
    assert found
    known: dict[int, str] = {}
    for state in change.partitions:
        if id(state) not in known:
            known[id(state)] = _dump(_partition_to_json(state))
    states = ",".join([known[id(state)] for state in change.partitions])
    return f"{before}{brackets % states}{after}"


def from_json(values: Mapping[str, Any]) -> Change:
    """Return the change that `to_json` wrote.

    Raises:
        ValueError: there is no such change, or its attributes are not those of this version.
    """
    try:
        cls = _CLASSES[values["change"]]
        attributes = {
            name: _read_attribute(name, value) for name, value in values.items() if name != "change"
        }
        return cls(**attributes)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a change of metadata: {dict(values)!r:.200}") from error


def _read_attribute(name: str, value: Any) -> Any:
    match name:
        case "topic_id":
            return UUID(value)
        case "topic_ids":
            return tuple(map(UUID, value))
        case "partitions":
            return tuple(map(_partition_from_json, value))
        case "state":
            return _partition_from_json(value)
        case "endpoints":
            return {listener: (host, port) for listener, (host, port) in value.items()}
        case "pattern":
            return Pattern(*value)
        case "entries":
            return tuple(Entry(*entry) for entry in value)
        case "removed":
            return tuple(value)
        case _:
            return value


def _partition_to_json(state: PartitionImage) -> list[Any]:
    reassigned = [list(state.adding), list(state.removing)] if state.is_reassigned else []
    return [
        list(state.replicas),
        list(state.isr),
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        *reassigned,
    ]


def _partition_from_json(values: list[Any]) -> PartitionImage:
    replicas, isr, leader, leader_epoch, partition_epoch, *reassigned = values
    adding, removing = map(tuple, reassigned or ((), ()))
    return PartitionImage(
        tuple(replicas), tuple(isr), leader, leader_epoch, partition_epoch, adding, removing
    )
