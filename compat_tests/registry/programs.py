"""How the programs of this folder are installed and built: each a command without its arguments."""

from __future__ import annotations

import os
from pathlib import Path

from compat_tests.cache import cached_dir, digest_of
from compat_tests.clients import Prepared, python_client
from compat_tests.toolchains import find_program, run_build

FOLDER = Path(__file__).parent
PYTHON = "confluent-kafka[avro,json,protobuf,schemaregistry]==2.16.0"


def python() -> Prepared:
    """Confluent's serializers for Python."""
    (python_program, *_), environment = python_client("registry", PYTHON)
    return [python_program, str(FOLDER / "program.py")], environment


def node() -> Prepared:
    """@kafkajs/confluent-schema-registry."""
    wanted = FOLDER / "package.json"

    def build(target: Path) -> None:
        (target / "package.json").write_bytes(wanted.read_bytes())
        quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        run_build([find_program("npm"), "install", *quiet], cwd=target)

    packages = cached_dir(f"node/registry-{digest_of(wanted)}", build, lock="npm")
    command = [find_program("node"), str(FOLDER / "program.js")]
    return command, {"NODE_PATH": str(packages / "node_modules")}


def go() -> Prepared:
    """franz-go's package sr."""
    sources = [FOLDER / name for name in ("main.go", "go.mod", "go.sum")]

    def build(target: Path) -> None:
        for source in sources:
            (target / source.name).write_bytes(source.read_bytes())
        run_build([find_program("go"), "build", "-o", "program", "."], cwd=target)

    built = cached_dir(f"go/registry-{digest_of(*sources)}", build, lock="go")
    return [str(built / "program")], {}


def java() -> Prepared:
    """Flink's serde, which Maven Central has with Confluent's own client inside.

    Confluent's serdes are not on Maven Central, and those of Apicurio speak another API.
    """
    sources = [FOLDER / "pom.xml", FOLDER / "Program.java"]

    def build(target: Path) -> None:
        for source in sources:
            (target / source.name).write_bytes(source.read_bytes())
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={target}/jars"]
        run_build([find_program("mvn"), "-q", "-B", *copy], cwd=target)
        classpath = f"{target}/jars/*"
        run_build([find_program("javac"), "-cp", classpath, "Program.java"], cwd=target)

    built = cached_dir(f"java-registry/{digest_of(*sources)}", build, lock="maven")
    classpath = os.pathsep.join([f"{built}/jars/*", str(built)])
    return [find_program("java"), "-XX:TieredStopAtLevel=1", "-cp", classpath, "Program"], {}
