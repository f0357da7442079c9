"""Simulated consumers: readers of whole topics, and members of groups."""

import json
from typing import Any, ClassVar, Final

import trio

from kafkalite.client.consumer import visible_batches
from kafkalite.sim.client import Client, Unanswered
from kafkalite.sim.invariants import InvariantBroken
from kafkalite.sim.workload import RETRIED, Workload
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from kafkalite.wire.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafkalite.wire.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kafkalite.wire.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkalite.wire.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkalite.wire.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from kafkalite.wire.messages.sync_group import (
    SYNC_GROUP,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from kafkalite.wire.records import iterate_records

FETCH_VERSION: Final = 11
LIST_OFFSETS_VERSION: Final = 5
JOIN_VERSION: Final = 5
SYNC_VERSION: Final = 3
HEARTBEAT_VERSION: Final = 3
COMMIT_VERSION: Final = 7
OFFSET_FETCH_VERSION: Final = 5
FETCH_WAIT_MS: Final = 300
SESSION_TIMEOUT_MS: Final = 6_000
JOIN_WAIT_S: Final = 15.0
READ_COMMITTED: Final = 1
LATEST: Final = -1
GROUP_COORDINATOR: Final = 0


class Reader:
    """Reads partitions from their beginning, everything and in order.

    Attributes:
        positions: next offset of each partition.
    """

    def __init__(self, client: Client, work: Workload, places: list[TopicPartition]) -> None:
        self._client = client
        self._work = work
        self.positions = dict.fromkeys(places, 0)
        self._ended = 0

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            for place in list(self.positions):
                await self._read(place)

    async def _read(self, place: TopicPartition) -> None:
        leader = self._client.leader(place)
        if leader is None:
            await self._look_again(place)
            return
        address, epoch = leader
        request = FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=READ_COMMITTED,
            session_epoch=-1,
            topics=[
                FetchTopic(
                    topic=place.topic,
                    partitions=[
                        FetchPartition(
                            partition=place.partition,
                            current_leader_epoch=epoch,
                            fetch_offset=self.positions[place],
                            partition_max_bytes=1 << 20,
                        )
                    ],
                )
            ],
        )
        try:
            response = await self._client.ask(address, FETCH, FETCH_VERSION, request)
        except Unanswered:
            await self._look_again(place)
            return
        if response.error_code != ErrorCode.NONE:
            await self._look_again(place)
            return
        data = response.responses[0].partitions[0]
        code = ErrorCode(data.error_code)
        if code is ErrorCode.NONE:
            self._take(place, data)
        elif code in RETRIED:
            self._work.count(f"read: {code.name}")
            await self._look_again(place)
        else:
            raise InvariantBroken(
                f"{self._client.name}: read {place} from {self.positions[place]}: {code.name}"
            )

    def _take(self, place: TopicPartition, data: PartitionData) -> None:
        records: Any = data.records or b""
        work = self._work
        for header, batch in visible_batches(memoryview(records), data.aborted_transactions):
            if header.next_offset <= self.positions[place]:
                continue
            for record in iterate_records(batch) if batch is not None else ():
                if record.offset >= self.positions[place]:
                    value = bytes(record.value or b"").decode()
                    work.history.read(self._client.name, *place, offset=record.offset, value=value)
                    work.count("read")
            self.positions[place] = header.next_offset

    async def _look_again(self, place: TopicPartition) -> None:
        await self._work.pause(0.05, 0.2)
        try:
            await self._client.refresh([place.topic])
        except Unanswered:
            await self._work.pause()

    async def end_of(self, place: TopicPartition) -> int:
        """Return the end of what a read_committed reader may see now."""
        while True:
            leader = self._client.leader(place)
            if leader is not None:
                try:
                    response = await self._client.ask(
                        leader[0],
                        LIST_OFFSETS,
                        LIST_OFFSETS_VERSION,
                        _latest(place),
                    )
                except Unanswered:
                    pass
                else:
                    answer = response.topics[0].partitions[0]
                    if answer.error_code == ErrorCode.NONE:
                        return answer.offset
            await self._look_again(place)


def _latest(place: TopicPartition) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=place.partition, timestamp=LATEST)
    return ListOffsetsRequest(
        isolation_level=READ_COMMITTED,
        topics=[ListOffsetsTopic(name=place.topic, partitions=[partition])],
    )


