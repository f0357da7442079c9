"""The authorizer: the ACLs of the moment, and a cache of the decisions that follow from them.

Kafka's StandardAuthorizer; made where `authorizer.class.name` names it.
"""

import logging
from typing import TYPE_CHECKING, Final, Protocol

from kafkalite.security.acls import CLUSTER_NAME, Operation, ResourceType, Rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkalite.config import BrokerConfig
    from kafkalite.meta.changes import Change
    from kafkalite.meta.image import Image

audit = logging.getLogger("kafka.authorizer.logger")
"""Under Kafka's name, for those who look for it: denials at INFO, what is allowed at DEBUG."""

OPERATOR: Final = "Http:token"
"""The operator, who shows the token of the HTTP port: a super user, and no client's name."""

REMEMBERED_MAX: Final = 100_000
"""Decisions that are kept until rules change."""

Question = tuple[str, str, Operation, ResourceType, str]
"""Principal, host, operation, kind and name of a resource."""


class Requester(Protocol):
    """A client as far as rules concern it; a `RequestContext`."""

    principal: str
    peer_address: tuple[str, int]


class Authorizer:
    """The rules of the moment, and decisions that were made by them.

    Args:
        config: `super.users` and `allow.everyone.if.no.acl.found`.
        image: with the rules.
    """

    def __init__(self, config: "BrokerConfig", image: "Image") -> None:
        self._super_users = frozenset(
            name.strip()
            for name in (*config.str("super.users").split(";"), OPERATOR)
            if name.strip()
        )
        self._allows_unruled = config.bool("allow.everyone.if.no.acl.found")
        self._known: dict[Question, bool] = {}
        self._patterns = image.acls
        self.rules = self._of(image)

    def on_changes(self, changes: "Iterable[Change]", image: "Image") -> None:
        """Take up the rules of an image; a subscriber of metadata."""
        del changes
        if image.acls is not self._patterns:
            self._patterns = image.acls
            self.rules = self._of(image)
            self._known.clear()

    def allows(
        self,
        context: Requester,
        operation: Operation,
        kind: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        quiet: bool = False,
    ) -> bool:
        """Say whether a client may do something.

        Args:
            context: who asks, and from where.
            operation: what is wanted.
            kind: of what it is wanted of.
            name: of that.
            quiet: a denial is not noted: something else will do.
        """
        host = context.peer_address[0]
        return self._decide((context.principal, host, operation, kind, name), quiet=quiet)

    def may_see(self, principal: str, host: str, topic: str) -> bool:
        """Say whether a principal may know of a topic; a denial is not noted."""
        key = (principal, host, Operation.DESCRIBE, ResourceType.TOPIC, topic)
        return self._decide(key, quiet=True)

    def _decide(self, key: Question, *, quiet: bool) -> bool:
        known = self._known.get(key)
        if known is None:
            known = self.rules.decide(*key).is_allowed
            if len(self._known) >= REMEMBERED_MAX:
                self._known.clear()
            self._known[key] = known
        if not known and not quiet and audit.isEnabledFor(logging.INFO):
            self._note(logging.INFO, "Denied", key)
        elif known and audit.isEnabledFor(logging.DEBUG):
            self._note(logging.DEBUG, "Allowed", key)
        return known

    def may_read(self, context: Requester, topic: str) -> bool:
        """Say whether a client may read a topic."""
        return self.allows(context, Operation.READ, ResourceType.TOPIC, topic)

    def _of(self, image: "Image") -> Rules:
        return Rules(image.acls, super_users=self._super_users, allows_unruled=self._allows_unruled)

    def _note(self, level: int, what: str, key: Question) -> None:
        principal, host, operation, kind, name = key
        audit.log(
            level,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s",
            principal,
            what,
            Operation(operation).name,
            host,
            ResourceType(kind).name.title().replace("_", ""),
            name,
        )
