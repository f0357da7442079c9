"""DescribeAcls (key 29), CreateAcls (30) and DeleteAcls (31), versions 1-3.

Rules of who may do what (KIP-140, prefixes KIP-290). v2: flexible. v3: resource type user.
"""

from collections.abc import Sequence
from functools import partial

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.metadata_requests import Result
from kafkalite.deferred import Deferred
from kafkalite.meta.events import CreateAcl, DeleteAcl
from kafkalite.security.acls import (
    Entry,
    Filter,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    Rule,
)
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.create_acls import (
    CREATE_ACLS,
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kafkalite.wire.messages.delete_acls import (
    DELETE_ACLS,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kafkalite.wire.messages.describe_acls import (
    DESCRIBE_ACLS,
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def handle_describe(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """Answer from the image, by what rules are about."""
    _check_enabled(context)
    wanted = Filter(
        resource_type=request.resource_type_filter,
        pattern_type=request.pattern_type_filter,
        name=request.resource_name_filter,
        principal=request.principal_filter,
        host=request.host_filter,
        operation=request.operation,
        permission=request.permission_type,
    )
    _check_filter(wanted)
    resources = []
    for pattern, entries in context.services.metadata.image.acls.items():
        found = [
            AclDescription(
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for entry in entries
            if wanted.fits(Rule(pattern, entry))
        ]
        if found:
            resources.append(
                DescribeAclsResource(
                    resource_type=pattern.resource_type,
                    resource_name=pattern.name,
                    pattern_type=pattern.pattern_type,
                    acls=found,
                )
            )
    return DescribeAclsResponse(error_code=ErrorCode.NONE, error_message=None, resources=resources)


def refuse_describe(
    request: DescribeAclsRequest, error: KafkaError, context: RequestContext
) -> DescribeAclsResponse:
    """Answer the error."""
    del request, context
    return DescribeAclsResponse(error_code=error.code, error_message=error.message or None)


def handle_create(
    request: CreateAclsRequest, context: RequestContext
) -> Deferred[CreateAclsResponse]:
    """Make rules with one commit; one that is refused does not touch the others."""
    _check_enabled(context)
    return Deferred(partial(_create, request, context))


def refuse_create(
    request: CreateAclsRequest, error: KafkaError, context: RequestContext
) -> CreateAclsResponse:
    """Answer the error for each rule."""
    del context
    return CreateAclsResponse(results=[_created(error) for _ in request.creations])


def handle_delete(
    request: DeleteAclsRequest, context: RequestContext
) -> Deferred[DeleteAclsResponse]:
    """Take rules away with one commit."""
    _check_enabled(context)
    return Deferred(partial(_delete, request, context))


def refuse_delete(
    request: DeleteAclsRequest, error: KafkaError, context: RequestContext
) -> DeleteAclsResponse:
    """Answer the error for each filter."""
    del context
    return DeleteAclsResponse(filter_results=[_refused(error) for _ in request.filters])


async def _create(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    events = [CreateAcl(rule=_rule(creation)) for creation in request.creations]
    results = await context.services.metadata.submit_all(events)
    return CreateAclsResponse(results=[_created(result) for result in results])


async def _delete(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    metadata = context.services.metadata
    rules = [Rule(p, entry) for p, entries in metadata.image.acls.items() for entry in entries]
    answers: list[list[Rule] | KafkaError] = []
    for each in request.filters:
        wanted = _filter(each)
        try:
            _check_filter(wanted)
        except KafkaError as error:
            answers.append(error)
            continue
        answers.append([rule for rule in rules if wanted.fits(rule)])
    gone = dict.fromkeys(
        rule for answer in answers if not isinstance(answer, KafkaError) for rule in answer
    )
    outcomes = await metadata.submit_all([DeleteAcl(rule=rule) for rule in gone])
    failures = {
        rule: outcome
        for rule, outcome in zip(gone, outcomes, strict=True)
        if isinstance(outcome, KafkaError)
    }
    return DeleteAclsResponse(
        filter_results=[
            _refused(answer)
            if isinstance(answer, KafkaError)
            else DeleteAclsFilterResult(
                error_code=ErrorCode.NONE,
                error_message=None,
                matching_acls=[_deleted(rule, failures.get(rule)) for rule in answer],
            )
            for answer in answers
        ]
    )


def _check_enabled(context: RequestContext) -> None:
    """Refuse ACL requests without an authorizer: SECURITY_DISABLED (rule 219)."""
    if context.services.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def _check_filter(wanted: Filter) -> None:
    numbers = (
        (wanted.resource_type, ResourceType),
        (wanted.pattern_type, PatternType),
        (wanted.operation, Operation),
        (wanted.permission, Permission),
    )
    if any(number == 0 or number not in list(kind) for number, kind in numbers):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the filter contains unknown elements")


def _rule(creation: AclCreation) -> Rule:
    pattern = Pattern(
        creation.resource_type, creation.resource_pattern_type, creation.resource_name
    )
    entry = Entry(creation.principal, creation.host, creation.operation, creation.permission_type)
    return Rule(pattern, entry)


def _filter(asked: DeleteAclsFilter) -> Filter:
    return Filter(
        resource_type=asked.resource_type_filter,
        pattern_type=asked.pattern_type_filter,
        name=asked.resource_name_filter,
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=asked.operation,
        permission=asked.permission_type,
    )


def _created(result: Result | Sequence[object]) -> AclCreationResult:
    if isinstance(result, KafkaError):
        return AclCreationResult(error_code=result.code, error_message=result.message or None)
    return AclCreationResult(error_code=ErrorCode.NONE, error_message=None)


def _refused(error: KafkaError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=error.code, error_message=error.message or None)


def _deleted(rule: Rule, failure: KafkaError | None) -> DeleteAclsMatchingAcl:
    pattern, entry = rule
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE if failure is None else failure.code,
        error_message=None if failure is None else failure.message or None,
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


HANDLERS = (
    Handler(DESCRIBE_ACLS, handle_describe, refuse_describe),
    Handler(CREATE_ACLS, handle_create, refuse_create, forward_to_controller=True),
    Handler(DELETE_ACLS, handle_delete, refuse_delete, forward_to_controller=True),
)
