"""Logs of followers, and batches that are sent again."""

import errno

import pytest

from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import set_offset_and_epoch
from tests.log.log_kit import (
    NOW_MS,
    append,
    batch,
    contents,
    make_log,
    marker,
)
from tests.log.log_reading_kit import read
from tests.log.sim_disk import SimDisk


def copied(*logs, offset=0):
    return bytearray(b"".join(read(log, offset) for log in logs))


def test_a_follower_has_the_leaders_bytes():
    """Rule 170; producers' state and epochs are built from them (rule 66)."""
    leader, follower = make_log(), make_log()
    append(leader, "a", "b", epoch=2)
    append(leader, "c", epoch=4, producer_id=5, producer_epoch=0, base_sequence=0)
    info = follower.append_as_follower(copied(leader))
    assert (info.first_offset, info.last_offset) == (0, 2)
    assert copied(follower) == copied(leader)
    assert follower.epochs.entries == leader.epochs.entries
    assert follower.producers.get(5).last_sequence == 0
    assert follower.producers.has_whole_history


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_follower_that_misses_records_takes_any_producer_for_known(lost):
    """Compaction may have removed all that a producer has written, which goes on (rule 230)."""
    leader, follower = make_log(), make_log()
    for value in "abc":
        append(leader, value)
    whole = copied(leader)
    size = len(whole) // 3
    for at in range(3):
        if at != lost:
            follower.append_as_follower(whole[at * size : (at + 1) * size])
    assert not follower.producers.has_whole_history or lost == 2
    append(follower, "d", producer_id=5, base_sequence=0 if lost == 2 else 7)


def test_a_follower_leaves_out_what_is_not_whole():
    leader, follower = make_log(), make_log()
    append(leader, "a")
    append(leader, "b")
    info = follower.append_as_follower(copied(leader)[:-1])
    assert info.last_offset == 0
    assert follower.append_as_follower(bytearray(b"few bytes")) is None


def test_a_follower_does_not_run_ahead_of_the_epoch_it_fetched_in():
    """Rule 170 (KAFKA-18723)."""
    leader, follower = make_log(), make_log()
    append(leader, "a", epoch=2)
    append(leader, "b", epoch=3)
    assert follower.append_as_follower(copied(leader), leader_epoch=2).last_offset == 0
    assert follower.append_as_follower(copied(leader, offset=1), leader_epoch=2) is None
    assert follower.append_as_follower(copied(leader, offset=1), leader_epoch=3).last_offset == 1
    assert follower.epochs.entries == leader.epochs.entries


def test_a_follower_knows_no_epochs_of_what_it_could_not_write():
    """Seed 2000224 of level 2: its epoch 2 began too late, and others cut off what is committed."""
    disk = SimDisk()
    leader, follower = make_log(), make_log(disk)
    append(leader, "a", epoch=2)
    append(leader, "b", epoch=2)
    follower.append_as_follower(copied(leader)[: len(copied(leader)) // 2])
    append(leader, "c", epoch=3)
    disk.fail("append", ".log", error=errno.ENOSPC, times=1)
    with pytest.raises(KafkaError):
        follower.append_as_follower(copied(leader, offset=1))
    assert follower.epochs.entries == [(2, 0)]
    follower.append_as_follower(copied(leader, offset=1))
    assert follower.epochs.entries == leader.epochs.entries == [(2, 0), (3, 2)]
    assert make_log(disk.copy(), clean=False).epochs.entries == leader.epochs.entries


def test_a_follower_takes_gaps_but_no_steps_back():
    follower = make_log()
    data = batch("a")
    set_offset_and_epoch(data, 0, base_offset=10, leader_epoch=0)
    follower.append_as_follower(data)
    assert follower.log_end_offset == 11
    with pytest.raises(KafkaError) as error:
        follower.append_as_follower(data)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert read(follower, 3) == bytes(data)


def test_a_gap_beyond_int32_begins_a_new_segment_at_its_end():
    """Rule 200; the empty first segment is of no use then."""
    follower = make_log()
    for base_offset in (5, 5 + 2**31):
        data = batch("a")
        set_offset_and_epoch(data, 0, base_offset=base_offset, leader_epoch=0)
        follower.append_as_follower(data)
    assert [segment.base_offset for segment in follower.segments] == [0, 5 + 2**31]
    fresh = make_log()
    data = batch("a")
    set_offset_and_epoch(data, 0, base_offset=2**40, leader_epoch=0)
    fresh.append_as_follower(data)
    assert [segment.base_offset for segment in fresh.segments] == [2**40]
    assert contents(fresh) == [(2**40, "a")]


def test_an_empty_follower_begins_where_the_leaders_batch_does():
    """DeleteRecords left the leader's log start inside a batch."""
    leader = make_log()
    append(leader, "a", "b", "c")
    leader.delete_records_before(2)
    follower = make_log()
    follower.truncate_fully_and_start_at(2)
    follower.append_as_follower(copied(leader, offset=2))
    assert (follower.log_start_offset, follower.log_end_offset) == (2, 3)
    assert copied(follower, offset=2) == copied(leader, offset=2)


def test_markers_reach_a_followers_state():
    leader, follower = make_log(), make_log()
    append(leader, "a", producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    follower.append_as_follower(copied(leader))
    assert follower.first_unstable_offset == 0
    leader.append_as_leader(
        marker(5), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    follower.append_as_follower(copied(leader, offset=1))
    assert follower.first_unstable_offset is None
    assert follower.aborted_transactions(0, 2) == leader.aborted_transactions(0, 2)


PRODUCER = {"producer_id": 5, "producer_epoch": 0}


def send_again(log, sequences):
    return [
        append(log, f"v{sequence}", base_sequence=sequence, **PRODUCER) for sequence in sequences
    ]


@pytest.mark.parametrize("how", ["stop", "crash", "truncation"])
def test_last_five_batches_of_a_producer_are_recognised_afterwards(how):
    """Rules 56 and 232. After an orderly stop Kafka knows the last one only."""
    disk = SimDisk()
    log = make_log(disk)
    send_again(log, range(7))
    if how == "truncation":
        log.roll()
        append(log, "to be cut off")
        log.truncate_to(7)
    else:
        if how == "stop":
            log.close()
        log = make_log(disk, clean=how == "stop")
    again = send_again(log, range(2, 7))
    assert [(info.first_offset, info.duplicate) for info in again] == [
        (offset, True) for offset in range(2, 7)
    ]
    with pytest.raises(KafkaError) as error:
        send_again(log, [1])
    assert error.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not send_again(log, [7])[0].duplicate


def test_follower_that_is_promoted_recognises_the_last_five_batches():
    leader, follower = make_log(), make_log()
    send_again(leader, range(7))
    follower.append_as_follower(copied(leader))
    assert all(info.duplicate for info in send_again(follower, range(2, 7)))
