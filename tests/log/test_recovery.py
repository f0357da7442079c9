"""Opening a directory after a crash at any moment, and after what else can happen to it."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.log.validate import AppendOrigin
from tests.log.log_kit import (
    DIRECTORY,
    NOW_MS,
    append,
    contents,
    make_log,
    marker,
)
from tests.log.recovery_kit import SMALL, Remover, everything
from tests.log.sim_disk import SimDisk


class History:
    """A log's life on a disk that keeps a trace; `states[n]` holds once n changes were made."""

    def __init__(self, **config):
        self.disk = SimDisk()
        self.config = SMALL | config
        self.log = make_log(self.disk, listener=Remover(), **self.config)
        self.sequence = 0
        self.states = {}
        self.note()

    def note(self):
        log = self.log
        self.states[len(self.disk.trace)] = {
            "records": everything(log),
            "start": log.log_start_offset,
            "end": log.log_end_offset,
            "recovery_point": log.recovery_point_to_write,
            "sequence": self.sequence,
        }

    def append(self, *values, **options):
        append(self.log, *values, **options)
        self.note()

    def produce(self, *values, **options):
        append(
            self.log,
            *values,
            producer_id=9,
            producer_epoch=0,
            base_sequence=self.sequence,
            **options,
        )
        self.sequence += len(values)
        self.note()

    def mark(self, *, commit):
        self.log.append_as_leader(
            marker(9, commit=commit),
            leader_epoch=3,
            now_ms=NOW_MS,
            origin=AppendOrigin.COORDINATOR,
        )
        self.note()

    def do(self, action):
        action(self.log)
        self.note()


def lived():
    """Return the history of a log that has seen everything a log can see."""
    history = History()
    for number in range(6):
        history.append(f"value {number}", "x" * 40, epoch=1)
    history.produce("a", "b", epoch=1)
    history.do(lambda log: log.roll())
    history.produce("in transaction", epoch=2, transactional=True)
    history.do(lambda log: log.flush_now())
    history.produce("in transaction too" * 10, epoch=2, transactional=True)
    history.mark(commit=False)
    for number in range(5):
        history.append("y" * 120, number, epoch=4)
    history.do(lambda log: log.truncate_to(log.log_end_offset - 3))
    history.append("after truncation", epoch=5)
    history.do(lambda log: log.delete_records_before(7))
    history.do(lambda log: log.apply_retention(NOW_MS))
    history.append("z" * 500, epoch=5)
    history.produce("last", epoch=6)
    return history


def check_recovered(disk, history, before, after, *, changes):
    """Recover; what two neighbouring states share must be there, and nothing they both lack."""
    log = make_log(
        disk,
        clean=False,
        log_start_offset=min(before["start"], after["start"]),
        recovery_point=min(before["recovery_point"], after["recovery_point"]),
        **history.config,
    )
    found = everything(log)
    # Segments below the log start may be gone or not.
    kept = max(before["start"], after["start"])
    wanted = [r for r in before["records"] if r in after["records"] and r[0] >= kept]
    assert [r for r in found if r[0] >= kept and r in wanted] == wanted, changes
    allowed = set(before["records"]) | set(after["records"])
    assert set(found) <= allowed, changes
    assert log.log_end_offset in {
        *(offset + 1 for offset, _ in found),
        before["end"],
        after["end"],
    }, changes
    check_consistent(disk, log, history)
    return log


