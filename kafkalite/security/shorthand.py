"""Rules as one writes them: `alice read,write topic:orders*`.

A resource is `topic:NAME`, `group:NAME`, `transactional-id:NAME`, `user:NAME`, `token:ID` or
`cluster`; `NAME*` is all whose names begin so, and `*` is all.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kafkalite.security.acls import (
    ANYTHING,
    CLUSTER_NAME,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    Rule,
)

KINDS: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "token": ResourceType.DELEGATION_TOKEN,
    "user": ResourceType.USER,
}
OPERATIONS: Final = {
    each.name.lower().replace("_", "-"): each for each in Operation if each >= Operation.ALL
}


def principal_of(name: str) -> str:
    """Return `User:name` for a name; what has a type already stays."""
    return name if ":" in name else f"User:{name}"


def pattern_of(text: str) -> Pattern:
    """Return the resources that a text means.

    Raises:
        ValueError: it means none.
    """
    kind, colon, name = text.partition(":")
    if kind not in KINDS:
        raise ValueError(f"'{text}' is no resource; write one of {', '.join(KINDS)}, and a name")
    if kind == "cluster" and name in ("", CLUSTER_NAME):
        return Pattern(ResourceType.CLUSTER, PatternType.LITERAL, CLUSTER_NAME)
    if not colon or not name or kind == "cluster":
        raise ValueError(f"'{text}' is no resource; write {kind}:NAME")
    if name != ANYTHING and name.endswith("*"):
        return Pattern(KINDS[kind], PatternType.PREFIXED, name[:-1])
    return Pattern(KINDS[kind], PatternType.LITERAL, name)


def operations_of(text: str) -> list[Operation]:
    """Return the operations that a text names, with commas between them.

    Raises:
        ValueError: one is none.
    """
    found = []
    for name in text.lower().replace("_", "-").split(","):
        if name.strip() not in OPERATIONS:
            raise ValueError(f"'{name}' is no operation; write {', '.join(OPERATIONS)}")
        found.append(OPERATIONS[name.strip()])
    return found


def rules_of(
    permission: Permission,
    principal: str,
    operations: str,
    resources: Iterable[str],
    *,
    host: str = ANYTHING,
) -> Iterator[Rule]:
    """Yield a rule for each operation on each resource.

    Raises:
        ValueError: an operation or a resource is none.
    """
    for resource in resources:
        pattern = pattern_of(resource)
        for operation in operations_of(operations):
            yield Rule(pattern, Entry(principal_of(principal), host, operation, permission))


def allow(
    user: str, operations: str, *, host: str = ANYTHING, **resources: str | Iterable[str]
) -> list[Rule]:
    """Return rules that allow something: `allow("alice", "read", topic="orders")`."""
    return _of(Permission.ALLOW, user, operations, host, resources)


def deny(
    user: str, operations: str, *, host: str = ANYTHING, **resources: str | Iterable[str]
) -> list[Rule]:
    """Return rules that deny something; they count more than any that allows it."""
    return _of(Permission.DENY, user, operations, host, resources)


def _of(
    permission: Permission,
    user: str,
    operations: str,
    host: str,
    resources: "dict[str, str | Iterable[str]]",
) -> list[Rule]:
    texts = [
        f"{kind.replace('_', '-')}:{name}"
        for kind, names in resources.items()
        for name in ([names] if isinstance(names, str) else names)
    ]
    return list(rules_of(permission, user, operations, texts or ["cluster"], host=host))
