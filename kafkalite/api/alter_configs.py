"""AlterConfigs (key 33), versions 0-2, and IncrementalAlterConfigs (key 44), versions 0-1.

The former gives a resource exactly the settings it names (rule 34), the latter changes single
ones (KIP-339). Flexible from v2 and v1. Changes take effect before they are answered.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from kafkalite.api import broker_loggers
from kafkalite.api.context import RequestContext
from kafkalite.api.describe_configs import BROKER_LOGGER_RESOURCE
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.meta.alter_configs import check_broker_name
from kafkalite.meta.changes import BROKER_RESOURCE, Change
from kafkalite.meta.events import AlterConfigs, Event, IncrementalAlterConfigs
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages import alter_configs as full
from kafkalite.wire.messages import incremental_alter_configs as incremental

Result = Sequence[Change] | KafkaError
_Answer = TypeVar(
    "_Answer", full.AlterConfigsResourceResponse, incremental.AlterConfigsResourceResponse
)


def handle_full(
    request: full.AlterConfigsRequest, context: RequestContext
) -> Deferred[full.AlterConfigsResponse]:
    """Replace the settings of each resource; a refused one does not touch the others."""
    return Deferred(partial(_alter_fully, request, context))


def handle_incremental(
    request: incremental.IncrementalAlterConfigsRequest, context: RequestContext
) -> Deferred[incremental.IncrementalAlterConfigsResponse]:
    """Change settings of each resource; a refused one does not touch the others."""
    return Deferred(partial(_alter_incrementally, request, context))


def refuse_full(
    request: full.AlterConfigsRequest, error: KafkaError, context: RequestContext
) -> full.AlterConfigsResponse:
    """Answer the error for each resource."""
    del context
    return _full_response(request, [error for _ in request.resources])


def refuse_incremental(
    request: incremental.IncrementalAlterConfigsRequest,
    error: KafkaError,
    context: RequestContext,
) -> incremental.IncrementalAlterConfigsResponse:
    """Answer the error for each resource."""
    del context
    return _incremental_response(request, [error for _ in request.resources])


async def _alter_fully(
    request: full.AlterConfigsRequest, context: RequestContext
) -> full.AlterConfigsResponse:
    events = [
        AlterConfigs(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[(config.name, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    return _full_response(request, await _submit(events, context, request.validate_only))


async def _alter_incrementally(
    request: incremental.IncrementalAlterConfigsRequest, context: RequestContext
) -> incremental.IncrementalAlterConfigsResponse:
    events = [
        IncrementalAlterConfigs(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            operations=[
                (config.name, config.config_operation, config.value) for config in resource.configs
            ],
        )
        for resource in request.resources
    ]
    return _incremental_response(request, await _submit(events, context, request.validate_only))


async def _submit(
    events: Sequence[AlterConfigs | IncrementalAlterConfigs],
    context: RequestContext,
    validate_only: bool,
) -> list[Result]:
    """Return the result of each event; levels of loggers are changed here, and not stored."""
    counts = Counter((event.resource_type, event.resource_name) for event in events)
    results: list[Result | None] = []
    stored: list[Event] = []
    for event in events:
        if counts[event.resource_type, event.resource_name] > 1:
            results.append(
                KafkaError(ErrorCode.INVALID_REQUEST, "The request names this resource twice")
            )
        elif event.resource_type == BROKER_LOGGER_RESOURCE and isinstance(
            event, IncrementalAlterConfigs
        ):
            results.append(_alter_loggers(event, context, validate_only=validate_only))
        else:
            try:
                stored.append(_with_encoded_passwords(event, context))
            except KafkaError as error:
                results.append(error)
            else:
                results.append(None)
    metadata = context.services.metadata
    submit = metadata.preview if validate_only else metadata.submit_all
    answers = iter(await submit(stored))
    return [next(answers) if result is None else result for result in results]


def _with_encoded_passwords(
    event: AlterConfigs | IncrementalAlterConfigs, context: RequestContext
) -> AlterConfigs | IncrementalAlterConfigs:
    """Return an event in which a broker's passwords are encoded, if there is a secret (rule 255).

    Raises:
        KafkaError: INVALID_REQUEST, they cannot be encoded.
    """
    config = context.services.config
    if event.resource_type != BROKER_RESOURCE or not config.value("password.encoder.secret"):
        return event
    from kafkalite.security.password_encoder import PasswordEncoder, PasswordError, is_password

    encoder = PasswordEncoder.of(config)
    assert encoder is not None
    try:
        if isinstance(event, AlterConfigs):
            configs = [
                (name, encoder.encode(value) if value and is_password(name) else value)
                for name, value in event.configs
            ]
            return replace(event, configs=configs)
        operations = [
            (name, operation, encoder.encode(value) if value and is_password(name) else value)
            for name, operation, value in event.operations
        ]
        return replace(event, operations=operations)
    except PasswordError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None


def _alter_loggers(
    event: IncrementalAlterConfigs, context: RequestContext, *, validate_only: bool
) -> Result:
    try:
        check_broker_name(event.resource_name, context.services.config.node_id)
        broker_loggers.alter(event.operations, validate_only=validate_only)
    except KafkaError as error:
        return error
    return []


def _full_response(
    request: full.AlterConfigsRequest, results: Sequence[Result]
) -> full.AlterConfigsResponse:
    part = full.AlterConfigsResourceResponse
    return full.AlterConfigsResponse(responses=_answers(part, request.resources, results))


def _incremental_response(
    request: incremental.IncrementalAlterConfigsRequest, results: Sequence[Result]
) -> incremental.IncrementalAlterConfigsResponse:
    part = incremental.AlterConfigsResourceResponse
    return incremental.IncrementalAlterConfigsResponse(
        responses=_answers(part, request.resources, results)
    )


def _answers(
    part: type[_Answer],
    resources: Sequence[full.AlterConfigsResource | incremental.AlterConfigsResource],
    results: Sequence[Result],
) -> list[_Answer]:
    answers = []
    for resource, result in zip(resources, results, strict=True):
        code, message = _error(result)
        answers.append(
            part(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return answers


def _error(result: Result) -> tuple[ErrorCode, str | None]:
    if isinstance(result, KafkaError):
        return result.code, result.message or None
    return ErrorCode.NONE, None


def _is_of_loggers(request: incremental.IncrementalAlterConfigsRequest) -> bool:
    """Tell whether a request is about the loggers of the broker that it came to, and no more."""
    types = {resource.resource_type for resource in request.resources}
    return types == {BROKER_LOGGER_RESOURCE}


HANDLERS = (
    Handler(full.ALTER_CONFIGS, handle_full, refuse_full, forward_to_controller=True),
    Handler(
        incremental.INCREMENTAL_ALTER_CONFIGS,
        handle_incremental,
        refuse_incremental,
        forward_to_controller=True,
        is_local_request=_is_of_loggers,
    ),
)
