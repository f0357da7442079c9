"""TxnOffsetCommit: offsets that count when a transaction commits (rules 119, 120, 122, 123)."""

import pytest

from kafkalite.txn.states import TransactionState
from kafkalite.types import TRANSACTION_STATE_TOPIC
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.api.test_transactions import add_offsets, init, state
from tests.txn.clients import (
    GENERATIONS,
    JAVA_3,
    JAVA_4,
    OLD,
    Producer,
    committed_offset,
    offsets_partition,
)
from tests.txn.inprocess import InProcessBroker

OK = ErrorCode.NONE
GROUP = "g"
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


@pytest.fixture
def broker():
    return InProcessBroker()


def commit(broker, version, producer, offsets, **fields):
    request = TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id=fields.pop("group", GROUP),
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=""
                    )
                ],
            )
            for (topic, index), offset in offsets.items()
        ],
        **fields,
    )
    answer = broker.ask("TXN_OFFSET_COMMIT", version, request)
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(6))
def test_every_version(broker, version):
    """Rule 119."""
    init(broker)
    if version < 5:
        add_offsets(broker, 4, (1000, 0))
    assert commit(broker, version, (1000, 0), {("in", 0): 5}) == {("in", 0): OK}
    assert state(broker) is TransactionState.ONGOING


@pytest.mark.parametrize("generation", GENERATIONS)
class TestVisibility:
    """Rules 119, 120."""

    def test_pending_until_the_transaction_commits(self, broker, generation):
        producer = Producer(broker, generation=generation).init()
        producer.commit_offsets(GROUP, {("in", 0): 5})
        assert committed_offset(broker, GROUP, "in", stable=False) == -1
        assert committed_offset(broker, GROUP, "in") is UNSTABLE
        producer.commit()
        assert committed_offset(broker, GROUP, "in") == 5

    def test_gone_when_it_aborts(self, broker, generation):
        producer = Producer(broker, generation=generation).init()
        producer.commit_offsets(GROUP, {("in", 0): 5})
        producer.commit()
        producer.commit_offsets(GROUP, {("in", 0): 9})
        assert committed_offset(broker, GROUP, "in", stable=False) == 5
        producer.abort()
        assert committed_offset(broker, GROUP, "in") == 5

    def test_gone_when_it_times_out(self, broker, generation):
        producer = Producer(broker, generation=generation, timeout_ms=5000).init()
        producer.commit_offsets(GROUP, {("in", 0): 5})
        broker.advance(5000)
        assert committed_offset(broker, GROUP, "in") == -1
        partition = offsets_partition(broker, GROUP)
        assert partition.last_stable_offset == partition.high_watermark

    def test_pending_over_a_restart(self, broker, generation):
        producer = Producer(broker, generation=generation).init()
        producer.commit_offsets(GROUP, {("in", 0): 5})
        broker = producer.broker = broker.crashed()
        assert committed_offset(broker, GROUP, "in") is UNSTABLE
        producer.commit()
        assert committed_offset(broker, GROUP, "in") == 5

    def test_the_later_of_two_transactions_wins(self, broker, generation):
        """Of two records the later one counts, as it would after compaction."""
        first = Producer(broker, "tx", generation).init()
        second = Producer(broker, "ty", generation).init()
        first.commit_offsets(GROUP, {("in", 0): 1})
        second.commit_offsets(GROUP, {("in", 0): 2})
        second.commit()
        first.commit()
        assert committed_offset(broker, GROUP, "in") == 2


