"""The closed set of steps that metadata takes, and their form in the metadata file.

A commit is a list of changes. `to_json` and `from_json` convert one to plain values; names and
order of attributes are part of the file format.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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

    def apply_to(self, builder: ImageBuilder) -> None:
        """Add or replace the broker."""
        builder.set_broker(
            BrokerImage(broker_id=self.broker_id, endpoints=self.endpoints, rack=self.rack)
        )


@dataclass(slots=True, frozen=True, kw_only=True)
class BrokerUnregistered:
    """A broker is gone. What it led is changed by changes of its own."""

    broker_id: int

    def apply_to(self, builder: ImageBuilder) -> None:
        """Remove the broker."""
        builder.remove_broker(self.broker_id)


@dataclass(slots=True, frozen=True, kw_only=True)
class LeaderEpochsRaised:
    """A broker that came back leads its partitions again, in a new reign of each (rule I180).

    Consumers see by the epoch that records of the reign before may have been lost with the crash
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
        """Add the topic."""
        assert self.name not in builder.image.topics
        assert self.topic_id not in builder.image.topic_names
        builder.set_topic(
            TopicImage(
                name=self.name,
                topic_id=self.topic_id,
                partitions=self.partitions,
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
        assert builder.image.topics[self.name].topic_id == self.topic_id
        builder.remove_topic(self.name)


@dataclass(slots=True, frozen=True, kw_only=True)
class PartitionsAdded:
    """A topic has more partitions, numbered on from the last."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionImage, ...]

    def apply_to(self, builder: ImageBuilder) -> None:
        """Append the partitions."""
        topic = builder.image.topics[self.name]
        assert topic.topic_id == self.topic_id
        builder.set_partitions(self.name, topic.partitions + self.partitions)


@dataclass(slots=True, frozen=True, kw_only=True)
class PartitionChanged:
    """A partition has another leader, other in-sync replicas or other replicas."""

    name: str
    topic_id: UUID
    index: int
    state: PartitionImage

    def apply_to(self, builder: ImageBuilder) -> None:
        """Replace the partition."""
        topic = builder.image.topics[self.name]
        assert topic.topic_id == self.topic_id
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
        """What the settings belong to."""
        return ConfigResource(self.resource_type, self.resource_name)

    def apply_to(self, builder: ImageBuilder) -> None:
        """Change the settings."""
        if self.resource_type == TOPIC_RESOURCE:
            topic = builder.image.topics[self.resource_name]
            builder.set_topic(replace(topic, configs=self._changed(topic.configs)))
        else:
            before = builder.image.configs_of(self.resource)
            builder.set_configs(self.resource, self._changed(before))

    def _changed(self, before: Mapping[str, str]) -> dict[str, str]:
        after = {**before, **self.values}
        for name in self.removed:
            after.pop(name, None)
        return after


@dataclass(slots=True, frozen=True, kw_only=True)
class ProducerIdsAllocated:
    """A broker may hand out the producer ids up to `next_producer_id`, exclusive (rule D64)."""

    broker_id: int
    next_producer_id: int

    def apply_to(self, builder: ImageBuilder) -> None:
        """Move the producer ids on."""
        assert self.next_producer_id >= builder.image.next_producer_id
        builder.set_next_producer_id(self.next_producer_id)


@dataclass(slots=True, frozen=True, kw_only=True)
class TopicIdsRetired:
    """Ids of deleted topics, kept when the changes that deleted them are summed up."""

    topic_ids: tuple[UUID, ...]

    def apply_to(self, builder: ImageBuilder) -> None:
        """Remember the ids."""
        builder.retire(self.topic_ids)


Change = (
    BrokerRegistered
    | BrokerUnregistered
    | LeaderEpochsRaised
    | TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | PartitionChanged
    | ConfigsChanged
    | ProducerIdsAllocated
    | TopicIdsRetired
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
        ProducerIdsAllocated,
        TopicIdsRetired,
    )
}


def snapshot(image: Image) -> list[Change]:
    """Return changes that make this image out of an empty one (but for its version)."""
    changes: list[Change] = []
    if image.retired_topic_ids:
        changes.append(TopicIdsRetired(topic_ids=image.retired_topic_ids))
    changes += [
        BrokerRegistered(broker_id=broker.broker_id, endpoints=broker.endpoints, rack=broker.rack)
        for broker in image.brokers.values()
    ]
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
    if image.next_producer_id:
        changes.append(ProducerIdsAllocated(broker_id=-1, next_producer_id=image.next_producer_id))
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
            case tuple() if name == "partitions":
                values[name] = [_partition_to_json(state) for state in value]
            case tuple():
                values[name] = [str(item) for item in value]
            case Mapping():
                values[name] = dict(value)
            case _:
                values[name] = value
    return values


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
        case "removed":
            return tuple(value)
        case _:
            return value


def _partition_to_json(state: PartitionImage) -> list[Any]:
    return [
        list(state.replicas),
        list(state.isr),
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
    ]


def _partition_from_json(values: list[Any]) -> PartitionImage:
    replicas, isr, leader, leader_epoch, partition_epoch = values
    return PartitionImage(tuple(replicas), tuple(isr), leader, leader_epoch, partition_epoch)
