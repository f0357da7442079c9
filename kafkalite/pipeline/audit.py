"""Compares what can be read from each partition with what the broker says it holds.

The broker is asked first (ListOffsets); then every record below those offsets is read, from the
topic itself or from an archive of it, and each offset is counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkalite.pipeline.archive import kafka_source_options, read_archive
from kafkalite.pipeline.broker_view import PartitionOffsets, broker_view
from kafkalite.pipeline.errors import PipelineError, plain_line
from kafkalite.pipeline.offsets import assignment_json, offsets_json
from kafkalite.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession


@dataclass(slots=True, frozen=True, kw_only=True)
class AuditJob:
    """Plan of an audit.

    Attributes:
        bootstrap: ``host:port`` of a broker, or several with commas.
        topics: names; empty if `topic_pattern` is given.
        topic_pattern: Java regular expression of whole names.
        archive: audit this folder, written by the archive job, instead of the topics' own records.
        allow_gaps: gaps in the offsets are no finding. Compaction leaves gaps, and so does each
            transaction (its commit or abort marker takes an offset); topics whose cleanup.policy
            has "compact" are allowed gaps without being asked.
        committed: read as ``read_committed`` consumers do; aborted records are then gaps.
        kafka_options: further settings of the Kafka client, such as ``security.protocol``.
    """

    bootstrap: str
    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    archive: str | None = None
    allow_gaps: bool = False
    committed: bool = False
    kafka_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, frozen=True, kw_only=True)
class PartitionContent:
    """Content read of one partition; times in ms since the epoch.

    `records` counts every record, `duplicates` those whose offset was read before. `gaps` counts
    the holes between the first and the last offset and `missing` the offsets in them; `first_gap`
    is the offset before and the offset after the first hole.
    """

    records: int = 0
    duplicates: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    gaps: int = 0
    missing: int = 0
    first_gap: tuple[int, int] | None = None
    first_timestamp_ms: int | None = None
    last_timestamp_ms: int | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class PartitionAudit:
    """One partition: what was read, what the broker reports, and what does not fit."""

    partition: TopicPartition
    content: PartitionContent
    reported: PartitionOffsets
    findings: tuple[str, ...]
    not_archived: int = 0


def audit(spark: "SparkSession", job: AuditJob) -> list[PartitionAudit]:
    """Audit each partition and return them in order of topic and number.

    Raises:
        PipelineError: a topic is missing, no broker answers, or the records cannot be read.
    """
    with broker_view(spark, job.bootstrap, job.kafka_options) as view:
        topics = view.topics(job.topics, job.topic_pattern)
        reported = view.offsets(view.partitions(topics), committed=job.committed)
        gaps_allowed = set(topics) if job.allow_gaps else view.compacted(topics)
    try:
        if job.archive is None:
            records = topic_records(spark, job, reported)
        else:
            records = read_archive(spark, job.archive).where(_in(topics))
        contents = read_contents(records)
    except Exception as error:
        raise PipelineError(plain_line(error)) from error
    return [
        judge(
            partition,
            contents.get(partition, PartitionContent()),
            offsets,
            gaps_allowed=partition.topic in gaps_allowed,
            archived=job.archive is not None,
        )
        for partition, offsets in reported.items()
    ]


def topic_records(
    spark: "SparkSession", job: AuditJob, reported: Mapping[TopicPartition, PartitionOffsets]
) -> "DataFrame":
    """Return exactly the records between the offsets that the broker reported."""
    starts = {partition: offsets.earliest for partition, offsets in reported.items()}
    ends = {partition: offsets.latest for partition, offsets in reported.items()}
    options = kafka_source_options(job.bootstrap, job.kafka_options)
    if job.committed:
        options["kafka.isolation.level"] = "read_committed"
    return (
        spark.read.format("kafka")
        .options(**options)
        .option("assign", assignment_json(reported))
        .option("startingOffsets", offsets_json(starts))
        .option("endingOffsets", offsets_json(ends))
        .load()
    )


def read_contents(records: "DataFrame") -> dict[TopicPartition, PartitionContent]:
    """Read every record and return the counts of each partition that has any."""
    rows = (
        records.selectExpr(
            "topic",
            "partition",
            "offset",
            "unix_millis(timestamp) AS time",
            "lag(offset) OVER (PARTITION BY topic, partition ORDER BY offset) AS before",
        )
        .groupBy("topic", "partition")
        .agg(*_aggregates())
        .collect()
    )
    return {TopicPartition(row["topic"], row["partition"]): _content(row) for row in rows}


def _aggregates() -> "list[Column]":
    from pyspark.sql import functions as sql

    gap = "offset - before > 1"
    expressions = {
        "records": "count(*)",
        "duplicates": "count_if(offset = before)",
        "first_offset": "min(offset)",
        "last_offset": "max(offset)",
        "gaps": f"count_if({gap})",
        "missing": f"coalesce(sum(CASE WHEN {gap} THEN offset - before - 1 END), 0)",
        "first_gap": f"min(CASE WHEN {gap} THEN struct(before, offset) END)",
        "first_time": "min(time)",
        "last_time": "max(time)",
    }
    return [sql.expr(text).alias(name) for name, text in expressions.items()]


def _content(row: "Row") -> PartitionContent:
    gap = row["first_gap"]
    return PartitionContent(
        records=row["records"],
        duplicates=row["duplicates"],
        first_offset=row["first_offset"],
        last_offset=row["last_offset"],
        gaps=row["gaps"],
        missing=row["missing"],
        first_gap=None if gap is None else (gap[0], gap[1]),
        first_timestamp_ms=row["first_time"],
        last_timestamp_ms=row["last_time"],
    )


def judge(
    partition: TopicPartition,
    content: PartitionContent,
    reported: PartitionOffsets,
    *,
    gaps_allowed: bool,
    archived: bool,
) -> PartitionAudit:
    """Return the findings about one partition.

    An archive may begin before the broker's log start (retention deleted what was archived) and
    end before the broker's end (it was not run since); only what it skipped is a finding.
    """
    findings = []
    not_archived = 0
    if content.duplicates:
        findings.append(f"{content.duplicates} records have an offset that was read before")
    if content.gaps and not gaps_allowed:
        assert content.first_gap is not None
        before, after = content.first_gap
        findings.append(
            f"{content.missing} offsets are missing in {content.gaps} gaps, "
            f"the first between {before} and {after}"
        )
    first, last = content.first_offset, content.last_offset
    if first is None or last is None:
        held = reported.latest - reported.earliest
        if archived:
            not_archived = held
        elif held and not gaps_allowed:
            findings.append(f"nothing could be read where the broker reports {held} offsets")
    else:
        if first > reported.earliest and not gaps_allowed:
            findings.append(
                f"the first record is {first}, the broker's log starts at {reported.earliest}"
            )
        if archived:
            not_archived = max(0, reported.latest - last - 1)
        if last >= reported.latest:
            findings.append(
                f"a record has offset {last}, beyond the broker's end {reported.latest}"
            )
        elif last < reported.latest - 1 and not archived and not gaps_allowed:
            findings.append(f"the last record is {last}, the broker's end is {reported.latest}")
        if not archived and not gaps_allowed:
            # The marker of a transaction, which nobody reads, may be the newest of all.
            findings.extend(_time_findings(content, reported))
    return PartitionAudit(
        partition=partition,
        content=content,
        reported=reported,
        findings=tuple(findings),
        not_archived=not_archived,
    )


def _time_findings(content: PartitionContent, reported: PartitionOffsets) -> Iterable[str]:
    newest = reported.max_timestamp_ms
    if newest is None or newest < 0 or content.last_timestamp_ms is None:
        return
    # Asked after the end offset, so a record written in between may be newer: not a finding.
    offset = reported.max_timestamp_offset
    if offset is not None and offset < reported.latest and newest != content.last_timestamp_ms:
        yield (
            f"the newest record is of {content.last_timestamp_ms} ms, "
            f"the broker reports {newest} ms (offset {offset})"
        )


def _in(topics: list[str]) -> str:
    quoted = ", ".join("'" + topic.replace("'", "") + "'" for topic in topics)
    return f"topic IN ({quoted})"
