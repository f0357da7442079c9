"""What the tests of Apache Kafka need to run: fetched from Maven Central, and our classes compiled.

Our classes come first on the class path where kafkalite is under test: those of the same name in
`kafka-test-common-runtime` start Apache Kafka's brokers inside the Java machine.
"""

from __future__ import annotations

from pathlib import Path

from compat_tests.apache_kafka import KAFKA_4
from compat_tests.cache import cached_dir, digest_of
from compat_tests.maven import copy_jars
from compat_tests.toolchains import find_program, run_build

#: Test jars whose classes run, by the short name that the result file has.
SUITES = {
    "clients": "kafka-clients-integration-tests",
    "streams": "kafka-streams-integration-tests",
    "tools": "kafka-tools",
    "core": "kafka_2.13",
}

#: Jars of Kafka, and those whose test classes others use.
_KAFKA = (
    "kafka_2.13",
    "kafka-tools",
    "kafka-streams",
    "kafka-streams-test-utils",
    "kafka-test-common-runtime",
    "kafka-test-common-internal-api",
    "kafka-test-common-util",
)
_KAFKA_TESTS = (
    *SUITES.values(),
    "kafka-clients",
    "kafka-streams",
    "kafka-server",
    "kafka-server-common",
    "kafka-group-coordinator",
    "kafka-metadata",
    "kafka-raft",
    "kafka-storage",
    "kafka-transaction-coordinator",
)

#: What Kafka's build gives to its tests and no pom names.
_OTHERS = (
    ("org.junit.jupiter", "junit-jupiter", "5.13.1"),
    ("org.junit.platform", "junit-platform-launcher", "1.13.1"),
    ("org.junit.platform", "junit-platform-suite-engine", "1.13.1"),
    ("org.mockito", "mockito-junit-jupiter", "5.20.0"),
    ("org.hamcrest", "hamcrest", "3.0"),
    ("org.bouncycastle", "bcpkix-jdk18on", "1.82"),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
    ("org.apache.logging.log4j", "log4j-core", "2.25.4"),
    ("org.apache.logging.log4j", "log4j-1.2-api", "2.25.4"),
)

_LOG4J2 = """status=ERROR
appender.err.type=Console
appender.err.name=err
appender.err.target=SYSTEM_ERR
appender.err.layout.type=PatternLayout
appender.err.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=${sys:suite.log.level:-ERROR}
rootLogger.appenderRef.err.ref=err
"""

#: Our sources, with the files by which JUnit finds the extensions among them.
_JAVA = Path(__file__).parent / "java"
RUNNER = _JAVA / "runner"
STAND_INS = _JAVA / "stand_ins"


def _dependency(group: str, artifact: str, version: str, kind: str = "") -> str:
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version>{kind}</dependency>"
    )


def _pom() -> str:
    # Connect is 60 jars that one of the tools uses.
    no_connect = (
        "<exclusions><exclusion><groupId>org.apache.kafka</groupId>"
        "<artifactId>connect-runtime</artifactId></exclusion></exclusions>"
    )
    test = "<type>test-jar</type><classifier>test</classifier>"
    rows = [_dependency("org.apache.kafka", name, KAFKA_4, no_connect) for name in _KAFKA]
    rows += [
        _dependency("org.apache.kafka", name, KAFKA_4, test + no_connect) for name in _KAFKA_TESTS
    ]
    rows += [_dependency(*other) for other in _OTHERS]
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>kafkalite</groupId><artifactId>apache-suite</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{''.join(rows)}</dependencies></project>"
    )


def libs_dir() -> Path:
    """Return the folder of all jars and of the logging settings; fetches it."""
    pom = _pom()

    def build(folder: Path) -> None:
        copy_jars(pom, folder)
        (folder / "log4j2.properties").write_text(_LOG4J2)

    return cached_dir(f"apache-suite/{KAFKA_4}-{digest_of(pom, _LOG4J2)}", build, lock="maven")


def suite_jar(suite: str) -> Path:
    """Return the jar with the tests of a suite."""
    return libs_dir() / "libs" / f"{SUITES[suite]}-{KAFKA_4}-test.jar"


def classes_dir() -> Path:
    """Return the folder of our compiled classes, the runner and the stand-ins; compiles them."""
    sources = sorted(_JAVA.rglob("*.java"))
    classpath = f"{libs_dir() / 'libs'}/*"

    def build(folder: Path) -> None:
        # The runner also works with Apache Kafka's own classes, so the stand-ins are kept apart.
        runner, stand_ins = folder / "runner", folder / "stand-ins"
        ours = [str(source) for source in sources if "runner" in source.parts]
        others = [str(source) for source in sources if "runner" not in source.parts]
        options = ["-nowarn", "-proc:none", "-Xlint:-options", "-cp"]
        javac = [find_program("javac"), *options]
        run_build([*javac, classpath, "-d", str(runner), *ours])
        run_build([*javac, f"{runner}:{classpath}", "-d", str(stand_ins), *others])

    digest = digest_of(*sources, classpath)
    return cached_dir(f"apache-suite/classes-{digest}", build)
