"""A request context over real metadata on a simulated disk."""

from types import SimpleNamespace
from uuid import UUID

import trio

from kafkalite.api.context import RequestContext
from kafkalite.config import load_config
from kafkalite.deferred import Deferred
from kafkalite.meta.auto_topic_creation import AutoTopicCreationManager
from kafkalite.meta.deleted_topics import DeletedTopics
from kafkalite.meta.local import LocalStore
from kafkalite.meta.producer_ids import ProducerIdManager
from kafkalite.meta.runner import MetadataRunner
from kafkalite.wire.errors import KafkaError
from tests.log.sim_disk import SimDisk


class MetadataKit:
    """One broker's metadata, and requests about them."""

    def __init__(self, profile="dev", **settings):
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = load_config(overrides={"kafkalite.profile": profile, **named})
        self.disk = SimDisk()
        self.disk.make_directory("/data")
        self.next_id = 0
        self.metadata = MetadataRunner(
            self.config,
            LocalStore(self.disk, "/data/metadata"),
            cluster_id="cluster",
            new_uuid=self.new_uuid,
        )
        trio.run(self.metadata.load)
        self.services = SimpleNamespace(
            authorizer=None,
            quotas=None,
            config=self.config,
            metadata=self.metadata,
            topic_creation=AutoTopicCreationManager(self.config, self.metadata, None),
            producer_ids=ProducerIdManager(self.config, self.metadata, None),
            deleted_topics=DeletedTopics.following(self.metadata.subscribe),
            logs=None,
            replicas=None,
        )
        trio.run(self.metadata.register, {"PLAINTEXT": 9092})

    def new_uuid(self):
        self.next_id += 1
        return UUID(int=self.next_id)

    @property
    def image(self):
        return self.metadata.image

    def submit(self, event):
        return trio.run(self.metadata.submit, event)

    def context(self, version, listener="PLAINTEXT", **more):
        return RequestContext(
            services=self.services,
            connection_id=1,
            listener=listener,
            local_address=("127.0.0.1", 4711),
            peer_address=("127.0.0.1", 1),
            api_version=version,
            **{"is_inter_broker": False, **more},
        )

    def ask(self, handler, request, version=None, listener="PLAINTEXT", **more):
        """Return the response as a client of this version would read it."""
        version = handler.api.versions[1] if version is None else version
        context = self.context(version, listener, **more)
        api = handler.api
        (sent,) = [b"".join(map(bytes, api.encode_request(version, request)))]
        request = api.decode_request(version, sent)
        try:
            response = handler.handle(request, context)
            if isinstance(response, Deferred):
                response = trio.run(response.wait)
        except KafkaError as error:
            response = handler.refuse(request, error, context)
        answer = b"".join(map(bytes, api.encode_response(version, response)))
        return api.decode_response(version, answer)

    def create(self, name, partitions=1, **configs):
        """Create a topic past the API."""
        from kafkalite.meta.events import CreateTopic

        named = {key.replace("_", "."): value for key, value in configs.items()}
        self.submit(
            CreateTopic(
                name=name,
                topic_id=self.new_uuid(),
                num_partitions=partitions,
                replication_factor=1,
                configs=named,
            )
        )
        return self.image.topics[name]
