"""Producers and consumers that speak to an InProcessBroker as real ones do."""

from kafkalite.coordinator.shard import partition_for
from kafkalite.types import CONSUMER_OFFSETS_TOPIC
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkalite.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafkalite.wire.messages.end_txn import EndTxnRequest
from kafkalite.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkalite.wire.messages.init_producer_id import InitProducerIdRequest
from kafkalite.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafkalite.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkalite.wire.records import Record, build_batch, iterate_batches, iterate_records

OLD = "old"
"""librdkafka: the lowest versions (first protocol)."""
JAVA_3 = "java 3.9"
"""The highest versions of the first protocol."""
JAVA_4 = "java 4.3"
"""The second protocol."""
GENERATIONS = (OLD, JAVA_3, JAVA_4)

VERSIONS = {
    "INIT_PRODUCER_ID": {OLD: 1, JAVA_3: 5, JAVA_4: 5},
    "ADD_PARTITIONS_TO_TXN": {OLD: 0, JAVA_3: 3},
    "ADD_OFFSETS_TO_TXN": {OLD: 0, JAVA_3: 4},
    "END_TXN": {OLD: 1, JAVA_3: 4, JAVA_4: 5},
    "TXN_OFFSET_COMMIT": {OLD: 3, JAVA_3: 4, JAVA_4: 5},
    "PRODUCE": {OLD: 7, JAVA_3: 11, JAVA_4: 12},
}

BUSY = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS)


class Refused(Exception):
    def __init__(self, code):
        super().__init__(ErrorCode(code).name)
        self.code = ErrorCode(code)


def batch(values, producer, sequence, *, transactional=True, base_timestamp=1_700_000_000_000):
    records = [
        Record(offset=index, timestamp=base_timestamp, key=None, value=value.encode())
        for index, value in enumerate(values)
    ]
    return build_batch(
        records,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
        transactional=transactional,
    )


class Producer:
    """One incarnation of a transactional producer."""

    def __init__(self, broker, transactional_id="tx", generation=JAVA_4, *, timeout_ms=60_000):
        self.broker = broker
        self.transactional_id = transactional_id
        self.generation = generation
        self.timeout_ms = timeout_ms
        self.identity = (-1, -1)
        self.sequences = {}
        self.added = set()

    @property
    def is_second(self):
        return self.generation == JAVA_4

    def call(self, name, request):
        return self.broker.ask(name, VERSIONS[name][self.generation], request)

    def init(self, *, goes_on=False):
        """InitProducerId until it succeeds."""
        for _ in range(3):
            code = self.init_once(goes_on=goes_on)
            if code not in BUSY:
                break
            self.broker.settle()
        if code:
            raise Refused(code)
        return self

    def init_once(self, *, goes_on=False):
        answer = self.call(
            "INIT_PRODUCER_ID",
            InitProducerIdRequest(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self.timeout_ms,
                producer_id=self.identity[0] if goes_on else -1,
                producer_epoch=self.identity[1] if goes_on else -1,
            ),
        )
        if answer.error_code == ErrorCode.NONE:
            self._go_on_as((answer.producer_id, answer.producer_epoch))
        return ErrorCode(answer.error_code)

    def _go_on_as(self, identity):
        if identity != self.identity:
            self.sequences = {}
        self.identity = identity

    def add(self, topic, index):
        """AddPartitionsToTxn, up to v3."""
        answer = self.call(
            "ADD_PARTITIONS_TO_TXN",
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.identity[0],
                v3_and_below_producer_epoch=self.identity[1],
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[index])],
            ),
        )
        (result,) = answer.results_by_topic_v3_and_below[0].results_by_partition
        code = ErrorCode(result.partition_error_code)
        if code is ErrorCode.NONE:
            self.added.add((topic, index))
        return code

    def write(self, topic, index, *values):
        """Produce without adding the partition; return the code and the offset."""
        sequence = self.sequences.get((topic, index), 0)
        answer = self.call(
            "PRODUCE",
            ProduceRequest(
                transactional_id=self.transactional_id,
                acks=-1,
                timeout_ms=1000,
                topic_data=[
                    TopicProduceData(
                        name=topic,
                        partition_data=[
                            PartitionProduceData(
                                index=index, records=batch(values, self.identity, sequence)
                            )
                        ],
                    )
                ],
            ),
        )
        (result,) = answer.responses[0].partition_responses
        if result.error_code == ErrorCode.NONE:
            self.sequences[topic, index] = sequence + len(values)
        return ErrorCode(result.error_code), result.base_offset

    def send(self, topic, index, *values):
        """Produce as part of the transaction; return the offset."""
        if not self.is_second and (topic, index) not in self.added:
            code = self.add(topic, index)
            if code:
                raise Refused(code)
        code, offset = self.write(topic, index, *values)
        if code:
            raise Refused(code)
        return offset

    def commit_offsets(self, group, offsets, *, member=("", -1)):
        """Make offsets part of the transaction, by (topic, partition)."""
        if not self.is_second:
            code = self.add_offsets(group)
            if code:
                raise Refused(code)
        for code in self.write_offsets(group, offsets, member=member).values():
            if code:
                raise Refused(code)

    def add_offsets(self, group):
        answer = self.call(
            "ADD_OFFSETS_TO_TXN",
            AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.identity[0],
                producer_epoch=self.identity[1],
                group_id=group,
            ),
        )
        return ErrorCode(answer.error_code)

    def write_offsets(self, group, offsets, *, member=("", -1)):
        """TxnOffsetCommit without adding the group."""
        answer = self.call(
            "TXN_OFFSET_COMMIT",
            TxnOffsetCommitRequest(
                transactional_id=self.transactional_id,
                group_id=group,
                producer_id=self.identity[0],
                producer_epoch=self.identity[1],
                member_id=member[0],
                generation_id=member[1],
                topics=[
                    TxnOffsetCommitRequestTopic(
                        name=topic,
                        partitions=[
                            TxnOffsetCommitRequestPartition(
                                partition_index=index,
                                committed_offset=offset,
                                committed_metadata="",
                            )
                        ],
                    )
                    for (topic, index), offset in offsets.items()
                ],
            ),
        )
        return {
            (topic.name, partition.partition_index): ErrorCode(partition.error_code)
            for topic in answer.topics
            for partition in topic.partitions
        }

    def end_once(self, *, commit):
        answer = self.call(
            "END_TXN",
            EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.identity[0],
                producer_epoch=self.identity[1],
                committed=commit,
            ),
        )
        if answer.error_code == ErrorCode.NONE:
            self.added = set()
            if self.is_second:
                self._go_on_as((answer.producer_id, answer.producer_epoch))
        return ErrorCode(answer.error_code)

    def end(self, *, commit):
        for _ in range(3):
            code = self.end_once(commit=commit)
            if code not in BUSY:
                break
            self.broker.settle()
        if code:
            raise Refused(code)

    def commit(self):
        self.end(commit=True)

    def abort(self):
        self.end(commit=False)


