"""Operations that a request needs, and the place of refusals in its answer.

Used by the tables of `api/authorization.py` and of `api/group_authorization.py`.
"""

import copy
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkalite.api.handler import Handler
from kafkalite.api.visibility import may, strip
from kafkalite.deferred import Deferred, InSteps, drained, in_steps
from kafkalite.security.acls import CLUSTER_NAME, Operation, ResourceType
from kafkalite.types import ZERO_UUID
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTION: Final = ResourceType.TRANSACTIONAL_ID

DENIED_AS: Final = {
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTION: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


@dataclass(slots=True, frozen=True)
class Need:
    """Operation that a request as a whole needs.

    Attributes:
        operation, kind: to be allowed.
        name: of what the request is about; None is the cluster.
        or_else: another operation of the same that will do.
    """

    operation: Operation
    kind: ResourceType = CLUSTER
    name: Callable[[Any], str | None] | None = None
    or_else: Operation | None = None

    def check(self, request: Any, context: "RequestContext") -> None:
        """Raise KafkaError where it is not allowed."""
        name = CLUSTER_NAME if self.name is None else self.name(request)
        if name is None:
            return
        if self.or_else is not None and may(context, self.or_else, self.kind, name, quiet=True):
            return
        if not may(context, self.operation, self.kind, name):
            raise denied(self.kind)


@dataclass(slots=True, frozen=True)
class Each:
    """Operation needed for each of several things that a request names.

    Attributes:
        items: attribute of the request that has them.
        answers: attribute of the response.
        operation, kind: to be allowed.
        name: of one of them; None if there is none of it, which the handler tells then.
        unless: an operation on the cluster that allows all.
    """

    items: str
    answers: str
    operation: Operation
    kind: ResourceType
    name: "Callable[[Any, RequestContext], str | None]"
    unless: Operation | None = None

    def refused(self, request: Any, context: "RequestContext") -> dict[ErrorCode, list[Any]]:
        """Return the things that are denied, by the code to answer."""
        found = getattr(request, self.items)
        if not found:
            return {}
        if self.unless is not None and may(context, self.unless, CLUSTER, quiet=True):
            return {}
        refused: dict[ErrorCode, list[Any]] = {}
        for one in found:
            name = self.name(one, context)
            if name is not None and not may(context, self.operation, self.kind, name):
                refused.setdefault(DENIED_AS[self.kind], []).append(one)
        return refused


@dataclass(slots=True, frozen=True)
class EachResource(Each):
    """The same for settings, which belong to resources of several kinds."""

    def refused(self, request: Any, context: "RequestContext") -> dict[ErrorCode, list[Any]]:
        """Return the resources that are denied, by the code to answer."""
        refused: dict[ErrorCode, list[Any]] = {}
        for one in getattr(request, self.items):
            kind, name = CLUSTER, CLUSTER_NAME
            if one.resource_type == 2:
                kind, name = TOPIC, one.resource_name
            elif one.resource_type == 32:
                kind, name = GROUP, one.resource_name
            if not may(context, self.operation, kind, name):
                refused.setdefault(DENIED_AS[kind], []).append(one)
        return refused


def denied(kind: ResourceType) -> KafkaError:
    """Return the refusal of what concerns a kind of resource."""
    return KafkaError(DENIED_AS[kind])


def then(result: Any, change: Callable[[Any], Any]) -> Any:
    """Return a response after a change, now or when it is there."""
    if not isinstance(result, Deferred):
        return change(result)

    async def wait() -> Any:
        return change(await result.wait())

    return Deferred(wait)


def then_in_steps(result: Any, change: Callable[[Any], Generator[None, None, Any]]) -> Any:
    """Return the same, with a turn for others at each step of a change of a response to come.

    One that is there at once is small enough to be changed at once.
    """
    if not isinstance(result, Deferred):
        return drained(change(result))

    async def wait() -> Any:
        return await in_steps(change(await result.wait()))

    return InSteps(wait) if isinstance(result, InSteps) else Deferred(wait)


def handle_each(each: Each, handler: Handler, request: Any, context: "RequestContext") -> Any:
    """Have the handler answer what is allowed of a request, and refuse the rest."""
    refused = each.refused(request, context)
    key = handler.api.key
    if not refused:
        return then(handler.handle(request, context), partial(strip, key, request, context))
    version = context.api_version

    def refusals() -> list[Any]:
        now, context.api_version = context.api_version, version
        answers: list[Any] = []
        for code, items in refused.items():
            part = copy.copy(request)
            setattr(part, each.items, items)
            answers += getattr(handler.refuse(part, KafkaError(code), context), each.answers)
        context.api_version = now
        return answers

    gone = {id(one) for items in refused.values() for one in items}
    rest = [one for one in getattr(request, each.items) if id(one) not in gone]
    if not rest and key is not ApiKey.METADATA:
        response = handler.refuse(request, KafkaError(next(iter(refused))), context)
        setattr(response, each.answers, refusals())
        return response
    allowed = copy.copy(request)
    setattr(allowed, each.items, rest)

    def add(response: Any) -> Any:
        strip(key, request, context, response)
        getattr(response, each.answers).extend(refusals())
        return response

    return then(admitted(handler, allowed, context), add)


def admitted(handler: Handler, request: Any, context: "RequestContext") -> Any:
    """Return the handler's response, or its refusal, of a part of a request."""
    try:
        result = handler.handle(request, context)
    except KafkaError as error:
        return handler.refuse(request, error, context)
    if not isinstance(result, Deferred):
        return result

    async def wait() -> Any:
        try:
            return await result.wait()
        except KafkaError as error:
            if error.code is ErrorCode.NOT_CONTROLLER:
                raise
            return handler.refuse(request, error, context)

    return Deferred(wait)


# --- What is in a request ------------------------------------------------------------------------


def itself(item: Any, context: "RequestContext") -> str:
    """Return a thing that is named by itself."""
    del context
    name: str = item
    return name


def topic_name(item: Any, context: "RequestContext") -> str | None:
    """Return the name of a topic that is given by name or by ID, None if there is no such ID."""
    name: str | None = getattr(item, "name", None)
    topic_id = getattr(item, "topic_id", ZERO_UUID)
    if topic_id == ZERO_UUID:
        return name or ""
    topic = context.services.metadata.image.topic_by_id(topic_id)
    return None if topic is None else topic.name


def topic_field(item: Any, context: "RequestContext") -> str:
    """Return the name of a topic that stands in a field `topic`."""
    del context
    name: str = item.topic
    return name


def group_id_of(request: Any) -> str:
    """Return the group that a request is about."""
    name: str = request.group_id
    return name


def transactional_id_of(request: Any) -> str | None:
    """Return the transactional id that a request is about, None without."""
    name: str | None = request.transactional_id
    return name
