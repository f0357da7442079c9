"""Logs that are compacted, and how."""

import trio

from kafkalite.log.cleaner import (
    CleanerSettings,
    clean,
    plan_cleaning,
)
from kafkalite.wire.records import iterate_records, read_batch_header
from tests.log.log_kit import NOW_MS, append, make_log

COMPACT = {"cleanup_policy": frozenset({"compact"}), "min_cleanable_dirty_ratio": 0.5}


SETTINGS = CleanerSettings()


def write(log, text, **options):
    """Append a batch of keys and values such as `a1 b2`; `-` is no value but the word "-"."""
    words = text.split()
    return append(
        log, *(word[1:] for word in words), keys=[word[:1].encode() for word in words], **options
    )


def filled(*segments, disk=None, **config):
    """A log with one segment for each list of batches, and an empty active one."""
    log = make_log(disk, **{**COMPACT, **config})
    for batches in segments:
        for text in batches:
            write(log, text)
        log.roll()
    return log


def plan_of(log, *, checkpoint=None, stable=None, now_ms=NOW_MS):
    stable = log.log_end_offset if stable is None else stable
    return plan_cleaning(log, checkpoint=checkpoint, stable_offset=stable, now_ms=now_ms)


def compact(log, *, checkpoint=None, now_ms=NOW_MS, settings=SETTINGS, stable=None):
    plan = plan_of(log, checkpoint=checkpoint, now_ms=now_ms, stable=stable)
    return clean_plan(plan, settings=settings, now_ms=now_ms)


def clean_plan(plan, *, settings=SETTINGS, now_ms=NOW_MS):
    """All steps of a pass, on a disk whose threads are none."""

    async def main():
        return await clean(plan, plan.log.local_log._disk, settings=settings, now_ms=now_ms)

    return trio.run(main)


def contents(log):
    """Return `offset key value` of all data records."""
    found = []
    for data in log.read_batches(log.log_start_offset):
        if not read_batch_header(data).is_control:
            found += [
                f"{record.offset} {record.key.decode()}{record.value.decode()}"
                for record in iterate_records(data)
            ]
    return found