def check_consistent(disk, log, history):
    """Indexes lead to batches, epochs to their records; the log can go on and be opened again."""
    for segment in log.segments:
        spans = {span.last_offset: span for span in segment.spans()}
        for slot in range(len(segment.offset_index)):
            entry = segment.offset_index.entry_at(slot)
            assert spans[entry.offset].position == entry.position
        for slot in range(len(segment.time_index)):
            entry = segment.time_index.entry_at(slot)
            assert spans[entry.offset].max_timestamp == entry.timestamp
        for _, header in segment.headers():
            if header.base_offset >= log.log_start_offset:
                assert log.epochs.epoch_at(header.base_offset) == header.partition_leader_epoch
        assert spans == {span.last_offset: span for span in spans.values()}
    producer = log.producers.get(9)
    sequences = [
        header.last_sequence
        for segment in log.segments
        for _, header in segment.headers()
        if header.producer_id == 9 and not header.is_control
    ]
    if sequences:
        assert producer.last_sequence == sequences[-1]
    before = everything(log)
    offset = log.log_end_offset
    append(log, "goes on", epoch=10)
    log.close()
    again = make_log(disk, log_start_offset=log.log_start_offset, **history.config)
    assert everything(again) == [*before, (offset, b"goes on")]
    assert not [
        entry.name
        for entry in disk.list(DIRECTORY)
        if entry.name.endswith((".tmp", ".deleted", ".swap", ".cleaned"))
    ]


def around(states, changes):
    """Return the states before and after a number of changes."""
    before = max(at for at in states if at <= changes)
    after = min((at for at in states if at >= changes), default=before)
    return states[before], states[after]


def test_a_process_killed_between_any_two_changes_to_files_loses_nothing():
    """kill -9: what was written is there. Rule 184."""
    history = lived()
    trace = history.disk.trace
    first = min(history.states)
    for changes in range(first, len(trace) + 1):
        disk = SimDisk.replay(trace, changes)
        before, after = around(history.states, changes)
        check_recovered(disk, history, before, after, changes=trace[changes - 1])


