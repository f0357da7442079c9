"""Produce: what is appended, what is refused, and how it is told (rules 36-54, 55-60).

What a batch must be like is tested with tests/log/test_validate, sequences with
test_producer_state, transactional batches with tests/api/test_verification.
"""

import logging
import struct
from uuid import UUID

import pytest
import trio
from crc32c import crc32c

from kafkalite.api.handler import NO_RESPONSE, CloseConnection
from kafkalite.api.produce import HANDLERS
from kafkalite.api.record_checks import AT_ONCE_MAX
from kafkalite.deferred import Deferred
from kafkalite.log.sequence_hold import SequenceHold, sequence_of
from kafkalite.types import INTERNAL_TOPICS, ZERO_UUID
from kafkalite.wire.compression import Codec
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.record_check import STEP_RECORDS
from kafkalite.wire.records import iterate_records
from tests.api.data_kit import NOW_MS, UNKNOWN_ID, DataKit
from tests.log.bad_batches import bad_batches, expected_answer
from tests.log.bad_batches import batch as client_batch
from tests.log.log_kit import batch, contents

(HANDLER,) = HANDLERS
BY_NAME = 12
NEWEST = 13
VERSIONS = range(3, NEWEST + 1)
BAD_BATCHES = bad_batches()
LATE_MS = NOW_MS + 3_600_001


@pytest.fixture
async def kit():
    kit = await DataKit().start()
    kit.topic_id = await kit.create("t", 2)
    return kit


def requested(*partitions, topic="t", topic_id=ZERO_UUID, acks=-1):
    """Ask to append (index, records) pairs."""
    data = [PartitionProduceData(index=i, records=records) for i, records in partitions]
    return ProduceRequest(
        acks=acks,
        timeout_ms=1_000,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)],
    )


def produce(kit, *partitions, version=BY_NAME, client_id="client", **options):
    request = requested(*partitions, **options)
    (topic,) = kit.ask(HANDLER, request, version, client_id=client_id).responses
    return topic.partition_responses


def produce_one(kit, records, **options):
    (answer,) = produce(kit, (0, records), **options)
    return answer


def code_of(kit, records, **options):
    answer = produce_one(kit, records, **options)
    if answer.error_code:
        assert answer.base_offset == -1
        assert answer.log_append_time_ms == -1
    return ErrorCode(answer.error_code)


