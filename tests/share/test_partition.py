"""What becomes of records in flight (rules 395-397, 399-404)."""

import random

import pytest

from kafkalite.share.acquisition import (
    AbortedFrom,
    AcquireMode,
    LogBatch,
    Wish,
    acquire,
    throttled_from,
)
from kafkalite.share.batches import StateBatch
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.share.partition_kit import (
    ACCEPT,
    BATCHES_OF_5,
    GAP,
    LOCK_MS,
    REJECT,
    RELEASE,
    RENEW,
    A,
    K,
    R,
    Setup,
)


class TestLoad:
    """Rule 395."""

    def test_stored_states_are_in_flight(self):
        setup = Setup(start=5, batches=[StateBatch(5, 9, 1, A), StateBatch(10, 10, 1, R)])
        assert setup.bounds == (5, 10)
        assert setup.share.delivery_complete_count == 1
        assert setup.fetch() == [(5, 9, 2), (11, 19, 1)]

    def test_leading_final_ones_are_passed_at_once(self):
        setup = Setup(start=0, batches=[StateBatch(0, 4, 1, K), StateBatch(5, 9, 3, A)])
        assert setup.bounds == (5, 9)
        assert Setup(start=0, batches=[StateBatch(0, 4, 1, K)]).bounds == (5, 5)

    def test_hole_is_delivered_as_new(self):
        setup = Setup(start=0, batches=[StateBatch(5, 6, 2, A), StateBatch(15, 16, 1, K)])
        assert setup.share.next_fetch_offset() == 0
        assert setup.fetch() == [(0, 4, 1), (5, 6, 3), (7, 14, 1), (17, 19, 1)]
        assert setup.bounds == (0, 19)

    def test_hole_in_the_middle_keeps_the_start_from_moving_past_it(self):
        setup = Setup(start=0, batches=[StateBatch(0, 4, 1, A), StateBatch(10, 14, 1, K)])
        assert setup.fetch(count=5) == [(0, 4, 2)]
        setup.acknowledge((0, 4, ACCEPT))
        assert setup.bounds == (5, 14)
        assert setup.fetch() == [(5, 9, 1), (15, 19, 1)]
        setup.acknowledge((5, 9, ACCEPT))
        assert setup.bounds == (15, 19)

    def test_hole_that_is_handed_out_in_parts_is_remembered(self):
        setup = Setup(start=0, batches=[StateBatch(10, 14, 1, A)], end=15)
        assert setup.fetch(count=5) == [(0, 4, 1)]
        assert setup.fetch(count=5) == [(5, 9, 1)]
        assert setup.fetch(count=5) == [(10, 14, 2)]
        assert setup.fetch() == []

    @pytest.mark.parametrize(
        "batches",
        [
            [StateBatch(3, 4, 1, A)],
            [StateBatch(9, 8, 1, A)],
            [StateBatch(9, 9, 1, 3)],
            [StateBatch(9, 9, 1, A), StateBatch(9, 9, 1, A)],
        ],
    )
    def test_contradictions_are_refused(self, batches):
        with pytest.raises(KafkaError) as raised:
            Setup(start=5, batches=batches)
        assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


