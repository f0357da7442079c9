"""Topics with transactions: what Spark reads of them, and what an audit says."""

import uuid

import pytest
from confluent_kafka import Producer

from kafkalite.pipeline.audit import AuditJob, audit
from spark_tests.streams import values

COMMITTED = {"kafka.isolation.level": "read_committed"}


@pytest.fixture
def transactional(bootstrap):
    """A producer whose transactions a test begins and ends."""
    settings = {"bootstrap.servers": bootstrap, "transactional.id": f"t-{uuid.uuid4().hex[:8]}"}
    producer = Producer(settings)
    producer.init_transactions(60)
    return producer


def send(producer, topic, first, count, *, partitions=1):
    """Begin a transaction and send v<first>… to each partition in turn; it stays open."""
    producer.begin_transaction()
    for number in range(first, first + count):
        producer.produce(topic, f"v{number}", partition=number % partitions)
    assert producer.flush(30) == 0


@pytest.fixture
def topic(topics, transactional):
    """v0 to v29 over three partitions; v10 to v19 are aborted."""
    topic = topics.create(3)
    for first, end in ((0, "commit"), (10, "abort"), (20, "commit")):
        send(transactional, topic, first, 10, partitions=3)
        getattr(transactional, f"{end}_transaction")(30)
    return topic


def test_committed_reads_leave_out_aborted_records(topic, source):
    kept = [f"v{number}" for number in (*range(10), *range(20, 30))]
    assert values(source(subscribe=topic, **COMMITTED)) == kept
    assert source(subscribe=topic).count() == 30


def test_offsets_of_markers_are_passed_over_in_every_split(topic, source):
    rows = source(subscribe=topic, minPartitions="9", **COMMITTED)
    assert rows.count() == 20


def test_stream_stops_at_an_open_transaction_and_goes_on_behind_it(
    topics, transactional, stream_source, streams
):
    topic = topics.create()
    send(transactional, topic, 0, 5)
    transactional.commit_transaction(30)
    rows = stream_source(subscribe=topic, startingOffsets="earliest", **COMMITTED)
    got = streams.collect(rows)
    got.wait_count(5)
    send(transactional, topic, 5, 5)
    topics.fill(topic, 5, first=10)
    got.wait_started()
    assert got.values() == [f"v{number}" for number in range(5)]
    transactional.commit_transaction(30)
    got.wait_count(15)
    assert got.values() == [f"v{number}" for number in range(15)]


def test_aborted_tail_does_not_hold_a_stream_up(topics, transactional, stream_source, streams):
    """The last offsets hold nothing that may be read: Spark must get past them."""
    topic = topics.create()
    topics.fill(topic, 3)
    send(transactional, topic, 3, 4)
    transactional.abort_transaction(30)
    rows = stream_source(subscribe=topic, startingOffsets="earliest", **COMMITTED)
    got = streams.collect(rows)
    got.wait_started()
    topics.fill(topic, 2, first=7)
    got.wait_count(5)
    assert got.values() == ["v0", "v1", "v2", "v7", "v8"]


def test_audit_takes_markers_for_gaps_unless_they_are_allowed(topic, spark, bootstrap):
    def findings(**options):
        job = AuditJob(bootstrap=bootstrap, topics=(topic,), **options)
        audits = audit(spark, job)
        return sum(len(one.findings) for one in audits), sum(one.content.records for one in audits)

    assert findings()[0] > 0
    assert findings(allow_gaps=True) == (0, 30)
    assert findings(allow_gaps=True, committed=True) == (0, 20)
