"""Short forms of what an assignor is asked."""

from kafkalite.group.assignors.assignment import GroupSpec, MemberSpec
from tests.group.assignors.vectors import assignment, topic_id


def spec(reads, counts, *, had=None, instances=None):
    """A group of {member: topics}; topics are anything that can be a key."""
    had = had or {}
    instances = instances or {}
    return GroupSpec(
        members=[
            MemberSpec(member, instances.get(member), topics, had.get(member, {}))
            for member, topics in reads.items()
        ],
        is_homogeneous=len({tuple(sorted(topics)) for topics in reads.values()}) <= 1,
        partition_counts=counts,
    )


def of_case(case):
    return GroupSpec(
        members=[
            MemberSpec(
                member["id"],
                member["instance"],
                [topic_id(topic) for topic in member["topics"]],
                assignment(member["old"]),
            )
            for member in case["members"]
        ],
        is_homogeneous=case["type"] == "homogeneous",
        partition_counts={topic_id(topic): count for topic, count in case["topics"].items()},
    )
