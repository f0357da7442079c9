"""Apache Kafka's coordinator and this one, asked the same: random scripts, answers side by side.

Scripts are made of requests in all versions, by producers with right, stale and made-up
identities. Producer ids are compared by the order in which they first appear. Apache's broker
writes markers behind its answer, so it is waited for after each request that ends a transaction:
what a coordinator says meanwhile is in test_states.
"""

import random
import time

import pytest

from compat_tests.apache_kafka import ApacheBroker
from kafkalite.types import CONSUMER_OFFSETS_TOPIC
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkalite.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkalite.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkalite.wire.messages.describe_transactions import DescribeTransactionsRequest
from kafkalite.wire.messages.end_txn import EndTxnRequest
from kafkalite.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkalite.wire.messages.find_coordinator import FindCoordinatorRequest
from kafkalite.wire.messages.init_producer_id import InitProducerIdRequest
from kafkalite.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkalite.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafkalite.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkalite.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkalite.wire.records import iterate_batches
from tests.oracle import Asked
from tests.server.broker_process import BrokerProcess
from tests.txn.clients import batch

pytestmark = [pytest.mark.kafka_dir, pytest.mark.slow]

SCRIPTS = 40
STEPS = 40
PARTITIONS = 2


class Side(Asked):
    """One of the two brokers, and what was learnt from it."""

    def __init__(self, broker):
        super().__init__(broker)
        self.producer_ids = []

    def prepare(self):
        """Wait until the coordinators answer, which have to make their topics first."""
        for kind in (0, 1):
            self.wait_for(
                "FIND_COORDINATOR",
                4,
                FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"]),
                lambda answer: answer.coordinators[0].error_code == 0,
            )

    def begin(self, name):
        """Begin a script with a transactional id, a group and a topic of its own."""
        self.name = name
        topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        self.ask("CREATE_TOPICS", 5, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        for index in range(PARTITIONS):
            self.wait_for(
                "LIST_OFFSETS", 5, self.latest(index), lambda answer: not end_of(answer).error_code
            )
        self.given = []
        self.wait_for(
            "FIND_COORDINATOR",
            4,
            FindCoordinatorRequest(key_type=1, coordinator_keys=[name]),
            lambda answer: answer.coordinators[0].error_code == 0,
        )
        self.wait_for(
            "INIT_PRODUCER_ID",
            5,
            InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000),
            lambda answer: self.learn(answer) == ErrorCode.NONE,
        )
        self.producer_ids = self.producer_ids[-1:]
        self.given = self.given[-1:]

    def learn(self, answer):
        """Take note of an identity that was given; return the code."""
        if answer.error_code == ErrorCode.NONE and answer.producer_id >= 0:
            if answer.producer_id not in self.producer_ids:
                self.producer_ids.append(answer.producer_id)
            self.given.append((answer.producer_id, answer.producer_epoch))
        return ErrorCode(answer.error_code)

    def identity(self, which, shift):
        """An identity given before (the last is 0), its epoch shifted; None: made up."""
        if which is None:
            return 999_999, max(shift, 0)
        producer_id, epoch = self.given[-1 - which % len(self.given)]
        return producer_id, max(epoch + shift, 0)

    def told(self, identity):
        """An identity as both sides can say it."""
        producer_id, epoch = identity
        known = producer_id in self.producer_ids
        return (self.producer_ids.index(producer_id) if known else producer_id, epoch)

    def settle(self):
        """Wait until no marker is under way; return the state."""
        answer = self.wait_for(
            "DESCRIBE_TRANSACTIONS",
            0,
            DescribeTransactionsRequest(transactional_ids=[self.name]),
            lambda answer: not answer.transaction_states[0].transaction_state.startswith("Prepare"),
        )
        (state,) = answer.transaction_states
        topics = sorted((topic.topic, sorted(topic.partitions)) for topic in state.topics)
        return (
            state.transaction_state,
            self.told((state.producer_id, state.producer_epoch)),
            [p for topic, p in topics if topic != CONSUMER_OFFSETS_TOPIC],
            state.transaction_start_time_ms >= 0,
        )

    # --- Steps; each returns what is to be the same on both sides

    def init(self, version, expected):
        producer_id, epoch = (-1, -1) if expected is None else self.identity(*expected)
        answer = self.ask(
            "INIT_PRODUCER_ID",
            version,
            InitProducerIdRequest(
                transactional_id=self.name,
                transaction_timeout_ms=60_000,
                producer_id=producer_id,
                producer_epoch=epoch,
            ),
        )
        code = self.learn(answer)
        return code, self.told((answer.producer_id, answer.producer_epoch))

    def add(self, version, identity, partitions, verify_only):
        producer_id, epoch = self.identity(*identity)
        topics = [AddPartitionsToTxnTopic(name=self.name, partitions=partitions)]
        answer = self.ask(
            "ADD_PARTITIONS_TO_TXN",
            version,
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=topics,
                transactions=[
                    AddPartitionsToTxnTransaction(
                        transactional_id=self.name,
                        producer_id=producer_id,
                        producer_epoch=epoch,
                        verify_only=verify_only,
                        topics=topics,
                    )
                ],
            ),
        )
        results = (
            answer.results_by_transaction[0].topic_results
            if version >= 4
            else answer.results_by_topic_v3_and_below
        )
        codes = {
            result.partition_index: ErrorCode(result.partition_error_code)
            for result in results[0].results_by_partition
        }
        return sorted(codes.items())

    def write(self, version, identity, partition, sequence):
        producer = self.identity(*identity)
        answer = self.ask(
            "PRODUCE",
            version,
            ProduceRequest(
                transactional_id=self.name,
                acks=-1,
                timeout_ms=10_000,
                topic_data=[
                    TopicProduceData(
                        name=self.name,
                        partition_data=[
                            PartitionProduceData(
                                index=partition,
                                records=batch(
                                    ["v"],
                                    producer,
                                    sequence,
                                    base_timestamp=int(time.time() * 1000),
                                ),
                            )
                        ],
                    )
                ],
            ),
        )
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def add_offsets(self, version, identity):
        producer_id, epoch = self.identity(*identity)
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=self.name,
        )
        return ErrorCode(self.ask("ADD_OFFSETS_TO_TXN", version, request).error_code)

    def commit_offset(self, version, identity, offset):
        producer_id, epoch = self.identity(*identity)
        partition = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=self.name, partitions=[partition])],
        )
        answer = self.ask("TXN_OFFSET_COMMIT", version, request)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def end(self, version, identity, committed):
        producer_id, epoch = self.identity(*identity)
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
        )
        answer = self.ask("END_TXN", version, request)
        code = self.learn(answer)
        return code, self.told((answer.producer_id, answer.producer_epoch))

    # --- What there is at the end

    def offset(self):
        group = OffsetFetchRequestGroup(
            group_id=self.name,
            topics=[OffsetFetchRequestTopics(name=self.name, partition_indexes=[0])],
        )
        answer = self.ask(
            "OFFSET_FETCH", 8, OffsetFetchRequest(groups=[group], require_stable=True)
        )
        (partition,) = answer.groups[0].topics[0].partitions
        return ErrorCode(partition.error_code), partition.committed_offset

    def log(self, index):
        """Everything in a partition that a producer of this script wrote, and where readers are."""
        partition = FetchPartition(partition=index, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            max_bytes=1 << 20,
            isolation_level=1,
            topics=[FetchTopic(topic=self.name, partitions=[partition])],
        )
        (data,) = self.ask("FETCH", 11, request).responses[0].partitions
        batches = [
            (header.base_offset, header.is_control, *self.told_of(header))
            for _, header in iterate_batches(memoryview(bytes(data.records)))
        ]
        aborted = [entry.first_offset for entry in data.aborted_transactions]
        end = end_of(self.ask("LIST_OFFSETS", 5, self.latest(index)))
        return batches, sorted(aborted), data.last_stable_offset, end.offset

    def latest(self, index):
        partition = ListOffsetsPartition(partition_index=index, timestamp=-1)
        topic = ListOffsetsTopic(name=self.name, partitions=[partition])
        return ListOffsetsRequest(isolation_level=0, topics=[topic])

    def told_of(self, header):
        return self.told((header.producer_id, header.producer_epoch))


