"""Who may commit and fetch the offsets of a consumer group (rules 330-333)."""

import pytest

from kafkalite.group.commit import CommitOffsets, CommitOffsetsInTransaction
from kafkalite.group.shard import FetchOffsets
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkalite.wire.messages.offset_fetch import OffsetFetchRequestTopics
from kafkalite.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.group.consumer.harness import ConsumerHarness, topic_id


@pytest.fixture
def harness():
    """Members a and b: a was given partitions 0 to 2 at epoch 2, and has given up 2."""
    harness = ConsumerHarness(topics={"t1": 3})
    harness.beat("a", 0)
    harness.advance(1_100)
    harness.beat("b", 0)
    harness.beat("a", 2)
    harness.beat("a", 2, owned={"t1": [0, 1]})
    harness.beat("b", 3)
    assert harness.epochs() == (3, 3, 3, 3)
    return harness


def commit(harness, member_id, epoch, *indexes, version=10, instance_id=None):
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name="t1",
                topic_id=topic_id("t1"),
                partitions=[
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=7)
                    for index in indexes or (0,)
                ],
            )
        ],
    )
    return code_of(harness, CommitOffsets(request, version))


def code_of(harness, event):
    try:
        harness.ask(event)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


class TestCommit:
    def test_members_commit_at_their_epoch_whatever_they_like(self, harness):
        assert commit(harness, "a", 3, 0, 1, 2) is ErrorCode.NONE

    def test_strangers_do_not(self, harness):
        for member_id, epoch in (("x", 3), ("", -1), ("x", -1)):
            assert commit(harness, member_id, epoch) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_later_epoch_is_stale(self, harness):
        assert commit(harness, "a", 4) is ErrorCode.STALE_MEMBER_EPOCH

    def test_an_older_epoch_will_do_for_what_one_has_had_since(self, harness):
        assert commit(harness, "a", 2, 0, 1) is ErrorCode.NONE
        assert commit(harness, "a", 1, 0) is ErrorCode.STALE_MEMBER_EPOCH
        assert commit(harness, "a", 2, 0, 2) is ErrorCode.STALE_MEMBER_EPOCH, "all or nothing"
        assert commit(harness, "b", 2, 2) is ErrorCode.STALE_MEMBER_EPOCH

    def test_what_is_about_to_be_given_up_may_be_committed(self):
        harness = ConsumerHarness(topics={"t1": 3})
        harness.beat("a", 0)
        harness.advance(1_100)
        harness.beat("b", 0)
        harness.beat("a", 2)
        harness.beat("a", 2, topics=["t1"])
        assert harness.gives_up("a") == {"t1": [2]}
        assert commit(harness, "a", 2, 2) is ErrorCode.NONE

    def test_clients_that_know_no_epochs_are_refused(self, harness):
        assert commit(harness, "a", 3, version=8) is ErrorCode.UNSUPPORTED_VERSION

    def test_an_empty_group_takes_offsets_of_anybody(self, harness):
        for member_id in ("a", "b"):
            harness.beat(member_id, -1)
        assert commit(harness, "", -1) is ErrorCode.NONE
        assert commit(harness, "a", 3) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_no_group_takes_no_epoch(self):
        harness = ConsumerHarness(topics={"t1": 3})
        assert commit(harness, "a", 3) is ErrorCode.GROUP_ID_NOT_FOUND


class TestTransactions:
    def commit(self, harness, member_id, epoch, index=0):
        request = TxnOffsetCommitRequest(
            group_id="g",
            producer_id=1,
            producer_epoch=0,
            member_id=member_id,
            generation_id=epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name="t1",
                    partitions=[
                        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=7)
                    ],
                )
            ],
        )
        return code_of(harness, CommitOffsetsInTransaction(request))

    def test_who_says_nothing_is_not_checked(self, harness):
        assert self.commit(harness, "", -1) is ErrorCode.NONE

    def test_stale_epochs_are_illegal_generations(self, harness):
        assert self.commit(harness, "a", 3) is ErrorCode.NONE
        assert self.commit(harness, "a", 4) is ErrorCode.ILLEGAL_GENERATION
        assert self.commit(harness, "a", 1) is ErrorCode.ILLEGAL_GENERATION
        assert self.commit(harness, "x", 3) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_an_older_epoch_will_do_for_what_one_has_had_since(self, harness):
        """The request has no topic ids; those of the metadata count (rule 331)."""
        assert self.commit(harness, "a", 2, 0) is ErrorCode.NONE
        assert self.commit(harness, "a", 2, 2) is ErrorCode.ILLEGAL_GENERATION
        harness.drop_topic("t1")
        assert self.commit(harness, "a", 2, 0) is ErrorCode.ILLEGAL_GENERATION
        assert self.commit(harness, "a", 3, 0) is ErrorCode.NONE


class TestFetch:
    def fetch(self, harness, member_id, epoch, topic=None):
        topics = [
            OffsetFetchRequestTopics(
                name="t1", topic_id=topic or topic_id("t1"), partition_indexes=[0]
            )
        ]
        event = FetchOffsets("g", topics, False, member_id, epoch)
        return harness.ask(event).topics[0].partitions[0].committed_offset

    def test_who_does_not_say_who_he_is_may_fetch(self, harness):
        commit(harness, "a", 3)
        assert self.fetch(harness, None, -1) == 7

    def test_members_fetch_at_their_epoch_alone(self, harness):
        commit(harness, "a", 3)
        assert self.fetch(harness, "a", 3) == 7
        for member_id, epoch, code in (
            ("a", 2, ErrorCode.STALE_MEMBER_EPOCH),
            ("a", 4, ErrorCode.STALE_MEMBER_EPOCH),
            ("a", -1, ErrorCode.STALE_MEMBER_EPOCH),
            ("x", 3, ErrorCode.UNKNOWN_MEMBER_ID),
            (None, 3, ErrorCode.UNKNOWN_MEMBER_ID),
        ):
            with pytest.raises(KafkaError) as refused:
                self.fetch(harness, member_id, epoch)
            assert refused.value.code is code

    def test_offsets_of_a_topic_that_had_the_name_before_are_not_given(self, harness):
        commit(harness, "a", 3)
        assert self.fetch(harness, None, -1, topic_id("t1'")) == -1
        assert harness.fetch(("t1", 0)) == {("t1", 0): 7}, "by name"

    def test_classic_groups_do_not_care(self):
        harness = ConsumerHarness(topics={"t1": 3})
        commit(harness, "", -1)
        assert self.fetch(harness, "x", 9) == 7
