"""Fetch: what is returned, when, and what ends a wait (rules 67-82)."""

import pytest
import trio

from kafkalite.log.validate import AppendOrigin
from kafkalite.types import ZERO_UUID, TopicPartition
from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.fetch import FETCH, FetchPartition
from tests.api.data_kit import UNKNOWN_ID, DataKit
from tests.api.fetch_kit import (
    BY_NAME,
    HANDLER,
    LATEST,
    answers,
    codes,
    fetched,
    limited,
    raise_epochs,
    request,
)
from tests.log.log_kit import marker

VERSIONS = range(4, LATEST + 1)


def fetch(kit, *partitions, version=BY_NAME, **options):
    response = kit.ask(HANDLER, request(*partitions, **options), version)
    assert response.error_code == ErrorCode.NONE
    return answers(response)


class TestWhatIsReturned:
    async def test_whole_batches_from_the_one_that_holds_the_offset(self, kit, topic):
        """Rule 67: clients skip what lies before the offset they asked for."""
        kit.append("a", "b", "c")
        kit.append("d", "e")
        for offset, batches in [(0, [(0, 2), (3, 4)]), (1, [(0, 2), (3, 4)]), (4, [(3, 4)])]:
            (data,) = fetch(kit, (0, offset))
            assert fetched(data) == batches

    async def test_first_batch_comes_even_above_all_limits(self, kit, topic):
        """Rule 68 (KIP-74), and nothing else does."""
        kit.append("x" * 1_000)
        kit.append("y")
        for limits in ({"max_bytes": 0}, {"max_bytes": 10}, {"max_bytes": -1}):
            (data,) = fetch(kit, (0, 0), **limits)
            assert fetched(data) == [(0, 0)]
        for limit in (0, 10, -1):
            (data,) = fetch(kit, limited(0, 0, limit))
            assert fetched(data) == [(0, 0)]

    async def test_first_batch_of_the_first_partition_that_has_one(self, kit, topic):
        """Rule 68."""
        kit.append("x" * 1_000, index=1)
        kit.append("x" * 1_000, index=2)
        data = fetch(kit, (0, 0), (1, 0), (2, 0), max_bytes=10)
        assert [fetched(each) for each in data] == [[], [(0, 0)], []]

    async def test_partitions_share_the_limit_in_their_order(self, kit, topic):
        """Rule 69: batches are not cut, so what does not fit stays away."""
        for index in range(3):
            kit.append("x" * 100, index=index)
            kit.append("y" * 100, index=index)
        size = kit.partition().log.size_bytes // 2
        data = fetch(kit, (2, 0), (0, 0), (1, 0), max_bytes=3 * size)
        assert [each.partition_index for each in data] == [2, 0, 1]
        assert [len(fetched(each)) for each in data] == [2, 1, 0]
        assert codes(data) == [ErrorCode.NONE] * 3

    async def test_where_a_batch_does_not_fit_the_rest_waits_for_the_next_fetch(self, kit, topic):
        """A thousand partitions are not searched for a batch that might just fit."""
        kit.append("x" * 300, index=0)
        kit.append("x" * 300, index=1)
        kit.append("y", index=2)
        size = kit.partition().log.size_bytes
        data = fetch(kit, (0, 0), (1, 0), (2, 0), max_bytes=size + 200)
        assert [len(fetched(each)) for each in data] == [1, 0, 0]
        assert codes(data) == [ErrorCode.NONE] * 3

    async def test_limit_of_a_partition_that_is_cut_holds_for_no_other(self, kit, topic):
        kit.append("x" * 300, index=0)
        kit.append("x" * 300, index=1)
        kit.append("y", index=2)
        data = fetch(kit, (0, 0), limited(1, 0, 200), (2, 0))
        assert [len(fetched(each)) for each in data] == [1, 0, 1]

    async def test_limit_of_a_partition_is_its_own(self, kit, topic):
        for index in range(2):
            kit.append("x" * 100, index=index)
            kit.append("y" * 100, index=index)
        size = kit.partition().log.size_bytes // 2
        data = fetch(kit, limited(0, 0, size + 5), limited(1, 0, size * 2))
        assert [len(fetched(each)) for each in data] == [1, 2]

    async def test_broker_has_a_limit_of_its_own(self):
        """Rule 69: `fetch.max.bytes`."""
        kit = await DataKit(fetch_max_bytes=1_500).start()
        await kit.create("t")
        for _ in range(4):
            kit.append("x" * 500)
        (data,) = fetch(kit, (0, 0))
        assert len(fetched(data)) == 2

    @pytest.mark.parametrize("version", VERSIONS)
    async def test_each_version_has_its_fields(self, kit, topic, version):
        """Rule 74."""
        kit.append("a", "b")
        kit.partition().delete_records_before(1)
        names = {"topic_id": topic, "topic": ""} if version >= 13 else {"topic": "t"}
        (data,) = fetch(kit, (0, 1), version=version, **names)
        assert (data.partition_index, data.error_code) == (0, 0)
        assert (data.high_watermark, data.last_stable_offset) == (2, 2)
        assert data.log_start_offset == (1 if version >= 5 else -1)
        assert data.preferred_read_replica == -1
        assert data.aborted_transactions is None
        assert fetched(data) == [(0, 1)]

    async def test_reader_of_committed_records_gets_a_list_even_if_empty(self, kit, topic):
        """Rule 74."""
        kit.append("a")
        for offset in (0, 1):
            (data,) = fetch(kit, (0, offset), isolation_level=1)
            assert data.aborted_transactions == []

    async def test_aborted_transactions_are_told_to_readers_of_committed_records(self, kit, topic):
        """Rules 72 and 116."""
        producer = {"producer_id": 9, "producer_epoch": 0, "transactional": True}
        kit.append("a", base_sequence=0, **producer)
        kit.partition().append(marker(9), now_ms=0, origin=AppendOrigin.COORDINATOR)
        kit.append("b", base_sequence=1, **producer)
        (data,) = fetch(kit, (0, 0), isolation_level=1)
        assert fetched(data) == [(0, 0), (1, 1)]
        assert [(a.producer_id, a.first_offset) for a in data.aborted_transactions] == [(9, 0)]
        assert (data.high_watermark, data.last_stable_offset) == (3, 2)
        (data,) = fetch(kit, (0, 0))
        assert fetched(data) == [(0, 0), (1, 1), (2, 2)]
        assert data.aborted_transactions is None

    async def test_offset_at_the_end_is_fine_and_beyond_is_not(self, kit, topic):
        """Rule 73."""
        kit.append("a", "b", "c")
        kit.append("d")
        kit.partition().delete_records_before(1)
        data = fetch(kit, (0, 4), (0, 1))
        assert [fetched(each) for each in data] == [[(0, 2), (3, 3)]]  # named twice, answered once
        for offset in (-1, 0, 5, 2**63 - 1):
            (data,) = fetch(kit, (0, offset))
            assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            # Rule 75.
            assert (data.high_watermark, bytes(data.records)) == (-1, b"")
        (data,) = fetch(kit, (0, 4))
        assert (data.error_code, fetched(data), data.high_watermark) == (0, [], 4)

    async def test_one_bad_partition_does_not_spoil_the_others(self, kit, topic):
        kit.append("a")
        data = fetch(kit, (7, 0), (0, 0), (-1, 0))
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes(data) == [unknown, ErrorCode.NONE, unknown]
        assert fetched(data[1]) == [(0, 0)]

    async def test_topics_stay_together_in_the_order_asked_for(self, kit, topic):
        await kit.create("u")
        wanted = request((0, 0), (1, 0))
        wanted.topics += request((0, 0), topic="u").topics
        response = kit.ask(HANDLER, wanted, BY_NAME)
        assert [(t.topic, len(t.partitions)) for t in response.responses] == [("t", 2), ("u", 1)]


