"""ZooKeeper's nodes: paths and JSON as Apache Kafka 3.9 has them (rules 186-194), and more.

Apache Kafka has no place for retired topic ids and for what the controller knows of a broker
beyond its session; these stand under /kafkalite. Each commit is also one node under /changes,
named by its version, with the list of changes that brokers follow.

The version of a partition's state node is its partition epoch (rule 190).
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote
from uuid import UUID

from kafkalite.log.checkpoint import format_uuid, parse_uuid
from kafkalite.meta.changes import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    BrokerRegistered,
    Change,
    from_json,
    to_json,
    to_text,
)
from kafkalite.meta.entities import CLIENT_ENTITY, ENTITIES, IP_ENTITY, USER_ENTITY
from kafkalite.meta.image import BrokerImage, ConfigResource, PartitionImage, TopicImage
from kafkalite.security.acls import Entry, Operation, Pattern, PatternType, Permission, ResourceType

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
CLUSTER_ID: Final = "/cluster/id"
BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
PRODUCER_IDS: Final = "/latest_producer_id_block"
CHANGES: Final = "/changes"
OWN_BROKERS: Final = "/kafkalite/brokers"
FEATURES: Final = "/kafkalite/features"
"""Levels that were set. Kafka 3.9 has /feature, and stops at levels that it does not know."""
RETIRED: Final = "/kafkalite/retired_topic_ids"
DELETED_TOPICS: Final = "/kafkalite/deleted_topics"
"""Notes of topics whose nodes are still to be removed."""

DELETE_TOPICS: Final = "/admin/delete_topics"
REASSIGN: Final = "/admin/reassign_partitions"
ELECT: Final = "/admin/preferred_replica_election"

TOKENS: Final = "/delegation_token/tokens"
TOKEN_NOTICES: Final = "/delegation_token/token_changes"
CONFIG_NOTICES: Final = "/config/changes"
ACL_NOTICES: Final = "/kafka-acl-changes"
EXTENDED_ACL_NOTICES: Final = "/kafka-acl-extended-changes"

CONFIG_FOLDERS: Final = {
    TOPIC_RESOURCE: "/config/topics",
    BROKER_RESOURCE: "/config/brokers",
    CLIENT_METRICS_RESOURCE: "/config/client-metrics",
    GROUP_RESOURCE: "/config/groups",
    USER_ENTITY: "/config/users",
    CLIENT_ENTITY: "/config/clients",
    IP_ENTITY: "/config/ips",
}
ACL_FOLDERS: Final = {
    (pattern, resource): f"{folder}/{name}"
    for pattern, folder in (
        (PatternType.LITERAL, "/kafka-acl"),
        (PatternType.PREFIXED, "/kafka-acl-extended/prefixed"),
    )
    for resource, name in (
        (ResourceType.TOPIC, "Topic"),
        (ResourceType.GROUP, "Group"),
        (ResourceType.CLUSTER, "Cluster"),
        (ResourceType.TRANSACTIONAL_ID, "TransactionalId"),
        (ResourceType.DELEGATION_TOKEN, "DelegationToken"),
        (ResourceType.USER, "User"),
    )
}
DEFAULT_ENTITY: Final = "<default>"

FOLDERS: Final = (
    "/cluster",
    BROKER_IDS,
    TOPICS,
    *CONFIG_FOLDERS.values(),
    *ACL_FOLDERS.values(),
    TOKENS,
    TOKEN_NOTICES,
    CONFIG_NOTICES,
    ACL_NOTICES,
    EXTENDED_ACL_NOTICES,
    PRODUCER_IDS,
    CHANGES,
    OWN_BROKERS,
    FEATURES,
    RETIRED,
    DELETED_TOPICS,
    DELETE_TOPICS,
)
"""What is there before anything else."""


class NotKafka(ValueError):
    """A node holds what Apache Kafka would not have written; the message names it."""


# --- Brokers and controller ----------------------------------------------------------------------


def broker_path(broker_id: int) -> str:
    """Return the node that lives as long as a broker's session."""
    return f"{BROKER_IDS}/{broker_id}"


