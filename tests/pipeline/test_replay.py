"""The parts of a replay that need no Spark."""

import pytest

from kafkalite.pipeline.replay import ReplayJob, ReplayProgress, guess_format, slice_count


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.csv", "csv"),
        ("a.CSV.gz", "csv"),
        ("a.jsonl", "json"),
        ("a.json.zst", "json"),
        ("s3://bucket/rows.ndjson", "json"),
        ("a.parquet", "parquet"),
        ("folder/", "parquet"),
    ],
)
def test_format_is_guessed_by_name(path, expected):
    assert guess_format(path) == expected


def test_records_with_times_and_archives_are_sent_in_order():
    def job(**options):
        return ReplayJob(bootstrap="h:1", topic="t", paths=("a.csv",), **options)

    assert not job().is_ordered
    assert job(time="x").is_ordered
    assert job(format="archive").is_ordered
    assert (job().input_format, job(format="json").input_format) == ("csv", "json")


@pytest.mark.parametrize(
    ("count", "seconds", "slices"),
    [
        (0, 0, 1),
        (10, 0, 1),
        (49_999, 0, 1),
        (336_777, 0, 7),
        (10**9, 0, 400),
        (1000, 60, 21),
        (5, 60, 5),
    ],
)
def test_slices_are_bounded_in_records_in_time_and_in_number(count, seconds, slices):
    assert slice_count(count, seconds) == slices


def test_progress_adds_up_tasks_and_their_times():
    progress = ReplayProgress()
    progress.add({"records": 2, "bytes": 20, "first_time": None, "last_time": None})
    assert (progress.first_time_ms, progress.last_time_ms) == (None, None)
    progress.add({"records": 1, "bytes": 5, "first_time": 7, "last_time": 9})
    progress.add({"records": 1, "bytes": 5, "first_time": 3, "last_time": 4})
    assert (progress.records, progress.bytes) == (4, 30)
    assert (progress.first_time_ms, progress.last_time_ms) == (3, 9)
