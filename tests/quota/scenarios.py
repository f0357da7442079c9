"""What clients with quotas are told to wait: the same questions for kafkalite and Apache Kafka.

How long does not depend on anybody's speed: for bytes it is `counted / limit` seconds less a window
of 10 s and a part of one more, for partitions what is missing in a bucket less the time since.
"""

import time
from contextlib import contextmanager

from kafkalite.wire.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kafkalite.wire.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkalite.wire.messages.create_topics import CREATE_TOPICS, CreatableTopic, CreateTopicsRequest
from kafkalite.wire.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from kafkalite.wire.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    ComponentData,
    DescribeClientQuotasRequest,
)
from kafkalite.wire.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from kafkalite.wire.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.records import Record, build_batch
from tests.raw_client import RawClient, encoded

WINDOW_MS = 10_000
"""Of a client that did not use anything before; a part of a sample (1 s) may be added."""

SAMPLE_MS = 1_000
REQUEST_MAX_MS = 1_000
"""The longest that a client waits because of the time of its requests."""

BURST_S = 11
"""For so many seconds a bucket of partitions saves what is not used."""

ANY_USER = "ANONYMOUS"


class Server:
    """A broker by its address; `RawClient` wants no more."""

    def __init__(self, bootstrap):
        self.port = int(bootstrap.rpartition(":")[2])


class Asker(RawClient):
    """A client with a name, for quotas by client-id."""

    settles_s = 0
    """Between when a change is seen and when it has an effect, which Apache Kafka tells nobody."""

    def __init__(self, server, client_id):
        super().__init__(server, client_id=client_id)

    def set_quota(self, entity, **quotas):
        """Set quotas of an entity such as {"user": "ann", "client-id": None}; None removes one."""
        entry = EntryData(
            entity=[
                EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()
            ],
            ops=[
                OpData(key=key, value=value or 0.0, remove=value is None)
                for key, value in quotas.items()
            ],
        )
        (answer,) = self.ask(
            ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest(entries=[entry])
        ).entries
        if not answer.error_code:
            self._wait_known(entity, {key: value for key, value in quotas.items() if value})
        return answer.error_code

    def _wait_known(self, entity, quotas):
        """Wait until a broker knows what its controller has stored, and acts by it."""
        wanted = [(kind, 0 if name else 1, name) for kind, name in entity.items()]
        for _ in range(200):
            known = self.quotas(*wanted, strict=True)
            if all(item in (known[0][1] if known else []) for item in quotas.items()) and (
                quotas or not known
            ):
                break
            time.sleep(0.02)
        else:
            raise AssertionError(f"{entity} never had {quotas}")
        if self.settles_s:
            time.sleep(self.settles_s)

    def quotas(self, *components, strict=False):
        """Return entities and quotas that fit (type, match type, name), sorted."""
        request = DescribeClientQuotasRequest(
            components=[
                ComponentData(entity_type=kind, match_type=how, match=name)
                for kind, how, name in components
            ],
            strict=strict,
        )
        answer = self.ask(DESCRIBE_CLIENT_QUOTAS, 1, request)
        if answer.error_code:
            return answer.error_code
        return sorted(
            (
                sorted((one.entity_type, one.entity_name or "") for one in entry.entity),
                sorted((one.key, one.value) for one in entry.values),
            )
            for entry in answer.entries
        )

    def alter_broker(self, settings):
        """Set settings of all brokers; None removes one."""
        configs = [
            AlterableConfig(name=name, config_operation=int(value is None), value=value)
            for name, value in settings.items()
        ]
        resource = AlterConfigsResource(resource_type=4, resource_name="", configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (answer,) = self.ask(INCREMENTAL_ALTER_CONFIGS, 1, request).responses
        assert answer.error_code == 0, answer
        time.sleep(self.settles_s)

    def create(self, name, partitions=1, version=7):
        """Return (error code, time to wait) of a new topic."""
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        answer = self.ask(
            CREATE_TOPICS, version, CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        )
        return answer.topics[0].error_code, answer.throttle_time_ms

    def delete(self, name, version=6):
        if version < 6:
            request = DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000)
        else:
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000)
        answer = self.ask(DELETE_TOPICS, version, request)
        return answer.responses[0].error_code, answer.throttle_time_ms

    def grow(self, name, count, version=3):
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)
        answer = self.ask(CREATE_PARTITIONS, version, request)
        return answer.results[0].error_code, answer.throttle_time_ms

    def topic_id(self, name):
        """Return the id of a topic that has a leader."""
        for _ in range(100):
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
            (topic,) = self.ask(METADATA, 12, request).topics
            if not topic.error_code and topic.partitions[0].leader_id >= 0:
                return topic.topic_id
            time.sleep(0.05)
        raise AssertionError(f"{name} has no leader")

    def produce(self, name, size, acks=1):
        """Return (bytes of the request, time to wait)."""
        value = bytes(size)
        batch = bytes(build_batch([Record(offset=0, timestamp=1, key=None, value=value)]))
        request = ProduceRequest(
            acks=acks,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(
                    name=name, partition_data=[PartitionProduceData(index=0, records=batch)]
                )
            ],
        )
        count = len(encoded(PRODUCE, 9, request, client_id=self.client_id))
        if not acks:
            self.send_request(PRODUCE, 9, request)
            return count, None
        answer = self.ask(PRODUCE, 9, request)
        assert answer.responses[0].partition_responses[0].error_code == 0
        return count, answer.throttle_time_ms

    def fetch(self, name, offset=0, epoch=-1, session=0, max_bytes=10**6):
        """Return the answer to a Fetch of version 12, which names topics."""
        partition = FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=10**6, current_leader_epoch=-1
        )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=session,
            session_epoch=epoch,
            topics=[FetchTopic(topic=name, partitions=[partition])] if epoch <= 0 else [],
        )
        return self.ask(FETCH, 12, request)