class TestAcquire:
    """Rules 396, 397 and 399."""

    def test_new_records_are_acquired_once(self, setup):
        assert setup.share.next_fetch_offset() == 0
        assert setup.fetch() == [(0, 19, 1)]
        assert setup.share.next_fetch_offset() == 20
        setup.end = 30
        assert setup.fetch("m2") == [(20, 29, 1)]

    def test_batches_of_the_log_are_kept_together(self, setup):
        assert setup.fetch(count=3) == [(0, 4, 1)]
        assert setup.fetch(count=6) == [(5, 14, 1)]

    def test_entries_are_about_as_long_as_wanted(self, setup):
        setup.end = 30
        assert setup.fetch(batch_size=7) == [(0, 9, 1), (10, 19, 1), (20, 29, 1)]
        assert Setup().fetch(batch_size=0) == [(0, 4, 1), (5, 9, 1), (10, 14, 1), (15, 19, 1)]

    def test_exact_limit_leaves_the_rest_of_the_batch_available(self, setup):
        assert setup.fetch(count=3, exact=True) == [(0, 2, 1)]
        assert setup.bounds == (0, 4)
        assert setup.share.next_fetch_offset() == 3
        assert setup.fetch("m2", count=4, exact=True) == [(3, 4, 1), (5, 6, 1)]
        assert setup.fetch("m3", count=3, exact=True) == [(7, 9, 1)]

    def test_exact_limit_splits_what_came_back(self, setup):
        setup.fetch()
        setup.acknowledge((0, 19, RELEASE))
        assert setup.fetch(count=7, exact=True) == [(0, 6, 2)]
        assert setup.share.next_fetch_offset() == 7

    def test_compacted_log_has_offsets_without_records(self):
        setup = Setup(log=[LogBatch(3, 6), LogBatch(12, 19)])
        assert setup.fetch() == [(3, 19, 1)]
        assert setup.bounds == (3, 19)

    def test_what_came_back_and_is_gone_from_the_log_is_archived(self, setup):
        setup.fetch()
        setup.acknowledge((0, 19, RELEASE))
        setup.log = [LogBatch(12, 19)]
        assert setup.fetch() == [(12, 19, 2)]
        assert setup.states()[11][0] == "ARCHIVED"
        assert setup.share.delivery_complete_count == 12

    def test_not_more_than_the_limit_are_in_flight(self):
        setup = Setup(end=1000, share_partition_max_record_locks=100)
        assert setup.fetch(count=98) == [(0, 99, 1)]
        assert not setup.share.may_acquire()
        setup.acknowledge((50, 59, RELEASE))
        assert setup.share.may_acquire()
        assert setup.fetch(count=500) == [(50, 59, 2)]
        assert not setup.share.may_acquire()
        setup.acknowledge((60, 99, ACCEPT))
        assert not setup.share.may_acquire()
        setup.acknowledge((0, 49, ACCEPT))
        assert setup.fetch(count=500) == [(100, 149, 1)]

    def test_nothing_is_acquired_of_nothing(self, setup):
        assert setup.fetch(count=0) == []
        assert Setup(log=[]).fetch() == []
        assert Setup(start=30, end=100, log=BATCHES_OF_5[:2]).fetch() == []
        later = Setup(start=30)
        wish = Wish(member_id="m", mode=AcquireMode.BATCH_OPTIMIZED, max_records=5, batch_size=5)
        acquired = acquire(
            later.share, wish, fetch_offset=30, log_batches=[LogBatch(0, 9)], now_ms=0
        )
        assert acquired.ranges == []

    def test_batch_of_the_log_that_began_below_the_start_is_cut(self):
        setup = Setup(start=7)
        assert setup.fetch(count=1) == [(7, 9, 1)]

    @pytest.mark.parametrize(("limit", "first"), [(2, 2), (3, 2), (5, 3), (10, 5)])
    def test_suspects_are_throttled_from_half_of_the_limit(self, limit, first):
        assert throttled_from(limit) == first

    def test_records_delivered_often_come_in_small_numbers_then_alone(self, setup):
        """As Apache Kafka 4.3.1 did with the same records; there what is released is written while
        the next records are acquired.
        """
        assert setup.fetch() == [(0, 19, 1)]
        setup.process(setup.share.release("m1"))
        assert setup.fetch("m2") == [(0, 19, 2)]
        setup.acknowledge((0, 19, RELEASE), member="m2")
        assert setup.fetch("m2") == [(0, 19, 3)]
        setup.acknowledge((0, 19, RELEASE), member="m2")
        assert setup.fetch("m2") == [(0, 9, 4)]
        setup.holds = True
        setup.acknowledge((0, 9, RELEASE), member="m2")
        assert setup.fetch("m2") == [(10, 19, 4)]
        setup.holds = False
        setup.end_write(setup.held[0])
        setup.acknowledge((10, 19, RELEASE), member="m2")
        for offset in range(8):
            assert setup.fetch("m2") == [(offset, offset, 5)]
            setup.acknowledge((offset, offset, RELEASE), member="m2")
        assert setup.bounds == (8, 19)
        assert setup.states()[8] == ("AVAILABLE", 4, "")

    def test_suspect_ends_what_is_delivered_with_it(self, setup):
        setup.fetch(count=5)
        setup.acknowledge((0, 4, RELEASE))
        setup.share.batches[0].whole.delivery_count = 1
        setup.fetch(count=10)
        setup.acknowledge((5, 9, RELEASE))
        setup.share.batches[1].split()
        for state in setup.share.batches[1].each:
            state.delivery_count = 3
        setup.acknowledge((0, 4, RELEASE))
        assert setup.fetch() == [(0, 4, 3)]
        assert setup.fetch() == [(5, 6, 4)]

    def test_aborted_records_are_archived(self):
        log = [
            LogBatch(0, 4, producer_id=1, is_transactional=True),
            LogBatch(5, 9),
            LogBatch(10, 12, producer_id=2, is_transactional=True),
            LogBatch(13, 13, producer_id=1, is_transactional=True, is_abort_marker=True),
            LogBatch(14, 19, producer_id=1, is_transactional=True),
        ]
        setup = Setup(log=log)
        assert setup.fetch(aborted=[AbortedFrom(1, 0)]) == [(5, 19, 1)]
        assert setup.states()[4] == ("ARCHIVED", 1, "")
        assert setup.share.delivery_complete_count == 5
        middle = Setup(log=log)
        assert middle.fetch(aborted=[AbortedFrom(2, 10)]) == [(0, 9, 1), (13, 19, 1)]


