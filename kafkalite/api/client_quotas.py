"""DescribeClientQuotas (key 48) and AlterClientQuotas (key 49), versions 0-1 (KIP-546).

v1: flexible.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.metadata_requests import Result
from kafkalite.deferred import Deferred
from kafkalite.meta.events import AlterClientQuota
from kafkalite.quota.limits import CLIENT_ID, IP, USER, Entity, quotas_of
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityResult,
    EntryResult,
)
from kafkalite.wire.messages.alter_client_quotas import EntryData as AlterEntry
from kafkalite.wire.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

EXACT, DEFAULT, ANY = 0, 1, 2
"""How a component is to match: this name, the default, or either of them."""


def handle_describe(
    request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse:
    """Answer from the image (rule 557)."""
    names, kinds = _filter(request.components)
    entries = []
    for entity, quotas in quotas_of(context.services.metadata.image.configs):
        if _fits(entity, names, kinds, strict=request.strict):
            entries.append(
                EntryData(
                    entity=[
                        EntityData(entity_type=kind, entity_name=name) for kind, name in entity
                    ],
                    values=[ValueData(key=key, value=value) for key, value in quotas.items()],
                )
            )
    return DescribeClientQuotasResponse(
        error_code=ErrorCode.NONE, error_message=None, entries=entries
    )


def refuse_describe(
    request: DescribeClientQuotasRequest, error: KafkaError, context: RequestContext
) -> DescribeClientQuotasResponse:
    """Answer the error."""
    del request, context
    return DescribeClientQuotasResponse(
        error_code=error.code, error_message=error.message or None, entries=None
    )


def handle_alter(
    request: AlterClientQuotasRequest, context: RequestContext
) -> Deferred[AlterClientQuotasResponse]:
    """Change quotas with one commit; an entry that is refused does not touch the others."""
    return Deferred(partial(_alter, request, context))


def refuse_alter(
    request: AlterClientQuotasRequest, error: KafkaError, context: RequestContext
) -> AlterClientQuotasResponse:
    """Answer the error for each entry."""
    del context
    return AlterClientQuotasResponse(
        entries=[_result(_entity(entry), error) for entry in request.entries]
    )


async def _alter(
    request: AlterClientQuotasRequest, context: RequestContext
) -> AlterClientQuotasResponse:
    events: dict[Entity, AlterClientQuota] = {}
    twice: list[Entity] = []
    for entry in request.entries:
        entity = _entity(entry)
        quotas = [(op.key, None if op.remove else op.value) for op in entry.ops]
        if entity in events:
            twice.append(entity)
        else:
            events[entity] = AlterClientQuota(entity=entity, quotas=quotas)
    metadata = context.services.metadata
    change = metadata.preview if request.validate_only else metadata.submit_all
    outcomes = dict(zip(events, await change(events.values()), strict=True))
    again = KafkaError(ErrorCode.INVALID_REQUEST, "the request names this entity more than once")
    outcomes.update(dict.fromkeys(twice, again))
    return AlterClientQuotasResponse(
        entries=[_result(entity, outcome) for entity, outcome in outcomes.items()]
    )


def _entity(entry: AlterEntry) -> Entity:
    """Return what an entry is about; of a type that is named twice the last name counts."""
    return tuple(sorted({one.entity_type: one.entity_name for one in entry.entity}.items()))


def _result(entity: Entity, outcome: Result) -> EntryResult:
    refusal = outcome if isinstance(outcome, KafkaError) else None
    return EntryResult(
        error_code=ErrorCode.NONE if refusal is None else refusal.code,
        error_message=None if refusal is None else refusal.message or None,
        entity=[EntityResult(entity_type=kind, entity_name=name) for kind, name in entity],
    )


def _filter(components: Sequence[ComponentData]) -> tuple[dict[str, str | None], set[str]]:
    """Return the names that are wanted by type, and types of which any name is wanted.

    Raises:
        KafkaError: INVALID_REQUEST, or UNSUPPORTED_VERSION for another type.
    """
    names: dict[str, str | None] = {}
    kinds: set[str] = set()
    for component in components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in names or kind in kinds:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if component.match_type not in (EXACT, DEFAULT, ANY):
            raise _invalid(f"Unknown match type {component.match_type}")
        if (match is None) == (component.match_type == EXACT):
            raise _invalid(f"match type {component.match_type} with the name {match}")
        if component.match_type == ANY:
            kinds.add(kind)
        else:
            names[kind] = match
    wanted = {*names, *kinds}
    if IP in wanted and len(wanted) > 1:
        raise _invalid("an ip has quotas by itself, not together with a user or client-id")
    return names, kinds


def _fits(
    entity: Entity, names: Mapping[str, str | None], kinds: set[str], *, strict: bool
) -> bool:
    """Tell whether an entity is asked for; with `strict` it has no other types."""
    parts = dict(entity)
    if strict and len(parts) != len(names) + len(kinds):
        return False
    return all(kind in parts and parts[kind] == name for kind, name in names.items()) and all(
        kind in parts for kind in kinds
    )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)


HANDLERS = (
    Handler(DESCRIBE_CLIENT_QUOTAS, handle_describe, refuse_describe),
    Handler(ALTER_CLIENT_QUOTAS, handle_alter, refuse_alter, forward_to_controller=True),
)
