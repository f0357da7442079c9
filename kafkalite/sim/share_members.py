"""Simulated members of a share group (KIP-932), and what has to hold for the records they get."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

import trio

from kafkalite.sim.client import Client, Unanswered
from kafkalite.sim.consumers import GroupClient
from kafkalite.sim.invariants import InvariantBroken
from kafkalite.sim.workload import RETRIED, Workload
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages import share_acknowledge as acknowledging
from kafkalite.wire.messages import share_fetch as fetching
from kafkalite.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkalite.wire.messages.share_group_heartbeat import (
    SHARE_GROUP_HEARTBEAT,
    ShareGroupHeartbeatRequest,
)

if TYPE_CHECKING:
    from uuid import UUID

GROUP: Final = "sharers"
GROUP_RESOURCE, SET = 32, 0
VERSION: Final = 1
JOIN_EPOCH, LEAVE_EPOCH = 0, -1
FIRST_EPOCH, LAST_EPOCH = 0, -1
WAIT_MS: Final = 300
RECORDS_MAX: Final = 20
ACCEPT, RELEASE, REJECT, NOTHING = 1, 2, 3, -1
DECISIONS: Final = (ACCEPT,) * 16 + (RELEASE,) * 2 + (REJECT, NOTHING)
DELIVERIES_MAX: Final = 10
"""group.share.delivery.count.limit of the simulated brokers."""
NOT_APPLIED: Final = frozenset(
    {
        ErrorCode.INVALID_RECORD_STATE,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    }
)
"""After other errors an acknowledgement may be written all the same."""
PASSING: Final = RETRIED | NOT_APPLIED | {ErrorCode.UNKNOWN_TOPIC_ID}

Leads = Callable[[TopicPartition, tuple[str, int]], bool]
"""Whether the broker at an address leads a partition now: one that does not know yet that it leads
no more hands out what others have acknowledged since, as Kafka's does."""


@dataclass(slots=True)
class Ledger:
    """Records that members of the share group were given, and what they said of them.

    Attributes:
        leads: says whether a broker leads a partition now.
        is_exact: nothing fails in this run, so that delivery counts can be known.
        finished: when the acknowledgement of a record was answered that nobody is to get again.
        unsure: records of which an acknowledgement was sent that was not answered.
        counts: how often a record was delivered, by its last delivery.
        unanswered: fetches whose answers were lost; each may have been a delivery.
    """

    leads: Leads
    is_exact: bool
    finished: dict[tuple[TopicPartition, int], float] = field(default_factory=dict)
    unsure: set[tuple[TopicPartition, int]] = field(default_factory=set)
    counts: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)
    unanswered: int = 0

    def on_delivered(
        self, place: TopicPartition, offset: int, count: int, *, asked_at: float, by_leader: bool
    ) -> None:
        """Check one record of an answer to a ShareFetch."""
        key = (place, offset)
        finished_at = self.finished.get(key)
        if finished_at is not None and asked_at > finished_at and by_leader:
            raise InvariantBroken(
                f"{place}: {offset} was acknowledged at {finished_at:.3f} s and delivered again "
                f"to who asked at {asked_at:.3f} s"
            )
        known = self.counts.get(key, 0)
        # What is not stored is forgotten with a leader: counts may begin anew, never run ahead.
        least = known + 1 if self.is_exact else 1
        if not least <= count <= min(known + 1 + self.unanswered, DELIVERIES_MAX):
            raise InvariantBroken(f"{place}: {offset} has delivery count {count} after {known}")
        self.counts[key] = max(known, count)

    def on_acknowledged(
        self, place: TopicPartition, decided: Iterable[tuple[int, int]], code: ErrorCode | None
    ) -> None:
        """Note what a member said of records, and the answer; None for no answer."""
        for offset, decision in decided:
            key = (place, offset)
            if decision not in (ACCEPT, REJECT):
                continue
            if code is ErrorCode.NONE:
                self.finished.setdefault(key, trio.current_time())
            elif code not in NOT_APPLIED:
                self.unsure.add(key)

    def waits(self, ends: dict[TopicPartition, int]) -> list[tuple[TopicPartition, int]]:
        """Return the records before these ends that nobody has finished with."""
        return [
            (place, offset)
            for place, end in ends.items()
            for offset in range(end)
            if (place, offset) not in self.finished
            and (place, offset) not in self.unsure
            and self.counts.get((place, offset), 0) < DELIVERIES_MAX
        ]


