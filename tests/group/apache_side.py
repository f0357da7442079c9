"""Two coordinators, Apache Kafka's and this one, that are asked the same."""

from contextlib import contextmanager

from compat_tests.apache_kafka import KAFKA_4, ApacheBroker, run_tool
from kafkalite.coordinator.records import TransactionMarker, decode_batch
from kafkalite.group.records import GroupRecordCodec
from kafkalite.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkalite.wire.messages.find_coordinator import FindCoordinatorRequest
from kafkalite.wire.messages.list_groups import ListGroupsRequest
from kafkalite.wire.records import iterate_batches
from tests.group.transactional import Committer
from tests.oracle import Asked
from tests.server.broker_process import BrokerProcess

LOG = "__consumer_offsets-0/00000000000000000000.log"


class BrokerSide(Asked):
    """One of the two brokers. `wait_topics` is up to each kind of group."""

    def __init__(self, broker):
        super().__init__(broker)
        self.probes = 0

    def prepare(self):
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["x"])
        self.wait_for("FIND_COORDINATOR", 4, request, lambda a: not a.coordinators[0].error_code)
        self.wait_for("LIST_GROUPS", 4, ListGroupsRequest(), lambda a: not a.error_code)
        self.committer = Committer(self.client)

    def create(self, topics):
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=count, replication_factor=1)
                for name, count in topics.items()
            ],
            timeout_ms=10_000,
        )
        self.ask("CREATE_TOPICS", 5, request)
        self.wait_topics(topics)


@contextmanager
def both_brokers(folder, settings):
    """Run Apache Kafka and kafkalite with the same settings; their data are below `folder`."""
    named = {name.replace(".", "_"): value for name, value in settings.items()}
    ours = BrokerProcess(folder / "ours", **named)
    with ApacheBroker(config=settings, data_dir=folder / "apaches") as apache:
        ours.start()
        try:
            yield apache, ours, folder
        finally:
            ours.kill()


@contextmanager
def both_sides(brokers, side):
    """Connect to both brokers, whose coordinators are there then."""
    made = [side(broker) for broker in brokers[:2]]
    for each in made:
        each.prepare()
    yield made
    for each in made:
        each.client.close()


def check_that_apache_reads(folder, numbers):
    """`kafka-dump-log` reads our records, among which are keys of all these versions."""
    files = ["--print-data-log", "--files", str(folder / "ours" / LOG)]
    dumped = run_tool(KAFKA_4, "kafka-dump-log", "--offsets-decoder", *files).stdout
    for number in numbers:
        assert f'"type":"{number}"' in dumped
    assert "UNKNOWN" not in dumped
    assert "Failed to decode" not in dumped


def kinds_that_apache_wrote(folder):
    """Read Apache's records with our codec; return the names of their keys."""
    codec = GroupRecordCodec()
    kinds = set()
    data = memoryview((folder / "apaches" / LOG).read_bytes())
    for position, header in iterate_batches(data):
        for record in decode_batch(data[position : position + header.size], codec):
            if isinstance(record, TransactionMarker):
                continue
            kinds.add(type(record.key).__name__)
            key, value = codec.encode(record)
            assert codec.decode(key, value) is not None
    return kinds
