"""ListOffsets: earliest, latest, by timestamp (rules 92-97)."""

import pytest

from kafkalite.api.list_offsets import HANDLERS
from kafkalite.log.validate import AppendOrigin
from kafkalite.meta.events import RegisterBroker
from kafkalite.types import TopicPartition
from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.api.data_kit import NOW_MS, DataKit
from tests.log.log_kit import marker

(HANDLER,) = HANDLERS
LATEST, EARLIEST, MAX_TIMESTAMP, LOCAL, TIERED, UPLOAD = range(-1, -7, -1)
NEWEST = 11
VERSIONS = range(1, NEWEST + 1)
NONE = (-1, -1, -1)


@pytest.fixture
async def kit():
    kit = await DataKit().start()
    await kit.create("t", 2)
    return kit


def ask(kit, *timestamps, version=NEWEST, isolation=0, epoch=-1, topic="t", index=0):
    partitions = [
        ListOffsetsPartition(
            partition_index=index + number, timestamp=timestamp, current_leader_epoch=epoch
        )
        for number, timestamp in enumerate(timestamps)
    ]
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=topic, partitions=partitions)],
    )
    (answered,) = kit.ask(HANDLER, request, version).topics
    assert answered.name == topic
    return answered.partitions


def offset_of(kit, timestamp, **options):
    """Return (offset, timestamp, leader epoch)."""
    (found,) = ask(kit, timestamp, **options)
    assert found.error_code == ErrorCode.NONE
    return found.offset, found.timestamp, found.leader_epoch


def code_of(kit, timestamp, **options):
    (found,) = ask(kit, timestamp, **options)
    if found.error_code:
        assert (found.offset, found.timestamp, found.leader_epoch) == NONE
    return ErrorCode(found.error_code)


