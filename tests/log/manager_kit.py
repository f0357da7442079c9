"""A log manager over a simulated disk."""

from uuid import UUID

from kafkalite.log.manager import LogManager
from kafkalite.log_config import LogConfig
from kafkalite.types import TopicPartition
from tests.log.log_kit import FakeClock
from tests.log.sim_disk import SimDisk

TOPIC_ID = UUID(int=7)


T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


class Uuids:
    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        return UUID(int=self.count)


def start(disk=None, *, paths=("/data",), node_id=1, load=True, **config):
    manager = LogManager(list(paths), disk or SimDisk(), FakeClock(), new_uuid=Uuids())
    manager.claim(node_id=node_id)
    if load:
        manager.load(lambda _: LogConfig(**config))
    return manager


def create(manager, topic_partition=T0, **config):
    return manager.create(topic_partition, TOPIC_ID, LogConfig(**config))
