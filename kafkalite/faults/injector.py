"""Carries out what fault rules decide: between a decoded request and its answer.

The dispatcher calls `Injector.intercept` in the place of a handler, if there is a rule; without one
it does not know that this module exists.
"""

import logging
import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import trio

from kafkalite.api.fetch import failed_partition
from kafkalite.api.handler import NO_RESPONSE, CloseConnection, NoResponse, PlayedAnswer
from kafkalite.api.produce import remember_refusal
from kafkalite.deferred import Deferred
from kafkalite.faults.acts import ACTS
from kafkalite.faults.answers import FETCH_TOP_LEVEL
from kafkalite.faults.corruption import corrupted
from kafkalite.faults.facts import facts_of
from kafkalite.faults.partitions import (
    READS,
    SHAPES,
    answers_for,
    merge,
    name_of,
    split,
)
from kafkalite.faults.rules import OF_STATE, Action, Hit, Kind, Rule, Rules, Unit
from kafkalite.faults.specification import Specification
from kafkalite.log.region import FileRegion
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages import fetch as fetch_messages
from kafkalite.wire.messages import produce as produce_messages
from kafkalite.wire.messages.fetch import FetchableTopicResponse

if TYPE_CHECKING:
    from uuid import UUID

    from kafkalite.api.context import RequestContext
    from kafkalite.meta.image import Image
    from kafkalite.network.dispatch import Dispatcher
    from kafkalite.network.in_flight import InFlightRequest

logger = logging.getLogger("kafkalite.faults")

Handle = Callable[[Any], Any]
"""The API's own way: request to result. May raise KafkaError and CloseConnection."""

LAST = (Kind.LOSE_REPLY, Kind.DISCONNECT, Kind.BLACKHOLE, Kind.IGNORE)
"""Actions after which nothing of an answer is left to change."""

NAMED_LEADER = {
    ApiKey.PRODUCE: produce_messages.LeaderIdAndEpoch,
    ApiKey.FETCH: fetch_messages.LeaderIdAndEpoch,
}
"""By API: what names the leader in an answer (KIP-951)."""

RESTING_MAX = 10_000
"""Connections whose throttling is remembered."""


@dataclass(slots=True)
class _Plan:
    """Actions to take about one request.

    Attributes:
        delay_before_s: before it is applied.
        delay_after_s: after that.
        errors: hits with an error, each for some units or all.
        acts: hits that change the broker's state first.
        last: the one hit that ends the answer, if any.
        changes: hits that change the answer.
    """

    delay_before_s: float = 0.0
    delay_after_s: float = 0.0
    errors: list[Hit] = field(default_factory=list)
    acts: list[Hit] = field(default_factory=list)
    last: Hit | None = None
    changes: list[Hit] = field(default_factory=list)

    @classmethod
    def of(cls, hits: Sequence[Hit]) -> "_Plan":
        plan = cls()
        for hit in hits:
            action = hit.action
            if action.kind is Kind.DELAY and action.applied:
                plan.delay_after_s += action.seconds
            elif action.kind is Kind.DELAY:
                plan.delay_before_s += action.seconds
            elif action.kind is Kind.ERROR:
                plan.errors.append(hit)
            elif action.kind in OF_STATE:
                plan.acts.append(hit)
            elif action.kind in LAST:
                plan.last = plan.last or hit
            else:
                plan.changes.append(hit)
        return plan

    @property
    def takes_time(self) -> bool:
        """Whether the connection's task must wait, or send by itself."""
        return bool(
            self.delay_before_s
            or self.delay_after_s
            or self.acts
            or self.last is not None
            or any(hit.action.kind in (Kind.TRUNCATE, Kind.SLICE) for hit in self.changes)
        )