class GroupClient:
    """Somebody who commits for a group, as the member that it is.

    Attributes:
        FINAL_ERRORS: after these it is no member any more, and joins as another or anew.
        PASSING_ERRORS: after these it joins again, or asks again.
    """

    COMMIT_VERSION: ClassVar[int] = COMMIT_VERSION
    FINAL_ERRORS: ClassVar[frozenset[ErrorCode]] = frozenset(
        {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
    )
    PASSING_ERRORS: ClassVar[frozenset[ErrorCode]] = frozenset(
        {
            ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.MEMBER_ID_REQUIRED,
        }
    )

    def __init__(self, client: Client, work: Workload, group: str) -> None:
        self._client = client
        self._work = work
        self._group = group
        self._member_id = ""
        self._generation = -1
        self._coordinator: tuple[str, int] | None = None

    def _forget(self) -> None:
        """Be no member any more."""
        self._member_id = ""

    async def _ask(self, api: Any, version: int, request: Any, timeout_s: float = 3.0) -> Any:
        if self._coordinator is None:
            self._coordinator = await self._client.coordinator(self._group, GROUP_COORDINATOR)
        if self._coordinator is None:
            raise Unanswered("no coordinator")
        return await self._client.ask(self._coordinator, api, version, request, timeout_s=timeout_s)

    def _on_error(self, code: int) -> None:
        """Do what a client does about an error of the coordinator's."""
        if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            self._coordinator = None
        elif code in self.FINAL_ERRORS:
            self._forget()
        elif code not in self.PASSING_ERRORS:
            raise InvariantBroken(f"group {self._group}: {ErrorCode(code).name}")
        self._work.count(f"group: {ErrorCode(code).name}")

    async def _fetch_offset(self, place: TopicPartition) -> int | None:
        at_least = self._work.commits.get((self._group, place), 0)
        answer = await self._ask(
            OFFSET_FETCH,
            OFFSET_FETCH_VERSION,
            OffsetFetchRequest(
                group_id=self._group,
                topics=[
                    OffsetFetchRequestTopic(name=place.topic, partition_indexes=[place.partition])
                ],
            ),
        )
        if answer.error_code != ErrorCode.NONE:
            self._on_error(answer.error_code)
            return None
        found = answer.topics[0].partitions[0]
        if found.error_code != ErrorCode.NONE:
            self._on_error(found.error_code)
            return None
        offset: int = max(found.committed_offset, 0)
        self._work.on_fetched_offset(self._group, place, at_least, offset)
        return offset

    async def _commit(self, place: TopicPartition, offset: int) -> bool:
        partition = OffsetCommitRequestPartition(
            partition_index=place.partition, committed_offset=offset, committed_metadata=""
        )
        asked_at = trio.current_time()
        answer = await self._ask(
            OFFSET_COMMIT,
            self.COMMIT_VERSION,
            OffsetCommitRequest(
                group_id=self._group,
                generation_id_or_member_epoch=self._generation,
                member_id=self._member_id,
                topics=[OffsetCommitRequestTopic(name=place.topic, partitions=[partition])],
            ),
        )
        code = answer.topics[0].partitions[0].error_code
        if code != ErrorCode.NONE:
            self._on_error(code)
            return False
        self._work.on_committed(self._group, place, offset, asked_at=asked_at)
        return True


class Member(GroupClient):
    """A member of a group, that commits ever larger offsets for what it is assigned."""

    async def run(self) -> None:
        """Join, work, and join again until cancelled."""
        while True:
            try:
                owned = await self._join()
                if owned is not None:
                    await self._work_on(owned)
            except Unanswered:
                self._coordinator = None
            await self._work.pause()

    async def _join(self) -> list[TopicPartition] | None:
        answer = await self._ask(
            JOIN_GROUP,
            JOIN_VERSION,
            JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=SESSION_TIMEOUT_MS,
                member_id=self._member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="sim", metadata=b"")],
            ),
            JOIN_WAIT_S,
        )
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
        if answer.error_code != ErrorCode.NONE:
            self._on_error(answer.error_code)
            return None
        self._member_id = answer.member_id
        self._generation = answer.generation_id
        assignments = []
        if answer.leader == answer.member_id:
            members = [each.member_id for each in answer.members]
            for index, member in enumerate(members):
                part = self._work.places[index :: len(members)]
                assignments.append(
                    SyncGroupRequestAssignment(
                        member_id=member, assignment=json.dumps(part).encode()
                    )
                )
        synced = await self._ask(
            SYNC_GROUP,
            SYNC_VERSION,
            SyncGroupRequest(
                group_id=self._group,
                generation_id=self._generation,
                member_id=self._member_id,
                assignments=assignments,
            ),
            JOIN_WAIT_S,
        )
        if synced.error_code != ErrorCode.NONE:
            self._on_error(synced.error_code)
            return None
        owned = [TopicPartition(*each) for each in json.loads(bytes(synced.assignment) or b"[]")]
        self._work.on_synced(self._group, self._generation, self._member_id, owned)
        return owned

    async def _work_on(self, owned: list[TopicPartition]) -> None:
        """Commit for the partitions owned until the group has other plans."""
        work = self._work
        positions = {}
        for place in owned:
            position = await self._fetch_offset(place)
            if position is None:
                return
            positions[place] = position
        for _ in range(work.random.randint(1, 30)):
            for place in owned:
                positions[place] += work.random.randint(1, 10)
                if not await self._commit(place, positions[place]):
                    return
            answer = await self._ask(
                HEARTBEAT,
                HEARTBEAT_VERSION,
                HeartbeatRequest(
                    group_id=self._group,
                    generation_id=self._generation,
                    member_id=self._member_id,
                ),
            )
            if answer.error_code != ErrorCode.NONE:
                self._on_error(answer.error_code)
                return
            await trio.sleep(work.random.uniform(0.1, 0.8))
        if work.random.random() < 0.3:
            self._member_id = ""  # gone without a word; another one comes
