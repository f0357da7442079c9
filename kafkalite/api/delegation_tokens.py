"""CreateDelegationToken (key 38), Renew- (39), Expire- (40) and DescribeDelegationToken (41).

KIP-48. Create and Describe v3: an owner other than who asks (KIP-373).
"""

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkalite.api.context import ANONYMOUS, RequestContext
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.meta.delegation_tokens import Token, find_token, tokens_in
from kafkalite.meta.events import ChangeDelegationToken, CreateDelegationToken
from kafkalite.security.acls import Operation, ResourceType
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.create_delegation_token import (
    CREATE_DELEGATION_TOKEN,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkalite.wire.messages.describe_delegation_token import (
    DESCRIBE_DELEGATION_TOKEN,
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkalite.wire.messages.expire_delegation_token import (
    EXPIRE_DELEGATION_TOKEN,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kafkalite.wire.messages.renew_delegation_token import (
    RENEW_DELEGATION_TOKEN,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

if TYPE_CHECKING:
    from kafkalite.security.delegation_tokens import DelegationTokens

NO_TIME: Final = -1
"""In answers that tell no time."""

FOUND_FIRST: Final = (
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_PRINCIPAL_TYPE,
)

TIME_MAX: Final = 2**63 - 1
USER: Final = "User"


def check(request: Any, context: RequestContext) -> None:
    """Refuse who cannot be known for certain; where a client came in (rule 571).

    Raises:
        KafkaError: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
    """
    del request
    listeners = context.services.config.listeners
    protocol = next(one.protocol for one in listeners if one.name == context.listener)
    is_unknown = protocol == "SSL" and context.principal == ANONYMOUS
    if context.is_token or protocol == "PLAINTEXT" or is_unknown:
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "tokens are for clients that have logged in, and not by a token",
        )


# --- Create --------------------------------------------------------------------------------------


def handle_create(
    request: CreateDelegationTokenRequest, context: RequestContext
) -> Deferred[CreateDelegationTokenResponse]:
    """Make a token for who asks, or for another (rule 572)."""
    owner = _owner(request, context)
    authorizer = context.services.authorizer
    if (
        owner != context.principal
        and authorizer is not None
        and not authorizer.allows(context, Operation.CREATE_TOKENS, ResourceType.USER, owner)
    ):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    if any(renewer.principal_type != USER for renewer in request.renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE, "only users may renew tokens")
    _tokens(context)
    return Deferred(partial(_create, request, owner, context))


def refuse_create(
    request: CreateDelegationTokenRequest, error: KafkaError, context: RequestContext
) -> CreateDelegationTokenResponse:
    """Answer the error, and whose token it would have been."""
    response = _of_whom(_owner(request, context), context)
    response.error_code = error.code
    response.issue_timestamp_ms = response.expiry_timestamp_ms = _time_told(error)
    response.max_timestamp_ms = _time_told(error)
    return response


async def _create(
    request: CreateDelegationTokenRequest, owner: str, context: RequestContext
) -> CreateDelegationTokenResponse:
    services = context.services
    now_ms = services.clock.wall_ms()
    lifetime_ms = services.config.int("delegation.token.max.lifetime.ms")
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    max_ms = now_ms + lifetime_ms
    expiry_ms = min(max_ms, now_ms + services.config.int("delegation.token.expiry.time.ms"))
    event = CreateDelegationToken(
        token_id=secrets.token_urlsafe(16),
        owner=owner,
        requester=context.principal,
        renewers=[f"{one.principal_type}:{one.principal_name}" for one in request.renewers],
        now_ms=now_ms,
        expiry_ms=expiry_ms,
        max_ms=max_ms,
    )
    await services.metadata.submit(event)
    response = _of_whom(owner, context)
    response.issue_timestamp_ms = now_ms
    response.expiry_timestamp_ms = expiry_ms
    response.max_timestamp_ms = max_ms
    response.token_id = event.token_id
    response.hmac = _tokens(context).hmac_of(event.token_id)
    return response


def _owner(request: CreateDelegationTokenRequest, context: RequestContext) -> str:
    if not request.owner_principal_name:
        return context.principal
    return f"{request.owner_principal_type}:{request.owner_principal_name}"


def _of_whom(owner: str, context: RequestContext) -> CreateDelegationTokenResponse:
    kind, _, name = owner.partition(":")
    requester_kind, _, requester = context.principal.partition(":")
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.NONE,
        principal_type=kind,
        principal_name=name,
        token_requester_principal_type=requester_kind,
        token_requester_principal_name=requester,
    )


# --- Renew and expire ----------------------------------------------------------------------------


def handle_renew(
    request: RenewDelegationTokenRequest, context: RequestContext
) -> Deferred[RenewDelegationTokenResponse]:
    """Let a token last longer, from now on, and not beyond its maximum."""
    period_ms = context.services.config.int("delegation.token.expiry.time.ms")
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    return Deferred(partial(_renew, request, period_ms, context))


def refuse_renew(
    request: RenewDelegationTokenRequest, error: KafkaError, context: RequestContext
) -> RenewDelegationTokenResponse:
    """Answer the error."""
    del request
    return RenewDelegationTokenResponse(
        error_code=error.code, expiry_timestamp_ms=_time_told(error)
    )


def handle_expire(
    request: ExpireDelegationTokenRequest, context: RequestContext
) -> Deferred[ExpireDelegationTokenResponse]:
    """Let a token end sooner; at once with a period below 0."""
    return Deferred(partial(_expire, request, context))


def refuse_expire(
    request: ExpireDelegationTokenRequest, error: KafkaError, context: RequestContext
) -> ExpireDelegationTokenResponse:
    """Answer the error."""
    del request
    return ExpireDelegationTokenResponse(
        error_code=error.code, expiry_timestamp_ms=_time_told(error)
    )


async def _renew(
    request: RenewDelegationTokenRequest, period_ms: int, context: RequestContext
) -> RenewDelegationTokenResponse:
    expiry_ms = await _change(request.hmac, period_ms, context, is_renewal=True)
    return RenewDelegationTokenResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=expiry_ms)


async def _expire(
    request: ExpireDelegationTokenRequest, context: RequestContext
) -> ExpireDelegationTokenResponse:
    expiry_ms = await _change(request.hmac, request.expiry_time_period_ms, context)
    return ExpireDelegationTokenResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=expiry_ms)


