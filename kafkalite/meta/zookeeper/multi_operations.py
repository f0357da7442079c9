"""Commits as transactions of ZooKeeper: which nodes to write, in parts that fit."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kafkalite.meta.changes import (
    TOPIC_RESOURCE,
    BrokerRegistered,
    BrokerUnregistered,
    Change,
    ConfigsChanged,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
    to_json,
)
from kafkalite.meta.delegation_tokens import TOKEN_ENTITY
from kafkalite.meta.entities import ENTITIES
from kafkalite.meta.image import ConfigResource, Image, TopicImage
from kafkalite.meta.zookeeper.token_nodes import token_data, token_path
from kafkalite.meta.zookeeper.znodes import (
    DELETED_TOPICS,
    FEATURES,
    OWN_BROKERS,
    PRODUCER_IDS,
    RETIRED,
    acl_data,
    acl_path,
    config_data,
    config_path,
    feature_data,
    own_broker_data,
    producer_ids_data,
    retired_data,
    state_data,
    state_path,
    topic_data,
    topic_path,
)
from kafkalite.wire.errors import ErrorCode, KafkaError

PART_BYTES_MAX: Final = 700_000
"""Estimated size of a transaction; ZooKeeper takes no more than 1 MiB (jute.maxbuffer)."""

PART_CHANGES_MAX: Final = 200
"""Changes of a transaction: some milliseconds of work, in which nobody else is served."""

REQUEST_BYTES_MAX: Final = 1_000_000
"""Real size of a transaction; one setting alone can be more than what fits."""

_NODE_BYTES: Final = 80
"""What a request to create a node has besides path and data: header, lengths, access control."""


class Create(NamedTuple):
    """A node to make."""

    path: str
    data: bytes


class Set(NamedTuple):
    """A node to write; `version` is the one it has, -1 for any."""

    path: str
    data: bytes
    version: int = -1


class Delete(NamedTuple):
    """A node to remove."""

    path: str


class Append(NamedTuple):
    """A node to make, whose name ZooKeeper completes by a number."""

    path: str
    data: bytes


Operation = Create | Set | Delete | Append


def split_commit(changes: Sequence[Change], image: Image) -> list[list[Change]]:
    """Return the changes in parts of which each fits in a transaction; mostly one.

    Each part makes sense by itself, should it be the last that is written. Brokers come last: what
    is then missing is seen by whoever is controller next, and done again.
    """
    sizes = [_estimated_size(change, image) for change in changes]
    if sum(sizes) <= PART_BYTES_MAX and len(changes) <= PART_CHANGES_MAX:
        return [list(changes)]
    ordered = sorted(changes, key=lambda each: isinstance(each, _BROKER_CHANGES))
    parts: list[list[Change]] = [[]]
    room = PART_BYTES_MAX
    for whole in ordered:
        for change in _pieces(whole, image):
            size = _estimated_size(change, image)
            if (size > room or len(parts[-1]) >= PART_CHANGES_MAX) and parts[-1]:
                parts.append([])
                room = PART_BYTES_MAX
            parts[-1].append(change)
            room -= size
    return parts


_BROKER_CHANGES = (BrokerRegistered, BrokerUnregistered)


def _pieces(change: Change, image: Image) -> Iterator[Change]:
    """Yield a change, or several that do the same to a topic with very many partitions."""
    if not isinstance(change, TopicCreated | PartitionsAdded):
        yield change
        return
    size = _estimated_size(change, image)
    count = len(change.partitions)
    if size <= PART_BYTES_MAX:
        yield change
        return
    step = max(1, count * PART_BYTES_MAX // size - 1)
    first_index = 0
    if isinstance(change, PartitionsAdded):
        first_index = change.first_index
        if first_index < 0:
            first_index = len(image.topics[change.name].partitions)
    else:
        yield TopicCreated(
            name=change.name,
            topic_id=change.topic_id,
            partitions=change.partitions[:step],
            configs=change.configs,
        )
    start = step if isinstance(change, TopicCreated) else 0
    for index in range(start, count, step):
        yield PartitionsAdded(
            name=change.name,
            topic_id=change.topic_id,
            first_index=first_index + index,
            partitions=change.partitions[index : index + step],
        )


def _estimated_size(change: Change, image: Image) -> int:
    """Return about how many bytes a change takes in a transaction, rather too many."""
    match change:
        case (
            TopicCreated(name=name, partitions=partitions)
            | PartitionsAdded(name=name, partitions=partitions)
        ):
            replicas = max((len(state.replicas) for state in partitions), default=0)
            for_each = 2 * (len(name) + _NODE_BYTES + 50) + 100 + 40 * replicas
            return 1_000 + len(str(getattr(change, "configs", ""))) * 3 + len(partitions) * for_each
        case PartitionChanged(name=name, state=state):
            # The assignment of the whole topic is written too, if it changed.
            topic = image.topics.get(name)
            count = len(topic.partitions) if topic is not None and state.is_reassigned else 0
            return 2 * len(name) + 600 + 60 * len(state.replicas) + count * 40
        case TopicDeleted(name=name):
            topic = image.topics.get(name)
            count = 0 if topic is None or is_long(topic) else len(topic.partitions)
            return 1_000 + count * 2 * (len(name) + _NODE_BYTES)
        case _:
            return 1_000 + 3 * len(str(to_json(change)))


def check_size(nodes: Iterable[tuple[str, bytes]]) -> None:
    """Refuse a transaction with these paths and data that ZooKeeper would not take.

    It would close the connection, which says nothing, and the controller would try for ever.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    size = sum(len(path) + len(data) + _NODE_BYTES for path, data in nodes)
    if size > REQUEST_BYTES_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{size} bytes at once are too much for ZooKeeper"
        )