def test_a_process_killed_at_any_byte_of_its_last_writes_loses_nothing():
    history = lived()
    trace = history.disk.trace
    writes = [
        at
        for at, operation in enumerate(trace)
        if operation[0] in ("append", "replace") and at >= min(history.states)
    ]
    last_log_writes = [at for at in writes if trace[at][1].endswith(".log")][-2:]
    for at in writes:
        size = len(trace[at][2])
        steps = range(size) if at in last_log_writes else {0, 1, 12, 60, 61, size // 2, size - 1}
        for torn in steps:
            if 0 <= torn < size:
                disk = SimDisk.replay(trace, at, torn)
                before, after = around(history.states, at)
                check_recovered(disk, history, before, after, changes=(trace[at][:2], torn))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_a_power_failure_loses_nothing_below_the_recovery_point(seed, data):
    """Unsynced bytes are cut off or zero; what a flush has promised stays."""
    random = Random(seed)
    history = History(index_interval_bytes=0)
    count = data.draw(st.integers(1, 25))
    safe = []
    for number in range(count):
        if random.random() < 0.4:
            history.produce("p" * random.randint(0, 60), epoch=number // 5)
        else:
            history.append("x" * random.randint(0, 200), number, epoch=number // 5)
        if random.random() < 0.2:
            history.do(lambda log: log.roll())
        if random.random() < 0.2:
            history.do(lambda log: log.flush_now())
            safe = everything(history.log)
    disk = history.disk.after_power_failure(random)
    log = make_log(
        disk,
        clean=False,
        recovery_point=history.log.recovery_point_to_write,
        **history.config,
    )
    found = everything(log)
    assert found[: len(safe)] == safe
    # A segment that lost its unsynced end leaves a gap before the next one, as with Kafka: gaps are
    # legal, and taking one for damage would throw away what compaction has left.
    assert [record for record in everything(history.log) if record in found] == found
    check_consistent(disk, log, history)


def test_segment_of_which_nothing_was_flushed_does_not_stop_later_starts():
    """Its name may reach the disk without its bytes, as that of the segment behind it."""
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a")
    log.roll()
    append(log, "b")
    disk.files["/data/t-0/00000000000000000000.log"].data.clear()
    recovered = make_log(disk.copy(), clean=False)
    assert contents(recovered) == [(1, "b")]
    disk.remove("/data/t-0/00000000000000000001.log")
    disk.open("/data/t-0/00000000000000000001.log", create=True)
    recovered = make_log(disk, clean=False)
    assert (recovered.log_start_offset, recovered.log_end_offset) == (0, 1)
    append(recovered, "c")
    recovered.close()
    again = make_log(disk)
    assert contents(again) == [(1, "c")]


def test_a_bad_byte_behind_the_recovery_point_cuts_the_log_there():
    disk = SimDisk()
    log = make_log(disk, **SMALL)
    for number in range(20):
        append(log, "x" * 100, number)
    second = log.segments.closed[1]
    disk.files[second.path(".log")].data[second.size - 5] ^= 1
    last_good = list(second.spans())[-1].base_offset
    again = make_log(disk.copy(), clean=False, **SMALL)
    assert again.log_end_offset == last_good
    assert len(again.segments) == 2
    append(again, "on")


def test_segments_below_the_recovery_point_are_not_read():
    disk = SimDisk()
    log = make_log(disk, **SMALL)
    for number in range(50):
        append(log, "x" * 100, number)
    log.flush_now()
    append(log, "unsafe")
    first = log.segments.first
    disk.files[first.path(".log")].data[70] ^= 1
    disk.bytes_read = 0
    again = make_log(disk, clean=False, recovery_point=log.local_log.recovery_point, **SMALL)
    assert again.log_end_offset == 101
    assert disk.bytes_read < 5000 < log.size_bytes


def test_recovery_reads_large_files_in_pieces(monkeypatch):
    monkeypatch.setattr("kafkalite.log.recovery.CHUNK_BYTES", 1000)
    disk = SimDisk()
    log = make_log(disk, index_interval_bytes=500)
    for size in (10, 3000, 10, 900, 950, 990, 5000, 10):
        append(log, "x" * size)
    again = make_log(disk.copy(), clean=False, index_interval_bytes=500)
    assert everything(again) == everything(log)
    disk.files[log.segments.active.path(".log")].data += b"\0" * 40
    again = make_log(disk.copy(), clean=False, index_interval_bytes=500)
    assert everything(again) == everything(log)
    wanted = everything(log)[:-1]
    del disk.files[log.segments.active.path(".log")].data[-45:]
    again = make_log(disk.copy(), clean=False, index_interval_bytes=500)
    assert everything(again) == wanted


def test_offsets_that_go_back_are_cut_off():
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a", "b")
    data = bytes(disk.files[log.segments.active.path(".log")].data)
    disk.files[log.segments.active.path(".log")].data += data
    again = make_log(disk, clean=False)
    assert contents(again) == [(0, "a"), (1, "b")]


def test_the_producers_of_a_crashed_log_are_known_from_snapshot_and_batches():
    """Rule 63."""
    disk = SimDisk()
    log = make_log(disk)
    options = {"producer_id": 9, "producer_epoch": 0}
    append(log, "a", base_sequence=0, transactional=True, **options)
    log.roll()
    log.flush_now()
    append(log, "b", base_sequence=1, transactional=True, **options)
    disk.remove(f"{DIRECTORY}/00000000000000000001.snapshot")
    for _ in range(2):
        again = make_log(disk.copy(), clean=False, recovery_point=log.local_log.recovery_point)
        assert again.producers.get(9).last_sequence == 1
        assert again.first_unstable_offset == 0
        log.roll()


def test_aborted_transactions_are_found_again():
    """The transaction index of the last segments is rebuilt (rule 116)."""
    disk = SimDisk()
    log = make_log(disk)
    append(log, "a", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    log.roll()
    log.append_as_leader(marker(9), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    wanted = log.aborted_transactions(0, 2)
    for recovery_point in (0, 1):
        again = make_log(disk.copy(), clean=False, recovery_point=recovery_point)
        assert again.aborted_transactions(0, 2) == wanted == [(9, 0, 1, 2)]
