"""The archive, replay and audit jobs, and their command line."""

import json
import re
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from kafkalite.pipeline import cli
from kafkalite.pipeline.archive import ArchiveJob, archive, read_archive, start_archive
from kafkalite.pipeline.audit import AuditJob, audit
from kafkalite.pipeline.errors import PipelineError
from kafkalite.pipeline.pace import Pace
from kafkalite.pipeline.replay import ReplayJob, replay
from kafkalite.types import TopicPartition
from spark_tests.streams import values

DAY_MS = 86_400_000


def numbered(count: int, first: int = 0) -> list[str]:
    return [f"v{number}" for number in range(first, first + count)]


def content(messages) -> list[tuple]:
    """What of a message must survive being archived and replayed."""
    return [
        (
            message.partition(),
            message.key(),
            message.value(),
            message.headers(),
            message.timestamp(),
        )
        for message in messages
    ]


class TestArchive:
    @pytest.fixture
    def run(self, spark, bootstrap, tmp_path):
        def run(*topics, **options):
            job = ArchiveJob(
                bootstrap=bootstrap, output=str(tmp_path / "archive"), topics=topics, **options
            )
            return archive(spark, job)

        return run

    @pytest.fixture
    def archived(self, spark, tmp_path):
        return lambda: read_archive(spark, str(tmp_path / "archive"))

    def test_holds_everything_a_record_has(self, topics, run, archived):
        topic = topics.create()
        headers = [("a", b"1"), ("b", None)]
        sent = {"key": "k", "value": "v0", "headers": headers, "timestamp": 3 * DAY_MS + 5}
        topics.produce(topic, sent, {"value": None, "timestamp": 3 * DAY_MS})
        done = run(topic)
        assert (done.records, done.end_offsets) == (2, {topic: {0: 2}})
        first, second = archived().orderBy("offset").collect()
        assert (first.topic, first.partition, first.offset) == (topic, 0, 0)
        assert (first.key, first.value, first.date) == (b"k", b"v0", "1970-01-04")
        assert [(header.key, header.value) for header in first.headers] == headers
        assert (second.key, second.value, second.headers) == (None, None, None)

    def test_is_laid_out_by_topic_partition_and_day(self, topics, run, tmp_path):
        topic = topics.create(2)
        topics.produce(
            topic,
            *(
                {"value": "v0", "partition": n % 2, "timestamp": n * DAY_MS + 1}
                for n in range(1, 5)
            ),
        )
        run(topic)
        folders = {
            str(file.parent.relative_to(tmp_path / "archive"))
            for file in (tmp_path / "archive").rglob("*.parquet")
        }
        assert folders == {
            f"topic={topic}/partition={n % 2}/date=1970-01-0{n + 1}" for n in range(1, 5)
        }

    def test_runs_again_for_what_is_new(self, topics, run, archived):
        one, two = topics.create(2), topics.create(1)
        topics.fill(one, 20, partitions=2)
        assert run(one, two).records == 20
        topics.fill(one, 10, first=20, partitions=2)
        topics.fill(two, 5, first=30)
        again = run(one, two)
        assert again.records == 15
        assert again.end_offsets == {one: {0: 15, 1: 15}, two: {0: 5}}
        assert run(one, two).records == 0
        assert values(archived()) == numbered(35)

    def test_batches_are_bounded(self, topics, run, archived):
        topic = topics.create(2)
        topics.fill(topic, 50, partitions=2)
        done = run(topic, max_records_per_batch=20)
        assert (done.records, done.batches) == (50, 3)
        assert values(archived()) == numbered(50)

    def test_pattern_takes_whole_names(self, topics, run, archived):
        prefix = topics.name("p")
        for suffix, first in (("-1", 0), ("-2", 5), ("-22", 10)):
            topics.fill(topics.create(name=prefix + suffix), 5, first=first)
        run(topic_pattern=f"{prefix}-[12]")
        assert values(archived()) == numbered(10)

    def test_starts_at_a_time(self, topics, run, archived):
        topic = topics.create()
        topics.produce(topic, *({"value": f"v{n}", "timestamp": n * DAY_MS} for n in range(1, 9)))
        run(topic, starting=5 * DAY_MS, period="year")
        assert values(archived()) == numbered(4, first=5)
        assert {row.date for row in archived().collect()} == {"1970"}

    def test_stopped_anywhere_loses_and_repeats_nothing(
        self, topics, spark, bootstrap, run, archived, tmp_path
    ):
        topic = topics.create(2)
        topics.fill(topic, 200, partitions=2)
        job = ArchiveJob(
            bootstrap=bootstrap,
            output=str(tmp_path / "archive"),
            topics=(topic,),
            max_records_per_batch=20,
        )
        for _ in range(3):
            query = start_archive(spark, job)
            query.awaitTermination(1)
            query.stop()
        run(topic, max_records_per_batch=50)
        assert values(archived()) == numbered(200)

    def test_keeps_running_until_interrupted(self, topics, spark, bootstrap, tmp_path):
        topic = topics.create()
        topics.fill(topic, 10)
        job = ArchiveJob(
            bootstrap=bootstrap,
            output=str(tmp_path / "archive"),
            topics=(topic,),
            every_seconds=0.2,
        )
        seen = []

        def watch(progress):
            if progress.records == 10 and not seen:
                seen.append(progress.batches)
                topics.fill(topic, 10, first=10)
            if progress.records == 20:
                raise KeyboardInterrupt

        done = archive(spark, job, watch)
        assert (done.records, done.end_offsets) == (20, {topic: {0: 20}})
        assert values(read_archive(spark, job.output)) == numbered(20)

    def test_lost_records_stop_it_unless_allowed(self, topics, run, archived):
        topic = topics.create()
        topics.fill(topic, 10)
        run(topic)
        topics.fill(topic, 10, first=10)
        topics.delete_records(topic, 0, 15)
        with pytest.raises(PipelineError, match="--allow-data-loss") as refused:
            run(topic)
        assert "\n" not in str(refused.value)
        assert run(topic, allow_data_loss=True).records == 5
        assert values(archived()) == [*numbered(10), *numbered(5, first=15)]

    def test_topic_that_does_not_exist_is_one_plain_line(self, topics, run):
        with pytest.raises(PipelineError, match=r"^no topic 'absent-[^\n]* on 127\S+$"):
            run(topics.name("absent"))


