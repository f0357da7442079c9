"""Topics that the broker makes for its groups in the background (KIP-1071).

Nobody waits for them: a member is told that they lack until they are there, and why they could not
be made. After the part of Kafka's AutoTopicCreationManager that is for streams groups.
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

import trio

from kafkalite.wire.errors import KafkaError

if TYPE_CHECKING:
    from kafkalite.clock import Clock
    from kafkalite.meta.auto_topic_creation import AutoTopicCreationManager
    from kafkalite.meta.events import CreateTopic

logger = logging.getLogger("kafkalite.meta")

REMEMBERED_MAX = 1_000
"""Failures that are remembered, as in Kafka, and topics that are waited for."""


class BackgroundTopics:
    """Creates topics one request after another, each once at a time, and remembers what failed."""

    def __init__(self, creation: "AutoTopicCreationManager", clock: "Clock") -> None:
        self._creation = creation
        self._clock = clock
        self._wanted: dict[str, tuple[CreateTopic, int]] = {}
        self._under_way: frozenset[str] = frozenset()
        self._failures: dict[str, tuple[str, int]] = {}
        self._is_wanted = trio.Event()

    def create(self, events: Iterable["CreateTopic"], *, remember_ms: int) -> None:
        """Have topics created, but for those under way and those that failed just now.

        Args:
            events: the topics.
            remember_ms: for so long a failure is remembered, and not tried again.
        """
        now_ms = self._clock.monotonic_ms()
        for event in events:
            is_known = event.name in self._wanted or event.name in self._under_way
            if is_known or self._failure(event.name, now_ms) is not None:
                continue
            if len(self._wanted) >= REMEMBERED_MAX:
                break
            self._wanted[event.name] = (event, remember_ms)
            self._is_wanted.set()

    def failures(self, names: Iterable[str]) -> dict[str, str]:
        """Return why topics could not be made, as long as it is remembered."""
        now_ms = self._clock.monotonic_ms()
        found = ((name, self._failure(name, now_ms)) for name in names)
        return {name: failure for name, failure in found if failure is not None}

    async def run(self) -> None:
        """Create what is wanted, until cancelled."""
        while True:
            await self._is_wanted.wait()
            self._is_wanted = trio.Event()
            wanted, self._wanted = self._wanted, {}
            self._under_way = frozenset(wanted)
            try:
                await self._create(wanted)
            finally:
                self._under_way = frozenset()

    async def _create(self, wanted: "dict[str, tuple[CreateTopic, int]]") -> None:
        try:
            refused = await self._creation.create_missing([event for event, _ in wanted.values()])
        except KafkaError as refusal:
            refused = dict.fromkeys(wanted, refusal)
        now_ms = self._clock.monotonic_ms()
        for name, error in refused.items():
            message = error.message or error.code.name
            logger.warning("internal topic %s could not be created: %s", name, message)
            self._failures.pop(name, None)
            if len(self._failures) >= REMEMBERED_MAX:
                del self._failures[next(iter(self._failures))]
            self._failures[name] = (message, now_ms + wanted[name][1])

    def _failure(self, name: str, now_ms: int) -> str | None:
        failure = self._failures.get(name)
        if failure is None:
            return None
        message, until_ms = failure
        if now_ms < until_ms:
            return message
        del self._failures[name]
        return None