class TestEnds:
    @pytest.mark.parametrize("version", VERSIONS)
    async def test_ends_of_a_log(self, kit, version):
        """Rules 92 and 94: timestamp -1, and the epoch from v4 on."""
        kit.append("a", "b", "c")
        kit.partition().delete_records_before(1)
        epoch = 0 if version >= 4 else -1
        assert offset_of(kit, EARLIEST, version=version) == (1, -1, epoch)
        assert offset_of(kit, LATEST, version=version) == (3, -1, epoch)

    async def test_ends_of_an_empty_log_are_the_same(self, kit):
        assert offset_of(kit, EARLIEST) == offset_of(kit, LATEST) == (0, -1, 0)
        kit.append("a", "b")
        kit.partition().delete_records_before(-1)
        assert offset_of(kit, EARLIEST) == offset_of(kit, LATEST) == (2, -1, 0)

    async def test_latest_of_committed_records_stops_at_an_open_transaction(self, kit):
        """Rule 92."""
        kit.append("a")
        kit.append("b", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
        assert offset_of(kit, LATEST, isolation=1)[0] == 1
        assert offset_of(kit, LATEST, isolation=0)[0] == 2
        assert offset_of(kit, LATEST, version=1)[0] == 2
        kit.partition().append(marker(1), now_ms=0, origin=AppendOrigin.COORDINATOR)
        assert offset_of(kit, LATEST, isolation=1)[0] == 3

    async def test_epochs_are_those_of_the_ends(self, kit):
        """Rule 94."""
        kit.append("a")
        await raise_epochs(kit)
        assert offset_of(kit, EARLIEST)[2] == 0
        assert offset_of(kit, LATEST)[2] == 1
        kit.append("b")
        kit.partition().delete_records_before(1)
        assert offset_of(kit, EARLIEST) == (1, -1, 1)


async def raise_epochs(kit):
    await kit.metadata.submit(
        RegisterBroker(broker_id=1, endpoints={"PLAINTEXT": ("", 9092)}, restarted=True)
    )


class TestSpecialTimestamps:
    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize(
        ("timestamp", "first", "answer"),
        [
            (MAX_TIMESTAMP, 7, (1, NOW_MS + 9, 0)),
            (LOCAL, 8, (0, -1, 0)),
            (TIERED, 9, NONE),
            (UPLOAD, 11, NONE),
        ],
    )
    async def test_each_is_known_from_its_version_on(self, kit, version, timestamp, first, answer):
        """Rule 92; nothing is tiered here."""
        kit.append("a", "b", "c", timestamps=[NOW_MS, NOW_MS + 9, NOW_MS + 3])
        if version < first:
            assert code_of(kit, timestamp, version=version) is ErrorCode.UNSUPPORTED_VERSION
        else:
            assert offset_of(kit, timestamp, version=version) == answer

    @pytest.mark.parametrize("timestamp", [-7, -(2**63)])
    async def test_other_negative_ones_mean_nothing(self, kit, timestamp):
        """Rule 92."""
        assert code_of(kit, timestamp) is ErrorCode.UNSUPPORTED_VERSION

    async def test_largest_timestamp_is_that_of_the_first_record_that_has_it(self, kit):
        kit.append("a", "b", timestamps=[NOW_MS + 5, NOW_MS + 1])
        kit.append("c", "d", timestamps=[NOW_MS + 2, NOW_MS + 5])
        assert offset_of(kit, MAX_TIMESTAMP) == (0, NOW_MS + 5, 0)

    async def test_largest_timestamp_of_an_empty_log_is_none(self, kit):
        assert offset_of(kit, MAX_TIMESTAMP) == NONE

    async def test_largest_timestamp_in_an_open_transaction_is_none_of_the_committed(self, kit):
        kit.append("a")
        kit.append(
            "b",
            timestamp=NOW_MS + 1,
            producer_id=1,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        assert offset_of(kit, MAX_TIMESTAMP, isolation=1) == NONE
        assert offset_of(kit, MAX_TIMESTAMP) == (1, NOW_MS + 1, 0)


class TestByTimestamp:
    """Rule 93."""

    async def test_first_record_of_that_time_or_later(self, kit):
        """Per record, also within a batch, and whatever the order of timestamps."""
        kit.append("a", "b", "c", timestamps=[NOW_MS, NOW_MS + 10, NOW_MS + 5])
        kit.append("d", "e", timestamps=[NOW_MS + 3, NOW_MS + 20])
        for after, offset, at in [(-5, 0, 0), (0, 0, 0), (1, 1, 10), (10, 1, 10), (11, 4, 20)]:
            assert offset_of(kit, NOW_MS + after) == (offset, NOW_MS + at, 0)
        assert offset_of(kit, 0) == (0, NOW_MS, 0)

    async def test_no_such_record_is_no_error(self, kit):
        """Spark's startingOffsetsByTimestamp relies on it."""
        assert offset_of(kit, 0) == NONE
        kit.append("a")
        assert offset_of(kit, NOW_MS + 1) == NONE
        assert offset_of(kit, 2**63 - 1) == NONE

    @pytest.mark.parametrize("codec", list(Codec))
    async def test_compressed_records_are_found_each_by_itself(self, kit, codec):
        kit.append("a", "b", "c", timestamps=[NOW_MS, NOW_MS + 10, NOW_MS + 20], codec=codec)
        assert offset_of(kit, NOW_MS + 5) == (1, NOW_MS + 10, 0)

    async def test_deleted_records_are_not_found(self, kit):
        kit.append("a", "b", "c", timestamps=[NOW_MS, NOW_MS + 10, NOW_MS + 20])
        kit.partition().delete_records_before(2)
        assert offset_of(kit, NOW_MS) == (2, NOW_MS + 20, 0)

    async def test_records_that_are_not_stable_are_not_found_by_readers_of_committed_ones(
        self, kit
    ):
        kit.append("a")
        kit.append(
            "b",
            timestamp=NOW_MS + 1,
            producer_id=1,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        assert offset_of(kit, NOW_MS + 1, isolation=1) == NONE
        assert offset_of(kit, NOW_MS + 1) == (1, NOW_MS + 1, 0)
        assert offset_of(kit, NOW_MS, isolation=1) == (0, NOW_MS, 0)

    async def test_brokers_time_counts_where_it_is_the_records_time(self):
        """LogAppendTime: what clients wrote into their records is of no account (rule 43)."""
        kit = await DataKit().start()
        await kit.create("t", message_timestamp_type="LogAppendTime")
        kit.append("a", "b", timestamps=[5, 900])
        kit.clock.now_ms += 100
        kit.append("c", timestamp=7)
        assert offset_of(kit, 0) == (0, NOW_MS, 0)
        assert offset_of(kit, NOW_MS) == (0, NOW_MS, 0)
        assert offset_of(kit, NOW_MS + 1) == (2, NOW_MS + 100, 0)
        assert offset_of(kit, MAX_TIMESTAMP) == (2, NOW_MS + 100, 0)

    async def test_time_that_went_back_is_searched_from_the_first_record_on(self, kit):
        """The first record that is late enough by offset, not by time."""
        kit.append("a", timestamp=NOW_MS + 100)
        kit.append("b", timestamp=NOW_MS)
        kit.append("c", timestamp=NOW_MS + 200)
        assert offset_of(kit, NOW_MS + 1) == (0, NOW_MS + 100, 0)
        assert offset_of(kit, NOW_MS + 101) == (2, NOW_MS + 200, 0)

    async def test_records_that_compaction_took_are_not_found(self):
        kit = await DataKit().start()
        await kit.create("t", cleanup_policy="compact", segment_bytes=1 << 20)
        for number, value in enumerate("abcd"):
            kit.append(value, keys=[b"k"], timestamp=NOW_MS + number)
        await kit.logs.compact(TopicPartition("t", 0))
        kit.append("e", keys=[b"other"], timestamp=NOW_MS + 10)
        assert offset_of(kit, NOW_MS) == (3, NOW_MS + 3, 0)
        assert offset_of(kit, NOW_MS + 4) == (4, NOW_MS + 10, 0)
        assert offset_of(kit, MAX_TIMESTAMP) == (4, NOW_MS + 10, 0)
        assert offset_of(kit, EARLIEST)[0] == 0


class TestRefusals:
    async def test_partition_named_twice(self, kit):
        """Rule 96: refused both times, and the others are answered."""
        partitions = [
            ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in (0, 1, 0)
        ]
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)]
        )
        (topic,) = kit.ask(HANDLER, request).topics
        twice = ErrorCode.INVALID_REQUEST
        assert [(p.partition_index, p.error_code) for p in topic.partitions] == [
            (0, twice),
            (1, ErrorCode.NONE),
            (0, twice),
        ]

    async def test_unknown_partition_does_not_spoil_the_others(self, kit):
        found = ask(kit, LATEST, LATEST, LATEST)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [p.error_code for p in found] == [0, 0, unknown]
        assert code_of(kit, LATEST, topic="u") is unknown

    @pytest.mark.parametrize(
        ("epoch", "code"),
        [
            (-1, ErrorCode.NONE),
            (0, ErrorCode.FENCED_LEADER_EPOCH),
            (1, ErrorCode.NONE),
            (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ],
    )
    async def test_client_of_another_epoch(self, kit, epoch, code):
        """Rule 76."""
        await raise_epochs(kit)
        assert code_of(kit, LATEST, epoch=epoch) is code
        assert code_of(kit, LATEST, epoch=epoch, version=3) is ErrorCode.NONE

    async def test_offline_log(self, kit):
        kit.append("a")
        kit.partition().log.failure = "gone"
        for timestamp in (0, LATEST, EARLIEST, MAX_TIMESTAMP):
            assert code_of(kit, timestamp) is ErrorCode.KAFKA_STORAGE_ERROR


async def test_refusal_of_a_request_is_told_for_every_partition(kit):
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name="t", partitions=[ListOffsetsPartition(partition_index=n) for n in (4, 5)]
            )
        ],
    )
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    response = HANDLER.refuse(request, error, kit.context(NEWEST))
    (topic,) = response.topics
    assert [(p.partition_index, p.error_code, p.offset) for p in topic.partitions] == [
        (4, -1, -1),
        (5, -1, -1),
    ]


def test_every_version_is_tested():
    """Rule 97: v0 is gone."""
    assert LIST_OFFSETS.versions == (VERSIONS.start, VERSIONS.stop - 1)
