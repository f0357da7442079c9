"""Fetches that wait, and fetch sessions."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.deferred import Deferred
from kafkalite.isr.partition import Partition
from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.fetch import FetchPartition
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


class TestSessions:
    def ask(self, kit, *partitions, version=BY_NAME, **options):
        wanted = request(*partitions, **options)
        if not partitions:
            wanted.topics = []
        return kit.ask(HANDLER, wanted, version)

    async def test_session_tells_what_is_new_only(self, kit, topic):
        """Rules 83-87."""
        full = self.ask(kit, (0, 0), (1, 0), session_epoch=0)
        assert len(answers(full)) == 2
        kit.append("a", index=1)
        session = {"session_id": full.session_id}
        first = self.ask(kit, session_epoch=1, **session)
        assert [each.partition_index for each in answers(first)] == [1]
        assert first.session_id == full.session_id
        second = self.ask(kit, (1, 1), session_epoch=2, **session)
        assert answers(second) == []

    async def test_wrong_epoch_and_unknown_session_are_refused_at_the_top(self, kit, topic):
        """Rule 85."""
        full = self.ask(kit, (0, 0), session_epoch=0)
        wrong = self.ask(kit, session_id=full.session_id, session_epoch=5)
        assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        unknown = self.ask(kit, session_id=4711, session_epoch=1)
        assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert (unknown.responses, unknown.session_id) == ([], 0)

    async def test_session_by_name_goes_on_with_the_new_topic_of_that_name(self, kit, topic):
        kit.append("a", "b")
        full = self.ask(kit, (0, 2), session_epoch=0)
        await kit.delete("t")
        session = {"session_id": full.session_id}
        gone = answers(self.ask(kit, session_epoch=1, **session))
        assert codes(gone) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        await kit.create("t")
        again = answers(self.ask(kit, session_epoch=2, **session))
        assert codes(again) == [ErrorCode.OFFSET_OUT_OF_RANGE]
        kit.append("a", "b")
        again = answers(self.ask(kit, session_epoch=3, **session))
        assert codes(again) == [ErrorCode.NONE]

    async def test_session_by_id_never_reads_another_topic(self, kit, topic):
        """Rule 25."""
        kit.append("a", "b")
        names = {"version": LATEST, "topic": ""}
        full = self.ask(kit, (0, 2), session_epoch=0, topic_id=topic, **names)
        await kit.delete("t")
        new = await kit.create("t")
        kit.append("a", "b")
        kit.append("c")
        session = {"session_id": full.session_id}
        for epoch in (1, 2):
            gone = answers(self.ask(kit, session_epoch=epoch, **session, **names))
            assert codes(gone) == [ErrorCode.UNKNOWN_TOPIC_ID]
        added = self.ask(kit, (0, 2), session_epoch=3, topic_id=new, **session, **names)
        assert codes(answers(added)) == [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NONE]

    async def test_session_of_one_kind_cannot_go_on_as_the_other(self, kit, topic):
        """Rule 89."""
        full = self.ask(kit, (0, 0), session_epoch=0)
        wanted = {"session_id": full.session_id, "session_epoch": 1, "version": 13}
        assert self.ask(kit, **wanted).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR

    async def test_busy_partitions_give_way(self, kit, topic):
        """Rule 88."""
        for index in range(3):
            for _ in range(3):
                kit.append("x" * 100, index=index)
        full = self.ask(kit, (0, 0), (1, 0), (2, 0), session_epoch=0, max_bytes=1)
        served = [[d.partition_index for d in answers(full) if d.records]]
        for epoch in (1, 2, 3):
            more = self.ask(kit, session_id=full.session_id, session_epoch=epoch, max_bytes=1)
            served.append([d.partition_index for d in answers(more) if d.records])
        assert served == [[0], [1], [2], [0]]

    async def test_session_that_asks_for_nothing_is_answered_at_once(self, kit, topic):
        """Rule 70."""
        assert self.ask(kit, session_epoch=0, max_wait_ms=10_000).responses == []


class TestWaiting:
    """Rules 70 and 71, by a clock that jumps."""

    def waits(self, kit, *partitions, **options):
        options = {"max_wait_ms": 500, "version": BY_NAME, **options}
        version = options.pop("version")
        return kit.parked(HANDLER, request(*partitions, **options), version)

    def is_answered_at_once(self, kit, *partitions, **options):
        wanted = request(*partitions, max_wait_ms=500, **options)
        return not isinstance(kit.handle(HANDLER, wanted, BY_NAME), Deferred)

    async def test_nothing_is_answered_when_the_time_is_up(self, kit, topic, autojump_clock):
        async with self.waits(kit, (0, 0), (1, 0)) as parked:
            await trio.sleep(1)
            assert parked.after_s == 0.5
            assert [fetched(each) for each in answers(parked.response)] == [[], []]

    @pytest.mark.parametrize(
        "options", [{"min_bytes": 0}, {"min_bytes": -1}, {"max_wait_ms": 0}, {"max_wait_ms": -1}]
    )
    async def test_who_does_not_want_to_wait_is_answered_at_once(self, kit, topic, options):
        wanted = {"max_wait_ms": 500, **options}
        response = kit.handle(HANDLER, request((0, 0), **wanted), BY_NAME)
        assert not isinstance(response, Deferred)

    async def test_record_ends_the_wait(self, kit, topic, autojump_clock):
        async with self.waits(kit, (0, 0), (1, 0)) as parked:
            await trio.sleep(0.2)
            kit.append("a", index=1)
            await wait_all_tasks_blocked()
            assert parked.after_s == pytest.approx(0.2)
            assert [fetched(each) for each in answers(parked.response)] == [[], [(0, 0)]]

    async def test_bytes_of_all_partitions_count_together(self, kit, topic, autojump_clock):
        kit.append("x" * 1_000, index=2)
        async with self.waits(kit, (0, 0), (1, 0), (2, 0), min_bytes=2_500) as parked:
            kit.append("x" * 1_000, index=0)
            await wait_all_tasks_blocked()
            assert parked.response is None
            kit.append("x" * 100, index=1)
            await wait_all_tasks_blocked()
            assert parked.response is None
            kit.append("x" * 200, index=1)
            await wait_all_tasks_blocked()
            assert [len(fetched(each)) for each in answers(parked.response)] == [1, 2, 1]

    async def test_too_few_bytes_are_answered_when_the_time_is_up(self, kit, topic, autojump_clock):
        kit.append("a")
        async with self.waits(kit, (0, 0), min_bytes=1 << 20) as parked:
            await trio.sleep(1)
            assert parked.after_s == 0.5
            assert fetched(answers(parked.response)[0]) == [(0, 0)]

    async def test_bytes_beyond_a_limit_are_not_waited_for(self, kit, topic, autojump_clock):
        """More than fits is there: to wait would bring the client nothing."""
        for _ in range(3):
            kit.append("x" * 1_000)
        assert self.is_answered_at_once(kit, limited(0, 0, 2_500), min_bytes=2_500)
        assert self.is_answered_at_once(kit, (0, 0), max_bytes=2_500, min_bytes=1 << 20)
        kit.append("x" * 10, index=1)
        assert self.is_answered_at_once(kit, (1, 0), (0, 0), max_bytes=500, min_bytes=600)
        async with self.waits(kit, limited(0, 0, 10_000), min_bytes=10_000) as parked:
            for _ in range(6):
                kit.append("x" * 1_000)
                await wait_all_tasks_blocked()
                assert parked.response is None
            kit.append("x" * 1_000)
            await wait_all_tasks_blocked()
            assert len(fetched(answers(parked.response)[0])) == 9

    async def test_end_of_an_older_segment_is_not_waited_at(self, kit, autojump_clock):
        """Rule 71."""
        await kit.create("t", internal_segment_bytes=1_500)
        for _ in range(3):
            kit.append("x" * 1_000)
        assert self.is_answered_at_once(kit, (0, 0), min_bytes=1 << 20)
        async with self.waits(kit, (0, 2), min_bytes=1 << 20) as parked:
            kit.append("x" * 1_000)
            await wait_all_tasks_blocked()
            assert fetched(answers(parked.response)[0]) == [(2, 2)]

    async def test_error_is_told_at_once(self, kit, topic):
        """Rule 70."""
        assert self.is_answered_at_once(kit, (0, 0), (7, 0))
        assert self.is_answered_at_once(kit, (0, 0), (1, 9))

    async def test_open_transaction_keeps_readers_of_committed_records_waiting(
        self, kit, topic, autojump_clock
    ):
        """Rules 71 and 72."""
        async with self.waits(kit, (0, 0), isolation_level=1) as parked:
            kit.append("a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
            await wait_all_tasks_blocked()
            assert parked.response is None
            kit.partition().append(marker(1), now_ms=0, origin=AppendOrigin.COORDINATOR)
            await wait_all_tasks_blocked()
            (data,) = answers(parked.response)
            assert len(fetched(data)) == 2
            assert len(data.aborted_transactions) == 1

    @pytest.mark.parametrize(
        ("version", "code"),
        [
            (BY_NAME, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (LATEST, ErrorCode.UNKNOWN_TOPIC_ID),
        ],
    )
    async def test_deleted_topic_ends_the_wait(self, kit, topic, autojump_clock, version, code):
        names = {"topic": "", "topic_id": topic} if version == LATEST else {}
        async with self.waits(kit, (0, 0), version=version, **names) as parked:
            await kit.delete("t")
            await wait_all_tasks_blocked()
            assert parked.after_s == 0
            assert codes(answers(parked.response)) == [code]

    async def test_records_of_a_topic_made_anew_meanwhile_end_the_wait(
        self, kit, topic, autojump_clock
    ):
        """The one that was waited for is gone before anybody looks at it again."""
        async with self.waits(kit, (0, 0)) as parked:
            await kit.create("t", deletes="t")
            await wait_all_tasks_blocked()
            assert parked.response is None
            await trio.sleep(0.1)
            kit.append("a")
            await wait_all_tasks_blocked()
            assert parked.after_s == pytest.approx(0.1)
            assert fetched(answers(parked.response)[0]) == [(0, 0)]

    async def test_new_partitions_of_the_topic_do_not_disturb(self, kit, topic, autojump_clock):
        async with self.waits(kit, (0, 0)) as parked:
            await kit.add_partitions("t", 5)
            kit.append("a", index=4)
            await wait_all_tasks_blocked()
            assert parked.response is None
            kit.append("a")
            await wait_all_tasks_blocked()
            assert parked.response is not None

    async def test_new_leader_epoch_ends_the_wait_of_an_older_client(
        self, kit, topic, autojump_clock
    ):
        """Rule 76."""
        wanted = FetchPartition(partition=0, partition_max_bytes=100, current_leader_epoch=0)
        async with self.waits(kit, wanted) as parked:
            await raise_epochs(kit)
            await wait_all_tasks_blocked()
            assert codes(answers(parked.response)) == [ErrorCode.FENCED_LEADER_EPOCH]

    async def test_deleted_records_end_the_wait_for_them(self, kit, topic, autojump_clock):
        kit.append("a", "b")
        async with self.waits(kit, (0, 1), min_bytes=1 << 20) as parked:
            kit.partition().delete_records_before(2)
            await wait_all_tasks_blocked()
            assert codes(answers(parked.response)) == [ErrorCode.OFFSET_OUT_OF_RANGE]

    async def test_what_came_before_the_wait_began_is_not_missed(self, kit, topic, autojump_clock):
        """Answers to earlier requests are sent between admission and wait."""
        pending = kit.handle(HANDLER, request((0, 0), (1, 0), max_wait_ms=500), BY_NAME)
        kit.append("a", index=1)
        began = trio.current_time()
        response = kit.read(HANDLER, await pending.wait(), BY_NAME)
        assert trio.current_time() == began
        assert [len(fetched(each)) for each in answers(response)] == [0, 1]

    async def test_topic_that_went_before_the_wait_began_is_not_missed(self, kit, topic):
        pending = kit.handle(HANDLER, request((0, 0), max_wait_ms=500), BY_NAME)
        await kit.delete("t")
        response = kit.read(HANDLER, await pending.wait(), BY_NAME)
        assert codes(answers(response)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    async def test_nobody_is_watched_any_more_afterwards(self, kit, topic, autojump_clock):
        """Neither after an answer, nor after a cancellation."""
        for cancelled in (False, True):
            async with self.waits(kit, (0, 0), (1, 0)):
                assert all(p._watchers for p in map(kit.partition, "tt", (0, 1)))
                if not cancelled:
                    await trio.sleep(1)
            assert not any(p._watchers for p in kit.replicas.partitions())

    async def test_only_what_moved_is_read_again(self, kit, autojump_clock, monkeypatch):
        """Goal: a fetch of many partitions does not cost as many reads at each append."""
        await kit.create("t", 200)
        wanted = [(index, 0) for index in range(200)]
        async with self.waits(kit, *wanted, min_bytes=1_000) as parked:
            reads = []
            read = Partition.read
            monkeypatch.setattr(
                Partition,
                "read",
                lambda self, *args, **options: reads.append(self) or read(self, *args, **options),
            )
            kit.append("x", index=5)
            kit.append("x", index=5)
            kit.append("x", index=170)
            await wait_all_tasks_blocked()
            assert len(reads) == 2
            assert parked.response is None
            kit.append("x" * 1_000, index=199)
            await wait_all_tasks_blocked()
            assert parked.response is not None