def assert_waits(counted, limit, throttle_ms):
    """Check how long a client waits that used so much in less than 10 s."""
    window_ms = counted / limit * 1_000 - throttle_ms
    assert WINDOW_MS - 1 <= window_ms <= WINDOW_MS + SAMPLE_MS + 1


def produced_bytes(server, admin):
    """The first burst counts as of 10 s: what it exceeds the limit by is waited for."""
    admin.create("produced")
    admin.topic_id("produced")
    admin.set_quota({"client-id": "producer"}, producer_byte_rate=1_000)
    total = 0
    for size, waits in ((5_000, False), (5_000, True), (20_000, True)):
        with Asker(server, "producer") as client:  # a new connection is not muted
            count, throttle_ms = client.produce("produced", size)
        total += count
        assert bool(throttle_ms) == waits
        if waits:
            assert_waits(total, 1_000, throttle_ms)
    with Asker(server, "another") as client:
        assert client.produce("produced", 50_000)[1] == 0


def fetched_bytes(server, admin):
    """What would be too much is not sent, and does not count."""
    admin.create("fetched")
    admin.topic_id("fetched")
    admin.produce("fetched", 30_000)
    admin.set_quota({"client-id": "reader"}, consumer_byte_rate=1_000)
    for _ in range(2):
        with Asker(server, "reader") as client:
            answer = client.fetch("fetched")
        assert answer.responses == []
        assert_waits(30_000 + 150, 1_000, answer.throttle_time_ms - 0)
    admin.set_quota({"client-id": "reader"}, consumer_byte_rate=10_000)
    with Asker(server, "reader") as client:
        answer = client.fetch("fetched")
    assert answer.throttle_time_ms == 0
    assert len(answer.responses[0].partitions[0].records) > 30_000


def shared_by_level(server, admin):
    """Quotas of a user are shared by all its clients; a quota of both counts before that."""
    admin.create("shared")
    admin.topic_id("shared")
    admin.set_quota({"user": ANY_USER}, producer_byte_rate=1_000)
    admin.set_quota({"user": ANY_USER, "client-id": "special"}, producer_byte_rate=100_000)
    total = 0
    for name in ("one", "two"):
        with Asker(server, name) as client:
            count, throttle_ms = client.produce("shared", 8_000)
        total += count
    assert_waits(total, 1_000, throttle_ms)
    with Asker(server, "special") as client:
        assert client.produce("shared", 8_000)[1] == 0
    admin.set_quota({"user": ANY_USER}, producer_byte_rate=None)
    with Asker(server, "one") as client:
        assert client.produce("shared", 8_000)[1] == 0
    admin.set_quota({"user": ANY_USER, "client-id": "special"}, producer_byte_rate=None)


def mutations_are_refused(server, admin):
    """One request may overdraw the bucket; those behind it are refused until it is paid back."""
    admin.set_quota({"client-id": "maker"}, controller_mutation_rate=1)
    began_s = time.monotonic()
    with Asker(server, "maker") as client:
        assert client.create("made-0", 100_000)[0] != 0  # too many: that counts nothing
        assert client.create("made-1", 30) == (0, 0)
    for ask in (
        lambda one: one.create("made-2"),
        lambda one: one.grow("made-1", 31),
        lambda one: one.delete("made-1"),
    ):
        with Asker(server, "maker") as client:
            code, throttle_ms = ask(client)
        elapsed_ms = (time.monotonic() - began_s) * 1_000
        assert code == 89
        assert (30 - BURST_S) * 1_000 - elapsed_ms - 1 <= throttle_ms <= (30 - BURST_S) * 1_000