class TestVerification:
    @pytest.mark.parametrize(
        ("version", "code"),
        [
            (0, ErrorCode.INVALID_TXN_STATE),
            (3, ErrorCode.INVALID_TXN_STATE),
            (4, ErrorCode.TRANSACTION_ABORTABLE),
        ],
    )
    def test_group_that_was_not_added_is_refused(self, broker, version, code):
        """Rules 113, 123."""
        init(broker)
        assert commit(broker, version, (1000, 0), {("in", 0): 5}) == {("in", 0): code}
        assert offsets_partition(broker, GROUP).log_end_offset == 0

    def test_committing_adds_the_group(self, broker):
        """Rule 122."""
        init(broker)
        assert commit(broker, 5, (1000, 0), {("in", 0): 5}) == {("in", 0): OK}

    @pytest.mark.parametrize("version", range(6))
    def test_zombie_is_fenced(self, broker, version):
        init(broker)
        add_offsets(broker, 4, (1000, 0))
        init(broker)
        init(broker)
        code = commit(broker, version, (1000, 0), {("in", 0): 5})["in", 0]
        assert code is ErrorCode.INVALID_PRODUCER_EPOCH

    def test_zombie_is_fenced_by_the_log_too(self, broker):
        """Its partition has records of a later epoch."""
        zombie = Producer(broker, generation=JAVA_3).init()
        zombie.commit_offsets(GROUP, {("in", 0): 1})
        successor = Producer(broker, generation=JAVA_3).init()
        successor.commit_offsets(GROUP, {("in", 0): 2})
        codes = zombie.write_offsets(GROUP, {("in", 0): 3})
        assert codes == {("in", 0): ErrorCode.INVALID_PRODUCER_EPOCH}
        successor.commit()
        assert committed_offset(broker, GROUP, "in") == 2

    @pytest.mark.parametrize(
        ("version", "code"),
        [
            (1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (2, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
            (5, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ],
    )
    def test_loading_coordinator_is_told_in_words_that_the_client_knows(
        self, broker, version, code
    ):
        """Rule 121."""
        init(broker)
        for index in (0, 1):
            partition = broker.partition(TRANSACTION_STATE_TOPIC, index)
            broker.replicas.all[partition.topic_partition] = type(partition)(
                partition.log, leader_epoch=1
            )
        broker._lead()
        assert commit(broker, version, (1000, 0), {("in", 0): 5}) == {("in", 0): code}

    def test_transactions_coordinator_elsewhere_is_said(self, broker):
        init(broker)
        broker.runtime.set_leaderships(TRANSACTION_STATE_TOPIC, 2, {})
        codes = commit(broker, 5, (1000, 0), {("in", 0): 5})
        assert codes == {("in", 0): ErrorCode.NOT_COORDINATOR}


class TestGroup:
    def test_member_is_checked(self, broker):
        """Rule 119 (KIP-447)."""
        init(broker)
        codes = commit(broker, 5, (1000, 0), {("in", 0): 5}, generation_id=3, member_id="m")
        assert codes == {("in", 0): ErrorCode.ILLEGAL_GENERATION}

    def test_group_that_does_not_exist_is_made(self, broker):
        """Who commits without being a member has a group all the same (rule 157)."""
        init(broker)
        assert commit(broker, 5, (1000, 0), {("in", 0): 5}, group="new") == {("in", 0): OK}

    def test_empty_group_is_refused(self, broker):
        init(broker)
        codes = commit(broker, 5, (1000, 0), {("in", 0): 5}, group="")
        assert codes == {("in", 0): ErrorCode.INVALID_GROUP_ID}

    @pytest.mark.parametrize("version", [3, 5])
    def test_partitions_that_do_not_exist_fail_alone(self, broker, version):
        """Rule 147."""
        init(broker)
        add_offsets(broker, 4, (1000, 0))
        wanted = {("none", 0): 1, ("out", 0): 2, ("in", 0): 3}
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert commit(broker, version, (1000, 0), wanted) == {
            ("none", 0): unknown,
            ("out", 0): OK,
            ("in", 0): OK,
        }
        assert commit(broker, version, (1000, 0), {("none", 0): 1}) == {("none", 0): unknown}

    def test_known_and_unknown_partitions_of_one_topic(self, broker):
        init(broker)
        request = TxnOffsetCommitRequest(
            transactional_id="tx",
            group_id=GROUP,
            producer_id=1000,
            producer_epoch=0,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name="out",
                    partitions=[
                        TxnOffsetCommitRequestPartition(partition_index=i, committed_offset=1)
                        for i in (0, 7)
                    ],
                )
            ],
        )
        answer = broker.ask("TXN_OFFSET_COMMIT", 5, request)
        (topic,) = answer.topics
        assert [(p.partition_index, p.error_code) for p in topic.partitions] == [
            (0, OK),
            (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]


@pytest.mark.parametrize("generation", [OLD, JAVA_4])
def test_offsets_and_records_count_together(broker, generation):
    """Consume, transform, produce."""
    producer = Producer(broker, generation=generation).init()
    for step in range(1, 5):
        producer.send("out", 0, f"v{step}")
        producer.commit_offsets(GROUP, {("in", 0): step})
        producer.end(commit=step % 2 == 1)
    assert committed_offset(broker, GROUP, "in") == 3
