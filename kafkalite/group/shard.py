"""The groups of one `__consumer_offsets` partition: which code answers which event.

Hard state (committed generations, offsets) changes in `replay` alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kafkalite.coordinator.shard import (
    NOTHING,
    Now,
    RecordCodec,
    Result,
    StoredRecord,
    Ticket,
    Timers,
)
from kafkalite.group.admin import (
    DeleteGroup,
    DescribeGroup,
    delete_group,
    delete_offsets,
    describe_group,
    group_tombstone,
    list_groups,
)
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.classic.join import JoinGroup, check_session_timeout, join
from kafkalite.group.classic.membership import leave, on_disconnect, on_session_timer
from kafkalite.group.classic.rebalance import (
    on_join_timer,
    on_sync_timer,
    prepare_rebalance,
    reset_session,
)
from kafkalite.group.classic.states import GroupState
from kafkalite.group.classic.step import Step, TimerKey, TimerKind
from kafkalite.group.classic.sync import sync
from kafkalite.group.commit import (
    CommitOffsets,
    CommitOffsetsInTransaction,
    check_commit,
    check_transactional_commit,
    commit,
    commit_in_transaction,
)
from kafkalite.group.expiry import expire_offsets
from kafkalite.group.offsets import OffsetStore
from kafkalite.group.records import GroupRecordCodec
from kafkalite.group.settings import GroupSettings
from kafkalite.types import CONSUMER_OFFSETS_TOPIC
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.delete_groups import DeletableGroupResult
from kafkalite.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkalite.wire.messages.leave_group import LeaveGroupRequest
from kafkalite.wire.messages.list_groups import ListGroupsRequest
from kafkalite.wire.messages.offset_delete import OffsetDeleteRequest
from kafkalite.wire.messages.offset_fetch import OffsetFetchRequestTopic, OffsetFetchRequestTopics
from kafkalite.wire.messages.sync_group import SyncGroupRequest
from kafkalite.wire.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from kafkalite.wire.stored.offset_commit import OffsetCommitKey


@dataclass(slots=True)
class LeaveGroup:
    """A LeaveGroup request; v0-2 names one member in another field."""

    request: LeaveGroupRequest
    api_version: int


@dataclass(slots=True)
class FetchOffsets:
    """What an OffsetFetch request wants of one group; topics None means all."""

    group_id: str
    topics: list[OffsetFetchRequestTopic] | list[OffsetFetchRequestTopics] | None
    require_stable: bool


@dataclass(slots=True, frozen=True)
class ConnectionClosed:
    """A client went away."""

    connection_id: int


@dataclass(slots=True, frozen=True)
class TopicsDeleted:
    """Topics that are gone, with everything committed for them."""

    topics: frozenset[str]


class GroupShard:
    """Core of the group coordinator for one partition; a `coordinator.shard.Shard`."""

    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.groups: dict[str, ClassicGroup] = {}
        self.offsets = OffsetStore()
        self.timers: Timers[TimerKey] = Timers()
        self._handlers: dict[type, Callable[..., Result]] = {
            HeartbeatRequest: self._heartbeat,
            CommitOffsets: self._commit,
            FetchOffsets: self._fetch,
            JoinGroup: self._join,
            SyncGroupRequest: self._sync,
            LeaveGroup: self._leave,
            DescribeGroup: self._describe,
            ListGroupsRequest: self._list,
            DeleteGroup: self._delete_group,
            OffsetDeleteRequest: self._delete_offsets,
            CommitOffsetsInTransaction: self._commit_in_transaction,
            ConnectionClosed: self._disconnect,
            TopicsDeleted: self._delete_topics,
        }

    # --- What the runtime calls -----------------------------------------------------------------

    def handle(self, event: object, ticket: Ticket, now: Now) -> Result:
        """Decide about an event."""
        return self._handlers[type(event)](event, ticket, now)

    def on_loaded(self, now: Now) -> Result:
        """Give every member its whole session, and groups that are too large a rebalance."""
        step = self._step(now)
        for group in self.groups.values():
            for member in group.members.values():
                reset_session(step, group, member)
            if len(group.members) > self.settings.group_max_size:
                prepare_rebalance(step, group)
        self._schedule_expiry(step)
        return step.result()

    def next_deadline_ms(self) -> int | None:
        """Return the monotonic time before which no timer is due."""
        return self.timers.next_deadline_ms()

    def on_time(self, now: Now) -> Result:
        """Fire one due timer."""
        key = self.timers.pop_due(now.monotonic_ms)
        if key is None:
            return NOTHING
        kind, group_id, member_id = key
        if kind is TimerKind.EXPIRE_OFFSETS:
            return self._expire_offsets(now)
        step = self._step(now)
        group = self.groups[group_id]
        if kind is TimerKind.SESSION:
            on_session_timer(step, group, member_id)
        elif kind is TimerKind.JOIN:
            on_join_timer(step, group)
        else:
            on_sync_timer(step, group)
        return step.result()

    def replay(self, record: StoredRecord) -> None:
        """Make a record part of the state."""
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey):
            if value is not None and key.group not in self.groups:
                # Who commits without being a member has a group all the same (rule 157).
                self.groups[key.group] = ClassicGroup(key.group)
            self.offsets.replay(record, key)
            return
        assert isinstance(key, GroupMetadataKey)
        if value is None:
            group = self.groups.pop(key.group, None)
            if group is not None:
                self._cancel_timers(group)
            return
        assert isinstance(value, GroupMetadataValue)
        self._group(key.group).restore(value)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """End a transaction: its offsets count from now on, or never."""
        self.offsets.replay_marker(producer_id, committed=committed)

    # --- Members --------------------------------------------------------------------------------

    def _heartbeat(self, request: HeartbeatRequest, ticket: Ticket, now: Now) -> Result:
        group = self._existing_group(request.group_id)
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(
                ErrorCode.ILLEGAL_GENERATION,
                f"group {request.group_id} is at generation {group.generation}, "
                f"{request.member_id} at {request.generation_id}",
            )
        self.timers.schedule(
            (TimerKind.SESSION, request.group_id, request.member_id),
            now.monotonic_ms + member.session_timeout_ms,
        )
        is_rebalancing = group.state is GroupState.PREPARING_REBALANCE
        code = ErrorCode.REBALANCE_IN_PROGRESS if is_rebalancing else ErrorCode.NONE
        # As in Kafka a heartbeat does not wait for replicas that are slow: it is about the session.
        return Result(replies=((ticket, HeartbeatResponse(error_code=code)),), at_once=True)

    def _join(self, event: JoinGroup, ticket: Ticket, now: Now) -> Result:
        request = event.request
        check_session_timeout(request.session_timeout_ms, self.settings)
        step = self._step(now)
        group = self.groups.get(request.group_id)
        if group is None:
            if request.member_id:
                raise _unknown_member(request.group_id)
            # Made by somebody who wants to be its first member, and lost with this broker until
            # there is a generation or an offset to remember.
            group = ClassicGroup(request.group_id)
        join(step, group, event, ticket)
        self.groups[request.group_id] = group
        return step.result()

    def _sync(self, request: SyncGroupRequest, ticket: Ticket, now: Now) -> Result:
        step = self._step(now)
        sync(step, self._existing_group(request.group_id), request, ticket)
        return step.result()

    def _leave(self, event: LeaveGroup, ticket: Ticket, now: Now) -> Result:
        step = self._step(now)
        group = self._existing_group(event.request.group_id)
        step.reply(ticket, leave(step, group, event.request, event.api_version))
        return step.result()

    def _disconnect(self, event: ConnectionClosed, ticket: Ticket, now: Now) -> Result:
        step = self._step(now)
        for group in self.groups.values():
            on_disconnect(step, group, event.connection_id)
        step.reply(ticket, None)
        return step.result()

    # --- Offsets --------------------------------------------------------------------------------

    def _commit(self, event: CommitOffsets, ticket: Ticket, now: Now) -> Result:
        request = event.request
        group = self.groups.get(request.group_id)
        member = check_commit(group, request, event.api_version)
        if member is not None:
            self.timers.schedule(
                (TimerKind.SESSION, request.group_id, member.member_id),
                now.monotonic_ms + member.session_timeout_ms,
            )
        records, response = commit(
            request,
            now_wall_ms=now.wall_ms,
            metadata_max=self.settings.offset_metadata_max_bytes,
        )
        return Result(records, ((ticket, response),))

    def _commit_in_transaction(
        self, event: CommitOffsetsInTransaction, ticket: Ticket, now: Now
    ) -> Result:
        request = event.request
        check_transactional_commit(self.groups.get(request.group_id), request)
        records, response = commit_in_transaction(
            request,
            now_wall_ms=now.wall_ms,
            metadata_max=self.settings.offset_metadata_max_bytes,
        )
        return Result(
            records,
            ((ticket, response),),
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
        )

    def _fetch(self, event: FetchOffsets, ticket: Ticket, now: Now) -> Result:
        del now
        answer = self.offsets.fetch(
            event.group_id, event.topics, require_stable=event.require_stable
        )
        return Result(replies=((ticket, answer),))

    def _delete_offsets(self, request: OffsetDeleteRequest, ticket: Ticket, now: Now) -> Result:
        del now
        records, response = delete_offsets(self.groups, self.offsets, request)
        return Result(records, ((ticket, response),))

    def _delete_topics(self, event: TopicsDeleted, ticket: Ticket, now: Now) -> Result:
        del now
        records = self.offsets.tombstones_for_topics(event.topics)
        return Result(records, ((ticket, None),), atomic=False)

    def _expire_offsets(self, now: Now) -> Result:
        records: list[StoredRecord] = []
        for group in self.groups.values():
            expired, nothing_remains = expire_offsets(
                group,
                self.offsets,
                now_wall_ms=now.wall_ms,
                retention_ms=self.settings.offsets_retention_ms,
            )
            records += expired
            is_unused = group.state is GroupState.EMPTY and not group.pending_joins
            if nothing_remains and is_unused:
                records.append(group_tombstone(group.group_id))
        self._schedule_expiry(self._step(now))
        return Result(records, atomic=False)

    # --- Operators ------------------------------------------------------------------------------

    def _describe(self, event: DescribeGroup, ticket: Ticket, now: Now) -> Result:
        del now
        answer = describe_group(self.groups, event.group_id, event.api_version)
        return Result(replies=((ticket, answer),))

    def _list(self, request: ListGroupsRequest, ticket: Ticket, now: Now) -> Result:
        del now
        return Result(replies=((ticket, list_groups(self.groups, request)),))

    def _delete_group(self, event: DeleteGroup, ticket: Ticket, now: Now) -> Result:
        del now
        records = delete_group(self.groups, self.offsets, event.group_id)
        answer = DeletableGroupResult(group_id=event.group_id, error_code=ErrorCode.NONE)
        return Result(records, ((ticket, answer),), atomic=False)

    # --- Internals ------------------------------------------------------------------------------

    def _step(self, now: Now) -> Step:
        return Step(now, self.settings, self.timers)

    def _group(self, group_id: str) -> ClassicGroup:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id)
        return group

    def _existing_group(self, group_id: str) -> ClassicGroup:
        group = self.groups.get(group_id)
        if group is None:
            raise _unknown_member(group_id)
        return group

    def _schedule_expiry(self, step: Step) -> None:
        step.schedule(
            (TimerKind.EXPIRE_OFFSETS, "", ""), self.settings.offsets_retention_check_interval_ms
        )

    def _cancel_timers(self, group: ClassicGroup) -> None:
        group_id = group.group_id
        for member_id in (*group.members, *group.pending_joins):
            self.timers.cancel((TimerKind.SESSION, group_id, member_id))
        self.timers.cancel((TimerKind.JOIN, group_id, ""))
        self.timers.cancel((TimerKind.SYNC, group_id, ""))


class GroupShards:
    """What the runtime is handed for `__consumer_offsets`; a `coordinator.shard.ShardKind`."""

    topic = CONSUMER_OFFSETS_TOPIC

    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.codec: RecordCodec = GroupRecordCodec()

    def new_shard(self, partition: int) -> GroupShard:
        """Return the empty shard of a partition."""
        del partition
        return GroupShard(self.settings)

    def event_for_disconnect(self, connection_id: int) -> object | None:
        """Return what a shard is told of a client's end, if members are to go with it."""
        return ConnectionClosed(connection_id) if self.settings.evict_on_disconnect else None

    def event_for_deleted_topics(self, topics: Iterable[str]) -> object | None:
        """Return what a shard is told of deleted topics."""
        return TopicsDeleted(frozenset(topics))


def _unknown_member(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no group {group_id}")