def mutations_of_old_clients_are_let_through(server, admin):
    """They do not know the refusal: they wait afterwards."""
    admin.set_quota({"client-id": "old maker"}, controller_mutation_rate=1)
    began_s = time.monotonic()
    with Asker(server, "old maker") as client:
        code, throttle_ms = client.create("old-1", 20, version=5)
    elapsed_ms = (time.monotonic() - began_s) * 1_000
    assert code == 0
    assert (20 - BURST_S) * 1_000 - elapsed_ms - 1 <= throttle_ms <= (20 - BURST_S) * 1_000


def time_of_requests(server, admin):
    """Who has nearly no time is told to wait a second at most, whatever was asked."""
    admin.create("timed")
    admin.topic_id("timed")
    admin.set_quota({"client-id": "busy"}, request_percentage=1e-6)
    with Asker(server, "busy") as client:
        assert client.ask(METADATA, 12, MetadataRequest()).throttle_time_ms == REQUEST_MAX_MS
    with Asker(server, "busy") as client:
        assert client.produce("timed", 100)[1] == REQUEST_MAX_MS
    with Asker(server, "busy") as client:
        assert client.fetch("timed").throttle_time_ms == REQUEST_MAX_MS
    with Asker(server, "idle") as client:
        assert client.ask(METADATA, 12, MetadataRequest()).throttle_time_ms == 0
    admin.set_quota({"client-id": "busy"}, request_percentage=100)
    with Asker(server, "busy") as client:
        assert client.produce("timed", 100)[1] <= REQUEST_MAX_MS
    admin.set_quota({"client-id": "busy"}, request_percentage=None)


def longer_of_two_waits(server, admin):
    """A request against two quotas at once waits for the one that takes longer."""
    admin.create("both")
    admin.topic_id("both")
    quotas = {"producer_byte_rate": 1_000, "request_percentage": 1e-6}
    admin.set_quota({"client-id": "both"}, **quotas)
    with Asker(server, "both") as client:
        count, throttle_ms = client.produce("both", 30_000)
    assert_waits(count, 1_000, throttle_ms)
    admin.set_quota({"client-id": "both"}, **dict.fromkeys(quotas))


def muted_connections(server, admin):
    """A client that must wait is read no more until then; others are served meanwhile."""
    admin.create("muted")
    admin.topic_id("muted")
    admin.set_quota({"client-id": "muted"}, request_percentage=1e-6)
    with Asker(server, "muted") as client, Asker(server, "other") as other:
        throttle_ms = client.ask(METADATA, 12, MetadataRequest()).throttle_time_ms
        began_s = time.monotonic()
        client.send_request(METADATA, 12, MetadataRequest())
        for _ in range(5):
            assert other.ask(METADATA, 12, MetadataRequest()).throttle_time_ms == 0
        assert client.receive_response(METADATA, 12) is not None
        waited_ms = (time.monotonic() - began_s) * 1_000
    assert throttle_ms * 0.9 <= waited_ms
    admin.set_quota({"client-id": "muted"}, request_percentage=None)


def muted_without_an_answer(server, admin):
    """Who wants no answer is not told to wait, and is read no more all the same."""
    admin.create("silent")
    admin.topic_id("silent")
    admin.set_quota({"client-id": "silent"}, producer_byte_rate=1_000)
    with Asker(server, "silent") as client:
        began_s = time.monotonic()
        count, _ = client.produce("silent", 12_500, acks=0)
        client.send_request(METADATA, 12, MetadataRequest())
        assert client.receive_response(METADATA, 12) is not None
        waited_ms = (time.monotonic() - began_s) * 1_000
    assert waited_ms >= count - WINDOW_MS - SAMPLE_MS
    admin.set_quota({"client-id": "silent"}, producer_byte_rate=None)


def connections_of_an_address(server, admin):
    """Ten seconds' worth come in at once; who comes after is not served, and closed."""
    admin.set_quota({"ip": "127.0.0.1"}, connection_creation_rate=2)
    try:
        with _many_clients(server, "often") as (clients, served):
            assert 10 <= sum(served) <= 24
            late = clients[served.index(False)]
            late.socket.settimeout(20)
            assert late.is_closed()
    finally:
        admin.set_quota({"ip": "127.0.0.1"}, connection_creation_rate=None)
    with Asker(server, "often") as client:
        assert client.ask(METADATA, 12, MetadataRequest()) is not None