class Injector:
    """The fault rules of one broker, and their effect on its requests.

    Lives in the broker's thread.

    Args:
        image: gives the metadata of now.
        monotonic_ms: the broker's clock, which `for_s` and throttling go by.
    """

    def __init__(self, image: "Callable[[], Image]", monotonic_ms: Callable[[], int]) -> None:
        self.rules = Rules()
        self._image = image
        self._monotonic_ms = monotonic_ms
        self._dispatcher: Dispatcher | None = None
        self._images: dict[str, Image] = {}
        """By rule: the metadata when a rule that answers stale metadata was added."""
        self._rests_until_ms: dict[int, int] = {}
        """By connection: until when it rests after an answer that throttled it."""
        self._hit = trio.Event()

    def attach(self, dispatcher: "Dispatcher") -> None:
        """Act on this dispatcher's requests from the first rule on."""
        self._dispatcher = dispatcher
        self._set_interceptor()

    # --- Rules -----------------------------------------------------------------------------------

    def add(self, specification: Specification) -> Rule:
        """Add a rule behind all others, and return it.

        Raises:
            ValueError: there are too many.
        """
        rule = self.rules.add(
            specification.match,
            specification.trigger,
            specification.actions,
            order=specification.order,
            description=specification.description,
            now_ms=self._monotonic_ms(),
            draw=Random(specification.trigger.seed).random,
        )
        if any(action.kind is Kind.STALE_METADATA for action in rule.actions):
            self._images[rule.rule_id] = self._image()
        self._set_interceptor()
        return rule

    def change_trigger(self, rule: Rule, specification: Specification) -> None:
        """Let a rule fire at other matches from now on; what was counted stays."""
        trigger = specification.trigger
        rule.set_trigger(trigger, Random(trigger.seed).random)
        rule.description = specification.description

    def remove(self, rule_id: str) -> Rule | None:
        """Remove a rule; return it, None if there is none."""
        rule = self.rules.remove(rule_id)
        self._images.pop(rule_id, None)
        self._set_interceptor()
        return rule

    def clear(self) -> list[Rule]:
        """Remove all rules, and return them."""
        removed = self.rules.clear()
        self._images.clear()
        self._rests_until_ms.clear()
        self._set_interceptor()
        return removed

    async def wait_hits(self, rule: Rule, hits: int) -> None:
        """Return when a rule has fired so often. Has no deadline."""
        while rule.hits < hits:
            await self._hit.wait()

    def _set_interceptor(self) -> None:
        if self._rests_until_ms and not len(self.rules):
            now_ms = self._monotonic_ms()  # of connections that went, nobody asks again
            rests = self._rests_until_ms.items()
            self._rests_until_ms = {each: until for each, until in rests if until > now_ms}
        if self._dispatcher is not None:
            is_needed = len(self.rules) or self._rests_until_ms
            self._dispatcher.interceptor = self.intercept if is_needed else None

    # --- Requests --------------------------------------------------------------------------------

    def intercept(
        self,
        exchange: "InFlightRequest",
        size_bytes: int,
        context: "RequestContext",
        handle: Handle,
    ) -> Any:
        """Return the result of a request: the handler's own, or what rules make of it.

        Raises:
            KafkaError, CloseConnection: as a handler.
        """
        facts = facts_of(
            exchange.handler.api.key,
            exchange.header,
            exchange.request,
            context,
            size_bytes=size_bytes,
            topic_name=self._topic_name,
        )
        inter_broker_only = exchange.handler.inter_broker_only
        if inter_broker_only:
            facts = replace(facts, is_replica=True)
        hits = self.rules.decide(facts, self._monotonic_ms())
        rest_s = self._take_rest_s(context.connection_id)
        if not hits and not rest_s:
            return handle(exchange.request)
        if hits:
            self._report(exchange, hits)
        plan = _Plan.of(hits)
        plan.delay_before_s += rest_s
        if plan.takes_time:
            return Deferred(partial(self._perform, plan, exchange, context, handle))
        return self._apply(plan, exchange, context, handle)

    def _report(self, exchange: "InFlightRequest", hits: Sequence[Hit]) -> None:
        for hit in hits:
            where = "" if hit.units is None else " " + ", ".join(f"{t}-{p}" for t, p in hit.units)
            logger.info(
                "fault %s (%s): %s v%d%s of client %r: %s (%d)",
                hit.rule.rule_id,
                hit.rule.description,
                exchange.handler.api.key.name,
                exchange.header.api_version,
                where,
                exchange.header.client_id,
                hit.action,
                hit.rule.hits,
            )
        event, self._hit = self._hit, trio.Event()
        event.set()

    async def _perform(
        self, plan: _Plan, exchange: "InFlightRequest", context: "RequestContext", handle: Handle
    ) -> Any:
        """Do what takes time; return the response, or what is to be sent in its place."""
        if plan.last is not None and plan.last.action.kind is not Kind.LOSE_REPLY:
            action = plan.last.action
            if action.applied:
                await _finished(handle, exchange.request)
            if action.kind is Kind.BLACKHOLE:
                await _hold_up(context, math.inf)  # until the client goes, which cancels this
            if action.kind is Kind.IGNORE:
                context.is_held_up = True
                return NO_RESPONSE
            return PlayedAnswer(closes=True, resets=action.reset)
        if plan.delay_before_s:
            await _hold_up(context, plan.delay_before_s)
            context.now_ms = context.services.clock.wall_ms()
        for hit in plan.acts:
            await ACTS[hit.action.kind](exchange, context)
        result = await _awaited(self._apply(plan, exchange, context, handle))
        if plan.delay_after_s:
            await _hold_up(context, plan.delay_after_s)
        if plan.last is not None:
            return PlayedAnswer(closes=True, resets=plan.last.action.reset)
        for hit in plan.changes:
            if hit.action.kind in (Kind.TRUNCATE, Kind.SLICE):
                return self._played(hit.action, exchange, result)
        return result

    def _apply(
        self, plan: _Plan, exchange: "InFlightRequest", context: "RequestContext", handle: Handle
    ) -> Any:
        """Have the request handled but for what is refused; return the result."""
        api = exchange.handler.api.key
        request = exchange.request
        if plan.changes:
            handle = self._changed_handle(plan, context, handle)
        whole = next((hit for hit in plan.errors if hit.units is None), None)
        is_partial = api in SHAPES and (whole is None or api in (ApiKey.FETCH, ApiKey.METADATA))
        if not plan.errors:
            result = handle(request)
        elif is_partial and not (whole is not None and self._is_top_level(api, whole.action)):
            result = self._refuse_partitions(plan.errors, exchange, context, handle)
        else:
            hit = whole or plan.errors[0]
            error = KafkaError(hit.action.code, hit.action.message or "")
            refuse = partial(self._refused_whole, hit, error, exchange, context)
            if not hit.action.applied:
                self._remember(api, request, hit.action, context)
                return refuse()
            result = _then(handle(request), lambda _: refuse())
        for hit in plan.changes:
            result = _then(result, partial(self._change, hit, exchange, context))
        return result

    def _refused_whole(
        self, hit: Hit, error: KafkaError, exchange: "InFlightRequest", context: "RequestContext"
    ) -> Any:
        refused = exchange.handler.refuse(exchange.request, error, context)
        self._name_leader(exchange.handler.api.key, refused, hit)
        return refused

    @staticmethod
    def _is_top_level(api: ApiKey, action: Action) -> bool:
        return api is ApiKey.FETCH and action.code in FETCH_TOP_LEVEL

    # --- Errors of partitions --------------------------------------------------------------------

    def _refuse_partitions(
        self,
        hits: Sequence[Hit],
        exchange: "InFlightRequest",
        context: "RequestContext",
        handle: Handle,
    ) -> Any:
        """Answer some partitions with errors, and the others as ever."""
        api = exchange.handler.api.key
        if api in READS:
            request = exchange.request
            if api is ApiKey.FETCH:
                request = copy(request)
                request.max_wait_ms = 0  # there is something to tell already
            changes = partial(self._set_errors, hits, exchange, context)
            return _then(handle(request), changes)
        before = [hit for hit in hits if not hit.action.applied]
        after = [hit for hit in hits if hit.action.applied]
        units = {unit for hit in before for unit in hit.units or ()}
        rest, _ = split(api, exchange.request, units, self._topic_name)
        refusals = [self._refusal(hit, exchange, context) for hit in (*before, *after)]
        result: Any = None
        if rest is not None:
            result = handle(rest if before else exchange.request)
        return _then(result, lambda response: self._merged(api, response, refusals))

    def _refusal(self, hit: Hit, exchange: "InFlightRequest", context: "RequestContext") -> Any:
        """Return the API's own refusal for the partitions of a hit."""
        assert hit.units is not None
        api = exchange.handler.api.key
        _, taken = split(api, exchange.request, set(hit.units), self._topic_name)
        error = KafkaError(hit.action.code, hit.action.message or "")
        if not hit.action.applied:
            self._remember(api, taken, hit.action, context)
        refused = exchange.handler.refuse(taken, error, context)
        self._name_leader(api, refused, hit)
        return refused

    @staticmethod
    def _remember(api: ApiKey, request: Any, action: Action, context: "RequestContext") -> None:
        """Keep a producer's batches in order over a refusal, as the log does (rule 231)."""
        if api is ApiKey.PRODUCE:
            for topic in request.topic_data:
                for data in topic.partition_data:
                    remember_refusal(topic, data, action.code, context)

    def _merged(self, api: ApiKey, response: Any, refusals: Sequence[Any]) -> Any:
        if isinstance(response, NoResponse):
            return response
        for refused in refusals:
            response = (
                refused if response is None else merge(api, response, refused, self._topic_name)
            )
        return response

    def _set_errors(
        self,
        hits: Sequence[Hit],
        exchange: "InFlightRequest",
        context: "RequestContext",
        response: Any,
    ) -> Any:
        """Put errors into the answer to a request that only reads."""
        api = exchange.handler.api.key
        for hit in hits:
            if api is ApiKey.METADATA:
                self._set_topic_errors(hit, response)
            elif api is ApiKey.FETCH:
                self._set_fetch_errors(hit, exchange, context, response)
            else:
                units = hit.units or []
                refused = self._refusal(Hit(hit.rule, hit.action, units), exchange, context)
                response = merge(api, response, refused, self._topic_name)
        return response

    def _set_topic_errors(self, hit: Hit, response: Any) -> None:
        units = None if hit.units is None else set(hit.units)
        for topic in answers_for(ApiKey.METADATA, response, units, self._topic_name):
            topic.error_code = hit.action.code
            topic.partitions = []

    def _set_fetch_errors(
        self, hit: Hit, exchange: "InFlightRequest", context: "RequestContext", response: Any
    ) -> None:
        """Answer partitions of a Fetch with an error, also those that it would not have named."""
        facts = facts_of(
            ApiKey.FETCH,
            exchange.header,
            exchange.request,
            context,
            size_bytes=0,
            topic_name=self._topic_name,
        )
        wanted = [*facts.units] if hit.units is None else hit.units
        shape, missing = SHAPES[ApiKey.FETCH], dict.fromkeys(wanted)
        for topic in response.responses:
            name = name_of(topic, shape, self._topic_name)
            for at, answer in enumerate(topic.partitions):
                unit = Unit(name, answer.partition_index)
                if unit in missing:
                    del missing[unit]
                    topic.partitions[at] = failed_partition(unit.partition, hit.action.code)
        image = self._image()
        for unit in missing:
            found = image.topics.get(unit.topic)
            if found is not None:
                answer = failed_partition(unit.partition, hit.action.code)
                response.responses.append(_fetch_topic(unit.topic, found.topic_id, answer))
        self._name_leader(ApiKey.FETCH, response, hit)

    def _name_leader(self, api: ApiKey, response: Any, hit: Hit) -> None:
        """Name another leader in what was refused (KIP-951)."""
        if hit.action.leader is None or api not in (ApiKey.PRODUCE, ApiKey.FETCH):
            return
        units = None if hit.units is None else set(hit.units)
        for answer in answers_for(api, response, units, self._topic_name):
            if answer.error_code == hit.action.code:
                named = NAMED_LEADER[api]
                answer.current_leader = named(
                    leader_id=hit.action.leader, leader_epoch=self._epoch_of(hit.units)
                )

    def _epoch_of(self, units: Sequence[Unit] | None) -> int:
        """Return an epoch that is later than what the client may know of these partitions."""
        epochs = [0]
        for unit in units or ():
            state = self._image().partition(*unit)
            epochs.append(0 if state is None else state.leader_epoch)
        return max(epochs) + 1

    # --- Other changes of an answer --------------------------------------------------------------

    def _changed_handle(self, plan: _Plan, context: "RequestContext", handle: Handle) -> Handle:
        """Return a handler that sees the metadata of before, if a rule wants that."""
        for hit in plan.changes:
            image = self._images.get(hit.rule.rule_id)
            if hit.action.kind is Kind.STALE_METADATA and image is not None:
                return partial(_with_image, image, context, handle)
        return handle

    def _change(
        self, hit: Hit, exchange: "InFlightRequest", context: "RequestContext", response: Any
    ) -> Any:
        """Return a response as a rule changes it."""
        action = hit.action
        if isinstance(response, NoResponse):
            return response
        if action.kind is Kind.THROTTLE:
            self._throttle(action, context, response)
        elif action.kind is Kind.CORRUPT:
            units = None if hit.units is None else set(hit.units)
            for answer in answers_for(ApiKey.FETCH, response, units, self._topic_name):
                answer.records = corrupted(_bytes_of(answer.records), action.corruption)
        elif action.kind is Kind.TRANSFORM:
            assert action.transform is not None
            return action.transform(exchange.request, response)
        return response

    def _throttle(self, action: Action, context: "RequestContext", response: Any) -> None:
        if not hasattr(response, "throttle_time_ms"):
            return
        response.throttle_time_ms = action.throttle_ms
        rests = self._rests_until_ms
        rests[context.connection_id] = self._monotonic_ms() + action.throttle_ms
        if len(rests) > RESTING_MAX:
            del rests[next(iter(rests))]
        self._set_interceptor()

    def _take_rest_s(self, connection_id: int) -> float:
        """Return for how long a throttled connection must rest yet, and forget it."""
        until_ms = self._rests_until_ms.pop(connection_id, None)
        if until_ms is None:
            return 0.0
        self._set_interceptor()
        return max(0.0, (until_ms - self._monotonic_ms()) / 1_000)

    def _played(self, action: Action, exchange: "InFlightRequest", response: Any) -> Any:
        """Return an answer's bytes as they are sent in the place of the whole at once."""
        assert self._dispatcher is not None
        whole = copy(exchange)
        whole.result = response
        data = b"".join(_bytes_of(chunk) for chunk in self._dispatcher.encode(whole))
        if action.kind is Kind.TRUNCATE:
            return PlayedAnswer([data[: action.count_bytes]], closes=True, resets=action.reset)
        size = action.count_bytes
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        return PlayedAnswer(pieces, pause_s=action.seconds)

    def _topic_name(self, topic_id: "UUID") -> str | None:
        topic = self._image().topic_by_id(topic_id)
        return None if topic is None else topic.name