def produce(broker, version, partitions, *, transactional_id="tx"):
    """Produce batches by (topic, partition); return the codes."""
    topics = {}
    for (topic, index), records in partitions.items():
        data = PartitionProduceData(index=index, records=records)
        topics.setdefault(topic, []).append(data)
    answer = broker.ask(
        "PRODUCE",
        version,
        ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(name=topic, partition_data=data) for topic, data in topics.items()
            ],
        ),
    )
    return {
        (topic.name, partition.index): ErrorCode(partition.error_code)
        for topic in answer.responses
        for partition in topic.partition_responses
    }


def fetch(broker, topic, index, *, offset=0, committed=True, version=11):
    """Fetch once; return the partition's part of the answer."""
    answer = broker.ask(
        "FETCH",
        version,
        FetchRequest(
            max_wait_ms=0,
            max_bytes=1 << 20,
            isolation_level=int(committed),
            topics=[
                FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchPartition(
                            partition=index, fetch_offset=offset, partition_max_bytes=1 << 20
                        )
                    ],
                )
            ],
        ),
    )
    (data,) = answer.responses[0].partitions
    assert data.error_code == ErrorCode.NONE
    return data


def consume(broker, topic, index=0, *, committed=True):
    """Return the values that a consumer reads, from the beginning to the end."""
    found = []
    offset = 0
    while True:
        data = fetch(broker, topic, index, offset=offset, committed=committed)
        records = memoryview(bytes(data.records or b""))
        if not records:
            return found
        to_come = sorted(data.aborted_transactions or (), key=lambda aborted: aborted.first_offset)
        skipping = set()
        for position, header in iterate_batches(records):
            while to_come and to_come[0].first_offset <= header.last_offset:
                skipping.add(to_come.pop(0).producer_id)
            if header.is_control:
                skipping.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipping):
                whole = records[position : position + header.size]
                found += [record.value.decode() for record in iterate_records(whole)]
            offset = header.next_offset


def is_stable(broker, topic, index=0):
    """Whether readers of committed records reach the end."""
    partition = broker.partition(topic, index)
    return partition.last_stable_offset == partition.high_watermark


def committed_offset(broker, group, topic, index=0, *, stable=True):
    """Return a group's offset, or the code that it is refused with."""
    answer = broker.ask(
        "OFFSET_FETCH",
        8,
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group,
                    topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[index])],
                )
            ],
            require_stable=stable,
        ),
    )
    (partition,) = answer.groups[0].topics[0].partitions
    return ErrorCode(partition.error_code) or partition.committed_offset


def offsets_partition(broker, group):
    """The partition of `__consumer_offsets` that a group's offsets are in."""
    count = broker.topics[CONSUMER_OFFSETS_TOPIC]
    return broker.partition(CONSUMER_OFFSETS_TOPIC, partition_for(group, count))
