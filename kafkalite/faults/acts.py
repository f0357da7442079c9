"""Changes that fault rules make to the broker's state, by the same events that do it otherwise.

A member is evicted by its own leaving, a producer fenced by another one that takes its
transactional id, a coordinator moved by having it load its log anew. The request that the rule
fired for meets what that has made of it: no answer is made up.
"""

from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Final

import trio

from kafkalite.api.transactions import init_producer
from kafkalite.clock import within_real_time
from kafkalite.coordinator.shard import Event
from kafkalite.deferred import Deferred, Promise
from kafkalite.faults.rules import Kind
from kafkalite.group.admin import RebalanceGroup
from kafkalite.group.classic.membership import LeaveGroup
from kafkalite.types import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.init_producer_id import InitProducerIdRequest
from kafkalite.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext
    from kafkalite.network.in_flight import InFlightRequest

FENCE_TRIES: Final = 200
FENCE_PAUSE_S: Final = 0.005
"""Real time: the clock may be frozen. The other producer is there when the open transaction was
aborted, as every producer waits for that."""

LEAVING_EPOCH: Final = -1
LEAVE_VERSION: Final = 5
FENCE_TIMEOUT_MS: Final = 60_000
"""Of the transactions of the producer that fences another one, and never has any."""


async def evict_member(exchange: "InFlightRequest", context: "RequestContext") -> None:
    """Have the member that asks leave its group."""
    request = exchange.request
    if hasattr(request, "member_epoch"):  # a heartbeat of the newer kinds of groups leaves itself
        leaving = copy(request)
        leaving.member_epoch = LEAVING_EPOCH
        await _done(exchange.handler.handle(leaving, context))
        return
    member = MemberIdentity(
        member_id=request.member_id, group_instance_id=getattr(request, "group_instance_id", None)
    )
    leave = LeaveGroupRequest(group_id=request.group_id, members=[member])
    await _ask_group(context, request.group_id, LeaveGroup(leave, LEAVE_VERSION))


async def rebalance(exchange: "InFlightRequest", context: "RequestContext") -> None:
    """Have the group of the member that asks begin a new round."""
    group_id = exchange.request.group_id
    await _ask_group(context, group_id, RebalanceGroup(group_id))


async def fence_producer(exchange: "InFlightRequest", context: "RequestContext") -> None:
    """Give the transactional id of the request to another producer, which then does nothing."""
    for transactional_id in _transactional_ids(exchange.request):
        limit_ms = context.services.config.int("transaction.max.timeout.ms")
        other = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=min(FENCE_TIMEOUT_MS, limit_ms),
            producer_id=-1,
            producer_epoch=-1,
        )
        for _ in range(FENCE_TRIES):
            if not await _is_concurrent(init_producer, other, context):
                break
            await within_real_time(FENCE_PAUSE_S, trio.sleep_forever)


async def move_coordinator(exchange: "InFlightRequest", context: "RequestContext") -> None:
    """Have the coordinator of the request forget what it knows, and load its log.

    Raises:
        KafkaError: NOT_COORDINATOR, which is the answer.
    """
    groups, request = context.services.coordinators, exchange.request
    for group_id in _group_ids(request):
        groups.reload(CONSUMER_OFFSETS_TOPIC, group_id)
    if exchange.handler.api.key not in (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH):
        for transactional_id in _transactional_ids(request):
            groups.reload(TRANSACTION_STATE_TOPIC, transactional_id)
    raise KafkaError(ErrorCode.NOT_COORDINATOR, "the coordinator moved, by a fault rule")


async def _is_concurrent(
    ask: Callable[[Any, "RequestContext"], Any], request: Any, context: "RequestContext"
) -> bool:
    """Whether the transaction of before is still being ended, so that one has to ask again."""
    try:
        answer = ask(request, context)
        if isinstance(answer, Deferred):
            answer = await answer.wait()
    except KafkaError as error:
        return error.code is ErrorCode.CONCURRENT_TRANSACTIONS
    return bool(answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS)


ACTS: Final[Mapping[Kind, Callable[["InFlightRequest", "RequestContext"], Awaitable[None]]]] = {
    Kind.EVICT_MEMBER: evict_member,
    Kind.REBALANCE: rebalance,
    Kind.FENCE_PRODUCER: fence_producer,
    Kind.MOVE_COORDINATOR: move_coordinator,
}


def _transactional_ids(request: Any) -> list[str]:
    several = [each.transactional_id for each in getattr(request, "transactions", None) or ()]
    single = getattr(request, "transactional_id", None) or getattr(
        request, "v3_and_below_transactional_id", None
    )
    return several or ([single] if single else [])


def _group_ids(request: Any) -> list[str]:
    several = [each.group_id for each in getattr(request, "groups", None) or ()]
    single = getattr(request, "group_id", None)
    return several or ([single] if single else [])


async def _ask_group(context: "RequestContext", group_id: str, event: Event[object]) -> None:
    try:
        answer = context.services.coordinators.handle(CONSUMER_OFFSETS_TOPIC, group_id, event)
    except KafkaError:
        return  # the request meets the same
    if isinstance(answer, Promise):
        await answer.wait()


async def _done(result: Any) -> None:
    """Return when a result is there, whatever it is: the request that follows is answered."""
    try:
        if isinstance(result, Deferred):
            await result.wait()
    except KafkaError:
        return