class TestReplay:
    @pytest.fixture
    def run(self, spark, bootstrap):
        def run(topic, *paths, **options):
            job = ReplayJob(
                bootstrap=bootstrap, topic=topic, paths=tuple(map(str, paths)), **options
            )
            return replay(spark, job)

        return run

    def test_rows_of_a_csv_file_become_json_in_time_order(self, topics, run, tmp_path):
        file = tmp_path / "rows.csv"
        lines = [f"{number},2013-01-01T{23 - number:02}:00:00Z" for number in range(24)]
        file.write_text("\n".join(["id,moment", *lines]))
        topic = topics.create()
        done = run(topic, file, key="id", time="moment", headers={"hour": "hour(moment)"})
        assert done.records == 24
        found = topics.read(topic)
        assert [message.key() for message in found] == [str(23 - n).encode() for n in range(24)]
        assert [message.headers() for message in found][:2] == [[("hour", b"0")], [("hour", b"1")]]
        assert found[5].timestamp() == (1, 1_356_998_400_000 + 5 * 3_600_000)
        assert json.loads(found[0].value()) == {"id": 23, "moment": "2013-01-01T00:00:00.000Z"}

    def test_json_lines_keep_chosen_value_and_partition(self, topics, run, tmp_path):
        file = tmp_path / "rows.jsonl"
        file.write_text("\n".join(json.dumps({"text": f"v{n}", "n": n}) for n in range(20)))
        topic = topics.create(2)
        run(topic, file, value="text", partition="n % 2")
        assert [(message.partition(), message.value()) for message in topics.read(topic)] == [
            *((0, f"v{n}".encode()) for n in range(0, 20, 2)),
            *((1, f"v{n}".encode()) for n in range(1, 20, 2)),
        ]

    def test_rows_of_equal_time_keep_their_order_over_many_slices(
        self, spark, topics, run, tmp_path, monkeypatch
    ):
        monkeypatch.setattr("kafkalite.pipeline.replay._SLICE_RECORDS", 700)
        rows = spark.range(3000).selectExpr("id", "1000000 * (id DIV 1000) + 1000000 AS ms")
        rows.coalesce(1).write.parquet(str(tmp_path / "rows"))
        topic = topics.create()
        seen = []
        job = {"value": "id", "time": "ms"}
        done = run(topic, tmp_path / "rows", **job)
        assert (done.first_time_ms, done.last_time_ms) == (1_000_000, 3_000_000)
        seen = [int(message.value()) for message in topics.read(topic)]
        assert seen == list(range(3000))

    def test_archive_goes_back_as_it_was(self, spark, bootstrap, topics, run, tmp_path):
        original, copied = topics.create(3), topics.create(3)
        topics.produce(
            original,
            *(
                {
                    "key": None if n % 5 == 0 else f"k{n}",
                    "value": None if n % 7 == 0 else f"v{n}",
                    "headers": [("n", str(n))] if n % 2 else None,
                    "partition": n % 3,
                    # Times that go back now and then.
                    "timestamp": 10 * DAY_MS + n * 1000 - (n % 4) * 5000,
                }
                for n in range(300)
            ),
        )
        folder = tmp_path / "archive"
        job = ArchiveJob(bootstrap=bootstrap, output=str(folder), topics=(original,))
        archive(spark, job)
        assert run(copied, folder, format="archive").records == 300
        assert content(topics.read(copied)) == content(topics.read(original))

    def test_keeps_the_rate(self, spark, topics, run, tmp_path):
        spark.range(300).coalesce(1).write.parquet(str(tmp_path / "rows"))
        topic = topics.create()
        run(topic, tmp_path / "rows", pace=Pace(records_per_second=200))
        sent = [message.timestamp()[1] for message in topics.read(topic)]
        # How much later than it should a busy machine is tells nothing; `Pace` is tested by itself.
        assert max(sent) - min(sent) >= 1300

    def test_keeps_the_tempo_of_the_times(self, spark, topics, run, tmp_path):
        """Ten seconds of records at five times their speed, by the times at which they came."""
        rows = spark.range(20).selectExpr("id", "1000000 + id * 500 AS ms").coalesce(1)
        rows.write.parquet(str(tmp_path / "rows"))
        topic = topics.create(message_timestamp_type="LogAppendTime")
        run(topic, tmp_path / "rows", time="ms", pace=Pace(speed=5))
        sent = [message.timestamp()[1] for message in topics.read(topic)]
        assert max(sent) - min(sent) >= 1300

    def test_creates_a_topic_that_keeps_old_records(self, spark, topics, run, tmp_path):
        """Retention goes by the records' own times."""
        spark.range(10).selectExpr("id", "1000000 + id AS ms").write.parquet(str(tmp_path / "rows"))
        topic = topics.name("made")
        run(topic, tmp_path / "rows", time="ms", create_partitions=3)
        time.sleep(0.5)  # two looks of retention, which must find nothing to delete
        assert len(topics.read(topic)) == 10
        topics.delete(topic)

    def test_column_that_does_not_exist_is_one_plain_line(self, spark, topics, run, tmp_path):
        spark.range(1).write.parquet(str(tmp_path / "rows"))
        with pytest.raises(PipelineError, match=r"^[^\n]*`absent` cannot be resolved[^\n]*$"):
            run(topics.create(), tmp_path / "rows", key="absent")

    def test_refused_record_is_one_plain_line(self, spark, topics, run, tmp_path):
        spark.range(1).selectExpr("repeat('x', 5000) AS x").write.parquet(str(tmp_path / "rows"))
        topic = topics.create(max_message_bytes=2000)
        with pytest.raises(PipelineError, match=r"^[^\n]*(?i:size|large)[^\n]*$"):
            run(topic, tmp_path / "rows", producer_options={"compression.type": "none"})


