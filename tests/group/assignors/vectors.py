"""Inputs of assignors with the results of Apache Kafka 4.3.1's own classes.

Groups of up to some members, each in five steps: members join, leave and change what they read, and
topics get partitions. Old targets are in the order in which Kafka's classes walked through them.
"""

import gzip
import json
from base64 import urlsafe_b64decode
from pathlib import Path
from uuid import UUID

FILE = Path(__file__).parent / "partition-assignors.jsonl.gz"


def cases(assignor):
    """Return the cases of one assignor (range, uniform, simple) as JSON has them."""
    with gzip.open(FILE, "rt") as lines:
        return [case for case in map(json.loads, lines) if case["assignor"] == assignor]


def topic_id(text):
    return UUID(bytes=urlsafe_b64decode(text + "=="))


def assignment(said):
    """Return {topic id: partitions} of what JSON has; topics without partitions are left out."""
    return {topic_id(topic): list(numbers) for topic, numbers in said.items() if numbers}


def in_order(result):
    """Return an assignment that can be compared: the order of partitions is not part of it."""
    return {
        member: {topic: sorted(numbers) for topic, numbers in topics.items() if numbers}
        for member, topics in result.items()
    }


def name(case):
    return f"{case['type']}-{case['seed']}-{case['step']}"
