"""Metadata of a lone broker on a simulated disk."""

from uuid import UUID

import trio

from kafkalite.config import load_config
from kafkalite.meta.auto_topic_creation import AutoTopicCreationManager
from kafkalite.meta.events import (
    CreateTopic,
    IncrementalAlterConfigs,
    Operation,
)
from kafkalite.meta.local import LocalStore
from kafkalite.meta.producer_ids import ProducerIdManager
from kafkalite.meta.runner import MetadataRunner
from tests.log.sim_disk import SimDisk
from tests.meta.meta_kit import topic_id

PATH = "/data/kafkalite-metadata.log"


class Kit:
    """A runner on a simulated disk, which can be started again."""

    def __init__(self, profile="dev", **settings):
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.settings = {"kafkalite.profile": profile, **named}
        self.disk = SimDisk()
        self.disk.make_directory("/data")
        self.next_id = 100
        self.start()

    def start(self):
        self.config = load_config(overrides=self.settings)
        self.runner = MetadataRunner(
            self.config, LocalStore(self.disk, PATH), cluster_id="cluster", new_uuid=self.new_uuid
        )
        trio.run(self.runner.load)
        self.topic_creation = AutoTopicCreationManager(self.config, self.runner, None)
        self.producer_ids = ProducerIdManager(self.config, self.runner, None)

    def new_uuid(self):
        self.next_id += 1
        return UUID(int=self.next_id)

    @property
    def image(self):
        return self.runner.image

    def run(self, function, *arguments):
        return trio.run(function, *arguments)

    def register(self):
        self.run(self.runner.register, {"PLAINTEXT": 9092})

    def submit(self, event):
        return self.run(self.runner.submit, event)

    def alter(self, kind, name, setting, value):
        operation = Operation.DELETE if value is None else Operation.SET
        self.submit(
            IncrementalAlterConfigs(
                resource_type=kind, resource_name=name, operations=[(setting, operation, value)]
            )
        )


def create(name, **attributes):
    attributes = {
        "num_partitions": 1,
        "replication_factor": 1,
        "topic_id": topic_id(7),
        **attributes,
    }
    return CreateTopic(name=name, **attributes)
