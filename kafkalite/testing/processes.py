"""Child processes that are started, watched and stopped beside a test or a command.

Each runs in a session of its own, so that Ctrl-C reaches only the process that started it, which
then stops its children in order. Each has a guard: a shell of a few hundred kilobytes that kills it
when the process that started it is gone, however that one ended (also by SIGKILL).
"""

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Final

POLL_S: Final = 0.01
"""How often a log is looked at while a line is waited for."""

TAIL_BYTES: Final = 16_384

PORT_ATTEMPTS: Final = 100
PORTS: Final = range(20_000, 32_000)
"""Below the range from which Linux takes the ports of outgoing connections (32,768 and up)."""

_GUARD: Final = 'read line || kill -s KILL -- "-$1"'
"""Ends quietly when it is told so by a line; its input ends without one when its parent dies."""


class ProcessError(Exception):
    """A process did not start.

    Attributes:
        summary: what happened, in one line.
        tail: the last lines of its log.
    """

    def __init__(self, summary: str, tail: str = "") -> None:
        super().__init__(f"{summary}:\n{tail}" if tail else summary)
        self.summary = summary
        self.tail = tail


class Child:
    """A running process, whose output goes to the end of a log file.

    Args:
        command: program and arguments.
        log_file: where standard output and standard error go.
        environment: variables of the process; this one's if None.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        log_file: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.log_file = log_file
        with open(log_file, "ab") as log:
            self._log_start = log.tell()
            self._process = self._start(command, log, environment)
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", str(self._process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _start(
        self, command: Sequence[str], log: BinaryIO, environment: Mapping[str, str] | None
    ) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The process ID."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while the process runs."""
        code = self._process.poll()
        if code is not None:
            self._dismiss_guard()
        return code

    @property
    def is_running(self) -> bool:
        """Whether it has not ended; a paused process runs."""
        return self.poll() is None

    def wait(self, timeout_s: float) -> int:
        """Return the exit code, once it ended.

        Raises:
            TimeoutError: it runs still.
        """
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"process {self.pid} did not end in {timeout_s:g} s") from None
        self._dismiss_guard()
        return code

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it and to what it started; nothing if it has ended."""
        if self.is_running:
            os.killpg(self.pid, number)

    def pause(self) -> None:
        """Stop it by SIGSTOP; every thread of it stands still when this returns."""
        self.send(signal.SIGSTOP)
        if self.is_running and hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self.send(signal.SIGCONT)

    def stop(self, timeout_s: float) -> int:
        """End it by SIGTERM, by SIGKILL after a time; return the exit code."""
        self.send(signal.SIGTERM)
        self.resume()
        try:
            return self.wait(timeout_s)
        except TimeoutError:
            return self.kill()

    def kill(self) -> int:
        """End it by SIGKILL; return the exit code."""
        self.send(signal.SIGKILL)
        return self.wait(timeout_s=30)

    def output(self, bytes_max: int | None = None) -> str:
        """Return what it wrote since it was started, or only the end of that."""
        with open(self.log_file, "rb") as log:
            size = log.seek(0, os.SEEK_END)
            start = self._log_start
            log.seek(start if bytes_max is None else max(start, size - bytes_max))
            return log.read().decode(errors="replace")

    def tail(self, lines: int = 20) -> str:
        """Return its last lines of output."""
        return "\n".join(self.output(TAIL_BYTES).splitlines()[-lines:])

    def _dismiss_guard(self) -> None:
        guard = self._guard
        if guard.returncode is None:
            # The process was reaped just now: its number could be given to another from here on.
            guard.kill()
            guard.wait()
            assert guard.stdin is not None
            guard.stdin.close()


def unused_port(host: str = "127.0.0.1") -> int:
    """Return a port that nobody listens on now; for programs that cannot be given port 0."""
    for _ in range(PORT_ATTEMPTS):
        port = random.choice(PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
        return port
    raise ProcessError(f"no free port between {PORTS.start} and {PORTS.stop} on {host}")


def wait_until_true(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Call a condition every few milliseconds until it is true; False if it never was."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True