class TestAnswers:
    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("acks", [-1, 1])
    async def test_offsets_are_told_in_every_version(self, kit, version, acks):
        """Rules 42 and 44."""
        kit.append("a", "b")
        kit.partition().delete_records_before(1)
        names = {"topic": "", "topic_id": kit.topic_id} if version == NEWEST else {}
        answer = produce_one(kit, batch("c", "d"), version=version, acks=acks, **names)
        assert (answer.index, answer.error_code, answer.base_offset) == (0, 0, 2)
        assert answer.log_append_time_ms == -1
        assert answer.log_start_offset == (1 if version >= 5 else -1)
        assert answer.record_errors == []
        assert answer.error_message is None
        assert kit.partition().log_end_offset == 4

    async def test_brokers_time_is_told_where_it_is_the_records_time(self, kit):
        """Rules 43 and 44."""
        await kit.create("l", message_timestamp_type="LogAppendTime")
        answer = produce_one(kit, batch("a", timestamp=5), topic="l")
        assert answer.log_append_time_ms == NOW_MS
        (stored,) = kit.partition("l").read_batches(0)
        assert [record.timestamp for record in iterate_records(stored)] == [NOW_MS]

    @pytest.mark.parametrize("acks", [-1, 1])
    async def test_one_replica_is_as_many_as_can_be_asked_for(self, kit, acks):
        """Rules 51-53: min.insync.replicas beyond the replication factor asks for all."""
        await kit.create("m", min_insync_replicas=2)
        answer = produce_one(kit, batch("a"), topic="m", acks=acks)
        assert (answer.error_code, answer.base_offset) == (0, 0)
        assert kit.partition("m").high_watermark == 1

    async def test_one_bad_partition_does_not_fail_the_others(self, kit):
        """Rule 37."""
        answers = produce(kit, (0, batch("a")), (7, batch("b")), (1, b"junk"), (1, batch("c")))
        assert [(a.index, a.error_code) for a in answers] == [
            (0, ErrorCode.NONE),
            (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (1, ErrorCode.INVALID_RECORD),
            (1, ErrorCode.NONE),
        ]
        assert contents(kit.partition("t", 1).log) == [(0, "c")]

    async def test_records_stay_as_their_client_compressed_them(self, kit):
        """Rule 48."""
        for codec in Codec:
            produce_one(kit, batch("x" * 100, codec=codec))
        codecs = [bytes(stored)[22] & 7 for stored in kit.partition().read_batches(0)]
        assert codecs == list(Codec)

    async def test_topic_may_want_another_codec(self, kit):
        """Rule 48."""
        await kit.create("z", compression_type="zstd")
        produce_one(kit, batch("x" * 100, codec=Codec.GZIP), topic="z")
        (stored,) = kit.partition("z").read_batches(0)
        assert bytes(stored)[22] & 7 == Codec.ZSTD
        assert [record.value for record in iterate_records(stored)] == [b"x" * 100]


class TestRefusals:
    @pytest.mark.parametrize("acks", [-2, 2, 32_767])
    async def test_unknown_acks_are_refused_for_every_partition(self, kit, acks):
        """Rule 36."""
        answers = produce(kit, (0, batch("a")), (1, batch("b")), acks=acks)
        assert [a.error_code for a in answers] == [ErrorCode.INVALID_REQUIRED_ACKS] * 2
        assert kit.partition().log_end_offset == 0

    async def test_unknown_topics_are_told_by_what_they_were_asked_for(self, kit):
        """Rules 37 and 24."""
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code_of(kit, batch("a"), topic="u") is unknown
        for topic_id in (UNKNOWN_ID, ZERO_UUID):
            code = code_of(kit, batch("a"), topic="", topic_id=topic_id, version=NEWEST)
            assert code is ErrorCode.UNKNOWN_TOPIC_ID

    async def test_topic_made_anew_does_not_get_records_of_the_old_one(self, kit):
        """Rule 25."""
        await kit.delete("t")
        await kit.create("t")
        code = code_of(kit, batch("a"), topic="", topic_id=kit.topic_id, version=NEWEST)
        assert code is ErrorCode.UNKNOWN_TOPIC_ID
        assert kit.partition().log_end_offset == 0

    @pytest.mark.parametrize("records", [None, b"", b"\0" * 22, b"\0" * 40])
    async def test_no_batch_is_no_record(self, kit, records):
        """Rule 38."""
        assert code_of(kit, records) is ErrorCode.INVALID_RECORD

    async def test_two_batches_are_one_too_many(self, kit):
        """Rule 38."""
        assert code_of(kit, bytes(batch("a")) * 2) is ErrorCode.INVALID_RECORD

    @pytest.mark.parametrize("version", [v for v in VERSIONS if v < NEWEST])
    async def test_zstd_is_for_those_who_know_it(self, kit, version):
        """Rule 38."""
        code = code_of(kit, batch("a", codec=Codec.ZSTD), version=version)
        unsupported = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert code is (ErrorCode.NONE if version >= 7 else unsupported)

    async def test_changed_bytes_are_corrupt(self, kit):
        """Rule 40."""
        changed = batch("a")
        changed[-1] ^= 1
        assert code_of(kit, changed) is ErrorCode.CORRUPT_MESSAGE

    async def test_batches_beyond_the_limit_are_too_large(self, kit):
        """Rule 41."""
        small = batch("a")
        await kit.create("s", max_message_bytes=len(small))
        assert code_of(kit, small, topic="s") is ErrorCode.NONE
        assert code_of(kit, batch("ab"), topic="s") is ErrorCode.MESSAGE_TOO_LARGE

    async def test_offline_log_is_told(self, kit):
        kit.partition().log.failure = "gone"
        assert code_of(kit, batch("a")) is ErrorCode.KAFKA_STORAGE_ERROR

    @pytest.mark.parametrize("topic", sorted(INTERNAL_TOPICS))
    async def test_internal_topics_are_for_the_broker_and_admin_tools(self, kit, topic):
        """Rule 23."""
        await kit.create(topic)
        assert code_of(kit, batch("a"), topic=topic) is ErrorCode.INVALID_TOPIC_EXCEPTION
        tool = code_of(kit, batch("a"), topic=topic, client_id="__admin_client")
        assert tool is ErrorCode.NONE

    async def test_transactional_records_need_a_transactional_id(self, kit):
        """Rule 113."""
        records = batch("a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert code_of(kit, records) is refused
        assert kit.partition().log_end_offset == 0

    @pytest.mark.parametrize("version", VERSIONS)
    async def test_refusal_of_a_request_is_told_for_every_partition(self, kit, version):
        error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "why")
        request = requested((4, b""), (5, b""), topic_id=kit.topic_id)
        response = HANDLER.refuse(request, error, kit.context(version))
        (topic,) = response.responses
        assert (topic.name, topic.topic_id) == ("t", kit.topic_id)
        assert [(p.index, p.error_code, p.error_message) for p in topic.partition_responses] == [
            (4, -1, "why"),
            (5, -1, "why"),
        ]


class TestErrorsOfRecords:
    """Rule 47 (KIP-467): the whole batch is refused, and each bad record named."""

    @pytest.mark.parametrize("version", [v for v in VERSIONS if v < NEWEST])
    async def test_records_without_keys_in_a_compacted_topic(self, kit, version):
        """Rule 46."""
        await kit.create("c", cleanup_policy="compact")
        records = batch("a", "b", "c", keys=[None, b"k", None])
        answer = produce_one(kit, records, topic="c", version=version)
        assert answer.error_code == ErrorCode.INVALID_RECORD
        named = [error.batch_index for error in answer.record_errors]
        assert named == ([0, 2] if version >= 8 else [])
        if version >= 8:
            assert "c-0" in answer.error_message
            assert "key" in answer.record_errors[0].batch_index_error_message
        assert kit.partition("c").log_end_offset == 0

    async def test_records_of_the_far_future(self, kit):
        """Rule 45: more than an hour ahead by default."""
        records = batch("a", "b", timestamps=[NOW_MS, LATE_MS])
        answer = produce_one(kit, records)
        assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
        assert [error.batch_index for error in answer.record_errors] == [1]
        assert code_of(kit, batch("a", timestamp=LATE_MS - 1)) is ErrorCode.NONE

    async def test_records_without_a_time_are_welcome(self, kit):
        """Rule 45."""
        assert code_of(kit, batch("a", timestamp=-1)) is ErrorCode.NONE

    async def test_records_that_claim_the_brokers_time(self, kit):
        """Rule 45."""
        records = batch("a", log_append_time_ms=NOW_MS)
        assert code_of(kit, records) is ErrorCode.INVALID_TIMESTAMP


class TestIdempotence:
    IDENTITY = {"producer_id": 5, "producer_epoch": 0}  # noqa: RUF012

    async def test_batch_sent_again_is_answered_as_the_first_time(self, kit):
        """Rule 56: with the offset it got, and nothing is appended."""
        first = produce_one(kit, batch("a", "b", base_sequence=0, **self.IDENTITY))
        produce_one(kit, batch("c", base_sequence=2, **self.IDENTITY))
        again = produce_one(kit, batch("a", "b", base_sequence=0, **self.IDENTITY))
        assert (again.error_code, again.base_offset) == (0, first.base_offset)
        assert kit.partition().log_end_offset == 3

    async def test_sixth_batch_back_is_no_longer_known(self, kit):
        """Rules 55 and 57."""
        for sequence in range(6):
            assert code_of(kit, batch("a", base_sequence=sequence, **self.IDENTITY)) == 0
        again = code_of(kit, batch("a", base_sequence=1, **self.IDENTITY))
        assert again is ErrorCode.NONE
        again = code_of(kit, batch("a", base_sequence=0, **self.IDENTITY))
        assert again is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    async def test_gap_is_out_of_order(self, kit):
        """Rule 57."""
        produce_one(kit, batch("a", base_sequence=0, **self.IDENTITY))
        code = code_of(kit, batch("a", base_sequence=2, **self.IDENTITY))
        assert code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    async def test_old_epoch_is_fenced(self, kit):
        """Rule 59."""
        newer = {"producer_id": 5, "producer_epoch": 1}
        produce_one(kit, batch("a", base_sequence=0, **newer))
        code = code_of(kit, batch("a", base_sequence=0, **self.IDENTITY))
        assert code is ErrorCode.INVALID_PRODUCER_EPOCH


class TestAcksZero:
    """Rule 12: there is no answer, and an error closes the connection."""

    async def test_success_is_not_answered(self, kit):
        assert kit.handle(HANDLER, requested((0, batch("a")), acks=0), BY_NAME) is NO_RESPONSE
        assert kit.partition().log_end_offset == 1

    async def test_failure_closes_the_connection_and_says_why(self, kit):
        """The rest was appended all the same."""
        request = requested((0, batch("a")), (7, batch("b")), (1, b""), acks=0)
        with pytest.raises(CloseConnection) as closing:
            kit.handle(HANDLER, request, BY_NAME)
        assert str(closing.value) == (
            "Produce v12 with acks=0 failed: t-7 UNKNOWN_TOPIC_OR_PARTITION, t-1 INVALID_RECORD"
        )
        assert kit.partition().log_end_offset == 1

    async def test_reasons_are_not_told_without_end(self, kit):
        request = requested(*((index, b"") for index in range(1_000)), acks=0)
        with pytest.raises(CloseConnection) as closing:
            kit.handle(HANDLER, request, BY_NAME)
        assert len(str(closing.value)) < 500
        assert str(closing.value).endswith("and 997 more")

    async def test_refusal_closes_the_connection(self, kit):
        error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "why")
        with pytest.raises(CloseConnection, match="why"):
            HANDLER.refuse(requested((0, b""), acks=0), error, kit.context(BY_NAME))


