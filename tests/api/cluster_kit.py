"""Metadata of several brokers, as the controller (broker 1) holds them."""

from kafkalite.meta.events import CreateTopic, RegisterBroker
from tests.api.metadata_kit import MetadataKit

HOST = "host"


class ClusterKit(MetadataKit):
    """Brokers 1 to `brokers`: each has the epoch 10 + its id, and listens at 9090 + its id."""

    def __init__(self, brokers=3, **settings):
        super().__init__(**settings)
        for broker_id in range(1, brokers + 1):
            self.register(broker_id)

    def register(self, broker_id, *, epoch=None, listener="PLAINTEXT", host=HOST):
        """Have a broker register."""
        self.submit(
            RegisterBroker(
                broker_id=broker_id,
                endpoints={listener: (host, 9090 + broker_id)},
                broker_epoch=10 + broker_id if epoch is None else epoch,
            )
        )

    def assign(self, name, *replicas):
        """Create a topic with these replicas of each partition; return it."""
        self.submit(
            CreateTopic(name=name, topic_id=self.new_uuid(), assignments=list(enumerate(replicas)))
        )
        return self.image.topics[name]

    def state(self, name, index=0):
        return self.image.topics[name].partitions[index]
