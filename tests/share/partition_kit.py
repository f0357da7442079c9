"""A share partition over a log of numbers."""

from dataclasses import dataclass

import pytest

from kafkalite.share.acknowledgement import Acknowledgement, AcknowledgeType
from kafkalite.share.acquisition import (
    AcquireMode,
    LogBatch,
    Wish,
    acquire,
)
from kafkalite.share.batches import RecordState
from kafkalite.share.partition import SharePartition
from kafkalite.wire.errors import KafkaError

A, K, R = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED


ACCEPT, RELEASE, REJECT, RENEW, GAP = (
    AcknowledgeType[name] for name in ("ACCEPT", "RELEASE", "REJECT", "RENEW", "GAP")
)


LOCK_MS = 30_000


BATCHES_OF_5 = [LogBatch(base, base + 4) for base in range(0, 1000, 5)]


@dataclass
class Settings:
    share_record_lock_duration_ms: int = LOCK_MS
    share_delivery_count_limit: int = 5
    share_partition_max_record_locks: int = 2_000
    share_renew_acknowledge_enable: bool = True


class Setup:
    """A share partition over a log, and writes that succeed at once unless they are held."""

    def __init__(self, log=BATCHES_OF_5, *, start=0, batches=(), end=20, **settings):
        self.settings = Settings(**settings)
        self.share = SharePartition(lambda: self.settings)
        self.share.load(2, start, batches)
        self.log = log
        self.end = end
        self.now_ms = 0
        self.written = []
        self.held = []
        self.holds = False
        self.fails = False

    def fetch(self, member="m1", count=500, *, batch_size=500, exact=False, aborted=()):
        """Return (first, last, count) of what was acquired."""
        offset = self.share.next_fetch_offset()
        found = [b for b in self.log if b.last_offset >= offset and b.base_offset < self.end]
        mode = AcquireMode.RECORD_LIMIT if exact else AcquireMode.BATCH_OPTIMIZED
        wish = Wish(member_id=member, mode=mode, max_records=count, batch_size=batch_size)
        acquired = acquire(
            self.share,
            wish,
            fetch_offset=offset,
            log_batches=found,
            aborted=aborted,
            now_ms=self.now_ms,
        )
        self.check()
        return [tuple(each) for each in acquired.ranges]

    def acknowledge(self, *batches, member="m1"):
        wanted = [
            Acknowledgement(first, last, [kind] if isinstance(kind, int) else kind)
            for first, last, kind in batches
        ]
        self.process(self.share.acknowledge(member, wanted, self.now_ms))

    def code(self, *batches, member="m1"):
        before = self.states()
        with pytest.raises(KafkaError) as raised:
            self.acknowledge(*batches, member=member)
        assert self.states() == before
        return raised.value.code

    def process(self, write):
        if write is None:
            return
        self.written.append(write)
        if self.holds:
            self.held.append(write)
        else:
            self.end_write(write, is_written=not self.fails)
        self.check()

    def end_write(self, write, *, is_written=True):
        self.share.on_written(write, is_written=is_written, now_ms=self.now_ms)
        self.check()

    def advance(self, milliseconds):
        self.now_ms += milliseconds
        self.process(self.share.on_time(self.now_ms))

    def states(self):
        """Return {offset: (state, count, member)} from the start offset on."""
        found = {}
        for batch in self.share.batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                state = batch.whole or batch.each[offset - batch.first_offset]
                if offset >= self.share.start_offset:
                    found[offset] = (state.state.name, state.delivery_count, state.member_id)
        return found

    def check(self):
        share = self.share
        assert share.firsts == [batch.first_offset for batch in share.batches]
        assert share.firsts == sorted(set(share.firsts))
        for before, after in zip(share.batches, share.batches[1:], strict=False):
            assert before.last_offset < after.first_offset
        if share.batches:
            assert share.end_offset == max(share.batches[-1].last_offset, share.start_offset)
        else:
            assert share.start_offset == share.end_offset
            assert share.delivery_complete_count == 0
        final = sum(RecordState[state].is_terminal for state, _, _ in self.states().values())
        assert share.delivery_complete_count == final

    @property
    def bounds(self):
        return self.share.start_offset, self.share.end_offset