def broker_data(broker: BrokerImage, protocols: Mapping[str, str], *, now_ms: int) -> bytes:
    """Return a registration (rule 186).

    Args:
        broker: with addresses that others can use.
        protocols: security protocol of each listener.
        now_ms: since 1970.
    """
    plain = [
        address
        for name, address in broker.endpoints.items()
        if protocols.get(name, "PLAINTEXT") == "PLAINTEXT"
    ]
    host, port = plain[0] if plain else (None, -1)
    values: dict[str, Any] = {
        "version": 5,
        "host": host,
        "port": port,
        "endpoints": [
            f"{name}://[{host}]:{port}" if ":" in host else f"{name}://{host}:{port}"
            for name, (host, port) in broker.endpoints.items()
        ],
        "jmx_port": -1,
        "timestamp": str(now_ms),
        "listener_security_protocol_map": {
            name: protocols.get(name, "PLAINTEXT") for name in broker.endpoints
        },
        "features": {},
    }
    if broker.rack is not None:
        values["rack"] = broker.rack
    return _encode(values)


def read_broker(broker_id: int, data: bytes, *, broker_epoch: int) -> BrokerImage:
    """Return what a registration says.

    Raises:
        NotKafka: it is none.
    """
    path = broker_path(broker_id)
    values = _decode(path, data)
    try:
        endpoints = {}
        for endpoint in values["endpoints"]:
            name, _, address = endpoint.partition("://")
            host, _, port = address.rpartition(":")
            endpoints[name] = (host.strip("[]"), int(port))
        return BrokerImage(
            broker_id=broker_id,
            endpoints=endpoints,
            rack=values.get("rack"),
            broker_epoch=broker_epoch,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _not_kafka(path, data) from error


def controller_data(broker_id: int, *, now_ms: int) -> bytes:
    """Return what the controller's node holds (rule 187)."""
    return _encode(
        {
            "version": 2,
            "brokerid": broker_id,
            "timestamp": str(now_ms),
            "kraftControllerEpoch": -1,
        }
    )


def read_controller(data: bytes) -> int:
    """Return who is controller."""
    return _integer(CONTROLLER, data, _decode(CONTROLLER, data).get("brokerid"))


def read_controller_epoch(data: bytes) -> int:
    """Return the number of the latest epoch (rule 187)."""
    return _integer(CONTROLLER_EPOCH, data, data)


def cluster_id_data(cluster_id: str) -> bytes:
    """Return what the cluster's node holds (rule 194)."""
    return _encode({"version": "1", "id": cluster_id})


def read_cluster_id(data: bytes) -> str:
    """Return the cluster's id."""
    found = _decode(CLUSTER_ID, data).get("id")
    if not isinstance(found, str):
        raise _not_kafka(CLUSTER_ID, data)
    return found


# --- Changes -------------------------------------------------------------------------------------


def change_path(version: int) -> str:
    """Return the node with the changes of one commit."""
    return f"{CHANGES}/{version:010d}"


def change_data(changes: Iterable[Change], *, broker_id: int, controller_epoch: int) -> bytes:
    """Return what it holds: the changes, and whose they are."""
    head = f'"version":1,"broker":{broker_id},"controller_epoch":{controller_epoch}'
    return f'{{{head},"changes":[{",".join(map(to_text, changes))}]}}'.encode()


def read_changes(path: str, data: bytes) -> list[Change]:
    """Return the changes.

    Raises:
        NotKafka: of a newer version, or damaged.
    """
    try:
        return [from_json(values) for values in _decode(path, data)["changes"]]
    except (KeyError, TypeError, ValueError) as error:
        raise _not_kafka(path, data) from error


# --- Topics, settings, producer ids --------------------------------------------------------------


def topic_path(name: str) -> str:
    """Return a topic's node."""
    return f"{TOPICS}/{name}"


def state_path(name: str, index: int) -> str:
    """Return a partition's node."""
    return f"{TOPICS}/{name}/partitions/{index}/state"


def config_path(resource: ConfigResource) -> str:
    """Return the node with settings of a resource (rule 191)."""
    if resource.type in ENTITIES:  # their names are parts of paths as they are
        return f"{CONFIG_FOLDERS[resource.type]}/{resource.name}"
    name = quote(resource.name, safe="") or DEFAULT_ENTITY
    return f"{CONFIG_FOLDERS[resource.type]}/{name}"


def topic_data(topic: TopicImage) -> bytes:
    """Return what a topic's node holds (rule 189)."""
    partitions = enumerate(topic.partitions)
    states = {str(index): state for index, state in partitions}
    return _encode(
        {
            "version": 3,
            "partitions": {index: list(state.replicas) for index, state in states.items()},
            "adding_replicas": {
                index: list(state.adding) for index, state in states.items() if state.adding
            },
            "removing_replicas": {
                index: list(state.removing) for index, state in states.items() if state.removing
            },
            "topic_id": format_uuid(topic.topic_id),
        }
    )


def state_data(state: PartitionImage, *, controller_epoch: int) -> bytes:
    """Return what a partition's node holds (rule 190)."""
    return _encode(
        {
            "version": 1,
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "controller_epoch": controller_epoch,
            "isr": list(state.isr),
        }
    )


def config_data(configs: Mapping[str, str]) -> bytes:
    """Return what a node of settings holds (rule 191)."""
    return _encode({"version": 1, "config": dict(configs)})


def acl_path(pattern: Pattern) -> str:
    """Return the node with the rules about some resources (rule 548)."""
    kind = PatternType(pattern.pattern_type), ResourceType(pattern.resource_type)
    return f"{ACL_FOLDERS[kind]}/{pattern.name}"


def acl_data(entries: Iterable[Entry]) -> bytes:
    """Return what a node of rules holds (rule 548)."""
    acls = [
        {
            "principal": entry.principal,
            "permissionType": _camel(Permission(entry.permission)),
            "operation": _camel(Operation(entry.operation)),
            "host": entry.host,
        }
        for entry in entries
    ]
    return _encode({"version": 1, "acls": acls})


def read_acls(path: str, data: bytes) -> tuple[Entry, ...]:
    """Return the rules that a node holds.

    Raises:
        NotKafka: it holds none.
    """
    values = _decode(path, data)
    try:
        return tuple(
            Entry(
                str(each["principal"]),
                str(each["host"]),
                _OPERATIONS[each["operation"]],
                _PERMISSIONS[each["permissionType"]],
            )
            for each in values["acls"]
        )
    except (KeyError, TypeError) as error:
        raise _not_kafka(path, data) from error


def _camel(member: Operation | Permission) -> str:
    return "".join(word.capitalize() for word in member.name.split("_"))


_OPERATIONS: Final = {_camel(each): int(each) for each in Operation}
_PERMISSIONS: Final = {_camel(each): int(each) for each in Permission}


def own_broker_data(broker: BrokerImage) -> bytes:
    """Return what the controller keeps of a broker."""
    return _encode(to_json(BrokerRegistered.of(broker)))


def producer_ids_data(broker_id: int, start: int, end: int) -> bytes:
    """Return the latest block (rule 194); its ends are texts, and the node has the last id."""
    return _encode(
        {
            "version": 1,
            "broker": broker_id,
            "block_start": str(start),
            "block_end": str(end - 1),
        }
    )


def feature_data(level: int) -> bytes:
    """Return what the node of a feature holds."""
    return _encode({"version": 1, "level": level})


def retired_data(*, version: int, place: int) -> bytes:
    """Return what puts a deleted topic's id in order: when, and the place among those of then."""
    return _encode({"version": 1, "metadata_version": version, "place": place})


# --- Reading -------------------------------------------------------------------------------------


class TopicNode(NamedTuple):
    """Content of a topic's node: states without leader, in-sync replicas and epochs."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionImage, ...]


def read_topic(name: str, data: bytes) -> TopicNode:
    """Return what a topic's node says.

    Raises:
        NotKafka: it is none, or has no topic id: one of before Apache Kafka 2.8.
    """
    path = topic_path(name)
    values = _decode(path, data)
    try:
        adding, removing = values["adding_replicas"], values["removing_replicas"]
        partitions = values["partitions"]
        states = tuple(
            PartitionImage(
                replicas=tuple(partitions[str(index)]),
                isr=(),
                leader=-1,
                adding=tuple(adding.get(str(index), ())),
                removing=tuple(removing.get(str(index), ())),
            )
            for index in range(len(partitions))
        )
        return TopicNode(name, parse_uuid(values["topic_id"]), states)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _not_kafka(path, data) from error


class Asked(NamedTuple):
    """A partition that a node in /admin is about; replicas only where it is to have others."""

    topic: str
    partition: int
    replicas: tuple[int, ...]


def read_asked(path: str, data: bytes) -> list[Asked]:
    """Return the partitions of a node in /admin (rule 192).

    Raises:
        NotKafka: it is none.
    """
    try:
        return [
            Asked(
                str(each["topic"]),
                int(each["partition"]),
                tuple(map(int, each["replicas"])) if path == REASSIGN else (),
            )
            for each in _decode(path, data)["partitions"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise _not_kafka(path, data) from error


def read_state(path: str, data: bytes, known: PartitionImage, *, version: int) -> PartitionImage:
    """Return a partition, of which `known` has the replicas and the node the rest.

    Raises:
        NotKafka: it is none.
    """
    values = _decode(path, data)
    try:
        return PartitionImage(
            replicas=known.replicas,
            isr=tuple(map(int, values["isr"])),
            leader=int(values["leader"]),
            leader_epoch=int(values["leader_epoch"]),
            partition_epoch=version,
            adding=known.adding,
            removing=known.removing,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _not_kafka(path, data) from error


def read_config(path: str, data: bytes) -> dict[str, str]:
    """Return the settings that a node holds."""
    found = _decode(path, data).get("config", {})
    if not isinstance(found, dict):
        raise _not_kafka(path, data)
    return {str(name): str(value) for name, value in found.items()}


def read_config_name(node: str) -> str:
    """Return the resource that a node of settings is named by."""
    return "" if node == DEFAULT_ENTITY else unquote(node)


def read_next_producer_id(data: bytes) -> int:
    """Return the first producer id that no broker has; the node is empty at first."""
    if not data:
        return 0
    return _integer(PRODUCER_IDS, data, _decode(PRODUCER_IDS, data).get("block_end")) + 1


def read_own_broker(path: str, data: bytes) -> Change:
    """Return the change that makes a broker as the controller knows it."""
    try:
        return from_json(_decode(path, data))
    except ValueError as error:
        raise _not_kafka(path, data) from error


def read_feature(path: str, data: bytes) -> int:
    """Return the level that the node of a feature holds."""
    return _integer(path, data, _decode(path, data).get("level"))


def read_retired(nodes: Mapping[str, bytes]) -> tuple[UUID, ...]:
    """Return the ids of deleted topics, the latest last, by the names and data of their nodes."""
    places = []
    for name, data in nodes.items():
        path = f"{RETIRED}/{name}"
        values = _decode(path, data)
        try:
            order = (int(values["metadata_version"]), int(values["place"]))
            places.append((*order, UUID(name)))
        except (KeyError, TypeError, ValueError) as error:
            raise _not_kafka(path, data) from error
    return tuple(topic_id for _, _, topic_id in sorted(places))


def _encode(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode()


def _decode(path: str, data: bytes) -> dict[str, Any]:
    try:
        values = json.loads(data)
    except ValueError as error:
        raise _not_kafka(path, data) from error
    if not isinstance(values, dict):
        raise _not_kafka(path, data)
    return values


def _integer(path: str, data: bytes, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise _not_kafka(path, data) from error


def _not_kafka(path: str, data: bytes) -> NotKafka:
    return NotKafka(f"{path} holds {data[:100]!r}, which Apache Kafka 3.9 would not write")
