"""Apache's Java client, 4.x and the last of 3.x, one Java machine each."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from compat_tests.apache_kafka import KAFKA_3_9, KAFKA_4, classpath, java_command
from compat_tests.cache import cached_dir, digest_of
from compat_tests.clients import Client, Prepared
from compat_tests.toolchains import find_program, run_build

_SOURCES = sorted(Path(__file__).parent.glob("*.java"))


def classes_dir(version: str) -> Path:
    """Return the folder of the driver compiled against a version's jars; compiles it if needed."""
    jars = classpath(version)

    def build(folder: Path) -> None:
        options = ["-nowarn", "-proc:none", "-Xlint:-options", "-d", str(folder), "-cp", jars]
        run_build([find_program("javac"), *options, *map(str, _SOURCES)])

    return cached_dir(f"java-driver/{version}-{digest_of(*_SOURCES, jars)}", build)


def prepare(version: str) -> Prepared:
    """Fetch the client and compile its driver."""
    return java_command(version, "Driver", extra_classpath=str(classes_dir(version))), {}


_CANNOT_3_9 = {"group:consumer": "group.protocol=consumer was a preview before 4.0"}

CLIENTS = [
    Client(
        name="Java",
        version=version,
        prepare=partial(prepare, version),
        is_current=version == KAFKA_4,
        cannot={} if version == KAFKA_4 else _CANNOT_3_9,
    )
    for version in (KAFKA_4, KAFKA_3_9)
]
