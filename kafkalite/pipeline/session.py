"""A SparkSession that can talk to Kafka: right connector, right Java, quiet."""

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING

from kafkalite.pipeline.connector import AVRO, cache_folder, connector_jars
from kafkalite.pipeline.errors import PipelineError, plain_line
from kafkalite.pipeline.installation import find_java, find_spark, launcher_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS = {
    # Dates in archive paths must not depend on where the job ran.
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # So that "123" stays the topic's name when an archive is read back.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


def spark_session(
    *,
    master: str = "local[*]",
    application: str = "kafkalite",
    settings: Mapping[str, str] | None = None,
    with_avro: bool = False,
) -> "SparkSession":
    """Return a running SparkSession with the Kafka connector of the installed Spark.

    The connector is fetched on first use (about 11 MB) and found in the user's cache afterwards. A
    session that already runs in this process is returned as it is if it has the connector.

    Args:
        master: any Spark master: ``local[4]``, ``spark://…``, ``yarn``, ``k8s://…``.
        application: the name shown in a cluster's pages.
        settings: Spark's own settings; they win over ours.
        with_avro: also with what reads Avro (another 200 kB).

    Raises:
        PipelineError: PySpark, Java or the connector is missing, or Spark does not start.
    """
    spark_home = find_spark()
    java = find_java(spark_home)
    jars = connector_jars(spark_home, java)
    if with_avro:
        jars += connector_jars(spark_home, java, module=AVRO)
    values = session_settings(master, settings or {}, jars=[str(jar) for jar in jars])
    if master.startswith("local"):
        # Spark would run the python3 of PATH, which need not have this package.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

    # PySpark logs each analysis error as a page of JSON besides raising it.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)

    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(application)
    for name, value in values.items():
        builder = builder.config(name, value)
    try:
        with _environment("JAVA_HOME", str(launcher_home(java, cache_folder()))):
            return builder.getOrCreate()
    except Exception as error:
        reason = plain_line(error)
        raise PipelineError(f"Spark did not start with {java.origin}: {reason}") from error


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Set a variable for the time of a ``with`` block: Spark's launcher reads it, nobody else."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def session_settings(
    master: str, settings: Mapping[str, str], *, jars: list[str]
) -> dict[str, str]:
    """Return the settings of a new session: ours, then the caller's, with both lists of jars."""
    logging_file = files("kafkalite.pipeline") / "log4j2.properties"
    values = dict(_DEFAULTS)
    java_options = settings.get("spark.driver.extraJavaOptions", "")
    if master.startswith("local"):
        # Spark's 200 shuffle partitions cost a local run seconds per micro-batch for nothing.
        values["spark.sql.shuffle.partitions"] = str(max(2, os.cpu_count() or 2))
        values["spark.driver.host"] = values["spark.driver.bindAddress"] = "127.0.0.1"
    values.update(settings)
    values["spark.driver.extraJavaOptions"] = (
        f"-Dlog4j2.configurationFile={logging_file} {java_options}".strip()
    )
    given = [jar for jar in settings.get("spark.jars", "").split(",") if jar]
    values["spark.jars"] = ",".join([*given, *jars])
    return values
