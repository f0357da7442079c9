"""Delivery of markers: at once, again and again, and no more than needed (rules 110-112)."""

import pytest

from kafkalite.deferred import Promise
from kafkalite.txn.events import EndTransaction
from kafkalite.txn.marker_writer import Marker
from kafkalite.txn.markers import RETRY_MS
from kafkalite.txn.states import TransactionState
from kafkalite.txn.transactions import V1, V2, ProducerIdentity
from kafkalite.types import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.records import read_batch_header, read_end_marker
from tests.api.test_transactions import state
from tests.txn.clients import (
    GENERATIONS,
    JAVA_3,
    JAVA_4,
    Producer,
    committed_offset,
    consume,
    is_stable,
    offsets_partition,
)
from tests.txn.inprocess import InProcessBroker


@pytest.fixture
def broker():
    return InProcessBroker()


def markers_of(broker, topic, index=0):
    """(producer id, epoch, commits?, coordinator epoch) of each marker in a log."""
    found = []
    for batch in broker.partition(topic, index).read_batches(0):
        header = read_batch_header(batch)
        if header.is_control:
            marker = read_end_marker(batch)
            found.append(
                (
                    header.producer_id,
                    header.producer_epoch,
                    marker.is_commit,
                    marker.coordinator_epoch,
                )
            )
    return found


class TestAtOnce:
    @pytest.mark.parametrize("generation", GENERATIONS)
    def test_every_partition_has_its_marker_when_end_txn_is_answered(self, broker, generation):
        producer = Producer(broker, generation=generation).init()
        producer.send("out", 0, "a")
        producer.send("out", 1, "b")
        producer.commit_offsets("g", {("in", 0): 5})
        producer.commit()
        epoch = 1 if producer.is_second else 0
        for place in (("out", 0), ("out", 1), offsets_partition(broker, "g").topic_partition):
            assert markers_of(broker, *place) == [(1000, epoch, True, 0)]
        assert broker.transactions.unfinished() == 0

    def test_marker_names_the_epoch_of_its_coordinator(self, broker):
        """Rule 112: the leader epoch of the partition of `__transaction_state`."""
        producer = Producer(broker).init()
        producer.send("out", 0, "a")
        broker = producer.broker = broker.crashed()
        producer.abort()
        assert markers_of(broker, "out") == [(1000, 1, False, 1)]

    def test_partition_without_records_has_one_too(self, broker):
        """It was added: a write that is under way must not come after the end."""
        producer = Producer(broker, generation=JAVA_3).init()
        producer.add("out", 1)
        producer.commit()
        assert markers_of(broker, "out", 1) == [(1000, 0, True, 0)]