def _with_image(image: "Image", context: "RequestContext", handle: Handle, request: Any) -> Any:
    """Handle a request as if metadata had not changed since."""
    services = context.services
    metadata: Any = _MetadataOf(services.metadata, image)
    if getattr(request, "allow_auto_topic_creation", False):
        request = copy(request)  # who creates a topic is told of what is there then
        request.allow_auto_topic_creation = False
    context.services = replace(services, metadata=metadata)
    try:
        return handle(request)
    finally:
        context.services = services


class _MetadataOf:
    """The metadata service with another image."""

    def __init__(self, metadata: Any, image: "Image") -> None:
        self._metadata = metadata
        self.image = image

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metadata, name)


def _then(result: Any, change: Callable[[Any], Any]) -> Any:
    """Return what `change` makes of a response, now or when it is there."""
    if isinstance(result, Deferred):
        return Deferred(partial(_changed_later, result, change))
    return change(result)


async def _changed_later(result: "Deferred[Any]", change: Callable[[Any], Any]) -> Any:
    return change(await result.wait())


async def _awaited(result: Any) -> Any:
    return await result.wait() if isinstance(result, Deferred) else result


async def _finished(handle: Handle, request: Any) -> None:
    """Have a request handled whose answer nobody gets."""
    try:
        await _awaited(handle(request))
    except (KafkaError, CloseConnection) as error:
        logger.debug("a request whose answer is lost failed: %s", error)


async def _hold_up(context: "RequestContext", seconds: float) -> None:
    """Let a client wait; one that goes meanwhile did not mean to, and stays in its group."""
    context.is_held_up = True
    await trio.sleep(seconds)
    context.is_held_up = False


def _fetch_topic(name: str, topic_id: "UUID", answer: Any) -> Any:
    return FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[answer])


def _bytes_of(chunk: Any) -> bytes:
    return chunk.read() if isinstance(chunk, FileRegion) else bytes(chunk or b"")