class TestCompactedGaps:
    """Offsets that compaction took: the next record after them is returned (rule 205)."""

    @pytest.fixture
    async def compacted(self, kit):
        """Offsets 0-3 of one key, of which 3 is left, and 4 in the active segment."""
        await kit.create("t", cleanup_policy="compact", segment_bytes=1 << 20)
        for value in "abcd":
            kit.append(value, keys=[b"k"])
        await kit.logs.compact(TopicPartition("t", 0))
        kit.append("e", keys=[b"k"])

    async def test_offset_in_a_gap_returns_what_follows(self, kit, compacted):
        for offset in range(4):
            (data,) = fetch(kit, (0, offset))
            assert fetched(data)[0][1] == 3

    async def test_gap_at_the_end_of_a_segment_is_passed(self, kit, compacted):
        """Goal: offsets 3 and 4 go in the next round, and the reader at 3 gets 5 or later."""
        await kit.logs.compact(TopicPartition("t", 0))
        kit.append("f", keys=[b"k"])
        (data,) = fetch(kit, (0, 3))
        assert fetched(data)[0][1] >= 4
        (data,) = fetch(kit, (0, 5))
        assert fetched(data) == [(5, 5)]

    async def test_gap_at_the_end_of_the_log_waits_like_the_end(self, kit, autojump_clock):
        """A reader there must not be answered at once with nothing, again and again."""
        await kit.create("t", segment_bytes=1 << 20)
        kit.append("a")
        log = kit.partition().log
        log.truncate_fully_and_start_at(5)
        log.log_start_offset = 2
        async with kit.parked(HANDLER, request((0, 3), max_wait_ms=500), BY_NAME) as parked:
            await trio.sleep(1)
            assert parked.after_s == 0.5
            (data,) = answers(parked.response)
            assert (data.error_code, fetched(data)) == (0, [])


