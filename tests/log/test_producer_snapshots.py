"""Snapshot files, and replay from where they end (rule 63)."""

from kafkalite.log.producer_snapshots import Snapshots, replay, restore
from kafkalite.log.producer_state import ProducerStates
from tests.log.log_kit import append, make_log, marker
from tests.log.sim_disk import SimDisk


def produce(log, producer_id, sequence, count=1, **options):
    append(
        log,
        *range(count),
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        **options,
    )


def known(states):
    return {state.producer_id: state.last_sequence for state in states}


def log_with_producers(disk):
    log = make_log(disk)
    for number in range(3):
        produce(log, 1, number)
        produce(log, 2, number * 2, 2)
        log.roll()
    return log


def test_restore_is_the_snapshot_and_the_batches_behind_it():
    disk = SimDisk()
    log = log_with_producers(disk)
    disk.reads = 0
    for end, sequences in ((9, {1: 2, 2: 5}), (7, {1: 2, 2: 3}), (3, {1: 0, 2: 1}), (0, {})):
        states = ProducerStates()
        snapshots = Snapshots(disk, log.directory, [3, 6, 9])
        restore(snapshots, states, log.segments, end)
        assert known(states) == sequences


def test_without_snapshot_all_is_replayed():
    log = log_with_producers(SimDisk())
    states = ProducerStates()
    restore(Snapshots(SimDisk(), "/none"), states, log.segments, 9)
    assert known(states) == {1: 2, 2: 5}


def test_a_damaged_snapshot_is_removed_and_the_next_older_taken():
    disk = SimDisk()
    log = log_with_producers(disk)
    path = f"{log.directory}/00000000000000000006.snapshot"
    disk.files[path].data[-1] ^= 1
    snapshots = Snapshots(disk, log.directory, [3, 6, 9])
    disk.remove(snapshots.path(9))
    states = ProducerStates()
    assert snapshots.load(states, 20) == 3
    assert snapshots.offsets == {3}
    assert known(states) == {1: 0, 2: 1}


def test_replay_knows_the_end_of_transactions():
    disk = SimDisk()
    log = make_log(disk)
    produce(log, 1, 0, transactional=True)
    produce(log, 2, 0, transactional=True)
    from kafkalite.log.validate import AppendOrigin

    log.append_as_leader(marker(1), leader_epoch=0, now_ms=0, origin=AppendOrigin.COORDINATOR)
    states = ProducerStates()
    replay(log.segments.active, states, -1, 2)
    assert states.first_unstable_offset == 0
    states = ProducerStates()
    replay(log.segments.active, states, -1, 3)
    assert states.first_unstable_offset == 1
    states = ProducerStates()
    replay(log.segments.active, states, 3, 3)
    assert len(states) == 0


def test_snapshots_of_truncated_and_deleted_segments_are_removed():
    disk = SimDisk()
    disk.make_directory("/d")
    snapshots = Snapshots(disk, "/d")
    for offset in (0, 10, 20, 25, 30):
        snapshots.write(ProducerStates(), offset)
    snapshots.remove_after(25)
    assert snapshots.offsets == {0, 10, 20, 25}
    snapshots.remove_stray({0, 20})
    assert snapshots.offsets == {0, 20, 25}
    snapshots.remove([0, 1])
    assert [entry.name for entry in disk.list("/d")] == [
        "00000000000000000020.snapshot",
        "00000000000000000025.snapshot",
    ]
    snapshots.move("/e")
    assert snapshots.path(1) == "/e/00000000000000000001.snapshot"
