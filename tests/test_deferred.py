"""Answers that come later."""

import pytest
import trio

from kafkalite.deferred import Deferred, InSteps, Promise
from kafkalite.wire.errors import ErrorCode, KafkaError


async def test_what_is_promised_comes_and_may_be_converted():
    promise = Promise[int]()
    doubled = promise.map(lambda number: number * 2)
    assert isinstance(doubled, Deferred)
    promise.set_result(21)
    assert await doubled.wait() == 42


async def test_a_refusal_is_raised_and_the_first_answer_counts():
    promise = Promise[int]()
    promise.set_error(KafkaError(ErrorCode.NOT_COORDINATOR))
    promise.set_error(ValueError())
    with pytest.raises(KafkaError):
        await promise.map(str).wait()
    kept = Promise[int]()
    kept.set_result(1)
    kept.set_error(ValueError())
    assert await kept.wait() == 1


async def test_who_is_cancelled_is_forgotten():
    forgotten = []
    promise = Promise[int](lambda: forgotten.append(True))
    with trio.move_on_after(0):
        await promise.wait()
    assert forgotten


async def test_what_is_made_in_steps_stays_so_when_it_is_converted():
    async def seven():
        return 7

    converted = InSteps(seven).map(str)
    assert isinstance(converted, InSteps)
    assert await converted.wait() == "7"


async def test_a_promise_is_asked_without_a_task_as_soon_as_it_is_kept():
    changes = []
    promise = Promise[int]()
    doubled = promise.map(lambda number: number * 2)
    doubled.on_change = lambda: changes.append(True)
    assert doubled.complete() is None
    promise.set_result(21)
    assert changes == [True]
    assert doubled.complete() == 42


async def test_what_a_conversion_raises_is_the_answer():
    promise = Promise[int]()
    converted = promise.map(lambda number: 1 // number)
    promise.set_result(0)
    with pytest.raises(ZeroDivisionError):
        converted.complete()
