"""The simple assignor against Apache Kafka's own (rule 391)."""

import json
import random
from pathlib import Path
from uuid import UUID

import pytest

from kafkalite.group.share import assignor
from kafkalite.group.share.assignor import MemberSpec
from kafkalite.group.slices import complete
from kafkalite.log.checkpoint import parse_uuid

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parent / "testdata/simple-assignor.jsonl").read_text().splitlines()
]
"""Made by the classes of 4.3.1: members that come, go and change, five steps of each."""


def assign(members, assignable, *, is_homogeneous):
    return complete(assignor.assign(members, assignable, is_homogeneous=is_homogeneous))


@pytest.mark.parametrize("vector", VECTORS)
def test_result_is_kafkas(vector):
    members = {
        member["id"]: MemberSpec(
            [parse_uuid(topic) for topic in member["topics"]],
            {parse_uuid(topic): parts for topic, parts in member["old"].items()},
        )
        for member in vector["members"]
    }
    found = assign(
        members,
        {parse_uuid(topic): range(count) for topic, count in vector["assignable"].items()},
        is_homogeneous=vector["type"] == "homogeneous",
    )
    expected = {
        member: {parse_uuid(topic): parts for topic, parts in topics.items() if parts}
        for member, topics in vector["result"].items()
    }
    assert {
        member: {topic: sorted(parts) for topic, parts in topics.items() if parts}
        for member, topics in found.items()
    } == expected


@pytest.mark.parametrize("seed", range(40))
def test_every_partition_has_a_member_and_none_too_many(seed):
    rng = random.Random(seed)
    topic = UUID(int=rng.getrandbits(128))
    member_count, part_count = rng.randint(1, 12), rng.randint(1, 12)
    members = {f"m{index}": MemberSpec([topic], {}) for index in range(member_count)}
    found = assign(members, {topic: range(part_count)}, is_homogeneous=True)
    sharing = -(-member_count // part_count)
    for part in range(part_count):
        holders = [member for member, topics in found.items() if part in topics.get(topic, ())]
        assert 1 <= len(holders) <= sharing


def test_nobody_and_nothing():
    assert assign({}, {}, is_homogeneous=True) == {}
    spec = MemberSpec([], {UUID(int=1): [0]})
    assert assign({"m": spec}, {}, is_homogeneous=True) == {"m": {}}
    assert assign({"m": spec}, {}, is_homogeneous=False) == {"m": {}}