def end_of(answer):
    """The one partition of a ListOffsets response."""
    return answer.topics[0].partitions[0]


def make_script(rng):
    """A list of (step, arguments), mostly of a producer that does what it should."""
    script = []
    protocol = rng.choice([0, 1, 2])
    for _ in range(STEPS):
        which = rng.choice([0, 0, 0, 0, 0, 0, 0, 1, 2, None])
        shift = rng.choice([0, 0, 0, 0, 0, 0, 0, 0, 1, -1])
        identity = (which, shift)
        if rng.random() < 0.1:
            protocol = rng.choice([0, 1, 2])
        step = rng.choice(
            ["init", "add", "add", "write", "write", "write", "add_offsets", "commit_offset", "end",
             "end"]
        )  # fmt: skip
        if step == "init":
            version = rng.choice([0, 2, 3, 4, 5])
            expected = (
                rng.choice([None, (0, 0), (0, 0), (1, 0), (None, 0)]) if version >= 3 else None
            )
            script.append((step, version, expected))
        elif step == "add":
            version = rng.choice([[0, 1], [2, 3], [4, 5]][protocol])
            partitions = rng.choice([[0], [1], [0, 1], [0, 9]])
            verify_only = version >= 4 and rng.random() < 0.5
            script.append((step, version, identity, partitions, verify_only))
        elif step == "write":
            version = [rng.choice([3, 7, 10]), 11, 12][protocol]
            script.append((step, version, identity, rng.randrange(PARTITIONS), None))
        elif step == "add_offsets":
            script.append((step, [1, 4, 4][protocol], identity))
        elif step == "commit_offset":
            version = [rng.choice([0, 3]), 4, 5][protocol]
            script.append((step, version, identity, rng.randrange(100)))
        else:
            version = [rng.choice([0, 1]), rng.choice([2, 4]), 5][protocol]
            script.append((step, version, identity, rng.random() < 0.6))
    return script


