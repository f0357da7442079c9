"""A runtime with shards that note what they are told."""

import pytest
import trio
from trio.testing import MockClock

from kafkalite.coordinator.runtime import CoordinatorRuntime
from kafkalite.coordinator.shard import partition_for
from kafkalite.wire.errors import KafkaError
from tests.coordinator.fakes import FakeClock, FakePartition
from tests.coordinator.toy import TOPIC, ToyKind

KEYS = {partition_for(name, 3): name for name in "abcdef"}
"""One key for each of three partitions."""


class Setup:
    def __init__(self, *, kind=None, clock=None, count=3, led=None, **settings):
        self.clock = clock or FakeClock()
        self.runtime = CoordinatorRuntime([kind or ToyKind()], self.clock, **settings)
        self.count = count
        self.partitions = {
            index: FakePartition(TOPIC, index) for index in (range(count) if led is None else led)
        }

    def lead(self):
        self.runtime.set_leaderships(TOPIC, self.count, self.partitions)
        return self

    def ask(self, *event, index=0):
        return self.runtime.handle(TOPIC, KEYS[index], event)

    def shard(self, index=0):
        return self.runtime._slots[TOPIC][index].core

    def reload(self, **settings):
        """Another runtime over the same partitions."""
        other = Setup(clock=self.clock, count=self.count, **settings)
        other.partitions = self.partitions
        return other


def code_of(*args, **kwargs):
    with pytest.raises(KafkaError) as raised:
        args[0](*args[1:], **kwargs)
    return raised.value.code


def run(main, **clock):
    trio.run(main, clock=MockClock(autojump_threshold=0, **clock))
