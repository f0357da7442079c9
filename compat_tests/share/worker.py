"""Workers of a queue: Java processes with Apache's share consumer, and what they have said."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path
from typing import NamedTuple

from compat_tests.apache_kafka import KAFKA_4, classpath, java_command
from compat_tests.cache import cached_dir, digest_of
from compat_tests.toolchains import find_program, run_build

_GO = Path(__file__).parent / "go"
_SOURCE = Path(__file__).parent / "ShareWorker.java"


class Said(NamedTuple):
    """One line of a worker."""

    what: str
    partition: int
    offset: int
    count: int
    value: str


def _classes(version: str) -> Path:
    jars = classpath(version)

    def build(folder: Path) -> None:
        options = ["-nowarn", "-proc:none", "-Xlint:-options", "-d", str(folder), "-cp", jars]
        run_build([find_program("javac"), *options, str(_SOURCE)])

    return cached_dir(f"java-share-worker/{version}-{digest_of(_SOURCE, jars)}", build)


class Worker:
    """A process that works off a queue until nothing comes for `idle_s` seconds."""

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        *settings: str,
        mode: str = "explicit",
        idle_s: int = 12,
        version: str = KAFKA_4,
    ) -> None:
        arguments = (bootstrap, group, topic, mode, str(idle_s), *settings)
        command = self._command(version, arguments)
        self.lines: list[str] = []
        self.is_killed = False
        self._times: list[float] = []
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.errors = ""
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _command(self, version: str, arguments: tuple[str, ...]) -> list[str]:
        classes = str(_classes(version))
        return java_command(version, "ShareWorker", *arguments, extra_classpath=classes)

    def said(self, what: str) -> list[Said]:
        """Return its lines that begin with a word."""
        return [said for _, said in self.timed(what)]

    def timed(self, what: str) -> list[tuple[float, Said]]:
        """Return its lines that begin with a word, each with the time at which it was read."""
        found = []
        for at_s, line in zip(self._times, [*self.lines], strict=False):
            words = line.split(" ", 4)
            if words[0] == what and len(words) == 5:
                said = Said(what, int(words[1]), int(words[2]), int(words[3]), words[4])
                found.append((at_s, said))
        return found

    def unanswered(self) -> list[Said]:
        """Return what it got before a commit that failed: it may have been done all the same."""
        found: list[Said] = []
        batch: list[Said] = []
        for line in self.lines:
            words = line.split(" ", 4)
            if words[0] == "got" and len(words) == 5:
                batch.append(Said("got", int(words[1]), int(words[2]), int(words[3]), words[4]))
            elif words[0] == "failed":
                found += batch
                batch = []
            else:
                batch = []
        return found

    def wait(self, timeout_s: float = 120) -> None:
        """Wait for its end, which must be a good one."""
        code = self.process.wait(timeout_s)
        self._end()
        assert code == 0, self.errors[-3000:]

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.is_killed = True
        self.process.kill()
        self.process.wait()
        self._end()

    def _end(self) -> None:
        for reader in self._readers:
            reader.join(10)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.process.stdout.close()
        self.process.stderr.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._times.append(time.monotonic())
            self.lines.append(line.rstrip("\n"))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line


class GoWorker(Worker):
    """The same with franz-go."""

    def _command(self, version: str, arguments: tuple[str, ...]) -> list[str]:
        del version
        sources = [*sorted(_GO.iterdir())]

        def build(folder: Path) -> None:
            for source in sources:
                (folder / source.name).write_bytes(source.read_bytes())
            run_build([find_program("go"), "build", "-o", "worker", "."], cwd=folder)

        built = cached_dir(f"go/share-worker-{digest_of(*sources)}", build, lock="go")
        return [str(built / "worker"), *arguments]
