"""What is a finding about a partition."""

import re

import pytest

from kafkalite.pipeline.audit import PartitionContent, judge
from kafkalite.pipeline.broker_view import PartitionOffsets
from kafkalite.types import TopicPartition

PARTITION = TopicPartition("t", 0)


def content(first, last, *, missing=0, duplicates=0, newest=50):
    """Records from first to last but for the missing ones, in one gap."""
    return PartitionContent(
        records=last - first + 1 - missing + duplicates,
        duplicates=duplicates,
        first_offset=first,
        last_offset=last,
        gaps=1 if missing else 0,
        missing=missing,
        first_gap=(first, first + missing + 1) if missing else None,
        first_timestamp_ms=10,
        last_timestamp_ms=newest,
    )


def reported(earliest, latest, *, newest=50, newest_offset=9):
    return PartitionOffsets(
        earliest=earliest,
        latest=latest,
        max_timestamp_ms=newest,
        max_timestamp_offset=newest_offset,
    )


def findings(read, told, *, gaps_allowed=False, archived=False):
    return judge(PARTITION, read, told, gaps_allowed=gaps_allowed, archived=archived).findings


def test_what_the_broker_reports_is_there_once():
    assert findings(content(3, 9), reported(3, 10)) == ()


def test_empty_partition_is_sound():
    assert findings(PartitionContent(), reported(5, 5, newest=-1, newest_offset=-1)) == ()


@pytest.mark.parametrize(
    ("read", "told", "expected"),
    [
        (content(0, 9, missing=2), reported(0, 10), "2 offsets are missing in 1 gaps"),
        (content(1, 9), reported(0, 10), "the first record is 1, the broker's log starts at 0"),
        (content(0, 8), reported(0, 10), "the last record is 8, the broker's end is 10"),
        (PartitionContent(), reported(0, 10), "nothing could be read .* 10 offsets"),
        (content(0, 9, newest=49), reported(0, 10), "newest record is of 49 ms.*reports 50"),
    ],
)
def test_what_is_missing_is_a_finding_unless_gaps_are_allowed(read, told, expected):
    (found,) = findings(read, told)
    assert re.search(expected, found)
    assert findings(read, told, gaps_allowed=True) == ()


@pytest.mark.parametrize("gaps_allowed", [False, True])
def test_duplicates_and_records_beyond_the_end_are_always_findings(gaps_allowed):
    (twice,) = findings(content(0, 9, duplicates=3), reported(0, 10), gaps_allowed=gaps_allowed)
    assert "3 records have an offset that was read before" in twice
    (beyond,) = findings(content(0, 12), reported(0, 10), gaps_allowed=gaps_allowed)
    assert "offset 12, beyond the broker's end 10" in beyond


def test_archive_may_begin_before_the_log_and_end_before_its_end():
    found = judge(PARTITION, content(0, 9), reported(5, 20), gaps_allowed=False, archived=True)
    assert (found.findings, found.not_archived) == ((), 10)
    empty = judge(PARTITION, PartitionContent(), reported(5, 20), gaps_allowed=False, archived=True)
    assert (empty.findings, empty.not_archived) == ((), 15)


def test_archive_that_skipped_the_start_of_the_log_is_a_finding():
    assert len(findings(content(7, 9), reported(5, 10), archived=True)) == 1


@pytest.mark.parametrize(
    "told",
    [
        reported(0, 10, newest=99, newest_offset=10),
        reported(0, 10, newest=None, newest_offset=None),
        reported(0, 10, newest=-1, newest_offset=-1),
    ],
    ids=["written meanwhile", "old broker", "none"],
)
def test_newest_time_is_compared_only_where_it_can_be(told):
    assert findings(content(0, 9), told) == ()
