"""Looks for the topics of subscriptions by pattern (KIP-848), after the heartbeat was answered.

All topics of a cluster are looked at for each pattern, which may take long: in slices, so that
nobody waits for it, and one group after the other.
"""

import logging
from collections import deque
from collections.abc import Callable

import trio

from kafkalite.clock import Clock
from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.deferred import Promise
from kafkalite.group.effects import ResolvePatterns
from kafkalite.group.metadata import GroupMetadata
from kafkalite.types import CONSUMER_OFFSETS_TOPIC
from kafkalite.wire.errors import KafkaError

logger = logging.getLogger("kafkalite.server")

NAMES_PER_SLICE = 2_000
"""Names matched between two checkpoints: 1 to 2 ms at half a microsecond each."""

CHECKS_PER_SLICE = 100
"""Names of which an authorizer says whether they may be seen: up to 10 us each."""

MaySee = Callable[[str, str, str], bool]
"""Whether a principal at a host may know of a topic."""


class PatternResolver:
    """Performs the effect `ResolvePatterns`.

    Args:
        clock: says when topics were looked at.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._may_see: MaySee | None = None
        self._wanted: deque[ResolvePatterns] = deque()
        self._is_wanted = trio.Event()

    def restrict(self, may_see: MaySee) -> None:
        """Find only what the member may know of that asks (rule 345)."""
        self._may_see = may_see

    def attach(self, groups: CoordinatorRuntime, metadata: GroupMetadata) -> None:
        """Get to know who asks, and the topics that there are; to be called once, before `run`."""
        self._groups = groups
        self._metadata = metadata

    def perform(self, effect: ResolvePatterns) -> None:
        """Take note of what is to be found; a group asks for all of its patterns at once."""
        for waiting in [*self._wanted]:
            if waiting.group_id == effect.group_id:
                self._wanted.remove(waiting)
        self._wanted.append(effect)
        self._is_wanted.set()

    async def run(self) -> None:
        """Find topics until cancelled."""
        while True:
            while self._wanted:
                await self._resolve(self._wanted.popleft())
            self._is_wanted = trio.Event()
            await self._is_wanted.wait()

    async def _resolve(self, effect: ResolvePatterns) -> None:
        # Only a consumer group asks, so all this is there already.
        from kafkalite.group.consumer.events import PatternsResolved
        from kafkalite.group.consumer.patterns import matching_topics
        from kafkalite.group.consumer.records import Resolution

        # The version is of the time before: what is created meanwhile is looked for again.
        version, wall_ms = self._metadata.version, self._clock.wall_ms()
        names = [*self._metadata.image.topics]
        found = {}
        for pattern in effect.patterns:
            topics: set[str] = set()
            for start in range(0, len(names), NAMES_PER_SLICE):
                part = names[start : start + NAMES_PER_SLICE]
                topics |= matching_topics(pattern, part)
                await trio.lowlevel.checkpoint()
            found[pattern] = Resolution(await self._seen(topics, effect), version, wall_ms)
        await trio.lowlevel.checkpoint()
        event = PatternsResolved(effect.group_id, found)
        try:
            answer = self._groups.handle(CONSUMER_OFFSETS_TOPIC, effect.group_id, event)
        except KafkaError as error:
            # A member's next heartbeat, here or where the group has moved to, asks again.
            logger.debug("patterns of group %s: %s", effect.group_id, error)
            return
        if isinstance(answer, Promise):
            answer.close()

    async def _seen(self, topics: set[str], effect: ResolvePatterns) -> frozenset[str]:
        may_see = self._may_see
        if may_see is None:
            return frozenset(topics)
        names, seen = [*topics], set[str]()
        for start in range(0, len(names), CHECKS_PER_SLICE):
            part = names[start : start + CHECKS_PER_SLICE]
            seen.update(name for name in part if may_see(effect.principal, effect.host, name))
            await trio.lowlevel.checkpoint()
        return frozenset(seen)
