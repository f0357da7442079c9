"""Records of a share partition whose locks end, or that are deleted below the log's start."""

from kafkalite.share.batches import StateBatch
from kafkalite.wire.errors import ErrorCode
from tests.share.partition_kit import ACCEPT, LOCK_MS, RELEASE, RENEW, A, K, R, Settings, Setup


class TestLocks:
    """Rule 404."""

    def test_lock_ends(self, setup):
        setup.fetch()
        assert setup.share.next_deadline_ms() == LOCK_MS
        setup.advance(LOCK_MS - 1)
        assert setup.fetch("m2") == []
        setup.advance(1)
        assert setup.written[0].batches == [StateBatch(0, 19, 1, A)]
        assert setup.fetch("m2") == [(0, 19, 2)]

    def test_end_of_a_lock_counts_before_it_is_written(self, setup):
        setup.fetch()
        setup.holds = True
        setup.advance(LOCK_MS)
        assert setup.fetch("m2") == [(0, 19, 2)]
        setup.end_write(setup.held[0], is_written=False)
        assert setup.states()[0] == ("ACQUIRED", 2, "m2")

    def test_offsets_of_a_split_batch_end_together(self, setup):
        setup.fetch()
        setup.now_ms = 10_000
        setup.acknowledge((5, 5, RELEASE))
        assert setup.fetch("m2", count=1) == [(5, 5, 2)]
        setup.now_ms = LOCK_MS
        setup.process(setup.share.on_time(setup.now_ms))
        assert setup.states()[4] == ("AVAILABLE", 1, "")
        assert setup.states()[5] == ("ACQUIRED", 2, "m2")

    def test_renewed_lock_begins_anew(self, setup):
        """Rule 400."""
        setup.fetch()
        setup.now_ms = 20_000
        setup.acknowledge((0, 19, RENEW))
        assert setup.written == []
        setup.advance(10_000)
        assert setup.fetch("m2") == []
        setup.advance(20_000)
        assert setup.fetch("m2") == [(0, 19, 2)]

    def test_single_offsets_are_renewed(self, setup):
        setup.fetch()
        setup.now_ms = 20_000
        setup.acknowledge((3, 4, [RENEW, ACCEPT]))
        setup.advance(10_000)
        states = setup.states()
        assert (states[2][0], states[3][0], states[4][0]) == (
            "AVAILABLE",
            "ACQUIRED",
            "ACKNOWLEDGED",
        )

    def test_renewing_may_be_forbidden(self):
        setup = Setup(share_renew_acknowledge_enable=False)
        setup.fetch()
        assert setup.code((0, 19, RENEW)) is ErrorCode.INVALID_RECORD_STATE
        assert setup.code((0, 4, RENEW)) is ErrorCode.INVALID_RECORD_STATE

    def test_new_duration_holds_for_the_next_lock(self, setup):
        setup.fetch(count=5)
        setup.settings = Settings(share_record_lock_duration_ms=15_000)
        setup.fetch(count=5)
        setup.advance(15_000)
        assert setup.states()[4][0] == "ACQUIRED"
        assert setup.states()[5][0] == "AVAILABLE"

    def test_last_delivery_that_ends_is_archived_and_passed(self):
        setup = Setup(share_delivery_count_limit=2, end=5)
        setup.fetch()
        setup.advance(LOCK_MS)
        for _ in range(8):
            setup.fetch()
            setup.advance(LOCK_MS)
        assert setup.bounds == (5, 5)

    def test_member_that_goes_gives_back_what_it_has(self, setup):
        setup.fetch("m1", count=5)
        setup.fetch("m2", count=5)
        setup.acknowledge((0, 0, RELEASE))
        setup.process(setup.share.release("m1"))
        assert setup.written[-1].batches == [StateBatch(n, n, 1, A) for n in range(1, 5)]
        setup.process(setup.share.release("m2"))
        assert setup.written[-1].batches == [StateBatch(5, 9, 1, A)]
        assert setup.share.release("m3") is None

    def test_locks_renewed_for_ever_do_not_gather(self, setup):
        setup.fetch()
        for _ in range(500):
            setup.now_ms += 10
            setup.acknowledge((0, 19, RENEW))
        assert len(setup.share._locks) < 100
        setup.acknowledge((3, 3, RELEASE))
        for _ in range(500):
            setup.now_ms += 10
            setup.acknowledge((5, 5, RENEW))
        assert len(setup.share._locks) < 100
        setup.advance(LOCK_MS)
        assert setup.states()[5][0] == "AVAILABLE"


class TestLogStart:
    """Rule 402."""

    def test_nothing_in_flight(self, setup):
        setup.share.on_log_start(7)
        assert setup.bounds == (7, 7)
        setup.share.on_log_start(3)
        assert setup.bounds == (7, 7)

    def test_available_records_are_given_up_and_acquired_ones_stay(self, setup):
        setup.fetch(count=5)
        setup.fetch(count=5)
        setup.acknowledge((0, 4, RELEASE))
        setup.share.on_log_start(8)
        setup.check()
        assert setup.bounds == (8, 9)
        assert setup.share.batches[0].whole.state is R
        setup.acknowledge((5, 9, ACCEPT))
        assert setup.written[-1].batches == [StateBatch(8, 8, 1, K), StateBatch(9, 9, 1, K)]
        assert setup.bounds == (8, 9)
        setup.advance(LOCK_MS)
        assert setup.bounds == (10, 10)

    def test_everything_in_flight_is_below_it(self, setup):
        setup.fetch()
        setup.share.on_log_start(50)
        assert setup.bounds == (50, 50)
        assert setup.share.next_fetch_offset() == 50
        setup.advance(LOCK_MS)
        assert {batch.delivery_state for batch in setup.written[0].batches} == {R}
        setup.end = 60
        assert setup.fetch() == [(50, 59, 1)]

    def test_member_gives_back_what_is_below_it_as_archived(self, setup):
        setup.fetch()
        setup.share.on_log_start(5)
        setup.process(setup.share.release("m1"))
        states = {batch.first_offset: batch.delivery_state for batch in setup.written[0].batches}
        assert (states[4], states[5]) == (R, A)

    def test_lock_over_it_ends_by_offset(self, setup):
        setup.fetch()
        setup.share.on_log_start(5)
        setup.advance(LOCK_MS)
        states = {batch.first_offset: batch.delivery_state for batch in setup.written[0].batches}
        assert (states[4], states[5]) == (R, A)

    def test_finished_ones_below_it_count_no_more(self, setup):
        setup.fetch()
        setup.acknowledge((3, 9, ACCEPT))
        assert setup.share.delivery_complete_count == 7
        setup.share.on_log_start(6)
        setup.check()
        assert setup.share.delivery_complete_count == 4