def operations(
    before: Image, after: Image, changes: Iterable[Change], *, controller_epoch: int
) -> list[Operation]:
    """Return what makes the nodes of one image those of the next.

    Args:
        before: the image that the nodes show.
        after: the one that they are to show.
        changes: between both; they tell which topics to compare.
        controller_epoch: of the epoch in which partitions are written.
    """
    made: list[Operation] = []
    for name in _topics_of(changes):
        made += _topic_operations(
            name, before.topics.get(name), after.topics.get(name), controller_epoch
        )
    if before.configs is not after.configs:
        for resource in {**before.configs, **after.configs}:
            old, new = before.configs.get(resource), after.configs.get(resource)
            made += _settings_operations(resource, old, new)
    if before.acls is not after.acls:
        for pattern in {**before.acls, **after.acls}:
            known_rules, rules = before.acls.get(pattern), after.acls.get(pattern)
            made += _node(
                acl_path(pattern),
                None if known_rules is None else acl_data(known_rules),
                None if rules is None else acl_data(rules),
            )
    if before.brokers is not after.brokers:
        for broker_id in {**before.brokers, **after.brokers}:
            known, now = before.brokers.get(broker_id), after.brokers.get(broker_id)
            made += _node(
                f"{OWN_BROKERS}/{broker_id}",
                None if known is None else own_broker_data(known),
                None if now is None else own_broker_data(now),
            )
    if before.next_producer_id != after.next_producer_id:
        owners = [each.broker_id for each in changes if isinstance(each, ProducerIdsAllocated)]
        start, end = before.next_producer_id, after.next_producer_id
        made.append(Set(PRODUCER_IDS, producer_ids_data((owners or [-1])[-1], start, end)))
    for name, level in after.feature_levels.items():
        known_level = before.feature_levels.get(name)
        made += _node(
            f"{FEATURES}/{name}",
            None if known_level is None else feature_data(known_level),
            feature_data(level),
        )
    made += _retired_operations(before, after)
    return made


def _settings_operations(
    resource: ConfigResource, old: Mapping[str, str] | None, new: Mapping[str, str] | None
) -> Iterator[Operation]:
    if old == new:
        return
    if resource.type == TOKEN_ENTITY:
        name = resource.name
        yield from _node(
            token_path(name),
            None if old is None else token_data(name, old),
            None if new is None else token_data(name, new),
        )
    elif new is None and resource.type in ENTITIES:
        # There may be clients below a user. Apache Kafka leaves nodes without settings, too.
        yield Set(config_path(resource), config_data({}))
    else:
        yield from _node(
            config_path(resource),
            None if old is None else config_data(old),
            None if new is None else config_data(new),
        )


