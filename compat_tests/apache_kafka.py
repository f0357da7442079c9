"""Apache Kafka itself, fetched from Maven Central: its jars, command-line tools and broker.

The tests use it as a client (tools, Java client), as the oracle that the scenarios must pass
against first, and as the peer of the benchmarks. ``classpath(version)`` fetches on first use into
the user's cache folder, safely when several processes ask at once.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from compat_tests.cache import cached_dir, digest_of
from compat_tests.maven import copy_jars
from compat_tests.toolchains import find_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The current release and the last of the 3.x line, which still speaks the old protocol versions.
KAFKA_4 = "4.3.1"
KAFKA_3_9 = "3.9.2"

#: Quick start matters more than peak speed for tools that live for a second.
TOOL_JVM_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
)
BROKER_JVM_OPTIONS = ("-Xms256m", "-Xmx1g")

#: kafka-tools without Connect, which only one tool that nobody needs here uses (60 jars less).
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafkalite</groupId><artifactId>apache-kafka</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{version}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId>
      <version>{version}</version>
      <exclusions>
        <exclusion>
          <groupId>org.apache.kafka</groupId><artifactId>connect-runtime</artifactId>
        </exclusion>
      </exclusions>
    </dependency>
{logging}
  </dependencies>
</project>
"""

#: The logging back ends, which the tarball adds and no pom names.
_LOGGING_4 = (
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
    ("org.apache.logging.log4j", "log4j-core", "2.25.4"),
    ("org.apache.logging.log4j", "log4j-1.2-api", "2.25.4"),
)
_LOGGING_3 = (
    ("org.slf4j", "slf4j-reload4j", "1.7.36"),
    ("ch.qos.reload4j", "reload4j", "1.2.25"),
)

_LOG4J2_PROPERTIES = """status=ERROR
appender.err.type=Console
appender.err.name=err
appender.err.target=SYSTEM_ERR
appender.err.layout.type=PatternLayout
appender.err.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=${sys:kafkalite.log.level:-WARN}
rootLogger.appenderRef.err.ref=err
"""
_LOG4J1_PROPERTIES = """kafkalite.log.level=WARN
log4j.rootLogger=${kafkalite.log.level}, err
log4j.appender.err=org.apache.log4j.ConsoleAppender
log4j.appender.err.Target=System.err
log4j.appender.err.layout=org.apache.log4j.PatternLayout
log4j.appender.err.layout.ConversionPattern=[%d] %p %m (%c)%n
"""

#: Main classes whose home moved between 3.9 and 4.x; the others are the same in both.
_MOVED_IN_4 = {
    "org.apache.kafka.tools.AclCommand": "kafka.admin.AclCommand",
    "org.apache.kafka.tools.BrokerApiVersionsCommand": "kafka.admin.BrokerApiVersionsCommand",
    "org.apache.kafka.tools.ConsoleProducer": "kafka.tools.ConsoleProducer",
    "org.apache.kafka.tools.DumpLogSegments": "kafka.tools.DumpLogSegments",
}

#: Short names for `run_tool`, as the scripts in Kafka's bin/ are called.
TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-share-consumer-perf-test": "org.apache.kafka.tools.ShareConsumerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
}


def is_4(version: str) -> bool:
    """Tell whether a version is of the 4.x line (KRaft only, log4j2)."""
    return not version.startswith("3.")


def kafka_dir(version: str = KAFKA_4) -> Path:
    """Return the folder with ``libs/`` and logging settings of a Kafka version; fetches it."""
    pom = _pom(version)

    def build(folder: Path) -> None:
        copy_jars(pom, folder)
        (folder / "log4j2.properties").write_text(_LOG4J2_PROPERTIES)
        (folder / "log4j.properties").write_text(_LOG4J1_PROPERTIES)

    name = f"apache-kafka/{version}-{digest_of(pom, _LOG4J1_PROPERTIES, _LOG4J2_PROPERTIES)}"
    return cached_dir(name, build, lock="maven")


def classpath(version: str = KAFKA_4) -> str:
    """Return the class path (``:`` between jars, sorted) of a Kafka version; fetches it."""
    return ":".join(sorted(str(jar) for jar in (kafka_dir(version) / "libs").glob("*.jar")))


