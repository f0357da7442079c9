"""DescribeUserScramCredentials (key 50) and AlterUserScramCredentials (key 51), versions 0.

Users that log in by SCRAM (KIP-554). A client salts a password itself; neither the password nor
what a client could log in with is stored, and nothing of what is stored is ever told.
"""

from collections import Counter
from functools import partial

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.metadata_requests import Result
from kafkalite.deferred import Deferred
from kafkalite.meta.entities import USER_ENTITY, user_of, user_resource
from kafkalite.meta.events import AlterScramCredential
from kafkalite.meta.image import Image
from kafkalite.security import scram
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkalite.wire.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

Asked = ScramCredentialDeletion | ScramCredentialUpsertion


def handle_describe(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """Answer from the image (rule 536)."""
    image = context.services.metadata.image
    if request.users:
        counts = Counter(user.name for user in request.users)
        results = [_described_once(name, count, image) for name, count in counts.items()]
    else:
        names = {user_of(one) for one in image.configs if one.type == USER_ENTITY}
        found = (_described(name, image) for name in sorted(filter(None, names)))
        results = [one for one in found if one.credential_infos]
    return DescribeUserScramCredentialsResponse(
        error_code=ErrorCode.NONE, error_message=None, results=results
    )


def refuse_describe(
    request: DescribeUserScramCredentialsRequest, error: KafkaError, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """Answer the error at the top."""
    del request, context
    return DescribeUserScramCredentialsResponse(
        error_code=error.code, error_message=error.message or None
    )


def handle_alter(
    request: AlterUserScramCredentialsRequest, context: RequestContext
) -> Deferred[AlterUserScramCredentialsResponse]:
    """Change users with one commit; one who is refused does not touch the others."""
    return Deferred(partial(_alter, request, context))


def refuse_alter(
    request: AlterUserScramCredentialsRequest, error: KafkaError, context: RequestContext
) -> AlterUserScramCredentialsResponse:
    """Answer the error for each user."""
    del context
    names = dict.fromkeys(one.name for one in _asked(request))
    return AlterUserScramCredentialsResponse(results=[_result(name, error) for name in names])


async def _alter(
    request: AlterUserScramCredentialsRequest, context: RequestContext
) -> AlterUserScramCredentialsResponse:
    events: dict[str, AlterScramCredential] = {}
    refused: dict[str, KafkaError] = {}
    for one in _asked(request):
        if one.name in refused:
            continue
        try:
            if events.pop(one.name, None) is not None:
                raise KafkaError(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
            events[one.name] = _event(one)
        except KafkaError as error:
            refused[one.name] = error
    outcomes = await context.services.metadata.submit_all(events.values())
    results = [_result(*each) for each in zip(events, outcomes, strict=True)]
    results += [_result(name, error) for name, error in refused.items()]
    return AlterUserScramCredentialsResponse(results=results)


def _asked(request: AlterUserScramCredentialsRequest) -> list[Asked]:
    return [*request.deletions, *request.upsertions]


def _event(asked: Asked) -> AlterScramCredential:
    """Return what a client asks for.

    Raises:
        KafkaError: nobody could log in with it.
    """
    if not asked.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = scram.BY_NUMBER.get(asked.mechanism)
    if mechanism is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(asked, ScramCredentialDeletion):
        return AlterScramCredential(user=asked.name, mechanism=mechanism.name, credential=None)
    if asked.iterations < scram.ITERATIONS_MIN:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if asked.iterations > scram.ITERATIONS_MAX:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    credential = scram.Credential.of_salted(
        mechanism, asked.salted_password, salt=asked.salt, iterations=asked.iterations
    )
    return AlterScramCredential(
        user=asked.name, mechanism=mechanism.name, credential=str(credential)
    )


def _result(name: str, outcome: Result) -> AlterUserScramCredentialsResult:
    if isinstance(outcome, KafkaError):
        return AlterUserScramCredentialsResult(
            user=name, error_code=outcome.code, error_message=outcome.message or None
        )
    return AlterUserScramCredentialsResult(user=name, error_code=ErrorCode.NONE, error_message=None)


def _described_once(name: str, count: int, image: Image) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message="Cannot describe SCRAM credentials for the same user twice in a single "
            f"request: {name}",
        )
    found = _described(name, image)
    if not found.credential_infos:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message="Attempt to describe a user credential that does not exist: " + name,
        )
    return found


def _described(name: str | None, image: Image) -> DescribeUserScramCredentialsResult:
    assert name is not None
    values = image.configs_of(user_resource(name))
    infos = []
    for mechanism in (scram.SHA_256, scram.SHA_512):
        if mechanism.name in values:
            iterations = scram.Credential.parse(values[mechanism.name]).iterations
            infos.append(CredentialInfo(mechanism=mechanism.number, iterations=iterations))
    return DescribeUserScramCredentialsResult(
        user=name, error_code=ErrorCode.NONE, error_message=None, credential_infos=infos
    )


HANDLERS = (
    Handler(DESCRIBE_USER_SCRAM_CREDENTIALS, handle_describe, refuse_describe),
    Handler(ALTER_USER_SCRAM_CREDENTIALS, handle_alter, refuse_alter, forward_to_controller=True),
)