class ShareMember(GroupClient):
    """Takes records, and accepts, releases, rejects or forgets them.

    Args:
        client: its connections; member ids begin with its name.
        work: of the run.
        ledger: of the group.
        decisions: to choose from for each record.
    """

    FINAL_ERRORS: ClassVar[frozenset[ErrorCode]] = frozenset(
        {
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_MEMBER_EPOCH,
            ErrorCode.GROUP_ID_NOT_FOUND,
        }
    )
    PASSING_ERRORS: ClassVar[frozenset[ErrorCode]] = frozenset(
        {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT}
    )

    def __init__(
        self,
        client: Client,
        work: Workload,
        ledger: Ledger,
        *,
        decisions: tuple[int, ...] = DECISIONS,
    ) -> None:
        super().__init__(client, work, GROUP)
        self._ledger = ledger
        self._decisions = decisions
        self._lives = 0
        self._topic_id: UUID | None = None
        self._assigned: list[int] = []
        self._sessions: dict[tuple[str, int], int] = {}
        """Epochs of the next requests, by the broker's address."""
        self._forget()

    async def run(self) -> None:
        """Join, work, and join again until cancelled."""
        while True:
            try:
                await self._live()
            except Unanswered:
                self._coordinator = None
            await self._work.pause()

    def _forget(self) -> None:
        self._generation = JOIN_EPOCH
        self._assigned = []
        self._sessions.clear()

    async def _live(self) -> None:
        work = self._work
        for _ in range(work.random.randint(5, 40)):
            if not await self._heartbeat():
                return
            for number in self._assigned:
                await self._fetch(TopicPartition(work.places[0].topic, number))
            await work.pause(0.02, 0.2)
        if work.random.random() < 0.3:
            for address in [*self._sessions]:
                await self._close(address)
            self._generation = LEAVE_EPOCH
            await self._heartbeat()
            self._lives += 1
            self._forget()

    async def _heartbeat(self) -> bool:
        self._member_id = f"{self._client.name}-{self._lives}"
        is_join = self._generation == JOIN_EPOCH
        request = ShareGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            member_epoch=self._generation,
            subscribed_topic_names=[self._work.places[0].topic] if is_join else None,
        )
        answer = await self._ask(SHARE_GROUP_HEARTBEAT, VERSION, request)
        if answer.error_code != ErrorCode.NONE:
            self._on_error(answer.error_code)
            return False
        if self._generation == LEAVE_EPOCH:
            return False
        self._generation = answer.member_epoch
        if answer.assignment is not None:
            parts = answer.assignment.topic_partitions
            self._assigned = sorted(number for part in parts for number in part.partitions)
            if parts:
                self._topic_id = parts[0].topic_id
        return True

    # --- Fetching -------------------------------------------------------------------------------

    async def _fetch(self, place: TopicPartition) -> None:
        leader = self._client.leader(place)
        if leader is None:
            await self._look_again(place)
            return
        address = leader[0]
        assert self._topic_id is not None
        part = fetching.FetchPartition(partition_index=place.partition)
        request = fetching.ShareFetchRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._sessions.get(address, FIRST_EPOCH),
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=RECORDS_MAX,
            batch_size=RECORDS_MAX,
            topics=[fetching.FetchTopic(topic_id=self._topic_id, partitions=[part])],
        )
        asked_at, led = trio.current_time(), self._ledger.leads(place, address)
        try:
            answer = await self._client.ask(address, fetching.SHARE_FETCH, VERSION, request)
        except (Unanswered, trio.Cancelled):
            self._ledger.unanswered += 1
            self._sessions.pop(address, None)
            raise
        code = ErrorCode(answer.error_code)
        if code is not ErrorCode.NONE:
            self._sessions.pop(address, None)
            await self._passing(code, place)
            return
        self._sessions[address] = self._sessions.get(address, FIRST_EPOCH) + 1
        by_leader = led and self._ledger.leads(place, address)
        parts = [data for topic in answer.responses for data in topic.partitions]
        # All is noted before anything is waited for: this task may be cancelled then.
        found = {
            TopicPartition(place.topic, data.partition_index): self._delivered(
                TopicPartition(place.topic, data.partition_index),
                data,
                asked_at=asked_at,
                by_leader=by_leader,
            )
            for data in parts
        }
        for each, offsets in found.items():
            await self._decide(each, address, offsets)
        for data in parts:
            if data.error_code != ErrorCode.NONE:
                self._sessions.pop(address, None)
                await self._passing(ErrorCode(data.error_code), place)

    def _delivered(
        self,
        place: TopicPartition,
        data: fetching.PartitionData,
        *,
        asked_at: float,
        by_leader: bool,
    ) -> list[int]:
        offsets = []
        for acquired in data.acquired_records:
            for offset in range(acquired.first_offset, acquired.last_offset + 1):
                self._ledger.on_delivered(
                    place,
                    offset,
                    acquired.delivery_count,
                    asked_at=asked_at,
                    by_leader=by_leader,
                )
                offsets.append(offset)
        self._work.count("shared", len(offsets))
        return offsets

    async def _decide(
        self, place: TopicPartition, address: tuple[str, int], offsets: list[int]
    ) -> None:
        random = self._work.random
        decided = [(offset, random.choice(self._decisions)) for offset in offsets]
        decided = [each for each in decided if each[1] != NOTHING]
        if not decided or address not in self._sessions:
            return
        await self._work.pause(0.0, 0.1)
        assert self._topic_id is not None
        part = acknowledging.AcknowledgePartition(
            partition_index=place.partition,
            acknowledgement_batches=[
                acknowledging.AcknowledgementBatch(
                    first_offset=offset, last_offset=offset, acknowledge_types=[decision]
                )
                for offset, decision in decided
            ],
        )
        topic = acknowledging.AcknowledgeTopic(topic_id=self._topic_id, partitions=[part])
        answer = await self._acknowledge(address, [topic], place, decided)
        code = ErrorCode(answer.error_code or answer.responses[0].partitions[0].error_code)
        self._ledger.on_acknowledged(place, decided, code)
        self._sessions[address] += 1
        if code is not ErrorCode.NONE:
            self._sessions.pop(address, None)
            await self._passing(code, place)

    async def _acknowledge(
        self,
        address: tuple[str, int],
        topics: list[acknowledging.AcknowledgeTopic],
        place: TopicPartition,
        decided: list[tuple[int, int]],
    ) -> acknowledging.ShareAcknowledgeResponse:
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=self._group,
            member_id=self._member_id,
            share_session_epoch=self._sessions[address],
            topics=topics,
        )
        try:
            return await self._client.ask(
                address, acknowledging.SHARE_ACKNOWLEDGE, VERSION, request, timeout_s=10.0
            )
        except (Unanswered, trio.Cancelled):
            self._ledger.on_acknowledged(place, decided, None)
            self._sessions.pop(address, None)
            raise

    async def _close(self, address: tuple[str, int]) -> None:
        """End a session: what the member has is others' at once."""
        request = acknowledging.ShareAcknowledgeRequest(
            group_id=self._group, member_id=self._member_id, share_session_epoch=LAST_EPOCH
        )
        del self._sessions[address]
        await self._client.ask(address, acknowledging.SHARE_ACKNOWLEDGE, VERSION, request)

    async def _passing(self, code: ErrorCode, place: TopicPartition) -> None:
        if code not in PASSING:
            raise InvariantBroken(f"share group: {place}: {code.name}")
        self._work.count(f"share: {code.name}")
        await self._look_again(place)

    async def _look_again(self, place: TopicPartition) -> None:
        await self._work.pause(0.05, 0.2)
        await self._client.refresh([place.topic])


async def drain(
    member: ShareMember, ledger: Ledger, ends: dict[TopicPartition, int], *, patience_s: float
) -> None:
    """Run a member until all records before these ends are finished with.

    Raises:
        InvariantBroken: one never is.
    """
    waits: list[tuple[TopicPartition, int]] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(member.run)
        with trio.move_on_after(patience_s):
            while waits := ledger.waits(ends):  # noqa: ASYNC110 - no event for this
                await trio.sleep(0.2)
        nursery.cancel_scope.cancel()
    if waits:
        raise InvariantBroken(f"lost to the share group: {waits[:5]}")


def from_the_beginning() -> IncrementalAlterConfigsRequest:
    """Have the share group begin with the first record."""
    config = AlterableConfig(name="share.auto.offset.reset", config_operation=SET, value="earliest")
    resource = AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=GROUP, configs=[config]
    )
    return IncrementalAlterConfigsRequest(resources=[resource])
