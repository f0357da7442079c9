"""The Streams application: fetched and compiled into the cache, run as a process of its own."""

from __future__ import annotations

import collections
import re
import signal
import subprocess
import threading
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.apache_kafka import classpath, java_command
from compat_tests.cache import cached_dir, digest_of
from compat_tests.maven import copy_jars
from compat_tests.toolchains import find_program, run_build

if TYPE_CHECKING:
    from collections.abc import Iterable

_SOURCE = Path(__file__).parent / "WordCount.java"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafkalite</groupId><artifactId>kafka-streams</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka-streams</artifactId>
      <version>{version}</version>
    </dependency>
  </dependencies>
</project>
"""

#: Small and quick to start; a broker and a test run beside it.
_JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

#: What it produces by topic: the updates of each key in their order.
Updates = dict[str, list[str]]


def streams_classpath(version: str) -> str:
    """Return what Kafka Streams and the application add to Kafka's class path; makes it if new."""
    pom = _POM.format(version=version)

    def build(folder: Path) -> None:
        # The rest of what Streams needs comes with Kafka's own jars.
        libs = copy_jars(pom, folder, "-DincludeArtifactIds=kafka-streams,rocksdbjni")
        jars = ":".join([classpath(version), *map(str, libs.glob("*.jar"))])
        options = ["-nowarn", "-proc:none", "-Xlint:-options", "-cp", jars]
        options += ["-d", str(folder / "classes")]
        run_build([find_program("javac"), *options, str(_SOURCE)])

    kafka = classpath(version)  # Before the lock, which it takes too.
    name = f"kafka-streams/{version}-{digest_of(pom, _SOURCE, kafka)}"
    folder = cached_dir(name, build, lock="maven")
    return ":".join([str(folder / "classes"), *map(str, sorted((folder / "libs").glob("*.jar")))])


class Application:
    """One instance of the application, which may be killed and started again.

    Args:
        version: of Kafka Streams.
        bootstrap: the broker.
        application_id: shared by the instances of one application.
        topics: names of the topic with the lines, of the counts' and of the chains'.
        state_dir: the instance's own; it may outlive its process.
        settings: of Kafka Streams.
    """

    def __init__(
        self,
        version: str,
        bootstrap: str,
        application_id: str,
        topics: tuple[str, str, str],
        state_dir: Path,
        settings: dict[str, str],
    ) -> None:
        self.state_dir = state_dir
        settings = {"state.dir": str(state_dir), **settings}
        arguments = [bootstrap, application_id, *topics]
        arguments += [f"{name}={value}" for name, value in settings.items()]
        self._command = java_command(
            version,
            "WordCount",
            *arguments,
            jvm_options=_JVM_OPTIONS,
            extra_classpath=streams_classpath(version),
        )
        self._process: subprocess.Popen[str] | None = None
        self._changed = threading.Condition()
        self._state = ""
        #: What its threads died of, over all of its lives.
        self.failures: list[str] = []
        self.log: collections.deque[str] = collections.deque(maxlen=300)

    def start(self) -> None:
        """Start the process; returns at once."""
        assert self._process is None
        self._state = "STARTING"
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Keep it from doing anything, so that others think it dead."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on where it was, not knowing that time has passed."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """Let it close its clients; return its exit code."""
        return self._end(signal.SIGTERM)

    def log_text(self) -> str:
        """Return the end of what it wrote."""
        return "\n".join(self.log)

    def _end(self, how: signal.Signals) -> int:
        if self._process is None:
            return 0
        process, self._process = self._process, None
        process.send_signal(how)
        try:
            return process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with self._changed:
                self.log.append(line.rstrip())
                if line.startswith("state: "):
                    self._state = line.split()[1]
                elif line.startswith("failed: "):
                    self.failures.append(line.strip())
                self._changed.notify_all()
        process.stdout.close()


def expected_updates(lines: Iterable[tuple[str, str]]) -> tuple[Updates, Updates]:
    """Return what the application must produce, as counts and chains, of lines by their key."""
    counts: Updates = {}
    chains: Updates = {}
    for key, line in lines:
        for word in re.split("[^a-z]+", line.lower()):
            if word:
                updates = counts.setdefault(word, [])
                updates.append(str(len(updates) + 1))
        links = chains.setdefault(key, [])
        before = links[-1] if links else "0:0"
        links.append(f"{len(links) + 1}:{zlib.crc32((before + line).encode())}")
    return counts, chains