def _topics_of(changes: Iterable[Change]) -> Iterable[str]:
    names: dict[str, None] = {}
    for change in changes:
        if isinstance(change, TopicCreated | TopicDeleted | PartitionsAdded | PartitionChanged):
            names[change.name] = None
        elif isinstance(change, ConfigsChanged) and change.resource_type == TOPIC_RESOURCE:
            names[change.resource_name] = None
    return names


def _topic_operations(
    name: str, old: TopicImage | None, new: TopicImage | None, controller_epoch: int
) -> Iterator[Operation]:
    if old is not None and (new is None or new.topic_id != old.topic_id):
        yield from _removal(old)
        old = None
    if new is None:
        return
    path, config = topic_path(name), config_path(ConfigResource(TOPIC_RESOURCE, name))
    if old is None:
        yield Create(config, config_data(new.configs))
        yield Create(path, topic_data(new))
        yield Create(f"{path}/partitions", b"")
        yield from _new_partitions(new, 0, controller_epoch)
        return
    if old.configs != new.configs:
        yield Set(config, config_data(new.configs))
    if topic_data(old) != topic_data(new):
        yield Set(path, topic_data(new))
    yield from _new_partitions(new, len(old.partitions), controller_epoch)
    for index, (state_before, state) in enumerate(
        zip(old.partitions, new.partitions, strict=False)
    ):
        if state is state_before or state == state_before:
            continue
        data = state_data(state, controller_epoch=controller_epoch)
        # Each write makes the version one more; several steps in one commit are several writes.
        assert state.partition_epoch > state_before.partition_epoch, (name, index)
        for version in range(state_before.partition_epoch, state.partition_epoch):
            yield Set(state_path(name, index), data, version)


def _new_partitions(topic: TopicImage, start: int, controller_epoch: int) -> Iterator[Operation]:
    for index in range(start, len(topic.partitions)):
        state = topic.partitions[index]
        path = state_path(topic.name, index)
        data = state_data(state, controller_epoch=controller_epoch)
        yield Create(path.removesuffix("/state"), b"")
        yield Create(path, data)
        for version in range(state.partition_epoch):
            yield Set(path, data, version)


def is_long(topic: TopicImage) -> bool:
    """Tell whether a topic has more nodes than one transaction can remove."""
    return 2 * len(topic.partitions) * (len(topic.name) + _NODE_BYTES) > PART_BYTES_MAX // 2


def _removal(topic: TopicImage) -> Iterator[Operation]:
    path = topic_path(topic.name)
    if is_long(topic):
        # Without data it is no topic. Its nodes are removed after the commit, or by the next
        # controller, who sees what is left to do by the note.
        yield Set(path, b"")
        yield Create(f"{DELETED_TOPICS}/{topic.name}", b"")
        yield Delete(config_path(ConfigResource(TOPIC_RESOURCE, topic.name)))
        return
    for index in range(len(topic.partitions)):
        state = state_path(topic.name, index)
        yield Delete(state)
        yield Delete(state.removesuffix("/state"))
    yield Delete(f"{path}/partitions")
    yield Delete(path)
    yield Delete(config_path(ConfigResource(TOPIC_RESOURCE, topic.name)))


def _retired_operations(before: Image, after: Image) -> Iterator[Operation]:
    if before.retired_topic_ids == after.retired_topic_ids:
        return
    old, new = set(before.retired_topic_ids), set(after.retired_topic_ids)
    for topic_id in before.retired_topic_ids:
        if topic_id not in new:
            yield Delete(f"{RETIRED}/{topic_id}")
    for place, topic_id in enumerate(after.retired_topic_ids):
        if topic_id not in old:
            yield Create(f"{RETIRED}/{topic_id}", retired_data(version=after.version, place=place))


def _node(path: str, old: bytes | None, new: bytes | None) -> Iterator[Operation]:
    if old == new:
        return
    if old is None:
        assert new is not None
        yield Create(path, new)
    elif new is None:
        yield Delete(path)
    else:
        yield Set(path, new)
