"""`kafkalite groups describe` for consumer groups of Kafka 4: epochs, targets, lag."""

from collections.abc import Iterable

import click

from kafkalite.cli.output import plural, print_json, print_table
from kafkalite.client.consumer_groups import places_of
from kafkalite.types import TopicPartition
from kafkalite.wire.messages.consumer_group_describe import DescribedGroup, Member

COLUMNS = ["topic", "partition", "committed", "end", "lag", "client"]
CLASSIC_MEMBER = 0


def read_by(group: DescribedGroup) -> set[TopicPartition]:
    """Return the partitions that members have or are to have."""
    return {
        place
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for place in places_of(assignment)
    }


def print_consumer_group(
    group: DescribedGroup,
    committed: dict[TopicPartition, int],
    last: dict[TopicPartition, int],
    *,
    as_json: bool,
) -> None:
    """Print a group, its members with what they have and are to have, and its lag.

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
                "assignor": group.assignor_name,
                "group_epoch": group.group_epoch,
                "target_epoch": group.assignment_epoch,
                "members": [_member_json(member) for member in group.members],
                "offsets": [dict(zip(COLUMNS, row, strict=True)) for row in rows],
            }
        )
        return
    click.echo(
        f"{group.group_id}: {group.group_state}, {plural(len(group.members), 'member')}, "
        f"assignor {group.assignor_name}, epoch {group.group_epoch}, "
        f"target of epoch {group.assignment_epoch}"
    )
    for member in group.members:
        has, is_to_have = places_of(member.assignment), places_of(member.target_assignment)
        coming = "" if has == is_to_have else f" (to have {_shown(is_to_have)})"
        kind = ", classic protocol" if member.member_type == CLASSIC_MEMBER else ""
        host = member.client_host.removeprefix("/")
        click.echo(
            f"  {member.member_id} at {host}, epoch {member.member_epoch}{kind}: "
            f"{_shown(has)}{coming}"
        )
    if rows:
        print_table([name.upper() for name in COLUMNS], rows)


def _rows(
    group: DescribedGroup,
    committed: dict[TopicPartition, int],
    last: dict[TopicPartition, int],
) -> list[tuple[str | int | None, ...]]:
    owners = {
        place: member.client_id
        for member in group.members
        for place in places_of(member.assignment)
    }
    return [
        (
            place.topic,
            place.partition,
            committed.get(place),
            last.get(place),
            last[place] - committed[place] if place in committed and place in last else None,
            owners.get(place),
        )
        for place in sorted({*committed, *read_by(group)})
    ]


def _member_json(member: Member) -> dict[str, object]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.client_host,
        "rack": member.rack_id,
        "epoch": member.member_epoch,
        "protocol": "classic" if member.member_type == CLASSIC_MEMBER else "consumer",
        "subscribed_topics": member.subscribed_topic_names,
        "subscribed_pattern": member.subscribed_topic_regex or None,
        "partitions": [str(place) for place in places_of(member.assignment)],
        "target": [str(place) for place in places_of(member.target_assignment)],
    }


def _shown(places: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, places)) or "nothing assigned"
