"""Committed offsets: fetching, deleting, transactions (rules 119, 120, 150, 152)."""

import pytest

from kafkalite.group.shard import FetchOffsets
from kafkalite.wire.errors import ErrorCode
from tests.group.harness import GroupHarness

A, B, OTHER = ("topic", 0), ("topic", 1), ("other", 0)


@pytest.fixture
def harness():
    return GroupHarness()


class TestFetch:
    """Rule 150."""

    def test_missing_offset_is_no_error(self, harness):
        answer = harness.ask(FetchOffsets("g", None, False))
        assert (answer.error_code, answer.topics) == (ErrorCode.NONE, [])
        assert harness.fetch(A) == {A: -1}

    def test_missing_offset_has_empty_metadata_and_no_epoch(self, harness):
        harness.commit({B: 1})
        assert harness.fetch(A, B) == {A: -1, B: 1}
        topics = [harness.shard.offsets.fetch("g", None, require_stable=False).topics[0]]
        assert [p.partition_index for p in topics[0].partitions] == [1]

    def test_all_offsets(self, harness):
        harness.commit({A: 1, B: 2, OTHER: 3})
        assert harness.fetch() == {A: 1, B: 2, OTHER: 3}

    def test_epoch_and_metadata_come_back(self, harness):
        harness.commit({A: 1}, leader_epoch=4, metadata="m")
        partition = harness.ask(FetchOffsets("g", None, False)).topics[0].partitions[0]
        assert (partition.committed_leader_epoch, partition.metadata) == (4, "m")

    def test_later_commit_wins(self, harness):
        harness.commit({A: 1})
        harness.commit({A: 0})
        assert harness.fetch(A) == {A: 0}


class TestTransactions:
    def test_pending_offset_is_not_seen(self, harness):
        """Rule 119."""
        harness.commit({A: 1})
        harness.commit_in_transaction({A: 2})
        assert harness.fetch(A) == {A: 1}

    def test_reader_that_requires_stable_offsets_is_told_to_wait(self, harness):
        """Rule 120."""
        harness.commit({A: 1, B: 1})
        harness.commit_in_transaction({A: 2})
        assert harness.fetch(A, B, require_stable=True) == {
            A: ErrorCode.UNSTABLE_OFFSET_COMMIT,
            B: 1,
        }
        partition = (
            harness.shard.offsets.fetch("g", None, require_stable=True).topics[0].partitions[0]
        )
        assert partition.committed_offset == -1

    def test_commit_marker_makes_it_count(self, harness):
        """Rule 119."""
        harness.commit_in_transaction({A: 2})
        harness.end_transaction(7, committed=True)
        assert harness.fetch(A, require_stable=True) == {A: 2}
        assert not harness.shard.offsets.has_open_transactions("g")

    def test_abort_marker_drops_it(self, harness):
        """Rule 119."""
        harness.commit({A: 1})
        harness.commit_in_transaction({A: 2})
        harness.end_transaction(7, committed=False)
        assert harness.fetch(A, require_stable=True) == {A: 1}

    def test_marker_without_a_transaction_is_nothing(self, harness):
        harness.end_transaction(7, committed=True)
        assert harness.fetch() == {}

    def test_later_commit_without_a_transaction_wins(self, harness):
        """As it would after compaction of the log."""
        harness.commit_in_transaction({A: 2})
        harness.commit({A: 3})
        harness.end_transaction(7, committed=True)
        assert harness.fetch(A) == {A: 3}

    def test_transactions_of_two_producers_are_kept_apart(self, harness):
        harness.commit_in_transaction({A: 2}, producer_id=7)
        harness.commit_in_transaction({A: 3}, producer_id=8)
        harness.end_transaction(7, committed=True)
        assert harness.fetch(A) == {A: 2}
        assert harness.shard.offsets.is_pending("g", *A)
        harness.end_transaction(8, committed=True)
        assert harness.fetch(A) == {A: 3}

    def test_open_transaction_survives_a_reload(self, harness):
        harness.commit_in_transaction({A: 2})
        other = harness.restarted()
        assert other.fetch(A, require_stable=True) == {A: ErrorCode.UNSTABLE_OFFSET_COMMIT}
        other.end_transaction(7, committed=True)
        assert other.fetch(A) == {A: 2}


class TestRemoval:
    def test_deleted_topics_take_their_offsets_along(self, harness):
        """Rule 152."""
        harness.commit({A: 1, B: 1, OTHER: 1})
        harness.commit_in_transaction({("topic", 5): 1})
        harness.delete_topics("topic", "unknown")
        assert harness.fetch() == {OTHER: 1}
        assert not harness.shard.offsets.has_open_transactions("g")

    def test_tombstone_of_one_offset_leaves_the_others(self, harness):
        harness.commit({A: 1, B: 1})
        harness.commit_in_transaction({A: 2, B: 2})
        harness.delete_offsets(A)
        assert harness.fetch() == {B: 1}
        assert not harness.shard.offsets.is_pending("g", *A)
        assert harness.shard.offsets.is_pending("g", *B)

    def test_tombstone_drops_what_is_pending(self, harness):
        harness.commit_in_transaction({A: 2})
        harness.delete_offsets(A)
        harness.end_transaction(7, committed=True)
        assert harness.fetch() == {}

    def test_tombstones_of_a_group_cover_what_is_pending(self, harness):
        harness.commit({A: 1})
        harness.commit_in_transaction({A: 2, B: 2})
        harness.shard.groups["h"] = harness.shard.groups["g"]
        keys = [(r.key.topic, r.key.partition) for r in harness.shard.offsets.tombstones("g")]
        assert keys == [A, B]
        del harness.shard.groups["h"]

    def test_transaction_over_two_groups_loses_only_the_deleted_ones_part(self, harness):
        harness.commit_in_transaction({A: 1})
        harness.group_id = "other"
        harness.commit_in_transaction({A: 2})
        assert [r.key.group for r in harness.shard.offsets.tombstones("other")] == ["other"]
        harness.delete_offsets(A)
        harness.end_transaction(7, committed=True)
        assert harness.fetch() == {}
        harness.group_id = "g"
        assert harness.fetch() == {A: 1}

    def test_removing_what_is_not_there_is_nothing(self, harness):
        harness.commit({A: 1})
        before = len(harness.log)
        harness.delete_offsets(B)
        assert len(harness.log) == before