class TestAcknowledge:
    """Rules 400 and 401."""

    def test_accepted_records_are_passed(self, setup):
        setup.fetch()
        setup.acknowledge((0, 4, ACCEPT))
        assert setup.bounds == (5, 19)
        (write,) = setup.written
        assert write.batches == [StateBatch(n, n, 1, K) for n in range(5)]
        assert (write.state_epoch, write.start_offset, write.delivery_complete_count) == (2, 0, 5)
        setup.acknowledge((5, 19, ACCEPT))
        assert setup.bounds == (20, 20)

    def test_whole_batch_stays_one(self, setup):
        setup.fetch()
        setup.acknowledge((0, 19, REJECT))
        assert setup.written[0].batches == [StateBatch(0, 19, 1, R)]
        assert setup.bounds == (20, 20)

    def test_each_record_may_be_treated_in_its_own_way(self, setup):
        setup.fetch(count=5)
        setup.acknowledge((0, 4, [ACCEPT, RELEASE, REJECT, GAP, ACCEPT]))
        assert setup.bounds == (1, 4)
        names = [state for state, _, _ in setup.states().values()]
        assert names == ["AVAILABLE", "ARCHIVED", "ARCHIVED", "ACKNOWLEDGED"]
        assert setup.fetch(count=1) == [(1, 1, 2)]

    def test_records_below_the_start_are_ignored(self, setup):
        setup.fetch()
        setup.acknowledge((0, 9, ACCEPT))
        setup.acknowledge((0, 4, ACCEPT))
        assert len(setup.written) == 1
        setup.acknowledge((5, 14, ACCEPT))
        assert setup.bounds == (15, 19)

    def test_what_is_not_in_flight_is_refused(self, setup):
        assert setup.code((0, 4, ACCEPT)) is ErrorCode.INVALID_RECORD_STATE
        setup.fetch(count=10)
        assert setup.code((12, 14, ACCEPT)) is ErrorCode.INVALID_REQUEST
        assert setup.code((5, 12, ACCEPT)) is ErrorCode.INVALID_REQUEST

    def test_who_has_not_acquired_it_is_refused(self, setup):
        setup.fetch(count=10)
        assert setup.code((0, 9, ACCEPT), member="m2") is ErrorCode.INVALID_RECORD_STATE
        assert setup.code((0, 4, ACCEPT), member="m2") is ErrorCode.INVALID_RECORD_STATE
        setup.acknowledge((4, 4, RELEASE))
        assert setup.code((4, 4, ACCEPT)) is ErrorCode.INVALID_RECORD_STATE
        assert setup.code((5, 5, ACCEPT), member="m2") is ErrorCode.INVALID_RECORD_STATE

    def test_released_batch_is_refused(self, setup):
        setup.fetch()
        setup.acknowledge((0, 19, RELEASE))
        assert setup.code((0, 19, ACCEPT)) is ErrorCode.INVALID_RECORD_STATE

    def test_one_error_undoes_all(self, setup):
        setup.fetch(count=5)
        setup.fetch("m2", count=5)
        code = setup.code((0, 4, ACCEPT), (5, 9, ACCEPT))
        assert code is ErrorCode.INVALID_RECORD_STATE
        assert setup.written == []
        assert setup.bounds == (0, 9)
        setup.acknowledge((0, 4, ACCEPT))

    def test_what_is_being_written_waits(self, setup):
        setup.fetch()
        setup.holds = True
        setup.acknowledge((0, 9, RELEASE))
        assert setup.share.next_fetch_offset() == 20
        assert setup.code((0, 9, ACCEPT)) is ErrorCode.INVALID_RECORD_STATE
        setup.acknowledge((10, 19, ACCEPT))
        setup.end_write(setup.held[1])
        assert setup.bounds == (0, 19)
        setup.end_write(setup.held[0])
        assert setup.fetch() == [(0, 9, 2)]

    def test_start_waits_for_the_write_before(self, setup):
        setup.fetch(count=5)
        setup.fetch(count=5)
        setup.holds = True
        setup.acknowledge((0, 4, ACCEPT))
        setup.acknowledge((5, 9, ACCEPT))
        setup.end_write(setup.held[1])
        assert setup.bounds == (0, 9)
        setup.end_write(setup.held[0])
        assert setup.bounds == (10, 10)

    def test_failed_write_is_undone(self, setup):
        """Rule 403."""
        setup.fetch()
        setup.fails = True
        setup.acknowledge((0, 9, ACCEPT))
        assert setup.bounds == (0, 19)
        assert setup.states()[0] == ("ACQUIRED", 1, "m1")
        setup.fails = False
        setup.acknowledge((0, 9, ACCEPT))
        assert setup.bounds == (10, 19)

    @pytest.mark.parametrize(("limit", "state"), [(5, "AVAILABLE"), (2, "ARCHIVED")])
    def test_lock_that_ended_meanwhile_is_not_restored(self, limit, state):
        """Rule 403."""
        setup = Setup(share_delivery_count_limit=limit)
        setup.fetch()
        setup.acknowledge((0, 19, RELEASE))
        setup.fetch()
        setup.holds = True
        setup.acknowledge((0, 19, ACCEPT))
        setup.advance(LOCK_MS)
        setup.end_write(setup.held[0], is_written=False)
        states = {state for state, _, _ in setup.states().values()}
        assert states <= {state}

    def test_released_for_the_last_time_is_archived(self):
        setup = Setup(share_delivery_count_limit=2)
        setup.fetch()
        setup.acknowledge((0, 19, RELEASE))
        setup.fetch(count=500)
        setup.process(setup.share.release("m1"))
        assert setup.share.start_offset > 0


