"""A log in memory and a clock that is set by hand."""

from dataclasses import dataclass

from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import read_batch_header, set_offset_and_epoch

START_MS = 1_000_000
WALL_OFFSET_MS = 1_700_000_000_000


class FakeClock:
    def __init__(self):
        self.now_ms = START_MS

    def monotonic_ms(self):
        return self.now_ms

    def real_monotonic_ms(self):
        return self.monotonic_ms()

    def wall_ms(self):
        return WALL_OFFSET_MS + self.now_ms


@dataclass(slots=True)
class Appended:
    first_offset: int
    last_offset: int


class FakePartition:
    """Holds batches as a partition's log would; `replicates` off leaves the high watermark."""

    max_batch_bytes = 1_048_588

    def __init__(self, topic="__consumer_offsets", partition=0):
        self.topic_partition = TopicPartition(topic, partition)
        self.batches = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.replicates = True
        self.refusal = None
        self.origins = []
        self.leader_epoch = 0
        self.watchers = {}

    def append(self, records, *, now_ms, origin, all_acks):
        assert all_acks
        if self.refusal is not None:
            raise KafkaError(self.refusal, "told to")
        if len(records) > self.max_batch_bytes:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"{len(records)} bytes")
        self.origins.append(origin)
        set_offset_and_epoch(records, 0, base_offset=self.log_end_offset, leader_epoch=0)
        header = read_batch_header(records)
        first, self.log_end_offset = self.log_end_offset, header.next_offset
        self.batches.append(memoryview(bytes(records)))
        if self.replicates:
            self.replicate()
        return Appended(first, self.log_end_offset - 1)

    def replicate(self, up_to=None):
        self.high_watermark = self.log_end_offset if up_to is None else up_to
        for watcher in [*self.watchers]:
            watcher()

    def read_batches(self, offset):
        for batch in self.batches:
            header = read_batch_header(batch)
            if header.next_offset > offset and header.next_offset <= self.high_watermark:
                yield batch

    def watch(self, watcher):
        self.watchers[watcher] = None

    def unwatch(self, watcher):
        self.watchers.pop(watcher, None)
