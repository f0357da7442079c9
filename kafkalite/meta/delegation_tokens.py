"""Delegation tokens as metadata: what is stored of one, and who may change it (KIP-48).

They are resources with settings, as users are, so that a file and ZooKeeper keep them as those. The
secret by which a token is shown (`delegation.token.secret.key`) is not among them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

from kafkalite.meta.changes import Change, ConfigsChanged
from kafkalite.meta.entities import changed_settings, sanitized
from kafkalite.meta.events import (
    ChangeDelegationToken,
    CreateDelegationToken,
    SweepDelegationTokens,
)
from kafkalite.meta.image import ConfigResource, Image
from kafkalite.wire.errors import ErrorCode, KafkaError

TOKEN_ENTITY: Final = -4

SWEPT_AT_ONCE_MAX: Final = 1_000
"""Expired tokens that one commit removes."""


@dataclass(slots=True, frozen=True, kw_only=True)
class Token:
    """A delegation token; times are milliseconds since 1970.

    Attributes:
        owner: who whoever shows it is.
        requester: who asked for it.
        renewers: who may renew and end it, besides its owner.
        expiry_ms: it is worth nothing after that, unless it is renewed before.
        max_ms: it cannot be renewed beyond that.
    """

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_ms: int
    expiry_ms: int
    max_ms: int

    def is_expired(self, now_ms: int) -> bool:
        """Tell whether it is worth nothing any more."""
        return now_ms > min(self.expiry_ms, self.max_ms)

    def is_of(self, principal: str) -> bool:
        """Tell whether somebody is its owner, or may renew it."""
        return principal == self.owner or principal in self.renewers

    def settings(self) -> dict[str, str]:
        """Return what is stored of it, by the names that Kafka 3.9 has in ZooKeeper."""
        return {
            "owner": self.owner,
            "tokenRequester": self.requester,
            "renewers": ",".join(map(sanitized, self.renewers)),
            "issueTimestamp": str(self.issue_ms),
            "expiryTimestamp": str(self.expiry_ms),
            "maxTimestamp": str(self.max_ms),
        }


def token_resource(token_id: str) -> ConfigResource:
    """Return what a token's settings belong to."""
    return ConfigResource(TOKEN_ENTITY, token_id)


def token_of(token_id: str, settings: Mapping[str, str]) -> Token:
    """Return the token of which this is stored."""
    return Token(
        token_id=token_id,
        owner=settings["owner"],
        requester=settings["tokenRequester"],
        renewers=tuple(map(unquote, filter(None, settings["renewers"].split(",")))),
        issue_ms=int(settings["issueTimestamp"]),
        expiry_ms=int(settings["expiryTimestamp"]),
        max_ms=int(settings["maxTimestamp"]),
    )


def tokens_in(image: Image) -> Iterator[Token]:
    """Yield all tokens."""
    for resource, settings in image.configs.items():
        if resource.type == TOKEN_ENTITY:
            yield token_of(resource.name, settings)


def find_token(image: Image, token_id: str) -> Token | None:
    """Return a token, None if there is none of this id."""
    settings = image.configs_of(token_resource(token_id))
    return token_of(token_id, settings) if settings else None


def create_delegation_token(event: CreateDelegationToken, image: Image) -> list[Change]:
    """Make a token."""
    token = Token(
        token_id=event.token_id,
        owner=event.owner,
        requester=event.requester,
        renewers=tuple(event.renewers),
        issue_ms=event.now_ms,
        expiry_ms=event.expiry_ms,
        max_ms=event.max_ms,
    )
    return _stored(token, image)


def change_delegation_token(event: ChangeDelegationToken, image: Image) -> list[Change]:
    """Let a token end at another time, or at once.

    Raises:
        KafkaError: DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_OWNER_MISMATCH or
            DELEGATION_TOKEN_EXPIRED (rule 573).
    """
    token = None if event.token_id is None else find_token(image, event.token_id)
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    if event.is_renewal and token.is_expired(event.now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    if not token.is_of(event.principal):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    if event.expiry_ms is None:
        return _removed(token)
    if token.is_expired(event.now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return _stored(replace(token, expiry_ms=min(event.expiry_ms, token.max_ms)), image)


def sweep_delegation_tokens(event: SweepDelegationTokens, image: Image) -> list[Change]:
    """Remove tokens that are worth nothing any more."""
    changes: list[Change] = []
    for token in tokens_in(image):
        if token.is_expired(event.now_ms) and len(changes) < SWEPT_AT_ONCE_MAX:
            changes += _removed(token)
    return changes


def _stored(token: Token, image: Image) -> list[Change]:
    return changed_settings(token_resource(token.token_id), token.settings(), image)


def _removed(token: Token) -> list[Change]:
    return [
        ConfigsChanged(
            resource_type=TOKEN_ENTITY,
            resource_name=token.token_id,
            removed=tuple(token.settings()),
        )
    ]