def connections_of_a_broker(server, admin):
    """They come in one after another, and none is closed."""
    admin.alter_broker({"max.connection.creation.rate": "2"})
    try:
        with _many_clients(server, "many") as (clients, served):
            assert sum(served) <= 26
            admin.alter_broker({"max.connection.creation.rate": "1000000"})
            for client, is_served in zip(clients, served, strict=True):
                client.socket.settimeout(30)
                assert is_served or client.receive_response(METADATA, 12) is not None
    finally:
        admin.alter_broker({"max.connection.creation.rate": None})


@contextmanager
def _many_clients(server, name):
    """Forty that have asked, one after another, and which of them are served a second later."""
    clients = []
    try:
        for _ in range(40):
            clients.append(Asker(server, name))
            clients[-1].socket.settimeout(0.02)
            clients[-1].send_request(METADATA, 12, MetadataRequest())
        time.sleep(1)
        yield clients, [_is_served(client) for client in clients]
    finally:
        for client in clients:
            client.close()


def _is_served(client):
    try:
        return client.receive_response(METADATA, 12) is not None
    except (TimeoutError, AssertionError, ConnectionResetError):
        return False


REFUSED = [
    ({"user": "a"}, {"unknown": 1.0}),
    ({"user": "a"}, {"producer_byte_rate": 0.0, "consumer_byte_rate": 1.0}),
    ({"user": "a"}, {"producer_byte_rate": -1.0}),
    ({"user": "a"}, {"producer_byte_rate": 1.5}),
    ({"user": "a"}, {"connection_creation_rate": 1.0}),
    ({"ip": "127.0.0.9"}, {"producer_byte_rate": 1.0}),
    ({"ip": "127.0.0.9"}, {"connection_creation_rate": 2.0**40}),
    ({"ip": "no address at all"}, {"connection_creation_rate": 1.0}),
    ({"ip": "127.0.0.9", "user": "a"}, {"connection_creation_rate": 1.0}),
    ({"group": "a"}, {"producer_byte_rate": 1.0}),
    ({"user": ""}, {"producer_byte_rate": 1.0}),
    ({}, {"producer_byte_rate": 1.0}),
]

FILTERS = [
    (),
    (("user", 0, "ann"),),
    (("user", 1, None),),
    (("user", 2, None),),
    (("client-id", 2, None),),
    (("user", 2, None), ("client-id", 2, None)),
    (("ip", 2, None),),
    (("ip", 0, "127.0.0.8"),),
    (("ip", 2, None), ("user", 2, None)),
    (("user", 0, None),),
    (("user", 1, "ann"),),
    (("user", 7, None),),
    (("group", 2, None),),
    (("", 2, None),),
    (("user", 2, None), ("user", 1, None)),
]

STORED = [
    ({"user": "ann"}, {"producer_byte_rate": 1e6, "request_percentage": 12.5}),
    ({"user": None}, {"consumer_byte_rate": 1e7}),
    ({"user": "ann", "client-id": "c/1"}, {"controller_mutation_rate": 0.5}),
    ({"user": None, "client-id": None}, {"producer_byte_rate": 1e9}),
    ({"client-id": "ü ~"}, {"request_percentage": 200}),
    ({"client-id": None}, {"request_percentage": 1e8}),
    ({"ip": "127.0.0.8"}, {"connection_creation_rate": 1e6}),
    ({"ip": None}, {"connection_creation_rate": 1e6}),
]


def described(admin):
    """Return what a broker answers to all filters, with some quotas stored; they are removed."""
    for entity, quotas in STORED:
        assert admin.set_quota(entity, **quotas) == 0
    answers = [
        admin.quotas(*components, strict=strict)
        for components in FILTERS
        for strict in (False, True)
    ]
    for entity, quotas in STORED:
        assert admin.set_quota(entity, **dict.fromkeys(quotas)) == 0
    return answers


SCENARIOS = [
    produced_bytes,
    fetched_bytes,
    shared_by_level,
    mutations_are_refused,
    mutations_of_old_clients_are_let_through,
]

TIMED = [
    time_of_requests,
    longer_of_two_waits,
    muted_connections,
    muted_without_an_answer,
    connections_of_an_address,
    connections_of_a_broker,
]
"""By real time."""
