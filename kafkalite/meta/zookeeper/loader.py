"""All metadata of a cluster, read from ZooKeeper's nodes."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from kazoo.exceptions import NoNodeError

from kafkalite.meta.changes import (
    TOPIC_RESOURCE,
    AclsChanged,
    Change,
    ConfigsChanged,
    FeaturesUpdated,
    ProducerIdsAllocated,
    TopicCreated,
    TopicIdsRetired,
)
from kafkalite.meta.delegation_tokens import TOKEN_ENTITY
from kafkalite.meta.entities import CLIENTS_FOLDER, ENTITIES, USER_ENTITY
from kafkalite.meta.zookeeper import znodes
from kafkalite.meta.zookeeper.token_nodes import read_token
from kafkalite.security.acls import Pattern

if TYPE_CHECKING:
    from kafkalite.meta.image import PartitionImage

ReadFolder = Callable[[str], Awaitable[dict[str, bytes]]]
"""Gives the data of all nodes in a folder, by their names."""
ReadNodes = Callable[[Sequence[str]], Awaitable[Sequence[tuple[bytes, Any]]]]
"""Gives data and status of nodes."""


async def read_everything(
    read_folder: ReadFolder, read_nodes: ReadNodes, half_made: dict[str, znodes.TopicNode]
) -> list[Change]:
    """Return changes that make an image of what the nodes hold.

    Args:
        read_folder: see there.
        read_nodes: see there.
        half_made: gets the topics whose last partitions, or all, have no state yet: these are left
            out of the image (rule 256).

    Raises:
        NotKafka: a node holds what it should not.
    """
    changes: list[Change] = []
    retired = await read_folder(znodes.RETIRED)
    if retired:
        changes.append(TopicIdsRetired(topic_ids=znodes.read_retired(retired)))
    brokers = await read_folder(znodes.OWN_BROKERS)
    changes += [
        znodes.read_own_broker(f"{znodes.OWN_BROKERS}/{name}", data)
        for name, data in sorted(brokers.items())
    ]
    changes += await _read_topics(read_folder, read_nodes, half_made)
    for kind, folder in znodes.CONFIG_FOLDERS.items():
        if kind != TOPIC_RESOURCE:
            changes += await _read_configs(kind, folder, read_folder)
    changes += await _read_tokens(read_folder)
    features = await read_folder(znodes.FEATURES)
    levels = {
        name: znodes.read_feature(f"{znodes.FEATURES}/{name}", data)
        for name, data in sorted(features.items())
    }
    if levels:
        changes.append(FeaturesUpdated(levels=levels))
    for (pattern_type, resource_type), folder in znodes.ACL_FOLDERS.items():
        rules = await read_folder(folder)
        changes += [
            AclsChanged(
                pattern=Pattern(resource_type, pattern_type, name),
                entries=znodes.read_acls(f"{folder}/{name}", data),
            )
            for name, data in sorted(rules.items())
            if data
        ]
    ((data, _),) = await read_nodes([znodes.PRODUCER_IDS])
    next_producer_id = znodes.read_next_producer_id(data)
    if next_producer_id:
        changes.append(ProducerIdsAllocated(broker_id=-1, next_producer_id=next_producer_id))
    return changes


async def _read_configs(kind: int, folder: str, read_folder: ReadFolder) -> list[Change]:
    nodes = await read_folder(folder)
    changes: list[Change] = []
    for node, data in sorted(nodes.items()):
        values = znodes.read_config(f"{folder}/{node}", data)
        name = node if kind in ENTITIES else znodes.read_config_name(node)
        # Apache Kafka leaves empty nodes where settings were.
        if values:
            changes.append(ConfigsChanged(resource_type=kind, resource_name=name, values=values))
        if kind == USER_ENTITY:
            changes += await _read_clients(folder, node, read_folder)
    return changes


async def _read_clients(folder: str, user: str, read_folder: ReadFolder) -> list[Change]:
    """Return the settings of a user's clients, whose nodes are below that of the user."""
    clients = CLIENTS_FOLDER.strip("/")
    if clients not in await read_folder(f"{folder}/{user}"):
        return []
    changes: list[Change] = []
    for client, data in sorted((await read_folder(f"{folder}/{user}/{clients}")).items()):
        name = f"{user}{CLIENTS_FOLDER}{client}"
        values = znodes.read_config(f"{folder}/{name}", data)
        if values:
            changes.append(
                ConfigsChanged(resource_type=USER_ENTITY, resource_name=name, values=values)
            )
    return changes


async def _read_tokens(read_folder: ReadFolder) -> list[Change]:
    nodes = await read_folder(znodes.TOKENS)
    return [
        ConfigsChanged(
            resource_type=TOKEN_ENTITY,
            resource_name=token_id,
            values=read_token(f"{znodes.TOKENS}/{token_id}", data),
        )
        for token_id, data in sorted(nodes.items())
    ]


async def _read_topics(
    read_folder: ReadFolder, read_nodes: ReadNodes, half_made: dict[str, znodes.TopicNode]
) -> list[Change]:
    nodes = await read_folder(znodes.TOPICS)
    topics = [znodes.read_topic(name, data) for name, data in sorted(nodes.items()) if data]
    config_folder = znodes.CONFIG_FOLDERS[TOPIC_RESOURCE]
    configs = await read_folder(config_folder)
    paths = [
        znodes.state_path(topic.name, index)
        for topic in topics
        for index in range(len(topic.partitions))
    ]
    states = iter(zip(paths, await _read_those_there(read_nodes, paths), strict=True))
    changes: list[Change] = []
    for topic in topics:
        partitions: list[PartitionImage] = []
        for known in topic.partitions:
            path, node = next(states)
            if node is None:
                half_made[topic.name] = topic
            elif topic.name in half_made:
                raise znodes.NotKafka(f"{path}: there is none of the partition before it")
            else:
                data, stat = node
                partitions.append(znodes.read_state(path, data, known, version=stat.version))
        if not partitions:
            continue
        values = {}
        if topic.name in configs:
            values = znodes.read_config(f"{config_folder}/{topic.name}", configs[topic.name])
        changes.append(
            TopicCreated(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(partitions),
                configs=values,
            )
        )
    return changes


async def _read_those_there(
    read_nodes: ReadNodes, paths: Sequence[str]
) -> list[tuple[bytes, Any] | None]:
    """Return the nodes; None for one that is not there, which is rare."""
    try:
        return [*await read_nodes(paths)]
    except NoNodeError:
        if len(paths) == 1:
            return [None]
    middle = len(paths) // 2
    first = await _read_those_there(read_nodes, paths[:middle])
    return first + await _read_those_there(read_nodes, paths[middle:])