async def test_no_header_a_client_can_write_is_a_bug_of_the_broker(kit, caplog):
    """Each field of the header at its ends, under a good CRC: answered, and with -1 only where the
    records are not compressed by the codec that the header names (rule 252)."""
    fields = {  # position: format
        0: ">q",
        12: ">i",
        21: ">h",
        23: ">i",
        27: ">q",
        35: ">q",
        43: ">q",
        51: ">h",
        53: ">i",
        57: ">i",
    }
    with caplog.at_level(logging.ERROR):
        for position, fmt in fields.items():
            bits = 8 * struct.calcsize(fmt)
            for value in (-(2 ** (bits - 1)), -2, -1, 0, 1, 2 ** (bits - 1) - 1):
                records = batch("a", "b", producer_id=3, producer_epoch=0, base_sequence=0)
                struct.pack_into(fmt, records, position, value)
                struct.pack_into(">I", records, 17, crc32c(memoryview(records)[21:]))
                code = code_of(kit, records)
                if position != 21:
                    assert code is not ErrorCode.UNKNOWN_SERVER_ERROR, (position, value)
    assert caplog.records == []


def test_every_version_is_tested():
    """Older clients are told of v0 to v2, and refused (KAFKA-18659)."""
    assert PRODUCE.versions == (VERSIONS.start, VERSIONS.stop - 1)
    assert PRODUCE.advertise_from == 0


