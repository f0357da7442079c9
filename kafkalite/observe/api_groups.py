"""The API's groups: of all kinds, with lag; reset with a dry run, delete, remove members."""

from collections.abc import Mapping
from typing import Any

from kafkalite.http.routing import HttpError, HttpRequest, Route
from kafkalite.http.slices import Slices
from kafkalite.observe.answers import Routes, field
from kafkalite.observe.api_messages import time_ms
from kafkalite.observe.cluster import (
    EARLIEST,
    LATEST,
    Cluster,
    TopicView,
    check,
    coordinator,
    list_offsets,
    topic,
    topics,
)
from kafkalite.observe.groups import (
    CLASSIC,
    GroupView,
    PartitionLag,
    bounds,
    committed_offsets,
    describe_group,
    lags,
    list_groups,
)
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from kafkalite.wire.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, MemberIdentity
from kafkalite.wire.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)


class GroupRoutes:
    """Answers about groups.

    Args:
        cluster: whom to ask.
        age_ms: tells how old the first record from an offset on is, where it can be told.
    """

    def __init__(self, cluster: Cluster, age_ms: Any = None) -> None:
        self._cluster = cluster
        self._age_ms = age_ms

    def routes(self) -> list[Route]:
        """Return what is answered."""
        add = Routes(self._cluster)
        add.get("/groups", self._list)
        add.get("/groups/{group}", self._describe)
        add.write("DELETE", "/groups/{group}", self._delete)
        add.write("POST", "/groups/{group}/reset", self._reset)
        add.write("DELETE", "/groups/{group}/members/{member}", self._remove)
        add.get("/topics/{topic}/groups", self._of_topic)
        return add.list

    async def _list(self, request: HttpRequest) -> dict[str, Any]:
        """List groups; `lag=true` adds what each is behind, for which each is asked."""
        groups = await list_groups(self._cluster)
        wanted = request.text("search").lower()
        groups = [group for group in groups if wanted in group["group_id"].lower()]
        if request.flag("lag"):
            await self.add_lags(groups)
        return {"count": len(groups), "groups": groups}

    async def add_lags(self, groups: list[dict[str, Any]]) -> None:
        """Add `lag` and `topics` to groups; each is asked once, and all topics together."""
        slices = Slices()
        offsets = {}
        names: set[str] = set()
        for group in groups:
            try:
                committed = await committed_offsets(
                    self._cluster, group["group_id"], group["coordinator"]
                )
            except KafkaError:
                continue
            offsets[group["group_id"]] = committed
            names.update(place.topic for place in committed)
            await slices.breathe()
        starts, ends = await bounds(self._cluster, await topics(self._cluster, sorted(names)))
        for group in groups:
            committed = offsets.get(group["group_id"], {})
            behind = [
                max(0, ends[place].offset - max(each.offset, starts[place].offset))
                for place, each in committed.items()
                if place in ends and place in starts
            ]
            group["lag"] = sum(behind) if behind else None
            group["topics"] = sorted({place.topic for place in committed})

    async def _describe(self, request: HttpRequest) -> dict[str, Any]:
        group_id = request.parameters["group"]
        try:
            group = await describe_group(self._cluster, group_id)
        except KafkaError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            group = await self._only_offsets(group_id, error)
        committed = await committed_offsets(self._cluster, group_id, group.coordinator)
        behind = await lags(self._cluster, group, committed)
        owners = {
            TopicPartition(name, index): member.member_id
            for member in group.members
            for name, indexes in member.assignment.items()
            for index in indexes
        }
        known = [each.lag for each in behind if each.lag is not None]
        return {
            "group_id": group_id,
            "type": group.type,
            "state": group.state,
            "protocol": group.protocol,
            "assignor": group.assignor,
            "coordinator": group.coordinator,
            "epoch": group.epoch,
            "members": [member.as_json() for member in group.members],
            "lag": sum(known) if known else None,
            "offsets": [self._offset_json(each, owners) for each in behind],
        }

    async def _only_offsets(self, group_id: str, error: KafkaError) -> GroupView:
        """Return a group that has offsets and never had members; else raise `error`."""
        broker = await coordinator(self._cluster, group_id)
        if not await committed_offsets(self._cluster, group_id, broker):
            raise error
        return GroupView(
            group_id=group_id,
            type=CLASSIC,
            state="Empty",
            protocol="",
            assignor="",
            members=[],
            coordinator=broker,
        )

    def _offset_json(
        self, each: PartitionLag, owners: Mapping[TopicPartition, str]
    ) -> dict[str, Any]:
        age_ms = None
        if self._age_ms is not None and each.committed is not None and each.lag is not None:
            age_ms = self._age_ms(each.place, each.committed) if each.lag else 0
        return {
            "topic": each.place.topic,
            "partition": each.place.partition,
            "committed": each.committed,
            "start": each.start,
            "end": each.end,
            "lag": each.lag,
            "lag_seconds": None if age_ms is None else round(age_ms / 1_000, 3),
            "metadata": each.metadata,
            "member": owners.get(each.place),
        }

    async def _of_topic(self, request: HttpRequest) -> dict[str, Any]:
        """List the groups that committed for a topic."""
        name = request.parameters["topic"]
        await topic(self._cluster, name)
        groups = await list_groups(self._cluster)
        await self.add_lags(groups)
        found = [group for group in groups if name in group.get("topics", ())]
        return {"topic": name, "groups": found}

    async def _delete(self, request: HttpRequest) -> dict[str, Any]:
        group_id = request.parameters["group"]
        broker = await coordinator(self._cluster, group_id)
        message = DeleteGroupsRequest(groups_names=[group_id])
        (result,) = (await self._cluster.ask(DELETE_GROUPS, message, broker=broker)).results
        check(result.error_code, f"group {group_id!r}")
        return {"group_id": group_id}

    async def _remove(self, request: HttpRequest) -> dict[str, Any]:
        """Remove a member, as if it had left."""
        group_id, member_id = request.parameters["group"], request.parameters["member"]
        broker = await coordinator(self._cluster, group_id)
        group = await describe_group(self._cluster, group_id)
        found = next((each for each in group.members if each.member_id == member_id), None)
        if found is None:
            raise HttpError(404, f"group {group_id!r} has no member {member_id!r}")
        message = LeaveGroupRequest(
            group_id=group_id,
            member_id=member_id,
            members=[MemberIdentity(member_id=member_id, group_instance_id=found.instance_id)],
        )
        answer = await self._cluster.ask(LEAVE_GROUP, message, broker=broker)
        check(answer.error_code, f"group {group_id!r}")
        for each in answer.members:
            check(each.error_code, f"member {member_id!r}")
        return {"group_id": group_id, "member_id": member_id}

    async def _reset(self, request: HttpRequest) -> dict[str, Any]:
        """Move committed offsets; unless `dry_run` is false only say where to.

        `to`: earliest, latest, current, time:..., offset:N, shift:N; or `offsets`: a list of
        topic, partition, offset.
        """
        group_id = request.parameters["group"]
        body = request.json()
        dry_run = field(body, "dry_run", bool, True)
        broker = await coordinator(self._cluster, group_id)
        try:
            group = await describe_group(self._cluster, group_id)
        except KafkaError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            members = 0
        else:
            members = len(group.members)
        committed = await committed_offsets(self._cluster, group_id, broker)
        names = field(body, "topics", list, None) or sorted({p.topic for p in committed})
        views = await topics(self._cluster, [str(name) for name in names])
        starts, ends = await bounds(self._cluster, views)
        wanted = await self._targets(body, views, {p: c.offset for p, c in committed.items()})
        changes = []
        for place, offset in sorted(wanted.items()):
            if place not in ends:
                continue
            bounded = min(max(offset, starts[place].offset), ends[place].offset)
            before = committed[place].offset if place in committed else None
            changes.append(
                {
                    "topic": place.topic,
                    "partition": place.partition,
                    "before": before,
                    "after": bounded,
                    "lag": ends[place].offset - bounded,
                    "moved": None if before is None else bounded - before,
                }
            )
        if not dry_run:
            if members:
                raise HttpError(
                    409,
                    f"group {group_id!r} still has members ({members}), which would commit "
                    "over it: stop them first",
                )
            await self._commit(group_id, broker, changes)
        return {"group_id": group_id, "dry_run": dry_run, "members": members, "changes": changes}

    async def _targets(
        self,
        body: dict[str, Any],
        views: list[TopicView],
        committed: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        """Return where each partition's offset is to go."""
        listed = field(body, "offsets", list, None)
        if listed is not None:
            try:
                return {
                    TopicPartition(str(each["topic"]), int(each["partition"])): int(each["offset"])
                    for each in listed
                }
            except (KeyError, TypeError, ValueError):
                raise HttpError(400, "offsets holds topic, partition and offset") from None
        kind, _, text = field(body, "to", str).partition(":")
        if kind == "current":
            return dict(committed)
        if kind in ("earliest", "latest"):
            at = EARLIEST if kind == "earliest" else LATEST
            found = await list_offsets(self._cluster, views, at)
            return {place: each.offset for place, each in found.items()}
        if kind == "time":
            found = await list_offsets(self._cluster, views, time_ms(text))
            ends = await list_offsets(self._cluster, views, LATEST)
            return {
                place: each.offset if each.offset >= 0 else ends[place].offset
                for place, each in found.items()
                if place in ends
            }
        number = int(text) if text.removeprefix("-").isdecimal() and len(text) < 20 else None
        if kind == "offset" and number is not None and number >= 0:
            return {TopicPartition(v.name, p.index): number for v in views for p in v.partitions}
        if kind == "shift" and number is not None:
            return {place: max(0, offset + number) for place, offset in committed.items()}
        raise HttpError(400, "to is one of earliest, latest, current, time:..., offset:N, shift:N")

    async def _commit(self, group_id: str, broker: int, changes: list[dict[str, Any]]) -> None:
        by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
        for change in changes:
            by_topic.setdefault(change["topic"], []).append(
                OffsetCommitRequestPartition(
                    partition_index=change["partition"],
                    committed_offset=change["after"],
                    committed_metadata="",
                )
            )
        message = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[
                OffsetCommitRequestTopic(name=name, partitions=partitions)
                for name, partitions in by_topic.items()
            ],
        )
        answer = await self._cluster.ask(OFFSET_COMMIT, message, broker=broker)
        for answered in answer.topics:
            for each in answered.partitions:
                check(each.error_code, f"{answered.name}-{each.partition_index}")
