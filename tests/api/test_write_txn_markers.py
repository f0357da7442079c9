"""WriteTxnMarkers: ends of transactions that come from elsewhere (rules 110-112)."""

import pytest

from kafkalite.api.write_txn_markers import HANDLERS
from kafkalite.isr.partition import Partition
from kafkalite.txn.transactions import V1, V2
from kafkalite.types import CONSUMER_OFFSETS_TOPIC
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.txn.clients import (
    JAVA_3,
    JAVA_4,
    Producer,
    committed_offset,
    consume,
    is_stable,
    offsets_partition,
)
from tests.txn.inprocess import InProcessBroker

OK = ErrorCode.NONE


@pytest.fixture
def broker():
    return InProcessBroker()


def mark(producer, partitions, *, commit=True, coordinator_epoch=0, protocol=V1):
    topics = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1],
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        transaction_version=protocol,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in topics.items()
        ],
    )


def write(broker, *markers, version=2, how="ask"):
    """Return the codes by producer id and partition."""
    request = WriteTxnMarkersRequest(markers=[*markers])
    answer = getattr(broker, how)("WRITE_TXN_MARKERS", version, request)
    return {
        (marker.producer_id, topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for marker in answer.markers
        for topic in marker.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_marker_ends_the_transaction_on_its_partitions(broker, version, commit):
    """Rule 111. So `kafka-transactions abort` ends what nobody else does."""
    producer = Producer(broker, generation=JAVA_3).init()
    producer.send("out", 0, "a")
    producer.send("out", 1, "b")
    marker = mark(producer.identity, [("out", 0), ("out", 1)], commit=commit)
    assert write(broker, marker, version=version) == {
        (1000, "out", 0): OK,
        (1000, "out", 1): OK,
    }
    assert is_stable(broker, "out", 0)
    assert consume(broker, "out", 0) == (["a"] if commit else [])
    assert broker.partition("out", 0).log_end_offset == 2


def test_several_transactions_at_once(broker):
    producers = [Producer(broker, name).init() for name in ("tx", "ty")]
    for producer in producers:
        producer.send("out", 0, producer.transactional_id)
    markers = [
        mark(producer.identity, [("out", 0)], commit=producer is producers[1])
        for producer in producers
    ]
    assert set(write(broker, *markers).values()) == {OK}
    assert consume(broker, "out", 0) == ["ty"]


def test_offsets_of_a_group_become_visible(broker):
    """Rule 119: the group's coordinator replays the marker."""
    producer = Producer(broker, generation=JAVA_3).init()
    producer.commit_offsets("g", {("in", 0): 5})
    offsets = offsets_partition(broker, "g").topic_partition
    assert set(write(broker, mark(producer.identity, [offsets])).values()) == {OK}
    assert committed_offset(broker, "g", "in") == 5


class TestRefusals:
    def test_partition_that_is_not_here(self, broker):
        codes = write(broker, mark((5, 0), [("none", 0), ("out", 9), ("out", 0)]))
        assert codes == {
            (5, "none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            (5, "out", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            (5, "out", 0): OK,
        }

    def test_coordinator_of_before(self, broker):
        """Rule 112."""
        producer = Producer(broker, generation=JAVA_3).init()
        producer.send("out", 0, "a")
        write(broker, mark(producer.identity, [("out", 0)], coordinator_epoch=7))
        producer.write("out", 0, "b")
        stale = mark(producer.identity, [("out", 0)], coordinator_epoch=6)
        fenced = {(1000, "out", 0): ErrorCode.TRANSACTION_COORDINATOR_FENCED}
        assert write(broker, stale) == fenced
        assert not is_stable(broker, "out", 0)

    def test_producer_epoch_of_before(self, broker):
        """Rule 112."""
        Producer(broker, generation=JAVA_3).init()
        producer = Producer(broker, generation=JAVA_3).init()
        producer.send("out", 0, "a")
        codes = write(broker, mark((1000, 0), [("out", 0)]))
        assert codes == {(1000, "out", 0): ErrorCode.INVALID_PRODUCER_EPOCH}
        assert not is_stable(broker, "out", 0)

    def test_coordinator_of_the_group_is_not_ready(self, broker):
        """Who sends markers expects what a leader says."""
        broker.runtime.set_leaderships(CONSUMER_OFFSETS_TOPIC, 2, {})
        codes = write(broker, mark((5, 0), [(CONSUMER_OFFSETS_TOPIC, 0)]))
        assert codes == {(5, CONSUMER_OFFSETS_TOPIC, 0): ErrorCode.NOT_LEADER_OR_FOLLOWER}


class TestSecondProtocol:
    """KIP-1228: a marker has the epoch after that of its records."""

    def test_late_marker_does_not_end_the_next_transaction(self, broker):
        producer = Producer(broker, generation=JAVA_4).init()
        producer.send("out", 0, "a")
        producer.commit()
        producer.send("out", 0, "b")
        late = mark(producer.identity, [("out", 0)], protocol=V2)
        codes = write(broker, late)
        assert codes == {(1000, "out", 0): ErrorCode.INVALID_PRODUCER_EPOCH}
        producer.abort()
        assert consume(broker, "out", 0) == ["a"]

    def test_marker_that_comes_twice_is_no_error(self, broker):
        producer = Producer(broker, generation=JAVA_4).init()
        producer.send("out", 0, "a")
        producer.commit()
        again = mark(producer.identity, [("out", 0)], protocol=V2)
        assert write(broker, again) == {(1000, "out", 0): OK}

    def test_last_epoch_of_all_may_be_that_of_the_records(self, broker):
        """The coordinator's own, when it fences a producer that had the last epoch."""
        marker = mark((5, 2**15 - 1), [("out", 0)], protocol=V2)
        assert write(broker, marker, marker) == {(5, "out", 0): OK}


class TestReplication:
    def defer(self, broker, monkeypatch):
        monkeypatch.setattr(
            type(broker.partition("out", 0)), "high_watermark", property(lambda self: 0)
        )

    def test_answer_waits_for_the_replicas(self, broker, monkeypatch):
        self.defer(broker, monkeypatch)
        codes = write(broker, mark((5, 0), [("out", 0)]), how="wait")
        assert codes == {(5, "out", 0): ErrorCode.REQUEST_TIMED_OUT}

    def test_partition_that_leaves_the_broker_holds_up_no_others(self, broker, monkeypatch):
        """Who sends markers looks for the new leader at once."""
        self.defer(broker, monkeypatch)
        watch = Partition.watch

        def leave(partition, watcher):
            watch(partition, watcher)
            del broker.replicas.all["out", 0]
            partition.close()

        monkeypatch.setattr(Partition, "watch", leave)
        codes = write(broker, mark((5, 0), [("out", 0)]), how="wait")
        assert codes == {(5, "out", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER}

    def test_nobody_is_left_watching(self, broker, monkeypatch):
        before = dict(broker.partition("out", 0)._watchers)
        self.defer(broker, monkeypatch)
        write(broker, mark((5, 0), [("out", 0)]), how="wait")
        assert broker.partition("out", 0)._watchers == before


def test_request_that_cannot_be_handled_fails_every_partition(broker):
    request = WriteTxnMarkersRequest(markers=[mark((5, 0), [("out", 0), ("out", 1)])])
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    answer = HANDLERS[0].refuse(request, error, broker.context)
    codes = [p.error_code for p in answer.markers[0].topics[0].partitions]
    assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