class TestPartitionNewToItsLeader:
    """What was refused before the log existed comes before anything later (rules 230, 231)."""

    IDENTITY = {"producer_id": 5, "producer_epoch": 0}  # noqa: RUF012

    def send(self, kit, sequence, *, index=0, **options):
        identity = {"producer_id": 5, "producer_epoch": 0}
        for name in identity:
            identity[name] = options.pop(name, identity[name])
        data = batch(f"v{sequence}", base_sequence=sequence, **identity)
        (answer,) = produce(kit, (index, data), **options)
        return ErrorCode(answer.error_code)

    async def test_batch_refused_before_the_topic_grew_comes_first(self, kit):
        """librdkafka counts 0 as delivered once 1 is, and 0 was refused for good (45)."""
        assert self.send(kit, 0, index=2) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await kit.add_partitions("t", 3)
        assert self.send(kit, 1, index=2) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert self.send(kit, 2, index=2) is ErrorCode.NOT_ENOUGH_REPLICAS
        for sequence in range(3):
            assert self.send(kit, sequence, index=2) is ErrorCode.NONE
        assert kit.partition("t", 2).log_end_offset == 3

    async def test_so_it_does_where_another_producer_was_there_first(self, kit):
        assert self.send(kit, 0, index=2) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await kit.add_partitions("t", 3)
        assert self.send(kit, 0, index=2, producer_id=6) is ErrorCode.NONE
        assert self.send(kit, 1, index=2) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert self.send(kit, 0, index=2) is ErrorCode.NONE
        assert self.send(kit, 1, index=2) is ErrorCode.NONE

    async def test_so_it_does_for_topics_named_by_id(self, kit):
        later = UUID(int=77)
        options = {"topic": "", "topic_id": later, "version": NEWEST}
        assert self.send(kit, 0, **options) is ErrorCode.UNKNOWN_TOPIC_ID
        kit.metadata.new_topic_id = lambda: later
        await kit.create("later")
        kit.partition("later").log.producers.has_whole_history = False  # by the refusal alone
        assert self.send(kit, 1, **options) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert self.send(kit, 0, **options) is ErrorCode.NONE

    async def test_so_it_does_where_another_broker_refused_the_first(self, kit):
        """This one knows nothing of it: that the log is new is enough."""
        assert self.send(kit, 1) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert self.send(kit, 0) is ErrorCode.NONE
        assert self.send(kit, 1) is ErrorCode.NONE

    async def test_producer_of_a_topic_that_was_made_anew_goes_on(self, kit):
        """Its sequences go on where they were. It comes again with the same batch, and is taken."""
        for sequence in range(3):
            assert self.send(kit, sequence) is ErrorCode.NONE
        await kit.create("t", deletes="t")
        assert self.send(kit, 3) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert self.send(kit, 4) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert self.send(kit, 3) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert self.send(kit, 3) is ErrorCode.NONE
        assert self.send(kit, 4) is ErrorCode.NONE

    async def test_producer_goes_on_after_its_records_were_deleted(self, kit):
        for sequence in range(3):
            assert self.send(kit, sequence) is ErrorCode.NONE
        kit.partition().delete_records_before(-1)
        assert self.send(kit, 3) is ErrorCode.NONE
        kit.partition().log.producers.remove_expired(2 * NOW_MS, expiration_ms=1)
        assert self.send(kit, 4) is ErrorCode.NONE

    async def test_new_epoch_begins_at_once(self, kit):
        """A producer that gave up what was refused begins another."""
        assert self.send(kit, 0, index=2) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await kit.add_partitions("t", 3)
        assert self.send(kit, 0, index=2, producer_epoch=1) is ErrorCode.NONE
        assert self.send(kit, 1, index=2, producer_epoch=1) is ErrorCode.NONE

    async def test_refused_batch_is_not_waited_for_for_ever(self, kit):
        kit.append("another's")
        kit.partition().log.producers.has_whole_history = False
        (data,) = [batch("a", base_sequence=0, **self.IDENTITY)]
        kit.services.sequence_hold.note(("t", 0), sequence_of(data), kit.clock.monotonic_ms())
        kit.clock.now_ms += SequenceHold.KEPT_MS
        assert self.send(kit, 1) is ErrorCode.NOT_ENOUGH_REPLICAS
        kit.clock.now_ms += 1
        assert self.send(kit, 1) is ErrorCode.NONE

    async def test_full_disk_lets_no_batch_overtake_the_one_it_refused(self, kit):
        """Not OUT_OF_ORDER_SEQUENCE_NUMBER, at which librdkafka goes on in another epoch."""
        assert self.send(kit, 0) is ErrorCode.NONE
        kit.disk.fail("append", "t-0", times=1)
        assert self.send(kit, 1) is ErrorCode.KAFKA_STORAGE_ERROR
        assert self.send(kit, 2) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert self.send(kit, 1) is ErrorCode.NONE
        assert self.send(kit, 2) is ErrorCode.NONE


