"""Runs classes of Apache Kafka's tests in one Java machine and reads what it tells."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compat_tests.apache_suite.jars import RUNNER, STAND_INS, classes_dir, libs_dir
from compat_tests.toolchains import find_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_JVM_OPTIONS = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
#: Kafka's build gives these to its tests, too; mocks of classes need the agent.
_OPENED = ("java.base/java.util=ALL-UNNAMED", "java.base/java.util.concurrent=ALL-UNNAMED")
#: Exit code of the runner at its end.
_ALL_RUN = 42


@dataclass(slots=True)
class Outcome:
    """What became of the tests of one class.

    Attributes:
        failed: messages by test.
        not_applicable: reasons by test.
        problem: why the class did not come to its end, None if it did.
    """

    passed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    not_applicable: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    problem: str | None = None


def run_class(
    name: str, *, broker: str, timeout_s: float, keep: Path, methods: Iterable[str] = ()
) -> Outcome:
    """Run a class, or only methods of it; see `run_classes`."""
    chosen = [f"{name}#{method}" for method in methods] or [name]
    ((_, outcome),) = _run([name], _command(broker, keep, {}, chosen), keep, timeout_s)
    return outcome


def run_classes(
    names: Iterable[str],
    *,
    broker: str,
    timeout_s: float,
    keep: Path,
    not_applicable: Mapping[str, str],
) -> Iterator[tuple[str, Outcome]]:
    """Run classes one after another; tell what became of each when it ends.

    All share a Java machine. One that hangs or ends the machine has a problem, and another machine
    goes on after it.

    Args:
        broker: "kafkalite", or "apache" for Kafka's own classes.
        timeout_s: for one class, after which the Java machine is ended.
        keep: folder for the logs; each machine has a folder there, by its first class.
        not_applicable: methods (`Class#method`) that are not started, with the reason.
    """
    left = list(names)
    while left:
        folder = keep / left[0].rpartition(".")[2]
        command = _command(broker, folder, not_applicable, left)
        for name, outcome in _run(left.copy(), command, folder, timeout_s):
            left.remove(name)
            yield name, outcome


def _command(
    broker: str, keep: Path, not_applicable: Mapping[str, str], chosen: list[str]
) -> list[str]:
    shutil.rmtree(keep, ignore_errors=True)
    keep.mkdir(parents=True)
    reasons = keep / "not-applicable.tsv"
    rows = not_applicable.items()
    reasons.write_text("".join(f"{method}\t{reason}\n" for method, reason in rows))
    libs, classes = libs_dir(), classes_dir()
    folders = [classes / "runner", RUNNER]
    options = [f"-Dsuite.not.applicable={reasons}", f"-Djava.io.tmpdir={keep}"]
    if broker == "kafkalite":
        folders = [classes / "stand-ins", STAND_INS, *folders]
        keeper = f"{sys.executable} -m compat_tests.apache_suite.brokers {keep}"
        options += ["-Dsuite.kafkalite=true", f"-Dsuite.brokers.command={keeper}"]
    classpath = ":".join([*map(str, folders), f"{libs / 'libs'}/*"])
    for opened in _OPENED:
        options += ["--add-opens", opened]
    mockito = next((libs / "libs").glob("mockito-core-*.jar"))
    return [
        find_program("java"),
        *_JVM_OPTIONS,
        f"-javaagent:{mockito}",
        f"-Dlog4j2.configurationFile={libs / 'log4j2.properties'}",
        *options,
        "-cp",
        classpath,
        "kafkalite.suite.Run",
        *chosen,
    ]


def _run(
    names: list[str], command: list[str], keep: Path, timeout_s: float
) -> Iterator[tuple[str, Outcome]]:
    """Run one Java machine to its end; what has ended is told by the class that is running."""
    begun: dict[str, Outcome] = {}
    with open(keep / "stderr.log", "wb") as log, open(keep / "tests.jsonl", "w") as progress:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            env={**os.environ, "KAFKA_OPTS": ""},
        )
        watchdog = _watch(process, timeout_s)
        assert process.stdout is not None
        try:
            for text in process.stdout:
                progress.write(text)
                progress.flush()
                line = json.loads(text)
                name = line["class"]
                if not name:
                    raise RuntimeError(line["message"])
                outcome = begun.setdefault(name, Outcome())
                if line["status"] == "begun":
                    watchdog.cancel()
                    watchdog = _watch(process, timeout_s)
                elif line["status"] == "ended":
                    outcome.seconds = round(line["seconds"], 1)
                    names.remove(name)
                    yield name, begun.pop(name)
                else:
                    _take(outcome, line)
        finally:
            watchdog.cancel()
            process.stdout.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode == _ALL_RUN:
        for name in names:
            nothing = Outcome(not_applicable={"all": "has no tests of its own"})
            yield name, begun.get(name, nothing)
        return
    name = next(iter(begun), names[0])
    outcome = begun.get(name, Outcome())
    timed_out = process.returncode == -signal.SIGKILL
    tail = (keep / "stderr.log").read_text(errors="replace")[-1500:]
    outcome.problem = f"no end in {timeout_s:.0f} s" if timed_out else tail
    outcome.seconds = timeout_s if timed_out else 0.0
    yield name, outcome


def _watch(process: subprocess.Popen[str], timeout_s: float) -> threading.Timer:
    watchdog = threading.Timer(timeout_s, process.kill)
    watchdog.start()
    return watchdog


def _take(outcome: Outcome, line: dict[str, str | float]) -> None:
    test = _name(str(line["id"]), str(line["name"]))
    if line["status"] == "passed":
        outcome.passed += 1
    elif line["status"] == "failed":
        outcome.failed[test] = str(line["message"])
    else:
        outcome.not_applicable[test] = str(line["message"])


def _name(unique_id: str, display_name: str) -> str:
    """Return a test's method, with the number of its run where there are several."""
    method, number = "", ""
    for part in unique_id.split("/"):
        kind, _, value = part.strip("[]").partition(":")
        if kind in ("method", "test-template"):
            method = value.partition("(")[0]
        elif kind in ("test-template-invocation", "dynamic-test"):
            number = value
    return (method or display_name) + number