class TestLeaderEpochs:
    @pytest.fixture
    async def led(self, kit, topic):
        """Records of epochs 0 (offsets 0-1) and 1 (2-3); partition led in epoch 1."""
        kit.append("a", "b")
        await raise_epochs(kit)
        kit.append("c", "d")

    def fetch_at(self, kit, epoch, *, offset=0, version=BY_NAME, last=-1):
        wanted = FetchPartition(
            partition=0,
            fetch_offset=offset,
            partition_max_bytes=1 << 20,
            current_leader_epoch=epoch,
            last_fetched_epoch=last,
        )
        (data,) = fetch(kit, wanted, version=version)
        return data

    @pytest.mark.parametrize(
        ("epoch", "code"),
        [
            (-1, ErrorCode.NONE),
            (0, ErrorCode.FENCED_LEADER_EPOCH),
            (1, ErrorCode.NONE),
            (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ],
    )
    async def test_client_of_another_epoch_is_refused(self, kit, led, epoch, code):
        """Rule 76."""
        assert self.fetch_at(kit, epoch).error_code == code
        assert self.fetch_at(kit, epoch, version=9).error_code == code
        assert self.fetch_at(kit, epoch, version=8).error_code == ErrorCode.NONE

    async def test_reader_of_a_log_that_went_another_way_is_told_where(self, kit, led):
        """Rule 77 (KIP-595): epoch 0 ended at 2 here, and the reader has more of it."""
        data = self.fetch_at(kit, 1, offset=3, last=0)
        assert data.error_code == ErrorCode.NONE
        assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 2)
        assert bytes(data.records) == b""

    @pytest.mark.parametrize(("offset", "last"), [(2, 0), (3, 1), (4, 1)])
    async def test_reader_of_the_same_log_gets_records(self, kit, led, offset, last):
        """Rule 77."""
        data = self.fetch_at(kit, 1, offset=offset, last=last)
        assert data.diverging_epoch.epoch == -1
        assert data.error_code == ErrorCode.NONE

    async def test_reader_of_this_epoch_is_right_before_anything_is_written_in_it(self, kit, topic):
        """Rules 77 and 99: the leader begins its epoch at its log end."""
        kit.append("a")
        await raise_epochs(kit)
        data = self.fetch_at(kit, 1, offset=1, last=1)
        assert (data.error_code, data.diverging_epoch.epoch) == (0, -1)

    @pytest.mark.parametrize(("offset", "last"), [(3, 5), (0, 0)])
    async def test_unknown_past_is_out_of_range(self, kit, led, offset, last):
        """Rule 77: an epoch that is to come, or an offset that is gone."""
        kit.partition().delete_records_before(1)
        assert self.fetch_at(kit, 1, offset=offset, last=last).error_code == (
            ErrorCode.OFFSET_OUT_OF_RANGE
        )


class TestOldClients:
    async def test_zstd_topics_are_read_by_all_versions(self, kit):
        """Rule 80."""
        await kit.create("t", compression_type="zstd")
        kit.append("a", codec=Codec.ZSTD)
        for version in VERSIONS:
            if version <= BY_NAME:
                (data,) = fetch(kit, (0, 0), version=version)
                assert (data.error_code, bool(data.records)) == (ErrorCode.NONE, True)

    @pytest.mark.parametrize("version", range(4, BY_NAME + 1))
    async def test_offline_log_is_not_led_for_the_oldest(self, kit, topic, version):
        """Rule 80."""
        kit.partition().log.failure = "gone"
        (data,) = fetch(kit, (0, 0), version=version)
        assert data.error_code == (
            ErrorCode.KAFKA_STORAGE_ERROR if version > 5 else ErrorCode.NOT_LEADER_OR_FOLLOWER
        )

    @pytest.mark.parametrize("version", VERSIONS)
    async def test_bad_isolation_level_is_refused_and_opens_no_session(self, kit, topic, version):
        wanted = request((0, 0), isolation_level=7, session_epoch=0, topic_id=topic)
        response = kit.ask(HANDLER, wanted, version)
        if version >= 7:
            assert response.error_code == ErrorCode.INVALID_REQUEST
            assert response.responses == []
        else:
            assert codes(answers(response)) == [ErrorCode.INVALID_REQUEST]
        assert len(kit.sessions) == 0


class TestTopicIds:
    """Rules 24 and 25 (KIP-516)."""

    @pytest.mark.parametrize("topic_id", [UNKNOWN_ID, ZERO_UUID])
    async def test_unknown_id_is_told(self, kit, topic, topic_id):
        response = kit.ask(HANDLER, request((0, 0), topic="", topic_id=topic_id), 13)
        assert response.responses[0].topic_id == topic_id
        assert codes(answers(response)) == [ErrorCode.UNKNOWN_TOPIC_ID]

    async def test_id_of_a_topic_that_was_made_anew_is_unknown(self, kit, topic):
        kit.append("old")
        await kit.delete("t")
        new = await kit.create("t")
        kit.append("new")
        kit.append("new")
        asked = {"topic": "", "version": 13}
        assert codes(fetch(kit, (0, 1), topic_id=topic, **asked)) == [ErrorCode.UNKNOWN_TOPIC_ID]
        assert codes(fetch(kit, (0, 1), topic_id=new, **asked)) == [ErrorCode.NONE]

    async def test_unknown_partition_of_a_known_id(self, kit, topic):
        data = fetch(kit, (3, 0), topic_id=topic, topic="", version=13)
        assert codes(data) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_every_version_is_tested():
    assert FETCH.versions == (VERSIONS.start, VERSIONS.stop - 1)