class TestRecordsThatTakeLong:
    """Rule 252: they are looked at in steps, and others have their turn in between."""

    COUNT = 3 * AT_ONCE_MAX

    def many(self, count=COUNT, *, spoil=False):
        data = batch(*([""] * count))
        if spoil:
            data[-1] ^= 2
            struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
        return data

    async def test_are_appended_after_some_turns(self, kit):
        answer = kit.handle(HANDLER, requested((1, batch("a")), (0, self.many())), BY_NAME)
        assert isinstance(answer, Deferred)
        assert kit.partition("t", 1).log_end_offset == 1
        assert kit.partition("t", 0).log_end_offset == 0
        turns = 0

        async def count_turns():
            nonlocal turns
            while True:
                await trio.lowlevel.checkpoint()
                turns += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(count_turns)
            response = kit.read(HANDLER, await answer.wait(), BY_NAME)
            nursery.cancel_scope.cancel()
        assert turns >= (self.COUNT - AT_ONCE_MAX) // STEP_RECORDS - 1
        second, first = response.responses[0].partition_responses
        assert (first.error_code, first.base_offset, first.index) == (0, 0, 0)
        assert (second.error_code, second.base_offset, second.index) == (0, 0, 1)
        assert kit.partition("t", 0).log_end_offset == self.COUNT

    async def test_are_refused_after_some_turns(self, kit):
        answer = kit.handle(HANDLER, requested((0, self.many(spoil=True))), BY_NAME)
        response = kit.read(HANDLER, await answer.wait(), BY_NAME)
        (refused,) = response.responses[0].partition_responses
        assert refused.error_code == ErrorCode.INVALID_RECORD
        assert kit.partition("t", 0).log_end_offset == 0

    async def test_without_an_answer(self, kit):
        answer = kit.handle(HANDLER, requested((0, self.many()), acks=0), BY_NAME)
        assert await answer.wait() is NO_RESPONSE
        assert kit.partition("t", 0).log_end_offset == self.COUNT

    async def test_many_small_batches_are_as_much_work_as_a_large_one(self):
        kit = await DataKit().start()
        await kit.create("t", 10)
        count = AT_ONCE_MAX // 5
        request = requested(*((index, self.many(count)) for index in range(10)))
        answer = kit.handle(HANDLER, request, BY_NAME)
        assert isinstance(answer, Deferred)
        response = kit.read(HANDLER, await answer.wait(), BY_NAME)
        assert [each.error_code for each in response.responses[0].partition_responses] == [0] * 10
        assert all(kit.partition("t", index).log_end_offset == count for index in range(10))

    async def test_only_where_they_are_to_be_looked_at(self):
        kit = await DataKit(kafkalite_validate_records="false").start()
        await kit.create("t")
        assert code_of(kit, self.many(spoil=True)) is ErrorCode.NONE
        assert kit.partition("t", 0).log_end_offset == self.COUNT


@pytest.mark.parametrize("name", BAD_BATCHES)
async def test_bad_batches_are_refused_as_kafka_refuses_them(kit, name):
    """Rule 252."""
    assert code_of(kit, bytearray(BAD_BATCHES[name])) == expected_answer(name)


async def test_a_largest_timestamp_that_is_not_so_is_put_right(kit):
    """As Kafka does: what finds records by their time goes by the header."""
    for index, header in enumerate((NOW_MS - 1, NOW_MS + 1, -1)):
        assert code_of(kit, bytearray(client_batch(max_timestamp=header))) is ErrorCode.NONE
        largest = kit.partition("t", 0).log.segments.active.largest
        assert largest.timestamp == NOW_MS, index
