"""What happens to logs by itself spares what is not replicated yet (rules 201, 205)."""

import trio

from kafkalite.wire.records import iterate_batches, iterate_records
from tests.isr.replica_kit import TP, ReplicaKit
from tests.log.log_kit import NOW_MS, batch

LATER_MS = NOW_MS + 1_000_000


def retain(kit, broker_id):
    """Apply retention; return where the log begins then."""
    kit.members[broker_id].logs.apply_retention(TP, LATER_MS)
    return kit[broker_id].log_start_offset


def test_retention_deletes_below_the_high_watermark_alone():
    kit = ReplicaKit(log_retention_ms=1_000)
    kit.append(1, "a", "b")
    assert retain(kit, 1) == 0
    for follower in (2, 3):
        assert kit.fetch(follower, 1)
        assert retain(kit, follower) == 0
    for follower in (2, 3):
        kit.fetch(follower, 1)
    assert kit[1].high_watermark == 2
    assert kit[2].high_watermark == 0
    assert retain(kit, 1) == 2


def test_followers_begin_where_retention_made_their_leader_begin():
    """Rule 170: they need not have segments of the same size."""
    kit = ReplicaKit(log_retention_ms=1_000)
    kit.append(1, "a", "b")
    kit.catch_up(1)
    kit.catch_up(1)
    assert retain(kit, 1) == 2
    kit.append(1, "c")
    kit.catch_up(1)
    assert [kit[n].log_start_offset for n in (2, 3)] == [2, 2]
    assert [kit[n].log_end_offset for n in (2, 3)] == [3, 3]


def test_who_lacks_what_retention_has_deleted_begins_anew():
    """Rule 172; only one that was out of sync can be so far behind."""
    kit = ReplicaKit(log_retention_ms=1_000)
    kit.change(isr=(1, 2))
    kit.append(1, "a", "b")
    kit.catch_up(1, 2)
    kit.catch_up(1, 2)
    assert retain(kit, 1) == 2
    kit[3].truncate_fully_and_start_at(kit[1].log_start_offset)
    kit.append(1, "c")
    kit.catch_up(1, 3)
    assert (kit[3].log_start_offset, kit[3].log_end_offset) == (2, 3)


def values(partition):
    return [
        bytes(record.value)
        for data in partition.log.read_batches(0)
        for position, header in iterate_batches(data)
        for record in iterate_records(memoryview(data)[position : position + header.size])
    ]


def test_compaction_leaves_what_is_not_replicated():
    kit = ReplicaKit(log_cleanup_policy="compact")
    for value in ("old", "new"):
        kit[1].append(batch(value, keys=[b"k"]), now_ms=NOW_MS)

    def compact(broker_id):
        kit.members[broker_id].disk.now_ms = LATER_MS
        kit.clock.now_ms = LATER_MS
        trio.run(kit.members[broker_id].logs.compact, TP)
        return values(kit[broker_id])

    assert compact(1) == [b"old", b"new"]
    kit.catch_up(1)
    kit.catch_up(1)
    assert kit[1].high_watermark == 2
    assert compact(1) == [b"new"]
    assert values(kit[2]) == [b"old", b"new"]
    assert compact(2) == [b"new"]


def test_compaction_of_a_follower_waits_for_word_of_the_high_watermark():
    kit = ReplicaKit(log_cleanup_policy="compact")
    for value in ("old", "new"):
        kit[1].append(batch(value, keys=[b"k"]), now_ms=NOW_MS)
    assert kit.fetch(2, 1)
    kit.clock.now_ms = LATER_MS
    trio.run(kit.members[2].logs.compact, TP)
    assert values(kit[2]) == [b"old", b"new"]