class TestAgain:
    def test_partition_that_refuses_is_asked_again(self, broker):
        producer = Producer(broker).init()
        producer.send("out", 0, "a")
        producer.send("out", 1, "b")
        broker.disk.fail("append", "out-0", times=3)
        producer.end_once(commit=True)
        assert broker.transactions.unfinished() == 1
        broker.settle(for_ms=RETRY_MS)
        assert state(broker) is TransactionState.PREPARE_COMMIT
        broker.settle(for_ms=3 * RETRY_MS)
        assert state(broker) is TransactionState.COMPLETE_COMMIT
        assert markers_of(broker, "out", 1) == [(1000, 1, True, 0)]
        assert consume(broker, "out") == ["a"]

    def test_group_that_is_not_ready_is_asked_again(self, broker):
        producer = Producer(broker).init()
        producer.commit_offsets("g", {("in", 0): 5})
        led = broker.replicas.partitions_of(CONSUMER_OFFSETS_TOPIC)
        broker.runtime.set_leaderships(CONSUMER_OFFSETS_TOPIC, 2, {})
        producer.end_once(commit=True)
        assert broker.transactions.unfinished() == 1
        broker.runtime.set_leaderships(CONSUMER_OFFSETS_TOPIC, 2, led)
        broker.settle(for_ms=3 * RETRY_MS)
        assert broker.transactions.unfinished() == 0
        assert committed_offset(broker, "g", "in") == 5

    @pytest.mark.parametrize("reason", ["timeout", "new producer"])
    def test_abort_by_the_coordinator_is_delivered_too(self, broker, reason):
        producer = Producer(broker, timeout_ms=5000).init()
        producer.send("out", 0, "a")
        if reason == "timeout":
            broker.advance(5000)
        else:
            Producer(broker).init()
        assert markers_of(broker, "out") == [(1000, 1, False, 0)]
        assert is_stable(broker, "out")

    def test_what_is_sent_again_takes_the_place_of_what_was_sent(self, broker):
        """A coordinator whose log was lost for a moment finds the transaction prepared."""
        producer = Producer(broker).init()
        producer.send("out", 0, "a")
        broker.disk.fail("append", "out-0", times=1)
        producer.end_once(commit=True)
        led = {
            index: type(partition)(partition.log, leader_epoch=1)
            for index, partition in broker.replicas.partitions_of(TRANSACTION_STATE_TOPIC).items()
        }
        for index, partition in led.items():
            broker.replicas.all[TopicPartition(TRANSACTION_STATE_TOPIC, index)] = partition
        broker.runtime.set_leaderships(TRANSACTION_STATE_TOPIC, 2, led)
        broker.settle(for_ms=3 * RETRY_MS)
        assert markers_of(broker, "out") == [(1000, 1, True, 1)]
        assert broker.transactions.unfinished() == 0


class TestNoMoreThanNeeded:
    def test_markers_that_are_there_are_not_written_again(self, broker):
        producer = Producer(broker, generation=JAVA_3).init()
        producer.send("out", 0, "a")
        producer.send("out", 1, "b")
        broker.disk.fail("append", "out-1", times=1)
        producer.end_once(commit=True)
        broker = broker.crashed()
        assert markers_of(broker, "out", 0) == [(1000, 0, True, 0)]
        assert markers_of(broker, "out", 1) == [(1000, 0, True, 1)]

    @pytest.mark.parametrize("topics", [("out",), ("out", "in")])
    def test_deleted_topics_need_none(self, broker, topics):
        producer = Producer(broker).init()
        producer.send("out", 0, "a")
        producer.send("in", 0, "b")
        for topic in topics:
            broker.delete(topic)
        producer.end_once(commit=True)
        assert broker.transactions.unfinished() == 0
        assert state(broker) is TransactionState.COMPLETE_COMMIT

    def test_topic_that_is_deleted_while_its_marker_waits_needs_none(self, broker):
        producer = Producer(broker).init()
        producer.send("out", 0, "a")
        broker.disk.fail("append", "out-0")
        producer.end_once(commit=True)
        broker.delete("out")
        broker.settle(for_ms=2 * RETRY_MS)
        assert broker.transactions.unfinished() == 0

    def test_partition_that_is_not_here_yet_is_waited_for(self, broker):
        """It exists, and its log is being opened."""
        producer = Producer(broker).init()
        producer.send("out", 0, "a")
        partition = broker.replicas.all.pop(("out", 0))
        producer.end_once(commit=True)
        broker.settle(for_ms=2 * RETRY_MS)
        assert broker.transactions.unfinished() == 1
        broker.replicas.all[TopicPartition("out", 0)] = partition
        broker.settle(for_ms=2 * RETRY_MS)
        assert broker.transactions.unfinished() == 0

    def test_partition_that_is_further_on_needs_none(self, broker):
        """Somebody ended the transaction there by hand, and the producer came back."""
        producer = Producer(broker, generation=JAVA_3).init()
        producer.send("out", 0, "a")
        later = Marker(ProducerIdentity(1000, 9), 0, False, V1)
        broker.transactions.markers.write(TopicPartition("out", 0), later)
        assert producer.end_once(commit=True) is ErrorCode.NONE
        assert state(broker) is TransactionState.COMPLETE_COMMIT

    def test_coordinator_that_was_deposed_stops(self, broker):
        """Rule 112: a partition knows a later coordinator, which sends the markers itself."""
        producer = Producer(broker, generation=JAVA_3).init()
        producer.send("out", 0, "a")
        place = TopicPartition("out", 0)
        broker.transactions.markers.write(place, Marker(producer.identity, 9, True, V1))
        producer.write("out", 0, "b")
        assert producer.end_once(commit=True) is ErrorCode.NONE
        assert broker.transactions.unfinished() == 0
        assert state(broker) is TransactionState.PREPARE_COMMIT

    def test_coordinator_that_is_gone_stops(self, broker):
        producer = Producer(broker).init()
        producer.send("out", 0, "a")
        broker.disk.fail("append", "out-0", times=1)
        producer.end_once(commit=True)
        broker.runtime.set_leaderships(TRANSACTION_STATE_TOPIC, 2, {})
        broker.settle(for_ms=3 * RETRY_MS)
        assert broker.transactions.unfinished() == 0

    def test_partition_of_the_coordinator_that_is_gone_stops_it_too(self, broker):
        producer = Producer(broker).init()
        producer.send("out", 0, "a")
        broker.disk.fail("append", "out-0")
        producer.end_once(commit=True)
        for index in (0, 1):
            del broker.replicas.all[TRANSACTION_STATE_TOPIC, index]
        broker.settle(for_ms=2 * RETRY_MS)
        assert broker.transactions.unfinished() == 0


