"""Random groups, thousands of whose targets are those of Apache Kafka's own classes.

Each group takes some steps: members join, leave and change what they read, topics grow. What
Kafka's assignor answered is what members had at the next step.
"""

import json
import random
import subprocess
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from compat_tests.apache_kafka import KAFKA_4, java_command
from kafkalite.group.assignors.assignment import GroupSpec, MemberSpec
from kafkalite.group.assignors.range_assignor import assign_ranges
from kafkalite.group.assignors.uniform import assign_uniformly
from kafkalite.group.share import assignor as share
from kafkalite.group.slices import complete
from kafkalite.group.streams.assignor import AssignableSubtopology, AssignmentMember, assign_tasks
from kafkalite.group.streams.tasks import by_subtopology, task_set
from kafkalite.wire.stored.streams_group import TaskIds
from tests.group.assignors.vectors import assignment, in_order, topic_id

pytestmark = [pytest.mark.kafka_dir, pytest.mark.slow]

GROUPS, STEPS = 300, 5


def by_kafka(cases):
    """Ask all at once: most of the time is the start of Java."""
    program = str(Path(__file__).with_name("Assignors.java"))
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    command = java_command(KAFKA_4, program)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


# --- Partitions ----------------------------------------------------------------------------------


class Group:
    """A group that changes at random."""

    def __init__(self, seed, assignor):
        self.rng = random.Random(f"{assignor} {seed}")
        self.assignor = assignor
        self.is_homogeneous = self.rng.random() < 0.4
        self.topics = {self._new_id(): self._size() for _ in range(self.rng.randint(1, 6))}
        self.members = {}
        self.old = {}
        for _ in range(self.rng.randint(1, 8)):
            self._join()

    def _new_id(self):
        return urlsafe_b64encode(self.rng.randbytes(16)).decode().rstrip("=")

    def _size(self):
        return self.rng.choice([1, 2, 3, self.rng.randint(1, 40)])

    def _reads(self):
        topics = [*self.topics]
        self.rng.shuffle(topics)
        return topics if self.is_homogeneous else topics[: self.rng.randint(0, len(topics))]

    def _join(self):
        reads = self._reads()
        if self.is_homogeneous and self.members:
            reads = next(iter(self.members.values()))
        self.members[f"m{self.rng.getrandbits(32):08x}"] = reads

    def change(self):
        rng = self.rng
        for _ in range(rng.randint(1, 3)):
            match rng.choice(["join", "leave", "read", "grow"]):
                case "join":
                    self._join()
                case "leave" if len(self.members) > 1:
                    del self.members[rng.choice([*self.members])]
                case "read" if not self.is_homogeneous:
                    self.members[rng.choice([*self.members])] = self._reads()
                case "grow":
                    self.topics[rng.choice([*self.topics])] += rng.randint(1, 5)

    def case(self):
        return {
            "assignor": self.assignor,
            "type": "HOMOGENEOUS" if self.is_homogeneous else "HETEROGENEOUS",
            "topics": self.topics,
            "members": [
                {"id": member_id, "topics": reads, "old": self.old.get(member_id, {})}
                for member_id, reads in self.members.items()
            ],
        }

    def assign(self, walked):
        """Return the target, of what the members had in the order of Java's maps."""
        counts = {topic_id(topic): count for topic, count in self.topics.items()}
        reads = {key: [*map(topic_id, topics)] for key, topics in self.members.items()}
        olds = {member_id: assignment(topics) for member_id, topics in walked.items()}
        if self.assignor == "simple":
            members = {key: share.MemberSpec(reads[key], olds[key]) for key in reads}
            parts = {topic: range(count) for topic, count in counts.items()}
            return complete(share.assign(members, parts, is_homogeneous=self.is_homogeneous))
        specs = [MemberSpec(key, None, reads[key], olds[key]) for key in reads]
        assign = {"uniform": assign_uniformly, "range": assign_ranges}[self.assignor]
        return complete(assign(GroupSpec(specs, self.is_homogeneous, counts)))


def with_something(result):
    """Leave out who has nothing: some of Kafka's assignors do."""
    return {member: topics for member, topics in in_order(result).items() if topics}


@pytest.mark.parametrize("assignor", ["uniform", "range", "simple"])
def test_partitions_are_given_as_by_kafka(assignor):
    groups = [Group(seed, assignor) for seed in range(GROUPS)]
    for step in range(STEPS):
        answers = by_kafka([group.case() for group in groups])
        for seed, (group, answer) in enumerate(zip(groups, answers, strict=True)):
            expected = {key: assignment(topics) for key, topics in answer["result"].items()}
            found = group.assign(answer["old"])
            assert with_something(found) == with_something(expected), f"group {seed}, step {step}"
            group.old = answer["result"]
            group.change()


# --- Tasks ---------------------------------------------------------------------------------------


class Application:
    """A streams group that changes at random."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.subtopologies = {
            str(number): rng.randint(1, 12) for number in range(rng.randint(1, 4))
        }
        self.stateful = [name for name in self.subtopologies if rng.random() < 0.6]
        self.standby = rng.choice([0, 0, 1, 2])
        self.members = {}
        self.old = {}
        for _ in range(rng.randint(1, 6)):
            self._join()

    def _join(self):
        process = f"p{self.rng.randint(1, 4)}"
        self.members[f"m{self.rng.getrandbits(32):08x}"] = process

    def change(self):
        for _ in range(self.rng.randint(1, 3)):
            if self.rng.random() < 0.5:
                self._join()
            elif len(self.members) > 1:
                del self.members[self.rng.choice([*self.members])]

    def case(self):
        nothing = {"active": {}, "standby": {}}
        return {
            "assignor": "sticky",
            "standby": self.standby,
            "subtopologies": self.subtopologies,
            "stateful": self.stateful,
            "members": [
                {"id": key, "process": process, **self.old.get(key, nothing)}
                for key, process in self.members.items()
            ],
        }

    def assign(self):
        members = [
            AssignmentMember(
                member_id=each["id"],
                process_id=each["process"],
                active=tasks(each["active"]),
                standby=tasks(each["standby"]),
            )
            for each in self.case()["members"]
        ]
        topology = {
            name: AssignableSubtopology(task_count=count, is_stateful=name in self.stateful)
            for name, count in self.subtopologies.items()
        }
        targets = complete(assign_tasks(members, topology, standby_replicas=self.standby))
        return {
            key: {"active": by_subtopology(each.active), "standby": by_subtopology(each.standby)}
            for key, each in targets.items()
        }


def tasks(said):
    return task_set(
        TaskIds(subtopology_id=name, partitions=numbers) for name, numbers in said.items()
    )


def shown(said):
    return {name: sorted(numbers) for name, numbers in said.items() if numbers}


def test_tasks_are_given_as_by_kafka():
    applications = [Application(seed) for seed in range(GROUPS)]
    for step in range(STEPS):
        answers = by_kafka([application.case() for application in applications])
        for seed, (application, answer) in enumerate(zip(applications, answers, strict=True)):
            expected = {
                key: {kind: shown(found) for kind, found in given.items()}
                for key, given in answer["result"].items()
            }
            assert application.assign() == expected, f"application {seed}, step {step}"
            application.old = expected
            application.change()