def main_class(version: str, name: str) -> str:
    """Return the main class of a tool, given by its script name or its class in Kafka 4.x."""
    name = TOOLS.get(name, name)
    return name if is_4(version) else _MOVED_IN_4.get(name, name)


def java_command(
    version: str,
    main: str,
    *arguments: str,
    jvm_options: Sequence[str] = TOOL_JVM_OPTIONS,
    extra_classpath: str = "",
    log_level: str = "WARN",
) -> list[str]:
    """Return the command line that runs a main class with Kafka's jars; its log goes to stderr."""
    home = kafka_dir(version)
    jars = classpath(version) + (f":{extra_classpath}" if extra_classpath else "")
    return [
        find_program("java"),
        *jvm_options,
        f"-Dkafkalite.log.level={log_level}",
        f"-Dlog4j2.configurationFile={home / 'log4j2.properties'}",
        f"-Dlog4j.configuration=file:{home / 'log4j.properties'}",
        "-cp",
        jars,
        main_class(version, main),
        *arguments,
    ]


def run_tool(
    version: str,
    tool: str,
    *arguments: str,
    stdin: str | bytes | None = None,
    timeout: float = 60.0,
    check: bool = True,
    jvm_options: Sequence[str] = TOOL_JVM_OPTIONS,
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools to its end and return it with stdout and stderr as text.

    Args:
        version: `KAFKA_4`, `KAFKA_3_9` or another release.
        tool: a script's name such as ``kafka-topics``, or a main class.
        arguments: what follows on the command line.
        stdin: text for its standard input; empty if None.
        timeout: seconds after which it is killed and `subprocess.TimeoutExpired` raised.
        check: raise with both outputs if it does not end with 0.
        jvm_options: options of the Java machine.
    """
    command = java_command(version, tool, *arguments, jvm_options=jvm_options)
    text = stdin.decode() if isinstance(stdin, bytes) else stdin or ""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=timeout)
    if check and done.returncode != 0:
        raise RuntimeError(
            f"{tool} {' '.join(arguments)} ended with {done.returncode}\n"
            f"stdout: {done.stdout[-3000:]}\nstderr: {done.stderr[-3000:]}"
        )
    return done


def free_port() -> int:
    """Return a port that was free a moment ago (Kafka's controller cannot report one it chose)."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ApacheBroker:
    """One KRaft node of Apache Kafka on loopback: ``with ApacheBroker() as b: b.bootstrap``.

    Args:
        version: release to run.
        config: settings that override the one-node defaults below.
        data_dir: data directory to use and keep (an existing one is not formatted again); a
            temporary one, removed at the end, if None.
        advertised_port: port that clients are told, for a proxy in front; the real one if None.
        port: where to listen, so that clients find it again after a restart; a free one if None.
        jvm_options: options of the Java machine.
        more_listeners: their protocols by their names, at free ports; see `addresses`.
        more_jvm_options: options in addition.

    Attributes:
        addresses: `HOST:PORT` of all listeners by their names.
    """

    def __init__(
        self,
        version: str = KAFKA_4,
        config: Mapping[str, Any] | None = None,
        *,
        data_dir: Path | str | None = None,
        port: int | None = None,
        advertised_port: int | None = None,
        jvm_options: Sequence[str] = BROKER_JVM_OPTIONS,
        more_listeners: Mapping[str, str] | None = None,
        more_jvm_options: Sequence[str] = (),
    ) -> None:
        self.version = version
        self.config = dict(config or {})
        self.jvm_options = (*jvm_options, *more_jvm_options)
        self.more_listeners = dict(more_listeners or {})
        self.addresses: dict[str, str] = {}
        self.advertised_port = advertised_port
        self.wanted_port = port
        self._clean_up = contextlib.ExitStack()
        if data_dir is None:
            scratch = tempfile.TemporaryDirectory(
                prefix="apache-kafka-", ignore_cleanup_errors=True
            )
            self.base_dir = Path(self._clean_up.enter_context(scratch))
            self.data_dir = self.base_dir / "data"
        else:
            self.data_dir = Path(data_dir)
            self.base_dir = self.data_dir.parent / f"{self.data_dir.name}-apache"
            self.base_dir.mkdir(parents=True, exist_ok=True)
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """``host:port`` for clients (the real port, not the advertised one)."""
        return f"127.0.0.1:{self.port}"

    @property
    def log_file(self) -> Path:
        """The broker's own log."""
        return self.base_dir / "broker.log"

    def start(self, timeout: float = 60.0) -> ApacheBroker:
        """Format the data directory if it is new, start the broker, return when it serves."""
        for attempt in range(3):
            self.port, controller_port = self.wanted_port or free_port(), free_port()
            properties = self._write_properties(controller_port)
            self._format(properties)
            self._spawn(properties)
            if self._wait_ready(timeout):
                return self
            self.stop()
            if "Address already in use" not in self._log_tail() or attempt == 2:
                break
        raise RuntimeError(f"Apache Kafka {self.version} did not start:\n{self._log_tail()}")

    def stop(self, *, kill: bool = False, timeout: float = 30.0) -> None:
        """Stop the broker cleanly (or by SIGKILL); the data directory stays until `close`."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def close(self) -> None:
        """Stop and remove a temporary data directory."""
        self.stop()
        self._clean_up.close()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def run_tool(self, tool: str, *arguments: str, **options: Any) -> Any:
        """Run a tool of this broker's version, adding ``--bootstrap-server``."""
        where = ("--bootstrap-server", self.bootstrap)
        return run_tool(self.version, tool, *where, *arguments, **options)

    def _write_properties(self, controller_port: int) -> Path:
        address = "PLAINTEXT://127.0.0.1"
        self.addresses = {name: f"127.0.0.1:{free_port()}" for name in self.more_listeners}
        more = "".join(f",{name}://{where}" for name, where in self.addresses.items())
        protocols = "".join(f",{name}:{kind}" for name, kind in self.more_listeners.items())
        self.addresses["PLAINTEXT"] = self.bootstrap
        settings: dict[str, Any] = {
            "process.roles": "broker,controller",
            "node.id": 0,
            "controller.quorum.voters": f"0@127.0.0.1:{controller_port}",
            "listeners": f"{address}:{self.port},CONTROLLER://127.0.0.1:{controller_port}" + more,
            "advertised.listeners": f"{address}:{self.advertised_port or self.port}{more}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
            + protocols,
            "log.dirs": self.data_dir,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 8,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 8,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 300,
            "group.initial.rebalance.delay.ms": 0,
            "log.cleaner.dedupe.buffer.size": 16777216,
        }
        if is_4(self.version):
            settings["share.coordinator.state.topic.replication.factor"] = 1
            settings["share.coordinator.state.topic.min.isr"] = 1
        settings.update(self.config)
        path = self.base_dir / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path

    def _format(self, properties: Path) -> None:
        if (self.data_dir / "meta.properties").exists():
            return
        cluster_id = "MkU3OEVBNTcwNTJENDM2Qg"
        run_tool(self.version, "kafka-storage", "format", "-t", cluster_id, "-c", str(properties))

    def _spawn(self, properties: Path) -> None:
        command = java_command(
            self.version,
            "kafka.Kafka",
            str(properties),
            jvm_options=(*self.jvm_options, f"-Dkafka.logs.dir={self.base_dir}"),
            log_level="INFO",
        )
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def _wait_ready(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        seen = ""
        with open(self.log_file, encoding="utf-8", errors="replace") as log:
            while time.monotonic() < deadline:
                seen += log.read()
                if "Kafka Server started" in seen:
                    return True
                assert self.process is not None
                if self.process.poll() is not None:
                    return False
                time.sleep(0.02)
        return False

    def _log_tail(self) -> str:
        return self.log_file.read_text(errors="replace")[-4000:] if self.log_file.exists() else ""


def _pom(version: str) -> str:
    logging = "\n".join(
        f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{number}</version></dependency>"
        for group, artifact, number in (_LOGGING_4 if is_4(version) else _LOGGING_3)
    )
    return _POM.format(version=version, logging=logging)
