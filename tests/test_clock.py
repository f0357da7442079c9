"""Time that can be turned: for deadlines, timestamps, and what waits for either."""

import math
import time

import pytest
import trio

from kafkalite.clock import AdjustableClock, SystemClock, TrioClock, within_real_time


def run(main):
    clock = AdjustableClock()
    return trio.run(main, clock, clock=TrioClock(clock))


def test_untouched_it_is_the_machines():
    clock = AdjustableClock()
    assert abs(clock.wall_ms() - SystemClock().wall_ms()) < 1_000
    assert abs(clock.monotonic_ms() - SystemClock().monotonic_ms()) < 1_000
    assert clock.ahead_s == 0


def test_a_jump_moves_deadlines_and_timestamps_but_not_connections():
    clock = AdjustableClock()
    before = clock.monotonic_ms(), clock.wall_ms(), clock.real_monotonic_ms()
    clock.jump(3_600)
    assert clock.monotonic_ms() - before[0] >= 3_600_000
    assert clock.wall_ms() - before[1] >= 3_600_000
    assert clock.real_monotonic_ms() - before[2] < 60_000
    assert 3_599 < clock.ahead_s < 3_601


def test_a_frozen_clock_shows_the_same_time_and_goes_on_from_there():
    clock = AdjustableClock()
    clock.freeze()
    shown = clock.monotonic_ms(), clock.wall_ms()
    time.sleep(0.02)
    assert clock.monotonic_ms() == shown[0]
    assert abs(clock.wall_ms() - shown[1]) <= 1  # two clocks of the machine are read
    clock.resume()
    assert 0 <= clock.monotonic_ms() - shown[0] < 10_000
    assert clock.rate == 1


def test_a_rate_is_kept_over_a_freeze():
    clock = AdjustableClock()
    clock.set_rate(60)
    clock.freeze()
    clock.freeze()
    clock.resume()
    assert clock.rate == 60
    begin, real = clock.monotonic_ms(), time.monotonic()
    time.sleep(0.02)
    assert clock.monotonic_ms() - begin >= 1_000
    assert clock.monotonic_ms() - begin < (time.monotonic() - real + 0.01) * 60_000


def test_the_wall_clock_goes_back_and_no_deadline_moves():
    clock = AdjustableClock()
    before = clock.monotonic_ms()
    clock.set_wall_ms(1_000_000)
    assert 0 <= clock.wall_ms() - 1_000_000 < 10_000
    assert 0 <= clock.monotonic_ms() - before < 10_000


def test_restored_it_shows_the_machines_time_and_monotonic_time_does_not_go_back():
    clock = AdjustableClock()
    clock.jump(3_600)
    clock.set_wall_ms(5)
    clock.freeze()
    shown = clock.monotonic_ms()
    clock.restore()
    assert clock.monotonic_ms() >= shown
    assert abs(clock.wall_ms() - SystemClock().wall_ms()) < 1_000


@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf])
def test_what_is_no_time_to_pass_is_refused(seconds):
    clock = AdjustableClock()
    with pytest.raises(ValueError, match="advanced"):
        clock.jump(seconds)
    with pytest.raises(ValueError, match="advanced"):
        run(lambda clock: clock.advance(seconds))
    with pytest.raises(ValueError, match="rate"):
        clock.set_rate(seconds)


def test_advance_does_what_is_due_in_the_order_in_which_it_is():
    done = []

    async def after(clock, delay_s):
        for _ in range(2):
            await trio.sleep(delay_s)
            done.append((delay_s, round(clock.monotonic_ms() / 1_000 - begin_s)))

    async def main(clock):
        nonlocal begin_s
        begin_s = clock.monotonic_ms() / 1_000
        async with trio.open_nursery() as nursery:
            for delay_s in (300, 700, 86_400):
                nursery.start_soon(after, clock, delay_s)
            await clock.advance(1_500)
            assert done == [(300, 300), (300, 600), (700, 700), (700, 1_400)]
            nursery.cancel_scope.cancel()

    begin_s = 0
    run(main)


def test_advance_waits_for_threads_that_a_deadline_started():
    done = []

    async def work():
        await trio.sleep(60)
        await trio.to_thread.run_sync(time.sleep, 0.05)
        done.append("in a thread")

    async def main(clock):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            await clock.advance(61)
            assert done == ["in a thread"]

    run(main)


def test_ten_years_are_gone_in_a_bounded_number_of_steps():
    checks = []

    async def check():
        while True:
            await trio.sleep(300)
            checks.append(1)

    async def main(clock):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(check)
            await clock.advance(10 * 365 * 86_400)
            nursery.cancel_scope.cancel()

    run(main)
    assert 400 <= len(checks) <= 501


def test_while_frozen_no_deadline_comes_and_advance_brings_it():
    async def main(clock):
        clock.freeze()
        woken = []

        async def sleep():
            await trio.sleep(0.001)
            woken.append(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(sleep)
            await trio.to_thread.run_sync(time.sleep, 0.02)
            assert not woken
            await clock.advance(1)
            assert woken

    run(main)


def test_at_a_rate_deadlines_come_sooner():
    async def main(clock):
        clock.set_rate(10_000)
        begin = time.monotonic()
        await trio.sleep(600)
        return time.monotonic() - begin

    assert run(main) < 30


def test_real_time_ends_a_wait_whatever_the_clock_does():
    async def main(clock):
        clock.freeze()
        assert not await within_real_time(0.01, trio.sleep_forever)
        assert await within_real_time(60, trio.lowlevel.checkpoint)

    run(main)
