"""The broker's own report about topics, asked through the connector's own admin client.

The admin client of Spark's Java machine is used, so that the jobs depend on nothing but Spark and
see what Spark's source will see.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafkalite.pipeline.errors import PipelineError, plain_line
from kafkalite.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Long enough for a broker that is starting, short enough for a person who mistyped a port.
_ANSWER_MS = 15_000


@dataclass(slots=True, frozen=True, kw_only=True)
class PartitionOffsets:
    """Answer of ListOffsets for one partition.

    `latest` is exclusive: the high watermark, or the last stable offset for committed reads.
    `max_timestamp_ms` and its offset are -1 for an empty partition and None when the broker is too
    old to tell (KIP-734, ListOffsets v7).
    """

    earliest: int
    latest: int
    max_timestamp_ms: int | None = None
    max_timestamp_offset: int | None = None


class BrokerView:
    """Asks one cluster; made by `broker_view`, which closes it."""

    def __init__(self, jvm: Any, admin: Any, bootstrap: str) -> None:
        self._jvm = jvm
        self._admin = admin
        self._bootstrap = bootstrap

    def topics(self, names: Iterable[str], pattern: str | None = None) -> list[str]:
        """Return the topics that exist of those named, or those whose whole name fits a pattern.

        The pattern is a Java regular expression, as in Spark's subscribePattern.

        Raises:
            PipelineError: a named topic is missing, no topic fits the pattern, no broker answers.
        """
        found = sorted(self._answer(self._admin.listTopics().names()))
        if pattern is not None:
            java_pattern = self._jvm.java.util.regex.Pattern
            matching = [name for name in found if java_pattern.matches(pattern, name)]
            if not matching:
                raise PipelineError(f"no topic of {self._bootstrap} fits the pattern {pattern!r}")
            return matching
        missing = [name for name in names if name not in found]
        if missing:
            raise PipelineError(f"no topic {missing[0]!r} on {self._bootstrap}")
        return list(dict.fromkeys(names))

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Return the partitions of these topics, in order of topic and number."""
        described = self._answer(
            self._admin.describeTopics(self._java_list(topics)).allTopicNames()
        )
        found = [
            TopicPartition(str(topic), part.partition())
            for topic in described
            for part in described[topic].partitions()
        ]
        return sorted(found)

    def offsets(
        self, partitions: Iterable[TopicPartition], *, committed: bool = False
    ) -> dict[TopicPartition, PartitionOffsets]:
        """Return what ListOffsets answers now; three requests, so not one instant."""
        partitions = list(partitions)
        spec = self._jvm.org.apache.kafka.clients.admin.OffsetSpec
        earliest = self._list_offsets(partitions, spec.earliest(), committed=committed)
        latest = self._list_offsets(partitions, spec.latest(), committed=committed)
        try:
            newest = self._list_offsets(partitions, spec.maxTimestamp(), committed=committed)
        except PipelineError:
            newest = {}
        return {
            partition: PartitionOffsets(
                earliest=earliest[partition][0],
                latest=latest[partition][0],
                max_timestamp_offset=newest.get(partition, (None, None))[0],
                max_timestamp_ms=newest.get(partition, (None, None))[1],
            )
            for partition in partitions
        }

    def compacted(self, topics: Iterable[str]) -> set[str]:
        """Return those of the topics whose cleanup.policy has ``compact``."""
        resource = self._jvm.org.apache.kafka.common.config.ConfigResource
        kind = getattr(resource, "Type").TOPIC  # noqa: B009 - a Java inner class
        wanted = self._java_list(resource(kind, topic) for topic in topics)
        configs = self._answer(self._admin.describeConfigs(wanted).all())
        policies = {
            str(found.name()): configs[found].get("cleanup.policy").value() for found in configs
        }
        return {topic for topic, policy in policies.items() if "compact" in policy.split(",")}

    def _list_offsets(
        self, partitions: list[TopicPartition], spec: Any, *, committed: bool
    ) -> dict[TopicPartition, tuple[int, int]]:
        wanted = self._jvm.java.util.HashMap()
        java_partition = self._jvm.org.apache.kafka.common.TopicPartition
        for partition in partitions:
            wanted[java_partition(partition.topic, partition.partition)] = spec
        levels = self._jvm.org.apache.kafka.common.IsolationLevel
        level = levels.READ_COMMITTED if committed else levels.READ_UNCOMMITTED
        options = self._jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        answer = self._answer(self._admin.listOffsets(wanted, options).all())
        return {
            TopicPartition(str(key.topic()), key.partition()): (value.offset(), value.timestamp())
            for key, value in answer.items()
        }

    def _java_list(self, values: Iterable[object]) -> Any:
        result = self._jvm.java.util.ArrayList()
        for value in values:
            result.append(value)
        return result

    def _answer(self, future: Any) -> Any:
        seconds = self._jvm.java.util.concurrent.TimeUnit.SECONDS
        try:
            return future.get(2 * _ANSWER_MS // 1000, seconds)
        except Exception as error:
            line = plain_line(error)
            if "Timed out" in line or "TimeoutException" in line or "node assignment" in line:
                line = "no broker answers"
            raise PipelineError(f"{self._bootstrap}: {line}") from error


@contextmanager
def broker_view(
    spark: "SparkSession", bootstrap: str, kafka_options: Mapping[str, str] | None = None
) -> Iterator[BrokerView]:
    """Open an admin client of the session's Java machine for the time of a ``with`` block.

    Args:
        spark: a session from `spark_session`.
        bootstrap: ``host:port`` or several with commas.
        kafka_options: further Java client settings, such as ``security.protocol``.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to the Java machine
    properties = jvm.java.util.Properties()
    settings = {
        "request.timeout.ms": str(_ANSWER_MS),
        "default.api.timeout.ms": str(_ANSWER_MS),
        **(kafka_options or {}),
        "bootstrap.servers": bootstrap,
    }
    for name, value in settings.items():
        properties.setProperty(name, value)
    try:
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
    except Exception as error:
        raise PipelineError(f"{bootstrap}: {plain_line(error)}") from error
    try:
        yield BrokerView(jvm, admin, bootstrap)
    finally:
        admin.close(jvm.java.time.Duration.ofSeconds(1))
