"""What the log's tests share: batches, a clock, a listener that notes, logs on a simulated disk."""

from uuid import UUID

from kafkalite.log.log import Log
from kafkalite.log.recovery import open_log
from kafkalite.log_config import LogConfig
from kafkalite.types import TopicPartition
from kafkalite.wire.records import Record, build_batch, control_batch, iterate_records
from tests.log.sim_disk import SimDisk

TP = TopicPartition("t", 0)
TOPIC_ID = UUID(int=7)
DIRECTORY = "/data/t-0"
NOW_MS = 1_700_000_000_000


class FakeClock:
    def __init__(self, now_ms=NOW_MS):
        self.now_ms = now_ms

    def monotonic_ms(self):
        return self.now_ms - NOW_MS

    def real_monotonic_ms(self):
        return self.monotonic_ms()

    def wall_ms(self):
        return self.now_ms


class NotingListener:
    """Keeps what it is told as (what, log start or so)."""

    def __init__(self, disk=None):
        self.disk = disk
        self.notes = []
        self.removed = []

    def on_flush_due(self, log):
        self.notes.append("flush")

    def on_start_moved(self, log):
        self.notes.append("start")

    def on_truncated(self, log):
        self.notes.append("truncated")

    def on_segments_removed(self, log, segments):
        self.notes.append("removed")
        self.removed += segments

    def on_failed(self, log):
        self.notes.append("failed")


def batch(*values, timestamp=NOW_MS, timestamps=None, keys=None, **options):
    """Return a batch with a record per value; values are strings or ints (bytes of a value)."""
    records = [
        Record(
            offset=index,
            timestamp=timestamps[index] if timestamps else timestamp,
            key=keys[index] if keys else None,
            value=value if isinstance(value, bytes) else str(value).encode(),
        )
        for index, value in enumerate(values)
    ]
    return build_batch(records, **options)


def marker(producer_id, epoch=0, *, commit=False, coordinator_epoch=0, timestamp=NOW_MS):
    return control_batch(
        is_commit=commit,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp_ms=timestamp,
    )


def make_log(
    disk=None,
    *,
    clean=True,
    log_start_offset=0,
    recovery_point=0,
    listener=None,
    clock=None,
    directory=DIRECTORY,
    **config,
):
    """Return a log, opened from what is in the directory."""
    disk = disk or SimDisk()
    clock = clock or FakeClock()
    disk.make_directory(directory)
    log_config = LogConfig(**config)
    state = open_log(
        disk,
        directory,
        log_config,
        clean=clean,
        log_start_offset=log_start_offset,
        recovery_point=recovery_point,
        now_ms=clock.wall_ms(),
    )
    return Log(
        disk,
        directory,
        TP,
        TOPIC_ID,
        log_config,
        state,
        clock=clock,
        listener=listener or NotingListener(),
    )


def append(log, *values, epoch=0, now_ms=NOW_MS, origin=None, **options):
    """Append one batch as a leader does."""
    arguments = {} if origin is None else {"origin": origin}
    return log.append_as_leader(
        batch(*values, **options), leader_epoch=epoch, now_ms=now_ms, **arguments
    )


def contents(log, offset=None, upper=None):
    """Return (offset, value) of all records of data batches."""
    found = []
    for data in log.read_batches(log.log_start_offset if offset is None else offset, upper):
        if not data[22] & 0x20:
            found += [(record.offset, record.value.decode()) for record in iterate_records(data)]
    return found
