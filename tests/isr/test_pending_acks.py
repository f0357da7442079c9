"""Who waits for the high watermark, and how the wait ends (rules 51-52)."""

from hypothesis import given
from hypothesis import strategies as st

from kafkalite.isr.pending_acks import PendingAck, PendingAcks
from kafkalite.wire.errors import ErrorCode


def waiter(required_offset, deadline_ms=100):
    return PendingAck(required_offset, deadline_ms, on_done=lambda done: None)


def test_those_whose_offset_is_passed_are_done_in_order():
    waiters = PendingAcks()
    first, second, third, other = waiter(5), waiter(3), waiter(5), waiter(6)
    for each in (first, second, third, other):
        waiters.add(each)
    assert waiters.on_high_watermark(2) == []
    assert waiters.on_high_watermark(5) == [second, first, third]
    assert [each.outcome for each in (first, second, third)] == [ErrorCode.NONE] * 3
    assert other.outcome is None
    assert len(waiters) == 1


def test_late_ones_are_told_so():
    waiters = PendingAcks()
    late, other = waiter(5, 10), waiter(4, 11)
    waiters.add(late)
    waiters.add(other)
    assert waiters.on_time(9) == []
    assert waiters.on_time(10) == [late]
    assert late.outcome is ErrorCode.REQUEST_TIMED_OUT
    assert waiters.on_high_watermark(9) == [other]


def test_too_few_replicas_and_lost_leadership_end_all():
    for end, code in [
        (PendingAcks.on_isr_below_min, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        (PendingAcks.on_leadership_lost, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ]:
        waiters = PendingAcks()
        several = [waiter(offset) for offset in (9, 2, 5)]
        for each in several:
            waiters.add(each)
        assert [each.required_offset for each in end(waiters)] == [2, 5, 9]
        assert {each.outcome for each in several} == {code}
        assert len(waiters) == 0


def test_cancelled_one_is_not_told_again():
    waiters = PendingAcks()
    gone = waiter(5)
    waiters.add(gone)
    waiters.cancel(gone)
    assert gone.outcome is ErrorCode.REQUEST_TIMED_OUT
    assert waiters.on_high_watermark(5) == []
    waiters.cancel(gone)
    assert len(waiters) == 0


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 20), st.integers(0, 20)),
        st.tuples(st.just("cancel"), st.integers(0, 20)),
        st.tuples(st.just("watermark"), st.integers(0, 20)),
        st.tuples(st.just("time"), st.integers(0, 20)),
        st.tuples(st.just("below")),
    ),
    max_size=50,
)


@given(steps)
def test_everyone_gets_one_outcome_as_from_a_plain_list(steps):
    waiters, model, made = PendingAcks(), [], []
    for step in steps:
        match step:
            case ("add", offset, deadline_ms):
                each = waiter(offset, deadline_ms)
                made.append(each)
                model.append(each)
                waiters.add(each)
                continue
            case ("cancel", index):
                if index < len(made):
                    waiters.cancel(made[index])
                    model = [each for each in model if each is not made[index]]
                continue
            case ("watermark", offset):
                expected = [each for each in model if each.required_offset <= offset]
                done, code = waiters.on_high_watermark(offset), ErrorCode.NONE
            case ("time", now_ms):
                expected = [each for each in model if each.deadline_ms <= now_ms]
                done, code = waiters.on_time(now_ms), ErrorCode.REQUEST_TIMED_OUT
            case ("below",):
                expected, done = list(model), waiters.on_isr_below_min()
                code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert done == sorted(expected, key=lambda each: each.required_offset)
        assert all(each.outcome is code for each in done)
        model = [each for each in model if each not in expected]
    assert all(each.outcome is None for each in model)
