import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.network.budget import MemoryBudget


async def test_no_limit_lets_everything_in():
    budget = MemoryBudget(-1)
    with trio.fail_after(1):
        await budget.reserve(1 << 40)
        await budget.reserve(1 << 40)
    assert budget.used_bytes == 1 << 41


async def test_request_is_let_in_while_anything_is_left():
    """As Kafka's memory pool: the limit may be passed by one request."""
    budget = MemoryBudget(100)
    await budget.reserve(99)
    await budget.reserve(500)
    assert budget.used_bytes == 599


async def test_others_wait_until_enough_is_given_back():
    budget = MemoryBudget(100)
    await budget.reserve(150)
    done = []

    async def reserve(size):
        await budget.reserve(size)
        done.append(size)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(reserve, 10)
        nursery.start_soon(reserve, 20)
        await wait_all_tasks_blocked()
        budget.release(50)
        await wait_all_tasks_blocked()
        assert done == []
        budget.release(1)
        await wait_all_tasks_blocked()
        assert len(done) == 1
        budget.release(99)
    assert sorted(done) == [10, 20]
    assert budget.used_bytes == 30


async def test_nothing_is_always_there():
    budget = MemoryBudget(10)
    await budget.reserve(10)
    with trio.fail_after(1):
        await budget.reserve(0)
    budget.release(0)
    assert budget.used_bytes == 10


async def test_cancelled_wait_takes_nothing():
    budget = MemoryBudget(10)
    await budget.reserve(10)
    with trio.CancelScope() as scope:
        scope.cancel()
        await budget.reserve(5)
    assert scope.cancelled_caught
    budget.release(10)
    assert budget.used_bytes == 0


def test_more_given_back_than_taken_is_a_bug():
    with pytest.raises(AssertionError):
        MemoryBudget(10).release(1)
