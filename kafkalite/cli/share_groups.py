"""`kafkalite groups describe` for share groups: members, share lag."""

import click

from kafkalite.cli.output import plural, print_json, print_table
from kafkalite.client.share_groups import ShareProgress
from kafkalite.types import TopicPartition
from kafkalite.wire.messages.share_group_describe import DescribedGroup, Member

COLUMNS = ["topic", "partition", "start", "lag"]


def print_share_group(
    group: DescribedGroup, progress: dict[TopicPartition, ShareProgress], *, as_json: bool
) -> None:
    """Print a group, its members with what they are assigned, and how far it is."""
    rows = [
        (place.topic, place.partition, each.start_offset, each.lag)
        for place, each in sorted(progress.items())
    ]
    if as_json:
        print_json(
            {
                "group": group.group_id,
                "state": group.group_state,
                "group_epoch": group.group_epoch,
                "target_epoch": group.assignment_epoch,
                "assignor": group.assignor_name,
                "members": [
                    {
                        "member_id": member.member_id,
                        "member_epoch": member.member_epoch,
                        "client_id": member.client_id,
                        "host": member.client_host,
                        "partitions": _partitions(member),
                    }
                    for member in group.members
                ],
                "offsets": [dict(zip(COLUMNS, row, strict=True)) for row in rows],
            }
        )
        return
    count = plural(len(group.members), "member")
    click.echo(
        f"{group.group_id}: {group.group_state}, share group in epoch {group.group_epoch}, {count}"
    )
    for member in group.members:
        names = ", ".join(_partitions(member)) or "nothing assigned"
        click.echo(f"  {member.member_id} at {member.client_host.removeprefix('/')}: {names}")
    if rows:
        print_table([name.upper() for name in COLUMNS], rows)


def _partitions(member: Member) -> list[str]:
    return sorted(
        f"{topic.topic_name}-{index}"
        for topic in member.assignment.topic_partitions
        for index in topic.partitions
    )