class TestReplication:
    """With replicas: a marker counts when it is replicated."""

    @pytest.fixture
    def held(self, broker, monkeypatch):
        held = {}

        def high_watermark(self):
            end = self.log.log_end_offset
            return min(end, held.get(self.topic_partition, end))

        monkeypatch.setattr(
            type(broker.partition("out", 0)), "high_watermark", property(high_watermark)
        )
        return held

    def test_transaction_is_complete_when_its_markers_are_replicated(self, broker, held):
        producer = Producer(broker).init()
        producer.send("out", 0, "a")
        place = TopicPartition("out", 0)
        held[place] = 1
        assert producer.end_once(commit=True) is ErrorCode.NONE
        assert state(broker) is TransactionState.PREPARE_COMMIT
        broker.settle(for_ms=RETRY_MS)
        assert broker.transactions.unfinished() == 1
        held.clear()
        broker.partition("out", 0).wake_all()
        broker.settle(for_ms=RETRY_MS)
        assert broker.transactions.unfinished() == 0
        assert markers_of(broker, "out") == [(1000, 1, True, 0)]
        assert broker.partition("out", 0)._watchers == {}

    def test_partition_that_goes_away_meanwhile_is_done(self, broker, held):
        producer = Producer(broker).init()
        producer.send("out", 0, "a")
        held[TopicPartition("out", 0)] = 1
        producer.end_once(commit=True)
        broker.delete("out")
        broker.settle(for_ms=2 * RETRY_MS)
        assert broker.transactions.unfinished() == 0

    @pytest.mark.parametrize("generation", [JAVA_3, JAVA_4])
    def test_decision_is_carried_out_when_it_is_replicated(self, broker, held, generation):
        """Rule 109: a decision that may yet be lost must not be told to the partitions."""
        producer = Producer(broker, generation=generation).init()
        producer.send("out", 0, "a")
        for index in (0, 1):
            log = broker.partition(TRANSACTION_STATE_TOPIC, index)
            held[log.topic_partition] = log.log_end_offset
        version = V2 if producer.is_second else V1
        identity = ProducerIdentity(*producer.identity)
        answer = broker.transactions.ask("tx", EndTransaction("tx", identity, True, version))
        assert isinstance(answer, Promise)
        assert markers_of(broker, "out") == []
        held.clear()
        for index in (0, 1):
            broker.partition(TRANSACTION_STATE_TOPIC, index).wake_all()
        broker.settle(for_ms=RETRY_MS)
        assert len(markers_of(broker, "out")) == 1
