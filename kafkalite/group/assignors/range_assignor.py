"""The assignor `range`: of each topic a contiguous range for each member; after Kafka's."""

from uuid import UUID

from kafkalite.group.assignors.assignment import GroupSpec, MemberSpec


def assign_ranges(group: GroupSpec) -> dict[str, dict[UUID, list[int]]]:
    """Divide each topic by itself among those who read it: static members first, then by id."""
    members = sorted(group.members, key=_place_in_line)
    readers: dict[UUID, list[str]] = {}
    for member in members:
        for topic_id in member.topic_ids:
            readers.setdefault(topic_id, []).append(member.member_id)
    result: dict[str, dict[UUID, list[int]]] = {member.member_id: {} for member in group.members}
    for topic_id, ids in readers.items():
        share, extra = divmod(group.partition_counts[topic_id], len(ids))
        start = 0
        for position, member_id in enumerate(ids):
            end = start + share + (position < extra)
            if end > start:
                result[member_id][topic_id] = [*range(start, end)]
            start = end
    return result


def _place_in_line(member: MemberSpec) -> tuple[bool, bytes]:
    """As Java compares strings: by their UTF-16 code units."""
    name = member.member_id if member.instance_id is None else member.instance_id
    return member.instance_id is None, name.encode("utf-16-be", "surrogatepass")
