"""The groups of one `__consumer_offsets` partition: which code answers which event.

What all groups share is here: offsets, and what operators ask. What groups of one kind do is in the
`Part` of that kind. Hard state (committed generations, epochs, offsets) changes in `replay` alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kafkalite.coordinator.shard import (
    NOTHING,
    Event,
    Now,
    Result,
    StoredRecord,
    Ticket,
)
from kafkalite.group.admin import (
    DeleteGroup,
    DeleteOffsets,
    DescribeGroup,
    ListGroups,
    RebalanceGroup,
    delete_group,
    delete_offsets,
    describe_group,
    list_groups,
)
from kafkalite.group.classic.group import ClassicGroup
from kafkalite.group.commit import (
    CommitOffsets,
    CommitOffsetsInTransaction,
    check_commit,
    check_transactional_commit,
    commit,
    commit_in_transaction,
)
from kafkalite.group.expiry import expire_offsets
from kafkalite.group.kinds import EventOfKind, Group, GroupKind
from kafkalite.group.metadata import GroupMetadata
from kafkalite.group.new_target import SLICE_PAUSE_MS
from kafkalite.group.parts import part_for
from kafkalite.group.records import KIND_OF_KEY
from kafkalite.group.settings import GroupSettings
from kafkalite.group.shard_state import ShardState
from kafkalite.group.transition import TimerKind, Transition
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.delete_groups import DeletableGroupResult
from kafkalite.wire.messages.offset_fetch import (
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from kafkalite.wire.stored.offset_commit import OffsetCommitKey

if TYPE_CHECKING:
    from kafkalite.group.part import Part

Replay = Callable[[ShardState, Any, Any], None]


@dataclass(slots=True)
class FetchOffsets(Event[OffsetFetchResponseGroup]):
    """Offsets that an OffsetFetch request asks of one group; topics None means all."""

    group_id: str
    topics: list[OffsetFetchRequestTopic] | list[OffsetFetchRequestTopics] | None
    require_stable: bool
    member_id: str | None = None
    member_epoch: int = -1


@dataclass(slots=True, frozen=True)
class TopicsDeleted(Event[None]):
    """Topics that are gone, with everything committed for them."""

    topics: frozenset[str]


@dataclass(slots=True, frozen=True)
class TopicsChanged(Event[None]):
    """Topics that were created, deleted, or changed so that assignments depend on it."""

    topics: frozenset[str]


class GroupShard(ShardState):
    """Core of the group coordinator for one partition; a `coordinator.shard.Shard`."""

    def __init__(self, settings: GroupSettings, metadata: GroupMetadata | None = None) -> None:
        super().__init__(settings, metadata)
        self._parts: dict[GroupKind, Part] = {}
        self._replays: dict[type, Replay] = {}
        self._handlers: dict[type, Callable[..., Result]] = {
            CommitOffsets: GroupShard._commit,
            FetchOffsets: GroupShard._fetch,
            DescribeGroup: GroupShard._describe,
            ListGroups: GroupShard._list,
            DeleteGroup: GroupShard._delete_group,
            RebalanceGroup: GroupShard._rebalance,
            DeleteOffsets: GroupShard._delete_offsets,
            CommitOffsetsInTransaction: GroupShard._commit_in_transaction,
            TopicsDeleted: GroupShard._delete_topics,
            TopicsChanged: GroupShard._topics_changed,
        }
        self._add_part(GroupKind.CLASSIC)

    # --- What the runtime calls -----------------------------------------------------------------

    def handle(self, event: Event[object], ticket: Ticket, now: Now) -> Result:
        """Decide about an event."""
        handle = self._handlers.get(type(event))
        if handle is None:
            assert isinstance(event, EventOfKind)
            self._add_part(event.kind)
            handle = self._handlers[type(event)]
        return handle(self, event, ticket, now)

    def on_loaded(self, now: Now) -> Result:
        """Start the timers of every group."""
        transition = self.transition(now)
        for group in [*self.groups.values()]:
            self._parts[group.kind].on_loaded(self, transition, group)
        self._schedule_expiry(transition)
        return transition.result()

    def next_deadline_ms(self) -> int | None:
        """Return the monotonic time before which no timer is due."""
        return self.timers.next_deadline_ms()

    def on_time(self, now: Now) -> Result:
        """Fire one due timer."""
        key = self.timers.pop_due(now.monotonic_ms)
        if key is None:
            return NOTHING
        kind, group_id, _ = key
        if kind is TimerKind.EXPIRE_OFFSETS:
            return self._expire_offsets(now)
        group = self.groups.get(group_id)
        if kind is TimerKind.TARGET:
            return self._go_on_with_target(group, group_id, now)
        # There is no group if the log refused the records that would have made it.
        return NOTHING if group is None else self._parts[group.kind].on_timer(self, key, now)

    def replay(self, record: StoredRecord) -> None:
        """Make a record part of the state."""
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey):
            if value is not None and key.group not in self.groups:
                # Who commits without being a member has a group all the same (rule 157).
                self.groups[key.group] = ClassicGroup(key.group)
            self.offsets.replay(record, key)
            return
        replay = self._replays.get(type(key))
        if replay is None:
            self._add_part(KIND_OF_KEY[type(key)])
            replay = self._replays[type(key)]
        replay(self, record, key)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """End a transaction: its offsets count from now on, or never."""
        self.offsets.replay_marker(producer_id, committed=committed)

    # --- Targets --------------------------------------------------------------------------------

    def _go_on_with_target(self, group: Group | None, group_id: str, now: Now) -> Result:
        """Compute or write the next slice of a group's target; the last ends it.

        A group that changes meanwhile gets the target of the epoch at which it was begun, and its
        next heartbeats begin another one. If the log refuses something they do so, too.
        """
        transition = self.transition(now)
        new = self.new_targets.pop(group_id)
        if group is not None and new is None:
            new = self._parts[group.kind].new_target(self, group)
        if new is None or new.group is not group or new.is_refused:
            return NOTHING
        is_last = False
        if new.work.is_done:
            transition.records, is_last = new.next_records(now.wall_ms)
        else:
            new.advance()
        if not is_last:
            self.new_targets[group_id] = new
            transition.schedule((TimerKind.TARGET, group_id, ""), SLICE_PAUSE_MS)
        return Result(transition.records, atomic=False)

    # --- Offsets --------------------------------------------------------------------------------

    def _commit(self, event: CommitOffsets, ticket: Ticket, now: Now) -> Result:
        request = event.request
        group = self.groups.get(request.group_id)
        check = check_commit(group, request, event.api_version)
        records, response = commit(
            request,
            check=check,
            now_wall_ms=now.wall_ms,
            metadata_max=self.settings.offset_metadata_max_bytes,
        )
        if isinstance(group, ClassicGroup):
            member = group.members.get(request.member_id)
            if member is not None:
                self.timers.schedule(
                    (TimerKind.SESSION, request.group_id, member.member_id),
                    now.monotonic_ms + member.session_timeout_ms,
                )
        return Result(records, ((ticket, response),))

    def _commit_in_transaction(
        self, event: CommitOffsetsInTransaction, ticket: Ticket, now: Now
    ) -> Result:
        request = event.request
        records, response = commit_in_transaction(
            request,
            check=check_transactional_commit(self.groups.get(request.group_id), request),
            topic_id_of=self._topic_id_of,
            now_wall_ms=now.wall_ms,
            metadata_max=self.settings.offset_metadata_max_bytes,
        )
        return Result(
            records,
            ((ticket, response),),
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
        )

    def _topic_id_of(self, name: str) -> UUID:
        topic = self.metadata.topic(name)
        return ZERO_UUID if topic is None else topic.topic_id

    def _fetch(self, event: FetchOffsets, ticket: Ticket, now: Now) -> Result:
        del now
        group = self.groups.get(event.group_id)
        if group is not None:
            group.check_fetch(event.member_id, event.member_epoch)
        answer = self.offsets.fetch(
            event.group_id, event.topics, require_stable=event.require_stable
        )
        return Result(replies=((ticket, answer),))

    def _delete_offsets(self, event: DeleteOffsets, ticket: Ticket, now: Now) -> Result:
        del now
        records, response = delete_offsets(self.groups, self.offsets, event.request)
        return Result(records, ((ticket, response),))

    def _delete_topics(self, event: TopicsDeleted, ticket: Ticket, now: Now) -> Result:
        del now
        records = self.offsets.tombstones_for_topics(event.topics)
        for part in self._parts.values():
            records += part.topics_deleted(self)
        return Result(records, ((ticket, None),), atomic=False)

    def _topics_changed(self, event: TopicsChanged, ticket: Ticket, now: Now) -> Result:
        del now
        for group_id in self.subscribers.of(event.topics):
            # Where the log had a group of two kinds (rule 346), the earlier one is still listed.
            group = self.groups.get(group_id)
            if group is not None:
                group.on_topics_changed()
        return Result(replies=((ticket, None),), at_once=True)

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
            if nothing_remains and group.is_empty and group.vanishes:
                records += group.tombstones()
        self._schedule_expiry(self.transition(now))
        return Result(records, atomic=False)

    # --- Operators ------------------------------------------------------------------------------

    def _describe(self, event: DescribeGroup, ticket: Ticket, now: Now) -> Result:
        del now
        answer = describe_group(self.groups, event.group_id, event.api_version)
        return Result(replies=((ticket, answer),))

    def _list(self, event: ListGroups, ticket: Ticket, now: Now) -> Result:
        del now
        return Result(replies=((ticket, list_groups(self.groups, event.request)),))

    def _delete_group(self, event: DeleteGroup, ticket: Ticket, now: Now) -> Result:
        del now
        records = delete_group(self.groups, self.offsets, event.group_id)
        answer = DeletableGroupResult(group_id=event.group_id, error_code=ErrorCode.NONE)
        return Result(records, ((ticket, answer),), atomic=False)

    def _rebalance(self, event: RebalanceGroup, ticket: Ticket, now: Now) -> Result:
        transition = self.transition(now)
        group = self.groups.get(event.group_id)
        if group is not None:
            self._parts[group.kind].rebalance(transition, group)
        transition.reply(ticket, None)
        return transition.result()

    # --- Internals ------------------------------------------------------------------------------

    def _add_part(self, kind: GroupKind) -> None:
        """Add the part of a kind of groups, before there is the first of them."""
        part = self._parts[kind] = part_for(kind)
        self.classic_protocols[kind] = part.classic_protocol
        self._handlers.update(part.handlers)
        self._replays.update(part.replays)

    def _schedule_expiry(self, transition: Transition) -> None:
        transition.schedule(
            (TimerKind.EXPIRE_OFFSETS, "", ""), self.settings.offsets_retention_check_interval_ms
        )