class TestAudit:
    @pytest.fixture
    def run(self, spark, bootstrap):
        def run(*topics, **options):
            return audit(spark, AuditJob(bootstrap=bootstrap, topics=topics, **options))

        return run

    def test_sound_topic_has_no_findings(self, topics, run):
        topic = topics.create(3)
        topics.produce(
            topic, *({"value": "v0", "partition": n % 2, "timestamp": 1000 + n} for n in range(20))
        )
        audits = run(topic)
        assert [one.partition for one in audits] == [TopicPartition(topic, n) for n in range(3)]
        assert [one.content.records for one in audits] == [10, 10, 0]
        assert [one.findings for one in audits] == [(), (), ()]
        first = audits[0].content
        assert (first.first_offset, first.last_offset) == (0, 9)
        assert (first.first_timestamp_ms, first.last_timestamp_ms) == (1000, 1018)
        assert (audits[0].reported.max_timestamp_ms, audits[2].reported.latest) == (1018, 0)

    def test_deleted_records_are_no_finding(self, topics, run):
        topic = topics.create()
        topics.fill(topic, 20)
        topics.delete_records(topic, 0, 12)
        (one,) = run(topic)
        assert (one.content.first_offset, one.reported.earliest, one.findings) == (12, 12, ())

    def test_archive_is_compared_with_the_topic(self, spark, bootstrap, topics, run, tmp_path):
        topic = topics.create(2)
        topics.fill(topic, 20, partitions=2)
        folder = str(tmp_path / "archive")
        archive(spark, ArchiveJob(bootstrap=bootstrap, output=folder, topics=(topic,)))
        topics.fill(topic, 6, first=20, partitions=2)
        topics.delete_records(topic, 0, 4)
        audits = run(topic, archive=folder)
        assert [one.findings for one in audits] == [(), ()]
        assert [one.not_archived for one in audits] == [3, 3]
        assert [one.content.records for one in audits] == [10, 10]

    def test_archive_with_a_hole_and_a_repetition_is_found_out(
        self, spark, bootstrap, topics, run, tmp_path
    ):
        topic = topics.create()
        topics.fill(topic, 20)
        folder = str(tmp_path / "archive")
        archive(spark, ArchiveJob(bootstrap=bootstrap, output=folder, topics=(topic,)))
        rows = read_archive(spark, folder)
        spoilt = rows.where("offset NOT IN (0, 5, 6, 9)").union(rows.where("offset = 12"))
        spoilt.write.partitionBy("topic", "partition", "date").parquet(str(tmp_path / "spoilt"))
        (one,) = run(topic, archive=str(tmp_path / "spoilt"))
        assert (one.content.duplicates, one.content.missing, one.content.gaps) == (1, 3, 2)
        assert one.content.first_gap == (4, 7)
        assert len(one.findings) == 3


