"""The assignor `range`: of each topic a contiguous range for each member; after Kafka's."""

from uuid import UUID

from kafkalite.group.assignors.assignment import GroupSpec, MemberSpec
from kafkalite.group.slices import Sliced


def assign_ranges(group: GroupSpec) -> Sliced[dict[str, dict[UUID, list[int]]]]:
    """Divide each topic by itself among those who read it: static members first, then by id."""
    places = {}
    for member in group.members:
        places[member.member_id] = _place_in_line(member)
        yield 1
    readers: dict[UUID, list[str]] = {}
    members = sorted(group.members, key=lambda member: places[member.member_id])
    yield len(members) // 2
    for member in members:
        for topic_id in member.topic_ids:
            readers.setdefault(topic_id, []).append(member.member_id)
        yield 1 + len(member.topic_ids) // 4
    result: dict[str, dict[UUID, list[int]]] = {member.member_id: {} for member in group.members}
    for topic_id, ids in readers.items():
        share, extra = divmod(group.partition_counts[topic_id], len(ids))
        start = 0
        for position, member_id in enumerate(ids):
            end = start + share + (position < extra)
            if end > start:
                result[member_id][topic_id] = [*range(start, end)]
                start = end
                yield 1
        yield 1 + len(ids) // 8
    return result


def _place_in_line(member: MemberSpec) -> tuple[bool, bytes]:
    """As Java compares strings: by their UTF-16 code units."""
    name = member.member_id if member.instance_id is None else member.instance_id
    return member.instance_id is None, name.encode("utf-16-be", "surrogatepass")
