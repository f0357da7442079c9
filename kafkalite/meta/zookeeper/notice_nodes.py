"""Notices in ZooKeeper that rules, settings or tokens are others (rule 589).

They are all that Apache Kafka's brokers look at: a tool writes a node, and then a notice of it.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from kafkalite.meta.changes import BROKER_RESOURCE, TOPIC_RESOURCE
from kafkalite.meta.entities import ENTITIES
from kafkalite.meta.image import ConfigResource
from kafkalite.meta.zookeeper.multi_operations import Append, Operation, Set
from kafkalite.meta.zookeeper.znodes import (
    ACL_FOLDERS,
    ACL_NOTICES,
    CONFIG_FOLDERS,
    CONFIG_NOTICES,
    EXTENDED_ACL_NOTICES,
    TOKEN_NOTICES,
    TOKENS,
    NotKafka,
    read_config_name,
)
from kafkalite.security.acls import Pattern, PatternType

FOLLOWED: Final = (ACL_NOTICES, EXTENDED_ACL_NOTICES, CONFIG_NOTICES)
"""Folders of notices that other tools write: none makes tokens."""

_KINDS: Final = (TOPIC_RESOURCE, BROKER_RESOURCE, *ENTITIES)
"""Of whose settings Apache Kafka 3.9 has notices; it fails at others."""
_TOLD: Final = tuple(f"{CONFIG_FOLDERS[kind]}/" for kind in _KINDS)
_CONFIG: Final = "/config/"
_RESOURCES: Final = {
    each.name.replace("_", ""): each for _, each in ACL_FOLDERS
}  # before Kafka 2 they were written as TransactionalId


def notices_of(operations: Iterable[Operation]) -> Iterator[Append]:
    """Yield the notices that go with what is written."""
    for path in dict.fromkeys(each.path for each in operations if _is_told(each)):
        folder, _, name = path.rpartition("/")
        if path.startswith(_TOLD):
            said = {"version": 2, "entity_path": path.removeprefix(_CONFIG)}
            yield Append(f"{CONFIG_NOTICES}/config_change_", _encode(said))
        elif folder == TOKENS:
            yield Append(f"{TOKEN_NOTICES}/token_change_", name.encode())
        else:
            yield from _acl_notice(path)


def _is_told(operation: Operation) -> bool:
    path = operation.path
    if path.startswith(f"{CONFIG_FOLDERS[TOPIC_RESOURCE]}/"):
        return isinstance(operation, Set)  # none of a topic that is new or gone
    return not isinstance(operation, Append)


def _acl_notice(path: str) -> Iterator[Append]:
    for (pattern_type, resource_type), folder in ACL_FOLDERS.items():
        if not path.startswith(f"{folder}/"):
            continue
        name = path.removeprefix(f"{folder}/")
        if pattern_type is PatternType.LITERAL:
            data = f"{resource_type.name}:{name}".encode()
            yield Append(f"{ACL_NOTICES}/acl_changes_", data)
        else:
            said = {
                "version": 1,
                "resourceType": resource_type.name,
                "name": name,
                "patternType": pattern_type.name,
            }
            yield Append(f"{EXTENDED_ACL_NOTICES}/acl_changes_", _encode(said))


def read_notice(path: str, data: bytes) -> Pattern | ConfigResource | None:
    """Return what a notice is of; None if that has no settings here.

    Raises:
        NotKafka: it is no notice.
    """
    try:
        if path.startswith(f"{ACL_NOTICES}/"):
            kind, _, name = data.decode().partition(":")
            return _pattern(kind, PatternType.LITERAL, name)
        said = json.loads(data)
        if path.startswith(f"{EXTENDED_ACL_NOTICES}/"):
            pattern_type = PatternType[said["patternType"]]
            return _pattern(said["resourceType"], pattern_type, said["name"])
        folder, _, name = said["entity_path"].partition("/")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotKafka(f"{path}: {data[:100]!r} is no notice of a change") from error
    kinds = [kind for kind in _KINDS if CONFIG_FOLDERS[kind] == _CONFIG + folder]
    if not kinds or not name:
        return None
    return ConfigResource(kinds[0], name if kinds[0] in ENTITIES else read_config_name(name))


def _pattern(kind: str, pattern_type: PatternType, name: str) -> Pattern:
    pattern = Pattern(_RESOURCES[kind.replace("_", "").upper()], pattern_type, name)
    if not name or "/" in name or (pattern_type, pattern.resource_type) not in ACL_FOLDERS:
        raise ValueError(name)
    return pattern


def _encode(said: dict[str, object]) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode()
