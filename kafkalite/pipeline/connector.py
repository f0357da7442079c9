"""The jars of Spark's Kafka connector: which ones fit the installed Spark, fetched once.

They are fetched by Apache Ivy, which every Spark carries, into the user's cache folder and then
given to Spark as ``spark.jars``. Spark's own ``spark.jars.packages`` is not used: it asks
repositories again at every start, and it trusts ``~/.m2``, where a pom without its jar (left by
any Maven run that only read the pom) makes it fail. See docs/decisions for the choice.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from kafkalite.pipeline.errors import PipelineError
from kafkalite.pipeline.installation import JavaRuntime, SparkInstallation

GROUP = "org.apache.spark"
MAVEN_CENTRAL = "https://repo1.maven.org/maven2/"

#: What Spark has in its own jars folder; two versions of these on one class path do not mix.
_CARRIED_BY_SPARK = (
    "com.google.code.findbugs",
    "org.apache.hadoop",
    "org.lz4",
    "org.scala-lang",
    "org.scala-lang.modules",
    "org.slf4j",
    "org.xerial.snappy",
)
_FETCH_SECONDS = 300


CONNECTOR = "spark-sql-kafka-0-10"
AVRO = "spark-avro"
"""What reads values that were written with Avro; fetched by who asks for that."""


def connector_artifact(spark: SparkInstallation, module: str = CONNECTOR) -> str:
    """Return a module's artifact name for the Scala that this Spark is built with."""
    return f"{module}_{spark.scala_version}"


def connector_coordinates(spark: SparkInstallation, module: str = CONNECTOR) -> str:
    """Return ``group:artifact:version``, as ``--packages`` of spark-submit takes it."""
    return f"{GROUP}:{connector_artifact(spark, module)}:{spark.version}"


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that keeps fetched jars; ``XDG_CACHE_HOME`` moves it."""
    base = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "kafkalite" / "spark"


def connector_jars(
    spark: SparkInstallation,
    java: JavaRuntime,
    environment: Mapping[str, str] = os.environ,
    module: str = CONNECTOR,
) -> list[Path]:
    """Return the jars to add to Spark, sorted; fetches them the first time.

    Nothing is asked of the network if the cache has them. ``KAFKALITE_MAVEN_REPOSITORY`` names
    another repository than Maven Central (a company's mirror, ``file:///…``).

    Raises:
        PipelineError: the connector (or another `module` of Spark) could not be fetched; the line
            says from where.
    """
    folder = cache_folder(environment) / f"{connector_artifact(spark, module)}-{spark.version}"
    if not folder.is_dir():
        _fetch_into(folder, spark, java, environment, module)
    return sorted(folder.glob("*.jar"))


def _fetch_into(
    folder: Path,
    spark: SparkInstallation,
    java: JavaRuntime,
    environment: Mapping[str, str],
    module: str,
) -> None:
    """Fetch into a scratch folder that is renamed when complete: two runs at once do no harm."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    repository = environment.get("KAFKALITE_MAVEN_REPOSITORY") or MAVEN_CENTRAL
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as scratch_name:
        scratch = Path(scratch_name)
        output = _run_ivy(scratch, repository, spark=spark, java=java, module=module)
        jars = scratch / "jars"
        if not any(jars.glob(f"{connector_artifact(spark, module)}-*.jar")):
            raise PipelineError(_refusal(spark, repository, output, module))
        try:
            jars.rename(folder)
        except OSError:
            # Another run was first, and its jars are the same.
            if not folder.is_dir():
                raise
        shutil.rmtree(scratch / "ivy", ignore_errors=True)


def _run_ivy(
    scratch: Path, repository: str, *, spark: SparkInstallation, java: JavaRuntime, module: str
) -> str:
    settings = scratch / "ivysettings.xml"
    settings.write_text(ivy_settings(repository, cache=scratch / "ivy"))
    wanted = scratch / "ivy.xml"
    wanted.write_text(ivy_module(spark, module))
    pattern = f"{scratch}/jars/[artifact]-[revision](-[classifier]).[ext]"
    command = [str(java.program), "-cp", f"{spark.jars}/*", "org.apache.ivy.Main"]
    options = ["-settings", str(settings), "-ivy", str(wanted), "-confs", "default"]
    try:
        done = subprocess.run(
            [*command, *options, "-types", "jar", "bundle", "-retrieve", pattern],
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    return done.stdout + done.stderr


def ivy_settings(repository: str, *, cache: Path) -> str:
    """Return Ivy's settings: one repository in Maven's layout, and a cache of its own."""
    root = quoteattr(repository.rstrip("/") + "/")
    return f"""<ivysettings>
  <settings defaultResolver="maven"/>
  <caches defaultCacheDir={quoteattr(str(cache))}/>
  <resolvers>
    <ibiblio name="maven" m2compatible="true" usepoms="true" root={root}/>
  </resolvers>
</ivysettings>
"""


def ivy_module(spark: SparkInstallation, module: str = CONNECTOR) -> str:
    """Return Ivy's description of what is wanted: the connector and what it needs at run time."""
    excluded = "\n".join(f"    <exclude org={quoteattr(name)}/>" for name in _CARRIED_BY_SPARK)
    return f"""<ivy-module version="2.0">
  <info organisation="kafkalite" module="connector"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="{GROUP}" name="{connector_artifact(spark, module)}" rev="{spark.version}"
      conf="default->compile,master,runtime(*)"/>
{excluded}
  </dependencies>
</ivy-module>
"""


def _refusal(
    spark: SparkInstallation, repository: str, output: str, module: str = CONNECTOR
) -> str:
    wanted = connector_coordinates(spark, module)
    missing = re.findall(r":: (\S+)#(\S+);(\S+): not found", output)
    unreachable = "Server access error" in output or "UnknownHostException" in output
    if missing and not unreachable:
        names = ", ".join(":".join(part) for part in dict.fromkeys(missing))
        return (
            f"Spark {spark.version} needs its Kafka connector {wanted}, and {repository} does not "
            f"have {names}; install a PySpark whose connector is there, such as: "
            "pip install 'pyspark==4.0.0'"
        )
    return (
        f"the Kafka connector {wanted} could not be fetched from {repository}: "
        "check the network, or name a mirror in KAFKALITE_MAVEN_REPOSITORY"
    )