class TestCommandLine:
    @pytest.fixture
    def call(self, spark, bootstrap, monkeypatch):
        """Run a command in this process, on the Spark that is running."""

        class Kept:
            def __getattr__(self, name):
                return getattr(spark, name)

            def stop(self):
                pass

        monkeypatch.setattr(cli, "spark_session", lambda **_: Kept())

        def call(*arguments, broker=bootstrap):
            options = ["--bootstrap", broker]
            return CliRunner().invoke(cli.pipeline, [*map(str, arguments), *options])

        return call

    def test_archive_replay_and_audit_tell_what_they_did(self, topics, call, tmp_path):
        topic, copied = topics.create(2), topics.name("copied")
        topics.fill(topic, 20, partitions=2)
        done = call("archive", topic, "-o", tmp_path / "archive")
        assert done.exit_code == 0
        assert f"{topic}: archived up to offset (partition:next) 0:10 1:10" in done.output
        assert re.search(r"^20 records in .* in 1 batches", done.output, re.MULTILINE)
        arguments = ("--format", "archive", "--partitions", "2")
        done = call("replay", copied, tmp_path / "archive", *arguments)
        assert done.exit_code == 0
        assert re.search(r"^20 records in .*MB of keys and values, to copied", done.output)
        done = call("audit", topic, copied)
        assert done.exit_code == 0
        assert "40 records in 4 partitions, 0 findings" in done.output
        topics.delete(copied)

    def test_findings_give_status_1(self, topics, call, spark, tmp_path):
        topic = topics.create()
        topics.fill(topic, 10)
        call("archive", topic, "-o", tmp_path / "archive")
        rows = read_archive(spark, str(tmp_path / "archive")).where("offset <> 3")
        rows.write.partitionBy("topic", "partition", "date").parquet(str(tmp_path / "spoilt"))
        done = call("audit", topic, "--archive", tmp_path / "spoilt")
        assert done.exit_code == 1
        assert f"FINDING {topic}-0: 1 offsets are missing in 1 gaps" in done.output

    def test_errors_are_one_line_and_status_1(self, topics, call, tmp_path):
        done = call("audit", topics.name("absent"))
        assert done.exit_code == 1
        assert re.fullmatch(r"Error: no topic 'absent-\w+' on \S+\n", done.output)

    def test_real_process_ends_with_a_plain_summary(self, topics, bootstrap):
        topic = topics.create()
        topics.fill(topic, 10)
        program = "from kafkalite.pipeline.cli import pipeline; pipeline()"
        command = [sys.executable, "-c", program, "audit", topic, "--bootstrap", bootstrap]
        command += ["--spark-conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("10 records in 1 partitions, 0 findings\n")
        assert done.stderr == ""

    def test_gaps_are_findings_unless_the_topic_is_compacted_or_they_are_allowed(
        self, topics, call
    ):
        topic, _ = topics.create_compacted()
        assert call("audit", topic).exit_code == 0
        topics.set_config(topic, "cleanup.policy", "delete")
        done = call("audit", topic)
        assert done.exit_code == 1
        assert (
            f"FINDING {topic}-0: the first record is 20, the broker's log starts at 0"
            in done.output
        )
        assert call("audit", topic, "--allow-gaps").exit_code == 0
