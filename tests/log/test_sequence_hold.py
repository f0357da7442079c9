"""Batches that have to come again before their successors may (rule 231)."""

from uuid import UUID

import pytest

from kafkalite.log.producer_state import AppendedBatch, ProducerState
from kafkalite.log.sequence_hold import BatchSequence, SequenceHold, sequence_of
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.log.log_kit import batch

PLACE = ("t", 0)
OTHER = (UUID(int=5), 0)
LARGEST = 2**31 - 1


@pytest.fixture
def sequence_hold():
    return SequenceHold()


def note(sequence_hold, sequence, *, place=PLACE, producer_id=7, epoch=2, now_ms=0):
    sequence_hold.note(place, BatchSequence(producer_id, epoch, sequence), now_ms)


def is_refused(
    sequence_hold, sequence, *, place=PLACE, producer_id=7, epoch=2, state=None, now_ms=0
):
    try:
        sequence_hold.check(place, BatchSequence(producer_id, epoch, sequence), state, now_ms)
    except KafkaError as error:
        return error.code is ErrorCode.NOT_ENOUGH_REPLICAS
    return False


def written(last_sequence, *, epoch=2):
    state = ProducerState(7, epoch)
    if last_sequence >= 0:
        state.batches.append(AppendedBatch(last_sequence, last_sequence, 9, 9, 0))
    return state


def test_successors_wait_for_the_first(sequence_hold):
    note(sequence_hold, 4)
    assert is_refused(sequence_hold, 5)
    assert is_refused(sequence_hold, 6)
    assert not is_refused(sequence_hold, 4)
    assert not is_refused(sequence_hold, 5)


def test_the_first_of_several_counts(sequence_hold):
    for sequence in (4, 5, 3, 4):
        note(sequence_hold, sequence)
    assert is_refused(sequence_hold, 4)
    assert not is_refused(sequence_hold, 3)
    assert not is_refused(sequence_hold, 4)


def test_what_comes_before_it_is_taken_and_does_not_end_the_wait(sequence_hold):
    """Batches sent again because their answer was lost."""
    note(sequence_hold, 4)
    assert not is_refused(sequence_hold, 2)
    assert not is_refused(sequence_hold, 3)
    assert is_refused(sequence_hold, 5)


def test_sequences_wrap(sequence_hold):
    note(sequence_hold, LARGEST)
    assert is_refused(sequence_hold, 0)
    assert not is_refused(sequence_hold, LARGEST - 1)
    note(sequence_hold, 1)
    assert not is_refused(sequence_hold, LARGEST)
    assert not is_refused(sequence_hold, 0)


def test_other_partitions_and_producers_are_not_concerned(sequence_hold):
    note(sequence_hold, 4)
    assert not is_refused(sequence_hold, 5, place=OTHER)
    assert not is_refused(sequence_hold, 5, producer_id=8)


def test_next_epoch_begins_anew(sequence_hold):
    note(sequence_hold, 4)
    note(sequence_hold, 9, epoch=3)
    assert is_refused(sequence_hold, 10, epoch=3)
    assert not is_refused(sequence_hold, 9, epoch=3)
    note(sequence_hold, 4)
    assert not is_refused(sequence_hold, 5, epoch=3)


@pytest.mark.parametrize(
    ("state", "waits"),
    [
        (None, True),
        (written(-1), True),  # only a marker
        (written(3), True),
        (written(9, epoch=1), True),
        (written(4), False),
        (written(9), False),
        (written(-1, epoch=3), False),
    ],
)
def test_log_that_got_it_from_another_leader_waits_no_more(sequence_hold, state, waits):
    note(sequence_hold, 4)
    assert is_refused(sequence_hold, 10, state=state) is waits
    assert len(sequence_hold) == waits


def test_producer_that_gave_it_up_is_heard_in_the_end(sequence_hold):
    note(sequence_hold, 4)
    for _ in range(SequenceHold.PATIENCE):
        assert is_refused(sequence_hold, 5)
    assert not is_refused(sequence_hold, 5)
    assert not sequence_hold


def test_it_is_not_waited_for_for_ever(sequence_hold):
    note(sequence_hold, 4)
    assert is_refused(sequence_hold, 5, now_ms=SequenceHold.KEPT_MS)
    assert not is_refused(sequence_hold, 5, now_ms=SequenceHold.KEPT_MS + 1)
    note(sequence_hold, 4)
    note(sequence_hold, 9, now_ms=SequenceHold.KEPT_MS + 1)
    assert not is_refused(sequence_hold, 8, now_ms=SequenceHold.KEPT_MS + 1)


def test_end_of_the_transaction_ends_it(sequence_hold):
    note(sequence_hold, 4)
    sequence_hold.forget(PLACE, 7)
    sequence_hold.forget(OTHER, 7)
    assert not is_refused(sequence_hold, 5)


def test_there_is_an_end_to_what_is_remembered(sequence_hold):
    for number in range(SequenceHold.MAX + 5):
        note(sequence_hold, 0, producer_id=number)
    assert len(sequence_hold) == SequenceHold.MAX
    assert not is_refused(sequence_hold, 1, producer_id=4)
    assert is_refused(sequence_hold, 1, producer_id=5)


def test_sequence_is_read_from_the_bytes_of_a_batch():
    found = sequence_of(batch("a", base_sequence=3, producer_id=2**40, producer_epoch=9))
    assert found == BatchSequence(2**40, 9, 3)
    assert sequence_of(batch("a")) is None
    assert sequence_of(memoryview(b"short")) is None
    assert sequence_of(None) is None
