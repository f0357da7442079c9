"""Simulated members of groups of Kafka 4: they have one request, the heartbeat."""

from typing import ClassVar, Final

import trio

from kafkalite.sim.client import Client, Unanswered
from kafkalite.sim.consumers import GroupClient
from kafkalite.sim.workload import Workload
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode

REBALANCE_TIMEOUT_MS: Final = 3_000
LEAVE_EPOCH: Final = -1
ZOMBIE_S: Final = 6.0
"""Longer than a session: the member goes on without knowing that what it has is others' now."""


class HeartbeatMember(GroupClient):
    """Commits ever larger offsets for what it has, and goes, maybe without a word."""

    COMMIT_VERSION: ClassVar[int] = 9
    FINAL_ERRORS: ClassVar[frozenset[ErrorCode]] = frozenset(
        {
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.GROUP_ID_NOT_FOUND,
        }
    )
    PASSING_ERRORS: ClassVar[frozenset[ErrorCode]] = frozenset(
        {
            ErrorCode.STALE_MEMBER_EPOCH,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.REQUEST_TIMED_OUT,
        }
    )

    def __init__(self, client: Client, work: Workload, group: str) -> None:
        super().__init__(client, work, group)
        self._lives = 0
        self._positions: dict[TopicPartition, int] = {}
        self._forget()

    async def run(self) -> None:
        """Join, work, and join again until cancelled."""
        await trio.sleep(self._work.random.uniform(0, 4))
        while True:
            try:
                await self._live()
            except Unanswered:
                self._coordinator = None
            await self._work.pause()

    def _forget(self) -> None:
        self._work.release(self._group, self._member_id)
        self._generation = 0
        self._positions = {}
        self._sure_until = 0.0

    async def _live(self) -> None:
        """Heartbeat and commit, until an answer fails to come or the member goes."""
        work = self._work
        for _ in range(work.random.randint(3, 20)):
            if not await self._stay():
                return
            if work.random.random() < 0.1:
                await trio.sleep(ZOMBIE_S)
            if not await self._commit_all():
                return
            await trio.sleep(work.random.uniform(0.1, 0.5))
        end = work.random.random()
        if end < 0.2:
            self._forget()
            self._generation = LEAVE_EPOCH
            await self._heartbeat()
        if end < 0.4:
            self._lives += 1  # gone, maybe without a word; another one comes
            self._forget()

    async def _stay(self) -> bool:
        """Heartbeat as one that joins or goes on; return whether it may commit."""
        raise NotImplementedError

    async def _heartbeat(self) -> bool:
        """Ask the coordinator; return whether it may commit."""
        raise NotImplementedError

    def _note(self, places: list[TopicPartition], *, is_sure: bool) -> None:
        """Have it checked that nobody else has what this member has.

        Args:
            places: what it has.
            is_sure: the coordinator cannot have removed it before `_sure_until`.
        """
        for place in [*self._positions]:
            if place not in places:
                del self._positions[place]
        self._work.on_owned(
            self._group,
            self._member_id,
            places,
            coordinator=self._coordinator,
            until=self._sure_until if is_sure else 0.0,
        )

    async def _begin(self, places: list[TopicPartition]) -> bool:
        """Learn where the group is in those that are new; return whether that was told."""
        for place in places:
            if place not in self._positions:
                position = await self._fetch_offset(place)
                if position is None:
                    return False
                self._positions[place] = position
        return True

    async def _commit_all(self) -> bool:
        for place in [*self._positions]:
            self._positions[place] += self._work.random.randint(1, 10)
            if not await self._commit(place, self._positions[place]):
                return False
        return True