class Sequences:
    """What a producer has to say of its records: from 0 in each epoch."""

    def __init__(self):
        self.next = {}

    def of(self, identity, partition):
        return self.next.setdefault((identity, partition), 0)

    def wrote(self, identity, partition):
        self.next[identity, partition] += 1


def run(sides, script):
    """Run a script on both sides, comparing after each step; return whether it came to its end."""
    sequences = Sequences()
    told = []
    states = [side.settle() for side in sides]
    for step, *arguments in script:
        if step == "write":
            identity = sides[0].told(sides[0].identity(*arguments[1]))
            arguments[3] = sequences.of(identity, arguments[2])
        if (
            step == "init"
            and arguments[1] is not None
            and states[0][0] == "Ongoing"
            and sides[0].told(sides[0].identity(*arguments[1])) != states[0][1]
        ):
            continue  # a stale identity aborts the transaction of its successor on Apache's side
        answers = [getattr(side, step)(*arguments) for side in sides]
        states = [side.settle() for side in sides]
        told.append((step, *arguments, "->", answers[1], states[1]))
        history = "\n".join(map(str, told))
        if step == "write" and answers[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER != answers[1]:
            return False  # Apache remembers what it was asked to verify, also of other epochs
        assert answers[0] == answers[1], f"{history}\nApache says {answers[0]}"
        assert states[0] == states[1], f"{history}\nApache is in {states[0]}"
        if step == "write" and answers[0] is ErrorCode.NONE:
            sequences.wrote(identity, arguments[2])
    return True


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    own = BrokerProcess(tmp_path_factory.mktemp("own"), num_partitions=2)
    with ApacheBroker() as apache, own:
        sides = [Side(apache), Side(own)]
        for side in sides:
            side.prepare()
        yield sides
        for side in sides:
            side.client.close()


def test_same_answers_to_random_scripts(sides):
    completed = 0
    for seed in range(SCRIPTS):
        for side in sides:
            side.begin(f"script-{seed}")
        if not run(sides, make_script(random.Random(seed))):
            continue
        completed += 1
        for side in sides:  # ends what is open
            request = InitProducerIdRequest(
                transactional_id=side.name, transaction_timeout_ms=60_000
            )
            side.wait_for(
                "INIT_PRODUCER_ID",
                5,
                request,
                lambda answer, side=side: side.learn(answer) is ErrorCode.NONE,
            )
        assert sides[0].offset() == sides[1].offset()
        for index in range(PARTITIONS):
            assert sides[0].log(index) == sides[1].log(index), f"seed {seed}, partition {index}"
    assert completed > SCRIPTS * 0.9
