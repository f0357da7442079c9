"""`kafkalite groups describe` for streams groups: subtopologies, tasks, lag."""

import click

from kafkalite.cli.output import plural, print_json, print_table
from kafkalite.client.streams_groups import source_topics, task_names, task_of
from kafkalite.types import TopicPartition
from kafkalite.wire.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    Subtopology,
)

COLUMNS = ["topic", "partition", "committed", "end", "lag", "task", "client"]
KINDS = ("active", "standby", "warmup")


def print_streams_group(
    group: DescribedGroup,
    committed: dict[TopicPartition, int],
    last: dict[TopicPartition, int],
    *,
    as_json: bool,
) -> None:
    """Print a group, its members with their tasks, and how far it is with what it reads.

    Args:
        group: as its coordinator describes it.
        committed: its offsets.
        last: ends of partitions, of those that exist.
        as_json: all of it as JSON.
    """
    rows = _rows(group, committed, last)
    if as_json:
        print_json(
            {
                "group": group.group_id,
                "state": group.group_state,
                "group_epoch": group.group_epoch,
                "target_epoch": group.assignment_epoch,
                "subtopologies": [
                    {"subtopology": each.subtopology_id, **_topics(each)}
                    for each in _subtopologies(group)
                ],
                "members": [_member_json(member) for member in group.members],
                "offsets": [dict(zip(COLUMNS, row, strict=True)) for row in rows],
            }
        )
        return
    click.echo(
        f"{group.group_id}: {group.group_state}, {plural(len(group.members), 'member')}, "
        f"epoch {group.group_epoch}, target of epoch {group.assignment_epoch}"
    )
    for member in group.members:
        has, is_to_have = _tasks(member.assignment), _tasks(member.target_assignment)
        coming = "" if has == is_to_have else f" (to have {_shown(is_to_have)})"
        host = member.client_host.removeprefix("/")
        click.echo(f"  {member.member_id} at {host}, epoch {member.member_epoch}: ", nl=False)
        click.echo(f"{_shown(has)}{coming}")
    if _subtopologies(group):
        print_table(
            ["SUBTOPOLOGY", "READS", "WRITES", "CHANGELOGS"],
            [
                (
                    each.subtopology_id,
                    *(" ".join(names) or None for names in _topics(each).values()),
                )
                for each in _subtopologies(group)
            ],
        )
    if rows:
        print_table([name.upper() for name in COLUMNS], rows)


def _rows(
    group: DescribedGroup, committed: dict[TopicPartition, int], last: dict[TopicPartition, int]
) -> list[tuple[str, int, int | None, int | None, int | None, str | None, str | None]]:
    sources = source_topics(group)
    owners = {
        task: member.client_id
        for member in group.members
        for task in task_names(member.assignment.active_tasks)
    }
    places = sorted({*committed, *(place for place in last if place.topic in sources)})
    rows = []
    for place in places:
        task = task_of(sources, place)
        at, end = committed.get(place), last.get(place)
        lag = None if at is None or end is None else end - at
        owner = None if task is None else owners.get(task)
        rows.append((place.topic, place.partition, at, end, lag, task, owner))
    return rows


def _subtopologies(group: DescribedGroup) -> list[Subtopology]:
    return [] if group.topology is None else group.topology.subtopologies or []


def _topics(each: Subtopology) -> dict[str, list[str]]:
    repartition = [info.name for info in each.repartition_source_topics]
    return {
        "reads": [*each.source_topics, *repartition],
        "writes": each.repartition_sink_topics,
        "changelogs": [info.name for info in each.state_changelog_topics],
    }


def _tasks(assignment: Assignment) -> dict[str, list[str]]:
    lists = (assignment.active_tasks, assignment.standby_tasks, assignment.warmup_tasks)
    return {kind: task_names(each) for kind, each in zip(KINDS, lists, strict=True)}


def _shown(tasks: dict[str, list[str]]) -> str:
    return ", ".join(f"{kind} {' '.join(names)}" for kind, names in tasks.items() if names) or (
        "no tasks"
    )


def _member_json(member: Member) -> dict[str, object]:
    endpoint = member.user_endpoint
    return {
        "member_id": member.member_id,
        "process_id": member.process_id,
        "client_id": member.client_id,
        "host": member.client_host,
        "epoch": member.member_epoch,
        "endpoint": None if endpoint is None else f"{endpoint.host}:{endpoint.port}",
        "tasks": _tasks(member.assignment),
        "target": _tasks(member.target_assignment),
    }
