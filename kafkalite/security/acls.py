"""Access control lists, and what follows from them: Kafka's StandardAuthorizer as a function.

A pure core: rules come in when metadata change, questions when requests do.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

CLUSTER_NAME: Final = "kafka-cluster"
ANYTHING: Final = "*"
_SOME_NAME: Final = "hardcode"
EVERYBODY: Final = "User:*"


class ResourceType(IntEnum):
    """Kind of resource that a rule is about (Kafka's ResourceType)."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a rule's name is meant (KIP-290)."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """Operation on a resource (Kafka's AclOperation)."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether a rule gives or takes."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Pattern(NamedTuple):
    """Which resources a rule is about; a literal `*` is all of a type."""

    resource_type: int
    pattern_type: int
    name: str


class Entry(NamedTuple):
    """Permission or denial of one operation to one principal from one host; `*` is any host."""

    principal: str
    host: str
    operation: int
    permission: int


class Rule(NamedTuple):
    """An access control list of one line, which is what Kafka calls an ACL binding."""

    pattern: Pattern
    entry: Entry

    def __str__(self) -> str:
        kind = ResourceType(self.pattern.resource_type).name.lower()
        prefix = "*" if self.pattern.pattern_type == PatternType.PREFIXED else ""
        host = "" if self.entry.host == ANYTHING else f" from {self.entry.host}"
        return (
            f"{Permission(self.entry.permission).name.lower()} {self.entry.principal} "
            f"{Operation(self.entry.operation).name.lower()} {kind}:{self.pattern.name}{prefix}"
            f"{host}"
        )


class Decision(NamedTuple):
    """Whether something is allowed, and why.

    Attributes:
        rule: what decided; None if none did.
        reason: in a few words.
    """

    is_allowed: bool
    rule: Rule | None
    reason: str


_IMPLIED_BY: Final[Mapping[int, frozenset[int]]] = {
    Operation.DESCRIBE: frozenset(
        {
            Operation.DESCRIBE,
            Operation.READ,
            Operation.WRITE,
            Operation.DELETE,
            Operation.ALTER,
        }
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}
"""What an allowed operation allows besides itself; nothing that is denied does."""


class Rules:
    """All rules of a cluster at one moment, by what they are about.

    Args:
        patterns: entries by pattern.
        super_users: principals that may do everything (`super.users`).
        allows_unruled: what nobody made a rule about is allowed
            (`allow.everyone.if.no.acl.found`).
    """

    def __init__(
        self,
        patterns: Mapping[Pattern, Iterable[Entry]],
        *,
        super_users: Iterable[str] = (),
        allows_unruled: bool = False,
    ) -> None:
        self._patterns = {pattern: tuple(entries) for pattern, entries in patterns.items()}
        self._super_users = frozenset(super_users)
        self._allows_unruled = allows_unruled
        self._prefix_lengths: dict[int, list[int]] = {}
        for pattern in self._patterns:
            if pattern.pattern_type == PatternType.PREFIXED:
                lengths = self._prefix_lengths.setdefault(pattern.resource_type, [])
                if len(pattern.name) not in lengths:
                    lengths.append(len(pattern.name))

    def decide(
        self, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> Decision:
        """Say whether somebody may do something (rule 545).

        Args:
            principal: `User:name`.
            host: the address that they come from, as text.
            operation: what they want, one of those that are no summary.
            resource_type: of what it is about.
            name: of what it is about.
        """
        if principal in self._super_users:
            return Decision(True, None, "super user")
        allowed: Rule | None = None
        is_ruled = False
        for pattern in self._about(resource_type, name):
            for entry in self._patterns[pattern]:
                is_ruled = True
                if not _fits(entry, principal, host, operation):
                    continue
                if entry.permission == Permission.DENY:
                    return Decision(False, Rule(pattern, entry), "denied by a rule")
                allowed = Rule(pattern, entry)
        if allowed is not None:
            return Decision(True, allowed, "allowed by a rule")
        if is_ruled:
            return Decision(False, None, "no rule about it allows it")
        reason = "no rule is about it"
        return Decision(self._allows_unruled, None, reason)

    def decide_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Say whether somebody may do something to any resource of a type at all (rule 546)."""
        # As Kafka does: what is allowed of a name that no rule is about is allowed of any.
        if self.decide(principal, host, operation, resource_type, _SOME_NAME).is_allowed:
            return True
        denied: list[Pattern] = []
        allowed: list[Pattern] = []
        for pattern, entries in self._patterns.items():
            if pattern.resource_type != resource_type:
                continue
            for entry in entries:
                if not _fits_exactly(entry, principal, host, operation):
                    continue
                (denied if entry.permission == Permission.DENY else allowed).append(pattern)
        if any(_is_wildcard(pattern) for pattern in denied):
            return False
        return any(not _is_covered(pattern, denied) for pattern in allowed)

    def rules(self) -> Iterator[Rule]:
        """Yield all rules, by pattern."""
        for pattern, entries in self._patterns.items():
            for entry in entries:
                yield Rule(pattern, entry)

    def _about(self, resource_type: int, name: str) -> Iterator[Pattern]:
        literal = Pattern(resource_type, PatternType.LITERAL, name)
        if literal in self._patterns:
            yield literal
        if name != ANYTHING:
            everything = Pattern(resource_type, PatternType.LITERAL, ANYTHING)
            if everything in self._patterns:
                yield everything
        for length in self._prefix_lengths.get(resource_type, ()):
            if length <= len(name):
                prefix = Pattern(resource_type, PatternType.PREFIXED, name[:length])
                if prefix in self._patterns:
                    yield prefix


class Filter(NamedTuple):
    """Which rules are meant; None and ANY stand for all (AclBindingFilter)."""

    resource_type: int = ResourceType.ANY
    pattern_type: int = PatternType.ANY
    name: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission: int = Permission.ANY

    def fits(self, rule: Rule) -> bool:
        """Tell whether a rule is among them."""
        entry = rule.entry
        return (
            self.fits_pattern(rule.pattern)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )

    def fits_pattern(self, pattern: Pattern) -> bool:
        """Tell whether rules with this pattern can be among them."""
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        is_open = self.pattern_type in (PatternType.ANY, PatternType.MATCH)
        if not is_open and self.pattern_type != pattern.pattern_type:
            return False
        if self.name is None:
            return True
        if self.pattern_type != PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern_type == PatternType.LITERAL:
            return pattern.name in (self.name, ANYTHING)
        return self.name.startswith(pattern.name)


def refusal_of(rule: Rule) -> str:
    """Return what is wrong with a rule that is to be made; empty if nothing is."""
    pattern, entry = rule
    if pattern.resource_type not in range(ResourceType.TOPIC, ResourceType.USER + 1):
        return f"Invalid resourceType {pattern.resource_type}"
    if pattern.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {pattern.pattern_type}"
    if entry.operation not in range(Operation.ALL, Operation.TWO_PHASE_COMMIT + 1):
        return f"Invalid operation {entry.operation}"
    if entry.permission not in (Permission.DENY, Permission.ALLOW):
        return f"Invalid permissionType {entry.permission}"
    if not pattern.name:
        return "Resource name should not be empty"
    if pattern.resource_type == ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if ":" not in entry.principal:
        return (
            f"Could not parse principal from `{entry.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )
    return ""


def _fits(entry: Entry, principal: str, host: str, operation: int) -> bool:
    if entry.principal not in (principal, EVERYBODY) or entry.host not in (host, ANYTHING):
        return False
    if entry.operation in (operation, Operation.ALL):
        return True
    return entry.permission == Permission.ALLOW and entry.operation in _IMPLIED_BY.get(
        operation, ()
    )


def _fits_exactly(entry: Entry, principal: str, host: str, operation: int) -> bool:
    return (
        entry.principal in (principal, EVERYBODY)
        and entry.host in (host, ANYTHING)
        and entry.operation in (operation, Operation.ALL)
    )


def _is_wildcard(pattern: Pattern) -> bool:
    return pattern.pattern_type == PatternType.LITERAL and pattern.name == ANYTHING


def _is_covered(pattern: Pattern, denied: list[Pattern]) -> bool:
    """Tell whether all that a pattern allows is denied by another one."""
    for other in denied:
        if other.pattern_type == PatternType.PREFIXED:
            if not _is_wildcard(pattern) and pattern.name.startswith(other.name):
                return True
        elif pattern.pattern_type == PatternType.LITERAL and pattern.name == other.name:
            return True
    return False