@pytest.mark.parametrize("seed", range(150))
def test_whatever_happens_nothing_finished_comes_again_and_everything_ends(seed):
    """Members, locks, failed writes and a log that is cut off, at random; then all is consumed."""
    rng = random.Random(seed)
    base, log = 0, []
    while base < 120:
        size = rng.randint(1, 8)
        log.append(LogBatch(base, base + size - 1))
        base += size + (rng.randint(0, 3) if rng.random() < 0.1 else 0)
    end = log[-1].last_offset + 1
    setup = Setup(
        log=log, end=end, share_delivery_count_limit=4, share_partition_max_record_locks=40
    )
    held = {}
    finished = set()
    setup.holds = True

    def end_write(write, *, is_written):
        setup.end_write(write, is_written=is_written)
        if is_written:
            for first, last, _, state in write.batches:
                if state != A:
                    finished.update(range(first, last + 1))

    for _ in range(300):
        action = rng.random()
        member = rng.choice(("m1", "m2", "m3"))
        if action < 0.45:
            exact = rng.random() < 0.5
            for first, last, count in setup.fetch(
                member, rng.randint(1, 20), batch_size=rng.randint(1, 10), exact=exact
            ):
                offsets = range(first, last + 1)
                assert not finished & set(offsets)
                assert 1 <= count <= 4
                held.update(dict.fromkeys(offsets, member))
        elif action < 0.8 and held:
            first = rng.choice([*held])
            owner, last = held[first], first
            while held.get(last + 1) == owner and rng.random() < 0.8:
                last += 1
            kinds = [rng.choice((ACCEPT, RELEASE, REJECT, RENEW)) for _ in range(first, last + 1)]
            if rng.random() < 0.5:
                kinds = [kinds[0]]
            try:
                setup.acknowledge((first, last, kinds), member=owner)
            except KafkaError:
                setup.check()
            for offset in range(first, last + 1):
                del held[offset]
        elif action < 0.85:
            setup.process(setup.share.release(member))
        elif action < 0.9:
            setup.advance(rng.choice((1_000, 20_000)))
        elif action < 0.92:
            setup.share.on_log_start(setup.share.start_offset + rng.randint(0, 2))
            setup.check()
        elif setup.held:
            end_write(setup.held.pop(rng.randrange(len(setup.held))), is_written=rng.random() < 0.8)
    for write in setup.held:
        end_write(write, is_written=True)
    setup.holds = False
    for _ in range(1_000):
        setup.advance(LOCK_MS)
        if setup.share.start_offset >= end:
            break
        for first, last, _ in setup.fetch("last"):
            assert not finished & set(range(first, last + 1))
            setup.acknowledge((first, last, ACCEPT), member="last")
    assert setup.bounds == (end, end)
