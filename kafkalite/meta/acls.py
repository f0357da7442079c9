"""Decisions about rules of who may do what (KIP-140)."""

from kafkalite.meta.changes import AclsChanged, Change
from kafkalite.meta.events import CreateAcl, DeleteAcl
from kafkalite.meta.image import Image
from kafkalite.security.acls import refusal_of
from kafkalite.wire.errors import ErrorCode, KafkaError


def create_acl(event: CreateAcl, image: Image) -> list[Change]:
    """Make a rule.

    Raises:
        KafkaError: INVALID_REQUEST, it would mean nothing (rule 547).
    """
    pattern, entry = event.rule
    refusal = refusal_of(event.rule)
    if refusal:
        raise KafkaError(ErrorCode.INVALID_REQUEST, refusal)
    before = image.acls.get(pattern, ())
    if entry in before:
        return []
    return [AclsChanged(pattern=pattern, entries=(*before, entry))]


def delete_acl(event: DeleteAcl, image: Image) -> list[Change]:
    """Take a rule away."""
    pattern, entry = event.rule
    before = image.acls.get(pattern, ())
    if entry not in before:
        return []
    after = tuple(one for one in before if one != entry)
    return [AclsChanged(pattern=pattern, entries=after)]