async def _change(
    shown: bytes, period_ms: int, context: RequestContext, *, is_renewal: bool = False
) -> int:
    """Let a token end after a time from now; return when that is."""
    services = context.services
    token_id = _tokens(context).id_of(bytes(shown))
    now_ms = services.clock.wall_ms()
    ends_at_once = period_ms < 0
    event = ChangeDelegationToken(
        token_id=token_id,
        principal=context.principal,
        now_ms=now_ms,
        expiry_ms=None if ends_at_once else min(now_ms + period_ms, TIME_MAX),
        is_renewal=is_renewal,
    )
    await services.metadata.submit(event)
    if ends_at_once or token_id is None:
        return now_ms
    token = find_token(services.metadata.image, token_id)
    return now_ms if token is None else token.expiry_ms


def _time_told(error: KafkaError) -> int:
    """Return what Kafka tells as a time with an error: -1 where it was found before all others."""
    return NO_TIME if error.code in FOUND_FIRST else 0


# --- Describe ------------------------------------------------------------------------------------


def handle_describe(
    request: DescribeDelegationTokenRequest, context: RequestContext
) -> DescribeDelegationTokenResponse:
    """Answer which tokens there are of those whom who asks may see (rule 574)."""
    check(request, context)
    keys = _tokens(context)
    owners = None
    if request.owners is not None:
        owners = [f"{one.principal_type}:{one.principal_name}" for one in request.owners]
    found = [
        _described(token, keys)
        for token in tokens_in(context.services.metadata.image)
        if owners is None or any(map(token.is_of, owners))
        if token.is_of(context.principal) or _may_describe(token, context)
    ]
    return DescribeDelegationTokenResponse(error_code=ErrorCode.NONE, tokens=found)


def refuse_describe(
    request: DescribeDelegationTokenRequest, error: KafkaError, context: RequestContext
) -> DescribeDelegationTokenResponse:
    """Answer the error."""
    del request, context
    return DescribeDelegationTokenResponse(error_code=error.code)


def _may_describe(token: Token, context: RequestContext) -> bool:
    authorizer = context.services.authorizer
    if authorizer is None:
        return True
    kind, user = ResourceType.DELEGATION_TOKEN, ResourceType.USER
    return authorizer.allows(
        context, Operation.DESCRIBE, kind, token.token_id
    ) or authorizer.allows(context, Operation.DESCRIBE_TOKENS, user, token.owner)


def _described(token: Token, keys: "DelegationTokens") -> DescribedDelegationToken:
    kind, _, name = token.owner.partition(":")
    requester_kind, _, requester = token.requester.partition(":")
    renewers = [renewer.partition(":") for renewer in token.renewers]
    return DescribedDelegationToken(
        principal_type=kind,
        principal_name=name,
        token_requester_principal_type=requester_kind,
        token_requester_principal_name=requester,
        issue_timestamp=token.issue_ms,
        expiry_timestamp=token.expiry_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=keys.hmac_of(token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=one, principal_name=other)
            for one, _, other in renewers
        ],
    )


def _tokens(context: RequestContext) -> "DelegationTokens":
    """Return what knows tokens.

    Raises:
        KafkaError: DELEGATION_TOKEN_AUTH_DISABLED, there is no secret.
    """
    tokens = context.services.tokens
    if tokens is None:
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "delegation.token.secret.key is not set"
        )
    return tokens


HANDLERS = (
    Handler(
        CREATE_DELEGATION_TOKEN,
        handle_create,
        refuse_create,
        forward_to_controller=True,
        check=check,
    ),
    Handler(
        RENEW_DELEGATION_TOKEN, handle_renew, refuse_renew, forward_to_controller=True, check=check
    ),
    Handler(
        EXPIRE_DELEGATION_TOKEN,
        handle_expire,
        refuse_expire,
        forward_to_controller=True,
        check=check,
    ),
    Handler(DESCRIBE_DELEGATION_TOKEN, handle_describe, refuse_describe),
)
