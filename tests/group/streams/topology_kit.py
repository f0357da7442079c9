"""Streams groups whose source topics there are."""

from tests.group.streams.harness import (
    StreamsHarness,
    Thread,
)
from tests.group.streams.topologies import subtopology

SIMPLE = (subtopology("0", "in1"),)


STATEFUL = (subtopology("0", "in1", changelogs="log"),)


def statuses(response):
    return [status.status_code for status in response.status]


def simple(*names, count=4, **config):
    """A group over one topic, and threads that have not joined."""
    config = {f"group.streams.{key.replace('_', '.')}": str(v) for key, v in config.items()}
    harness = StreamsHarness({"in1": count}, config=config)
    return harness, *(Thread(name, topology=SIMPLE) for name in names)
