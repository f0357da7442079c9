"""How an archive run adds up what Spark reports."""

from types import SimpleNamespace

from kafkalite.pipeline.archive import ArchiveProgress, _failure, _Watcher, kafka_source_options


def report(batch, rows, end, latest):
    source = {"endOffset": end, "latestOffset": latest}
    return {"batchId": batch, "numInputRows": rows, "sources": [source]}


def test_each_batch_is_counted_once_however_often_it_is_reported():
    progress = ArchiveProgress()
    watcher = _Watcher(progress)
    first = report(0, 10, '{"t":{"0":10}}', '{"t":{"0":25}}')
    second = report(1, 15, '{"t":{"0":25}}', '{"t":{"0":25}}')
    watcher.take(SimpleNamespace(recentProgress=[first]))
    assert (progress.records, progress.batches, progress.remaining) == (10, 1, 15)
    watcher.take(SimpleNamespace(recentProgress=[first, second, report(2, 0, None, None)]))
    watcher.take(SimpleNamespace(recentProgress=[first, second]))
    assert (progress.records, progress.batches, progress.remaining) == (25, 2, 0)
    assert progress.end_offsets == {"t": {0: 25}}


def test_report_without_sources_is_passed_over():
    progress = ArchiveProgress()
    _Watcher(progress).take(SimpleNamespace(recentProgress=[{"batchId": 0, "sources": []}]))
    assert progress == ArchiveProgress()


def test_lost_records_name_the_way_on():
    text = "Partition t-0's offset was changed from 5 to 3, some data may have been missed."
    assert "--allow-data-loss" in _failure(ValueError(text))
    assert _failure(ValueError("other")) == "other"


def test_client_settings_get_sparks_prefix():
    options = kafka_source_options("h:1", {"security.protocol": "SSL"})
    assert options["kafka.bootstrap.servers"] == "h:1"
    assert options["kafka.security.protocol"] == "SSL"
    assert int(options["kafka.max.poll.records"]) > 500
    again = kafka_source_options("h:1", {"max.poll.records": "7"})
    assert again["kafka.max.poll.records"] == "7"
